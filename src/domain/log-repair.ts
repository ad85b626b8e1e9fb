import type { ToolCallBlock } from "../contracts/content.js";
import { refuse, type ErrorCode, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";

interface OpenEnd {
  readonly turn: number;
  readonly step: number | undefined;
  /** Of the open step's reply, in order. */
  readonly unanswered: readonly {
    readonly block: ToolCallBlock;
    readonly step: number;
    readonly callSeq?: number;
  }[];
}

/**
 * What closes a log that ends in the middle of a turn (spec/harness §11): an error result for each unanswered call, `step/end`
 * when a step is open, `turn/end` interrupted; times copy the last entry, `seq` goes on. Empty for a balanced log. A turn of
 * a session that is `live` is nobody's to close: OPEN_TURN.
 */
export function closersOf(
  entries: readonly LogEntry[],
  live = false,
): { readonly ok: true; readonly closers: readonly LogEntry[] } | Refusal {
  const open = openEnd(entries);
  const last = entries.at(-1);
  if (open === undefined || last === undefined) return { ok: true, closers: [] };
  const { turn, step } = open;
  if (live)
    return refuse(
      "OPEN_TURN",
      `turn ${turn} is still running; wait until it has ended, or interrupt it`,
    );
  const { time } = last;
  let { seq } = last;
  const closers: LogEntry[] = open.unanswered.map(({ block, step: of, callSeq }) => {
    seq += 1;
    return resultEntry({ seq, time }, { turn, step: of, block, callSeq });
  });
  if (step !== undefined) {
    seq += 1;
    closers.push({ type: "step/end", seq, time, data: { turn, step } });
  }
  seq += 1;
  closers.push({
    type: "turn/end",
    seq,
    time,
    data: { turn, reason: { kind: "interrupted" } },
  });
  return { ok: true, closers };
}

/** The log as an inspection shows it: closed, and what was given untouched (R10). */
export function closedView(entries: readonly LogEntry[]): readonly LogEntry[] {
  const closed = closersOf(entries);
  return closed.ok ? [...entries, ...closed.closers] : entries;
}

/** Number of the turn that is open at the end of the entries. */
export function openTurnOf(entries: readonly LogEntry[]): number | undefined {
  return openEnd(entries)?.turn;
}

function openEnd(entries: readonly LogEntry[]): OpenEnd | undefined {
  let open: OpenEnd | undefined;
  for (const entry of entries) open = advance(open, entry);
  return open;
}

function advance(open: OpenEnd | undefined, entry: LogEntry): OpenEnd | undefined {
  if (entry.type === "turn/start")
    return { turn: entry.data.turn, step: undefined, unanswered: [] };
  if (open === undefined) return undefined;
  switch (entry.type) {
    case "turn/end":
      return undefined;
    case "step/start":
      return { ...open, step: entry.data.step };
    case "step/end":
      return { ...open, step: undefined, unanswered: [] };
    case "assistant/message": {
      const { step, message } = entry.data;
      const asked = message.content.flatMap((block) =>
        block.type === "tool-call" ? [{ block, step }] : [],
      );
      return { ...open, unanswered: [...open.unanswered, ...asked] };
    }
    case "tool/call": {
      const index = open.unanswered.findIndex(
        ({ block, callSeq }) => callSeq === undefined && block.callId === entry.data.callId,
      );
      const call = open.unanswered[index];
      if (call === undefined) return open;
      return { ...open, unanswered: open.unanswered.with(index, { ...call, callSeq: entry.seq }) };
    }
    case "tool/result": {
      // A replacement answers nothing.
      if (entry.surfaceOp !== "append") return open;
      const [block] = entry.data.message.content;
      const id = block?.type === "tool-result" ? block.callId : undefined;
      const index = open.unanswered.findIndex((call) => call.block.callId === id);
      return index === -1 ? open : { ...open, unanswered: open.unanswered.toSpliced(index, 1) };
    }
    default:
      return open;
  }
}

const lost: { readonly [code in "TOOL_NOT_STARTED" | "TOOL_OUTCOME_UNKNOWN"]: string } = {
  TOOL_NOT_STARTED:
    "the session ended before this call began; nothing was run, so it is safe to call again",
  TOOL_OUTCOME_UNKNOWN:
    "the session ended while this call ran and its result was lost; it may have had effects: call it again only if it reads or can be repeated, otherwise check first",
};

function resultEntry(
  place: { readonly seq: number; readonly time: number },
  call: {
    readonly turn: number;
    readonly step: number;
    readonly block: ToolCallBlock;
    readonly callSeq: number | undefined;
  },
): LogEntry {
  const { turn, step, callSeq } = call;
  const { callId } = call.block;
  const code: ErrorCode & keyof typeof lost =
    callSeq === undefined ? "TOOL_NOT_STARTED" : "TOOL_OUTCOME_UNKNOWN";
  return {
    type: "tool/result",
    ...place,
    data: {
      turn,
      step,
      message: {
        id: `lost/${turn}.${step}.${place.seq}`,
        role: "user",
        content: [
          {
            type: "tool-result",
            callId,
            content: [{ type: "text", text: `Error: ${lost[code]}` }],
            isError: true,
          },
        ],
        source: { kind: "tool", callId },
      },
      error: { name: code, code },
    },
    surfaceOp: "append",
    ...(callSeq === undefined ? {} : { sourceEventSeqs: [callSeq] }),
  };
}
