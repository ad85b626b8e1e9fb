import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry, NewEntry, SessionHeader } from "../contracts/log.js";
import { isChunkRow, unpackChunks } from "./chunk-rows.js";
import { entryFlaw } from "./entry-shape.js";
import { decodeHeaderLine, headerLine } from "./header-line.js";
import { isKnownEvent, SessionLog } from "./log.js";
import {
  fromReferenceData,
  isFields,
  SurfaceSeqs,
  toReferenceData,
  type Fields,
} from "./reference-entry.js";

/**
 * Types the harness knows and this release has no use for: they are kept, marked `ignorable`, and exported as they came.
 * Modes among them (`sandbox/mode`, `plan/mode`) have no effect here.
 */
const foreignTypes = new Set([
  "assistant/chunk",
  "tool/code-dispatch-start",
  "tool/code-dispatch",
  "session/title",
  "session/title-llm-request",
  "approval/policy",
  "sandbox/mode",
  "permission/preset",
  "plan/mode",
  "goal/change",
  "subagent/descriptor",
  "agent-preset/selected",
  "command/run",
  "command/done",
  "hook/invoked",
  "hook/result",
  "feedback/record",
  "web/deepseek-search-llm-request",
  "tool-workflow/run-start",
  "tool-workflow/agent-start",
  "tool-workflow/agent-end",
  "tool-workflow/run-end",
  "team/member",
  "team/task",
  "team/message/queued",
  "team/message/delivered",
]);

/** A log as lines of JSON, each with its newline: the header, then one entry a line, in the harness's words (spec/harness §11). */
export function* exportLines(
  header: SessionHeader,
  entries: Iterable<LogEntry>,
): Generator<string, void> {
  yield exportHeader(header);
  const lineOf = exporter();
  for (const entry of entries) yield lineOf(entry);
}

export function exportHeader(header: SessionHeader): string {
  return `${JSON.stringify(headerLine(header))}\n`;
}

/** Makes the line of each entry; they are to be given in their order, from the first. */
export function exporter(): (entry: LogEntry) => string {
  const surface = new SurfaceSeqs();
  return ({ type, seq, time, data, ignorable, surfaceOp, sourceEventSeqs }) => {
    const line = {
      type,
      seq,
      time,
      data: toReferenceData(type, data as unknown as Fields),
      ...(ignorable === undefined || foreignTypes.has(type) ? {} : { ignorable }),
      ...(surfaceOp === undefined ? {} : { surfaceOp: surface.toReference(surfaceOp) }),
      ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs }),
    };
    surface.apply(seq, surfaceOp);
    return `${JSON.stringify(line)}\n`;
  };
}

/** The whole log as one text. */
export function exportLog(header: SessionHeader, entries: Iterable<LogEntry>): string {
  return [...exportLines(header, entries)].join("");
}

/** A log that was read; nothing of it is repaired yet. */
export interface ImportedLog {
  readonly ok: true;
  /** Of the session that wrote it. */
  readonly header: SessionHeader;
  /** The harness's composition it ran under, if it said so. */
  readonly agentPreset?: string;
  readonly log: SessionLog;
  /** Lines after the last whole entry that were left out: a torn end, never more than an open turn. */
  readonly dropped: number;
  /** Types that were kept and have no effect here, without chunks. */
  readonly unused: readonly string[];
}

/**
 * Reads a log that this or the harness (header version 0) exported. LOG_UNSUPPORTED names what this release may not skip: a
 * version, an entry of unknown type that is not `ignorable`, content of unknown type. LOG_CORRUPT names the line: damage and
 * gaps up to the last `turn/end`; what is damaged after it is left out (spec/harness §11, R6).
 */
export function importLog(text: string): ImportedLog | Refusal {
  const [first = "", ...lines] = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const head = decodeHeaderLine(parseLine(first));
  if (!head.ok) return head;
  const reader = new Reader();
  let torn: { readonly at: number; readonly refusal: Refusal } | undefined;
  for (const [index, line] of lines.entries()) {
    const read = parseLine(line);
    if (torn !== undefined) {
      if (isFields(read) && read["type"] === "turn/end") return torn.refusal;
      continue;
    }
    const refusal = reader.take(read, index + 2);
    if (refusal?.code === "LOG_UNSUPPORTED") return refusal;
    if (refusal !== undefined) {
      torn = { at: index, refusal };
      if (isFields(read) && read["type"] === "turn/end") return refusal;
    }
  }
  return {
    ok: true,
    header: head.header,
    ...(head.agentPreset === undefined ? {} : { agentPreset: head.agentPreset }),
    log: reader.log,
    dropped: torn === undefined ? 0 : lines.length - torn.at,
    unused: [...reader.unused],
  };
}

class Reader {
  readonly log = new SessionLog();
  readonly unused = new Set<string>();
  readonly #surface = new SurfaceSeqs();

  take(line: unknown, number: number): Refusal | undefined {
    if (!isFields(line)) return damaged(number, "expected a log entry as one JSON object");
    if (!isChunkRow(line)) return this.#append(line, number);
    const chunks = unpackChunks(line);
    if (chunks === undefined) return damaged(number, "its packed chunks cannot be unpacked");
    for (const chunk of chunks) {
      const refusal = this.#append(chunk, number);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  #append(line: Fields, number: number): Refusal | undefined {
    const { type, seq, time, data, ignorable, sourceEventSeqs } = line;
    if (typeof type !== "string" || !Number.isInteger(seq) || !isFields(data))
      return damaged(number, "expected a log entry with type, seq, time and data");
    if (typeof time !== "number" || !Number.isFinite(time) || Object.is(time, -0))
      return damaged(number, "the time of an entry is a number of milliseconds");
    const expected = this.log.lastSeq + 1;
    if (seq !== expected)
      return damaged(number, `expected seq ${expected}, came ${Number(seq)}: the log has a gap`);
    const foreign = foreignTypes.has(type);
    if (!isKnownEvent(type) && !foreign && ignorable !== true)
      return refuse(
        "LOG_UNSUPPORTED",
        `line ${number}: entry ${seq} has the unknown type ${JSON.stringify(type.slice(0, 100))}; a newer Longhaul may read it`,
      );
    const ours = isKnownEvent(type) ? fromReferenceData(type, data) : data;
    const flaw = isKnownEvent(type) ? entryFlaw(type, ours) : undefined;
    if (flaw !== undefined)
      return refuse(flaw.code, `line ${number}: entry ${seq} (${type}): ${flaw.problem}`);
    const op = line["surfaceOp"];
    const surfaceOp = op === undefined ? undefined : this.#surface.fromReference(op);
    const entry = {
      type,
      data: ours,
      ...(ignorable === true || foreign ? { ignorable: true as const } : {}),
      ...(surfaceOp === undefined ? {} : { surfaceOp }),
      ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs }),
    } as unknown as NewEntry & { readonly ignorable?: true };
    const appended = this.log.append(entry, time);
    if (!appended.ok) return damaged(number, appended.message);
    this.#surface.apply(expected, surfaceOp);
    if (!isKnownEvent(type) && type !== "assistant/chunk") this.unused.add(type);
    return undefined;
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

function damaged(line: number, problem: string): Refusal {
  return refuse("LOG_CORRUPT", `line ${line}: ${problem}`);
}
