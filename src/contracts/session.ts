import type { Message } from "./content.js";
import type { SessionConfig } from "./config.js";
import type { ErrorCode, Refusal } from "./errors.js";
import type { JsonObject } from "./header.js";
import type { PublicJob } from "./jobs.js";
import type { LogEntry, SessionHeader } from "./log.js";
import type { ScheduleChangeResult, ScheduleRecord } from "./schedule.js";
import type { SearchAttributeName, SessionStateName } from "./names.js";
import type { TodoItem } from "./todo.js";

/** Start input of the `session` workflow; the workflow id is the session id (design D1). */
export interface SessionInput {
  readonly v: 1;
  readonly config: SessionConfig;
  /** Bind to this host; absent: whichever answers (design D5). */
  readonly host?: string;
  readonly title?: string;
  readonly parentSession?: string;
  /** The attributes registered in this namespace: no other is ever upserted (design D13). */
  readonly attributes: readonly SearchAttributeName[];
  /** What it goes on from: of the run before, or of a seed (design D8). Read with `restoreSession`. */
  readonly checkpoint?: unknown;
  /** The checkpoint is of a seed: a new session that begins with the log of another. */
  readonly seed?: "fork" | "import";
}

export type SendMode = "followup" | "steer" | "inject";

export interface SendCommand {
  /** The sender's message id: the receipt, and the key of exactly-once (design D9). */
  readonly id: string;
  readonly mode: SendMode;
  /** Plain text, or text blocks. At most 256 KB. */
  readonly content: string;
  /** Time zone of whoever writes, e.g. `Europe/Berlin`; told to the model where it is told the time. */
  readonly timeZone?: string;
}

export interface SendResult {
  readonly ok: true;
  readonly id: string;
  /** `seq` of the splice that put it in the inbox. */
  readonly seq: number;
}

export interface InterruptCommand {
  readonly reason?: "user" | "parent";
}

/** `requested`: a turn was running and is being aborted; `idle`: nothing to abort. */
export interface InterruptResult {
  readonly ok: true;
  readonly result: "requested" | "idle";
  /** Messages removed from the inbox (cancel only). */
  readonly removed: number;
}

export interface ConfigureCommand {
  readonly config?: Partial<SessionConfig>;
  readonly refreshTools?: boolean;
}

export interface CloseCommand {
  readonly reason?: string;
}

/** spec/todo T3; `opId` makes a repeat answer the first verdict, `turn` must be the open turn (T4). */
export interface TodoWriteCommand {
  readonly opId: string;
  readonly turn: number;
  readonly todos: readonly TodoItem[];
}

export type TodoWriteResult =
  | { readonly ok: true; readonly text: string; readonly seq: number }
  | Refusal;

/** Starts a background job for the session, as its tools do (spec/jobs §4). */
export interface JobStartCommand {
  /** Makes a repeat answer the job of the first. */
  readonly opId: string;
  /** One of the kinds of the logged tool table. */
  readonly kind: string;
  /** One line, not empty. */
  readonly label: string;
  /** What the kind is to do, e.g. `{command}`; the host checks it. At most 256 KB of JSON. */
  readonly input: JsonObject;
}

export type JobStartResult = { readonly ok: true; readonly id: string } | Refusal;

export interface JobKillCommand {
  readonly opId: string;
  readonly jobId: string;
  /** At most 1,000 characters. */
  readonly reason?: string;
}

/** `requested`: the request is on its way to the host; the job's end will say what became of it. */
export type JobKillResult =
  | { readonly ok: true; readonly result: "requested" | "already-finished" }
  | Refusal;

/** Answer of the `session.jobs` query: every job of the session, in the order of their start. */
export interface JobsView {
  readonly jobs: readonly JobView[];
  /** Kinds that can be started. */
  readonly kinds: readonly string[];
  readonly state: SessionStateName;
}

export interface JobView extends PublicJob {
  readonly output: "stream" | "final";
  /** It was told or read: no notice is to come. */
  readonly reported: boolean;
  readonly workflowId: string;
}

/** Moves a session to another host (design D5). */
export interface RebindCommand {
  readonly host: string;
}

export interface RemindersQuery {
  /** The verdict on this change is wanted too. */
  readonly requestId?: string;
}

/** Answer of the `session.reminders` query. Whoever asks derives `overdue` with its own clock (spec/schedule C7). */
export interface RemindersView {
  /** Reminders are switched on. */
  readonly enabled: boolean;
  /** Active ones, in the order of their creation. */
  readonly records: readonly ScheduleRecord[];
  /** Reminders can open turns now, as far as it is known. */
  readonly live: boolean;
  /** Why the log of reminders cannot be read. */
  readonly fault?: string;
  /** Absent: no such change is remembered. */
  readonly outcome?: ScheduleChangeResult;
}

/** Asks an idle session to summarise its transcript (spec/harness §6). */
export interface CompactCommand {
  readonly opId: string;
}

/** `requested`: its bracket is open from the `compaction/start` at `seq` on, its end says what became of it; `nothing`: nothing is to be cut. */
export type CompactResult =
  | {
      readonly ok: true;
      readonly result: "requested";
      readonly compactionId: string;
      readonly seq: number;
    }
  | { readonly ok: true; readonly result: "nothing" }
  | Refusal;

export type CommandResult = { readonly ok: true } | Refusal;

/** Answer of the `session.view` query. */
export interface SessionView {
  readonly id: string;
  readonly state: SessionStateName;
  /** False until the tool table is logged: turns wait for it. */
  readonly ready: boolean;
  readonly header: SessionHeader;
  readonly title?: string;
  readonly config: SessionConfig;
  readonly host?: string;
  readonly epoch: number;
  /** Last turn number, 0 before the first; `open` while it runs. */
  readonly turn: { readonly number: number; readonly open: boolean; readonly step: number };
  readonly inbox: { readonly nextTurn: readonly string[]; readonly nextStep: readonly string[] };
  readonly todos: readonly TodoItem[] | null;
  /** `seq` of the last entry; -1 when the log is empty. */
  readonly lastSeq: number;
  readonly lastEnd?: {
    readonly turn: number;
    readonly kind: string;
    readonly code?: ErrorCode;
    readonly message?: string;
  };
}

/** May be part of what any query is asked with. */
export interface QueryOfEnded {
  /**
   * The run has ended: what came after its last workflow task changes nothing any more, and the answer is as of that task. Never
   * true of a run that has not: its next task would fail once.
   */
  readonly ended: true;
}

export interface LogQuery {
  /** Entries with a `seq` greater than this; -1 for all. */
  readonly after: number;
  /** At most this many entries, and at most 256 KB unless one entry alone is larger. */
  readonly limit: number;
}

export interface ArchivedUpTo {
  readonly to: number;
  readonly segment: string;
}

export interface LogPage {
  /** Empty when the next one is archived. */
  readonly entries: readonly LogEntry[];
  /** The next entry is archived: up to `to`, in the segment of this name and those before it. */
  readonly archived?: ArchivedUpTo;
  readonly lastSeq: number;
  readonly state: SessionStateName;
}

export interface SurfaceQuery {
  readonly from: number;
  readonly to: number;
}

export interface SurfacePage {
  /** Nodes from `from`, as many as fit 256 KB (at least one). */
  readonly nodes: readonly (SurfaceNode | ArchivedNode)[];
  readonly length: number;
  /** Where the archived ones are. */
  readonly archived?: ArchivedUpTo;
}

/** A node whose message is in the archived entry `seq`. */
export interface ArchivedNode {
  readonly seq: number;
  readonly archived: true;
}

export interface SurfaceNode {
  readonly seq: number;
  readonly message: Message;
}

export interface Projections {
  readonly asOfSeq: number;
  readonly values: {
    readonly todos?: readonly TodoItem[] | null;
    /** Whole set of visible jobs, absent while there never was one (spec/jobs §15). */
    readonly jobs?: readonly PublicJob[];
  };
}
