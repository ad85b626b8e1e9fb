import type { EndReason, EventData, LogEntry } from "../../contracts/log.js";
import { oneLine } from "./clean.js";
import { jobStatus } from "./jobs.js";
import type { Style } from "./terminal.js";

export interface Note {
  readonly style: Style;
  readonly text: string;
}

/** Does an entry stand in the place of others, shorter, for the model? A person has seen those. */
export function isReplacement({ surfaceOp }: Pick<LogEntry, "surfaceOp">): boolean {
  return surfaceOp !== undefined && surfaceOp !== "append";
}

/** The one line that tells a person about an entry that is neither a message nor a tool call; most need none. */
export function noteOf(entry: LogEntry): Note | undefined {
  switch (entry.type) {
    case "turn/end":
      return endNote(entry.data.turn, entry.data.reason);
    case "llm/retry": {
      const { retry, max, delayMs, failure } = entry.data;
      const wait = delayMs < 1_000 ? `${delayMs} ms` : `${Math.round(delayMs / 100) / 10} s`;
      return {
        style: "dim",
        text: `retry ${retry} of ${max} in ${wait}: ${failure.code}: ${oneLine(failure.message)}`,
      };
    }
    case "todo/rejected":
      return { style: "yellow", text: `todo change refused: ${oneLine(entry.data.message)}` };
    case "session/rejected":
      return {
        style: "yellow",
        text: `${oneLine(entry.data.command)} refused: ${entry.data.code}: ${oneLine(entry.data.message)}`,
      };
    case "job/settled": {
      const { id, status } = entry.data;
      return {
        style: status === "failed" ? "yellow" : "dim",
        text: `job ${id} has ended: ${jobStatus(entry.data)}`,
      };
    }
    case "schedule/rejected":
      return {
        style: "yellow",
        text: `reminder refused: ${entry.data.code}: ${oneLine(entry.data.message)}`,
      };
    case "session/live":
      return liveNote(entry.data);
    case "session/bound":
      return entry.data.epoch > 1
        ? { style: "dim", text: `moved to host ${oneLine(entry.data.host)}` }
        : undefined;
    case "compaction/start":
      return { style: "dim", text: "the transcript is being compacted" };
    case "compaction/summary": {
      const { shadowedSeqs, shadowedTokenCount } = entry.data;
      return {
        style: "dim",
        text: `a summary stands for ${shadowedSeqs.length} messages of about ${shadowedTokenCount} tokens`,
      };
    }
    case "compaction/end": {
      const { error, message } = entry.data;
      if (error === undefined) return undefined;
      const why = message === undefined ? "" : `: ${oneLine(message)}`;
      return { style: "yellow", text: `the transcript was not compacted (${error})${why}` };
    }
    case "session/close":
      return { style: "dim", text: "session closed" };
    default:
      return undefined;
  }
}

function liveNote({ live, suspended, why }: EventData["session/live"]): Note | undefined {
  if (live) return undefined;
  if (suspended === true) return { style: "dim", text: "suspended" };
  return { style: "dim", text: `the host is away: ${oneLine(why)}` };
}

function endNote(turn: number, reason: EndReason): Note | undefined {
  switch (reason.kind) {
    case "completed":
      return undefined;
    case "aborted":
      return {
        style: "yellow",
        text:
          reason.reason === "user"
            ? `turn ${turn} was interrupted`
            : `turn ${turn} was aborted (${reason.reason})`,
      };
    case "blocked":
      return {
        style: "yellow",
        text: `turn ${turn} was blocked${reason.message === undefined ? "" : `: ${oneLine(reason.message)}`}`,
      };
    case "error":
      return {
        style: "red",
        text: `turn ${turn} failed: ${reason.code}: ${oneLine(reason.message)}`,
      };
    case "max-tokens":
      return { style: "yellow", text: `turn ${turn} stopped at the token limit` };
    case "interrupted":
      return { style: "yellow", text: `turn ${turn} was cut off` };
  }
}
