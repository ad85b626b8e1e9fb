import type { TextBlock } from "../contracts/content.js";
import type { EntryOf, LogEntry, NewEntry } from "../contracts/log.js";
import type { SurfaceNode } from "../contracts/session.js";
import { estimateMessage } from "./token-meter.js";

/** Code points: results above the limit keep a head and a tail (spec/harness §6). */
const limit = 8_192;
const headPoints = 4_096;
const tailPoints = 1_024;

/** The shortened text, or undefined when it is short enough. What was shortened once is not shortened again. */
export function pruneText(text: string): string | undefined {
  if (text.length <= limit) return undefined;
  const points = Array.from(text);
  if (points.length <= limit) return undefined;
  const dropped = points.length - headPoints - tailPoints;
  const head = points.slice(0, headPoints).join("");
  return `${head}\n[${dropped} characters of this result were removed to save space]\n${points.slice(-tailPoints).join("")}`;
}

/**
 * Entries that shorten every large tool result among some surface nodes, each a `compaction/prune` and its replacement, in surface
 * order. `positionOf` and `entryOf`: where the node of a `seq` stands, and the entry it came from, if it is at hand.
 */
export function planPrune(
  nodes: readonly SurfaceNode[],
  positionOf: (seq: number) => number,
  entryOf: (seq: number) => LogEntry | undefined,
): readonly (readonly [NewEntry, NewEntry])[] {
  return nodes.flatMap((node) => {
    const entry = entryOf(node.seq);
    return entry?.type === "tool/result" ? prunePair(entry, positionOf) : [];
  });
}

function prunePair(
  { seq, data }: EntryOf<"tool/result">,
  positionOf: (seq: number) => number,
): readonly (readonly [NewEntry, NewEntry])[] {
  const [block] = data.message.content;
  if (block?.type !== "tool-result") return [];
  const text = pruneText(block.content.map((part) => part.text).join("\n"));
  if (text === undefined) return [];
  const position = positionOf(seq);
  const content: readonly TextBlock[] = [{ type: "text", text }];
  const shadowed = {
    shadowedRange: { start: seq, end: seq },
    shadowedSeqs: [seq],
    shadowedTokenCount: estimateMessage(data.message),
  };
  return [
    [
      { type: "compaction/prune", data: shadowed },
      {
        type: "tool/result",
        surfaceOp: { op: "replace", start: position, end: position + 1 },
        sourceEventSeqs: [seq],
        data: { ...data, message: { ...data.message, content: [{ ...block, content }] } },
      },
    ],
  ];
}
