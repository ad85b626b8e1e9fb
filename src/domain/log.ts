import { refuse, type Refusal } from "../contracts/errors.js";
import type { EventType, LogEntry, NewEntry } from "../contracts/log.js";
import { checkJobEvent, isJobEvent, jobEventTypes } from "./job-events.js";
import { checkLossless, deepFreezeCopy } from "./lossless.js";
import { checkScheduleEvent, isScheduleEvent, ownScheduleTypes } from "./schedule-events.js";
import { emptySurface, Surface, type SurfaceBase } from "./surface.js";
import { checkTodoEvent } from "./todo.js";

/** Longhaul's own entries: a reader of the harness may skip them (design §2). */
const ownTypes: readonly EventType[] = [
  "session/open",
  "session/config",
  "session/tools",
  "session/bound",
  "session/live",
  "session/interrupt",
  "session/close",
  "session/rejected",
  "todo/rejected",
  ...jobEventTypes,
  ...ownScheduleTypes,
];

const harnessTypes: readonly EventType[] = [
  "user/message",
  "assistant/message",
  "tool/call",
  "tool/result",
  "turn/start",
  "turn/end",
  "step/start",
  "step/end",
  "agent/inbox/spliced",
  "request/header",
  "request/context",
  "llm/retry",
  "llm/retry-started",
  "approval/asked",
  "approval/decided",
  "todo/write",
  "schedule/change",
  "session/end-seed",
  "compaction/start",
  "compaction/summary",
  "compaction/prune",
  "compaction/end",
];

const known = new Set<string>([...ownTypes, ...harnessTypes]);
const own = new Set<string>(ownTypes);

/** Does this release read entries of the type? */
export function isKnownEvent(type: string): type is EventType {
  return known.has(type);
}

/** What a log goes on from: the entries before it are archived. */
export interface LogBase {
  /** `seq` of the first entry that is not. */
  readonly seq: number;
  /** A turn is open there. */
  readonly turnOpen: boolean;
  readonly surface: SurfaceBase;
}

const emptyLog: LogBase = { seq: 0, turnOpen: false, surface: emptySurface };

/** The ordered session events (spec/harness §1). Entries are detached, frozen copies; `seq` is contiguous from 0. */
export class SessionLog {
  readonly #entries: LogEntry[] = [];
  readonly #base: LogBase;
  #turnOpen: boolean;
  readonly surface: Surface;

  constructor(base: LogBase = emptyLog) {
    this.#base = base;
    this.#turnOpen = base.turnOpen;
    this.surface = new Surface(base.surface);
  }

  /** Those of this run: all, unless the log started from a base. */
  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  /** `seq` of the first entry that is here. */
  get firstSeq(): number {
    return this.#base.seq;
  }

  /** Was a turn open before the first entry that is here? */
  get startsInTurn(): boolean {
    return this.#base.turnOpen;
  }

  get lastSeq(): number {
    return this.#base.seq + this.#entries.length - 1;
  }

  /** The entry of a `seq`; undefined when there is none or it is archived. */
  at(seq: number): LogEntry | undefined {
    return this.#entries[seq - this.#base.seq];
  }

  /** Appends one entry, or refuses it and changes nothing. `ignorable` is kept of an entry that was loaded. */
  append(
    entry: NewEntry & { readonly ignorable?: true },
    time: number,
  ): { readonly ok: true; readonly entry: LogEntry } | Refusal {
    const problem = this.check(entry);
    if (problem !== undefined) return refuse("INVARIANT", `log entry ${entry.type}: ${problem}`);
    const stored = deepFreezeCopy({
      type: entry.type,
      seq: this.lastSeq + 1,
      time,
      data: entry.data,
      ...(own.has(entry.type) || entry.ignorable === true ? { ignorable: true } : {}),
      ...(entry.surfaceOp === undefined ? {} : { surfaceOp: entry.surfaceOp }),
      ...(entry.sourceEventSeqs === undefined ? {} : { sourceEventSeqs: entry.sourceEventSeqs }),
    }) as LogEntry;
    this.#entries.push(stored);
    this.surface.apply(stored);
    if (stored.type === "turn/start") this.#turnOpen = true;
    else if (stored.type === "turn/end") this.#turnOpen = false;
    return { ok: true, entry: stored };
  }

  /** Why an entry cannot be appended, or undefined. */
  check(entry: NewEntry): string | undefined {
    const { data, surfaceOp, sourceEventSeqs = [] } = entry;
    const lossy = checkLossless({ data, surfaceOp: surfaceOp ?? "append", sourceEventSeqs });
    if (lossy !== undefined) return lossy;
    if (typeof data !== "object" || data === null || Array.isArray(data))
      return "its data must be an object";
    if (!Array.isArray(sourceEventSeqs)) return "sourceEventSeqs must be a list";
    const cited = sourceEventSeqs.find(
      (seq) => !Number.isInteger(seq) || seq < 0 || seq > this.lastSeq,
    );
    if (cited !== undefined) return `cites entry ${JSON.stringify(cited)}, which does not exist`;
    if (isJobEvent(entry.type)) {
      const shape = checkJobEvent(entry.type, data);
      if (shape !== undefined) return shape;
    }
    if (isScheduleEvent(entry.type)) {
      const shape = checkScheduleEvent(entry.type, data);
      if (shape !== undefined) return shape;
    }
    if (entry.type === "todo/write") {
      const shape = checkTodoEvent(data);
      if (shape !== undefined) return shape;
      if (!this.#turnOpen) return "todo/write appended outside any open turn";
    }
    return this.surface.check(entry);
  }
}

/**
 * Loads a log that came from outside (an export, a seed), of any shape. A gap in `seq` or damage is LOG_CORRUPT; an
 * entry of unknown type is LOG_UNSUPPORTED unless it is marked `ignorable` (spec/harness §1).
 */
export function loadLog(
  entries: readonly unknown[],
): { readonly ok: true; readonly log: SessionLog } | Refusal {
  const log = new SessionLog();
  for (const [position, entry] of entries.entries()) {
    if (!isEnvelope(entry)) {
      return refuse("LOG_CORRUPT", `entry ${position} is not a log entry with type, seq and time`);
    }
    if (entry.seq !== position) {
      return refuse(
        "LOG_CORRUPT",
        `expected seq ${position}, came ${entry.seq}: the log has a gap`,
      );
    }
    if (!known.has(entry.type) && entry.ignorable !== true) {
      return refuse(
        "LOG_UNSUPPORTED",
        `entry ${position} has the unknown type ${JSON.stringify(entry.type)}; a newer Longhaul may read it`,
      );
    }
    const appended = log.append(entry, entry.time);
    if (!appended.ok) return refuse("LOG_CORRUPT", `entry ${position}: ${appended.message}`);
  }
  return { ok: true, log };
}

function isEnvelope(entry: unknown): entry is LogEntry {
  if (typeof entry !== "object" || entry === null) return false;
  const { type, seq, time } = entry as { readonly [key in keyof LogEntry]?: unknown };
  return (
    typeof type === "string" &&
    Number.isInteger(seq) &&
    checkLossless(time) === undefined &&
    typeof time === "number"
  );
}
