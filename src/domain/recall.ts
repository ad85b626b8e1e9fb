import type { UserMessage } from "../contracts/content.js";
import type { LogEntry } from "../contracts/log.js";
import { isReplacement } from "./surface.js";

/** What later steps look back for in the log: carried over a roll-over, for older entries are archived. Plain JSON. */
export interface Recall {
  /** The runtime context the model was last shown, and the entry it came with: it counts while that is on the surface. */
  readonly runtimeContext?: { readonly text: string; readonly seq: number };
  /** When the model was last told the time, and when it was last shown anything, epoch ms. */
  readonly readingAt?: number;
  readonly shownAt?: number;
  /** Zones that the user messages of the open turn name. */
  readonly turnZones: readonly string[];
  /** Zone of the newest user message that names one. */
  readonly userZone?: string;
}

export const noRecall: Recall = { turnZones: [] };

/** Brought up to date with the entries of a run; `before` is what its predecessor carried. @public */
export function recallOf(entries: readonly LogEntry[], before: Recall): Recall {
  return entries.reduce(foldRecall, before);
}

function foldRecall(recall: Recall, entry: LogEntry): Recall {
  switch (entry.type) {
    case "turn/start":
      return recall.turnZones.length === 0 ? recall : { ...recall, turnZones: [] };
    case "assistant/message":
      return { ...recall, shownAt: entry.time };
    case "user/message":
      // What takes the place of others tells nothing new.
      if (isReplacement(entry)) return recall;
      return told({ ...recall, shownAt: entry.time }, entry.data.message, entry);
    default:
      return recall;
  }
}

function told(
  recall: Recall,
  { source, content }: UserMessage,
  { seq, time }: Pick<LogEntry, "seq" | "time">,
): Recall {
  const zone = source.kind === "user" ? source["timeZone"] : undefined;
  if (zone !== undefined) {
    const zones = new Set([...recall.turnZones, zone]);
    return { ...recall, turnZones: [...zones], userZone: zone };
  }
  const [block] = content;
  if (source["name"] === "runtime-context" && block?.type === "text")
    return { ...recall, runtimeContext: { text: block.text, seq } };
  return source["name"] === "time-context" ? { ...recall, readingAt: time } : recall;
}
