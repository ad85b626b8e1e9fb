import type { AssistantMessage } from "../contracts/content.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { EndReason, LogEntry } from "../contracts/log.js";

/** "Did the work finish" over a stretch of the log (spec/harness §2 and the headless exit codes of §10). */
export interface Outcome {
  /** End of the last closed turn that did something; `none` when there is none. */
  readonly kind: EndReason["kind"] | "none";
  readonly turn?: number;
  readonly code?: ErrorCode;
  readonly message?: string;
  /** Last non-empty assistant text of the stretch. */
  readonly text?: string;
  /** A message was removed from the inbox without being run. */
  readonly canceledUnrun: boolean;
}

/**
 * Folds entries, in log order, to their outcome. A turn counts when it entered a step, or claimed input and did not
 * merely complete empty. A turn whose start lies before the stretch counts too: what it did there is not known.
 */
export function foldOutcome(entries: Iterable<LogEntry>): Outcome {
  let end: Ended | undefined;
  let text: string | undefined;
  let canceledUnrun = false;
  let open: OpenTurn | undefined;
  for (const entry of entries) {
    switch (entry.type) {
      case "turn/start":
        open = { turn: entry.data.turn, entered: false, claimed: false };
        break;
      case "step/start":
        if (open) open = { ...open, entered: true };
        break;
      case "agent/inbox/spliced":
        if ((entry.data.removedCount ?? 0) === 0) break;
        if (entry.data.outcome === "canceled") canceledUnrun = true;
        else if (open) open = { ...open, claimed: true };
        break;
      case "assistant/message": {
        const shown = textOf(entry.data.message);
        if (shown.trim() !== "") text = shown;
        break;
      }
      case "turn/end":
        if (counts(open, entry.data)) end = entry.data;
        open = undefined;
        break;
      default:
        break;
    }
  }
  return { ...ending(end), ...(text === undefined ? {} : { text }), canceledUnrun };
}

interface OpenTurn {
  readonly turn: number;
  readonly entered: boolean;
  readonly claimed: boolean;
}

interface Ended {
  readonly turn: number;
  readonly reason: EndReason;
}

function counts(open: OpenTurn | undefined, ended: Ended): boolean {
  if (open === undefined || open.entered) return true;
  return open.claimed && ended.reason.kind !== "completed";
}

function ending(end: Ended | undefined): Omit<Outcome, "canceledUnrun"> {
  if (end === undefined) return { kind: "none" };
  const { reason, turn } = end;
  if (reason.kind === "error")
    return { kind: "error", turn, code: reason.code, message: reason.message };
  if (reason.kind === "blocked" && reason.message !== undefined)
    return { kind: "blocked", turn, message: reason.message };
  return { kind: reason.kind, turn };
}

function textOf(message: AssistantMessage): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
