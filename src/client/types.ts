import type { ConnectionOptions } from "@temporalio/client";
import type { SessionConfig } from "../contracts/config.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { JobsFrame } from "../contracts/jobs.js";
import type { LogEntry } from "../contracts/log.js";
import type { SearchAttributeName, SessionStateName } from "../contracts/names.js";
import type { SendMode } from "../contracts/session.js";
import type { Store } from "../contracts/store.js";
import type { SessionClient } from "./session-client.js";

export interface LonghaulClientOptions {
  readonly connection: ConnectionOptions;
  /** Default `default`. */
  readonly namespace?: string;
  /**
   * The store of the workers. Needed to read what is archived of a log, by `archived` and `purge`, by `watch` for streamed text, by
   * `jobOutput`, and by readers of spilled output.
   */
  readonly store?: Store;
  /** Search attributes registered in the namespace; default: asked from the server once. */
  readonly attributes?: readonly SearchAttributeName[];
  /** Deadline of each call, ms. Default 15,000. */
  readonly callTimeoutMs?: number;
}

export interface CreateSessionOptions {
  /** Session id = workflow id; default a fresh one, `s-<time>-<random>`. */
  readonly id?: string;
  readonly config: SessionConfig;
  /** Bind to this host; default whichever answers. */
  readonly host?: string;
  readonly title?: string;
  readonly parentSession?: string;
  /** Wait until the session's tool table is logged (default true); NO_HOST, NO_WORKER when it cannot be. */
  readonly waitReady?: boolean;
}

/** A fork: a new session that begins with the log of another up to an entry. */
export interface ForkOptions {
  /** `seq` of the last entry that is inherited, outside any turn; default the last one. */
  readonly boundary?: number;
  /** Of the new session; default a fresh one. */
  readonly id?: string;
  readonly title?: string;
  /** Default the host its source is bound to. */
  readonly host?: string;
  /** Changes to the configuration that was in force at the boundary. */
  readonly config?: Partial<SessionConfig>;
  /** As for a new session. */
  readonly waitReady?: boolean;
}

/** An import: a new session that goes on with an exported log. */
export interface ImportOptions extends Omit<ForkOptions, "boundary" | "host"> {
  /** Default whichever answers. */
  readonly host?: string;
  /** For a log that tells none, as one of another harness does. */
  readonly fallbackConfig?: SessionConfig;
}

/** What was done to the log of an import. */
export interface ImportNotes {
  /** Entries of the log, the closing ones among them. */
  readonly entries: number;
  /** Lines of a torn end that were left out. */
  readonly dropped: number;
  /** Entries that were added to close a turn the log ended in. */
  readonly closed: number;
  /** Types of entries that are kept and have no effect here. */
  readonly unused: readonly string[];
}

export interface ImportResult {
  readonly session: SessionClient;
  readonly notes: ImportNotes;
}

export interface SendOptions {
  /** Message id; default a fresh one. The same id is put in the inbox once. */
  readonly id?: string;
  readonly mode?: SendMode;
  /** Time zone of whoever writes, e.g. `Europe/Berlin`: told to a model that is told the time. */
  readonly timeZone?: string;
}

export interface SessionSummary {
  readonly id: string;
  readonly title?: string;
  readonly state: SessionStateName | "terminated" | "failed" | "unknown";
  readonly host?: string;
  readonly parent?: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly closedAt?: number;
  /** When its next reminder is due, epoch ms; known where `LonghaulNextReminder` is registered. */
  readonly nextReminder?: number;
}

/** A session as Temporal itself knows it: answered without a worker. */
export interface SessionRecord extends SessionSummary {
  /** `timed-out` and `canceled` are told apart here; the state calls them failed and terminated. */
  readonly status: "open" | "closed" | "terminated" | "canceled" | "failed" | "timed-out";
  /** Temporal has deleted it: what is told comes from the archive. */
  readonly archived?: true;
  /** Why it failed by itself. */
  readonly failure?: { readonly code?: ErrorCode; readonly message: string };
}

export interface ReadOptions {
  /** Longest wait for the answer, ms; default the client's `callTimeoutMs`. */
  readonly timeoutMs?: number;
}

/**
 * What a watcher sees, in order. `delta` is streamed text of the step under way; `restart` says that a lost worker's
 * call runs again, so what it streamed for this step is to be dropped. Before an `assistant/message` entry all deltas
 * of the execution it names have been given, so deltas since the last `restart` equal the entry's text.
 * Without a store, or when it cannot be read, they come from the entry itself.
 * Losing the connection never repeats or skips an entry or a delta: it goes on from its position.
 */
export type WatchEvent =
  | { readonly type: "entry"; readonly entry: LogEntry }
  | {
      readonly type: "delta";
      readonly turn: number;
      readonly step: number;
      readonly kind: "text" | "reasoning";
      readonly text: string;
    }
  | { readonly type: "restart"; readonly turn: number; readonly step: number }
  | { readonly type: "state"; readonly state: SessionStateName }
  /** The whole set of background jobs, when there are any and then at each change; changes between two looks come as one. */
  | JobsFrame
  /** The connection or worker is away / back; nothing is lost. */
  | { readonly type: "connection"; readonly up: boolean; readonly message: string };

export interface WatchOptions {
  /** Start after this `seq`; default -1, the whole log. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Poll interval while a turn runs, ms. Default 100; it backs off to 1,000 while idle. */
  readonly intervalMs?: number;
}

export type { Outcome } from "../domain/outcome.js";

/** A machine with workspaces, as Temporal and its sessions show it. */
export interface HostRecord {
  readonly id: string;
  /** A worker of its has asked for work within the last 70 s. */
  readonly polling: boolean;
  /** When one last began to ask, epoch ms; Temporal remembers it for about five minutes. */
  readonly lastSeen?: number;
  /** Processes that ask, e.g. `4711@machine`. */
  readonly workers: readonly string[];
  /** Open sessions that are bound to it. */
  readonly sessions: number;
}

/** Which sessions `list` names. */
export interface ListFilter {
  readonly state?: SessionSummary["state"];
  /** Only open sessions with a reminder that is due and not delivered: those that run, are cold or suspended. */
  readonly overdue?: boolean;
  /** At most so many sessions; default 1,000. Ask for one more than wanted to learn whether there are more. */
  readonly limit?: number;
  /** A further condition in Temporal's list filter language, e.g. `StartTime > "2026-01-01T00:00:00Z"`. */
  readonly query?: string;
}

export interface PurgeOptions {
  /** How long Temporal is waited for, ms; default 10 minutes. It deletes what has just ended after a minute or two. */
  readonly timeoutMs?: number;
  /** Called again and again with the number of histories that are not deleted yet. */
  readonly onWait?: (histories: number) => void;
}

/** What a purge removed. */
export interface PurgeResult {
  readonly session: string;
  /** Histories of the session: one a run. */
  readonly runs: number;
  /** Histories of its jobs. */
  readonly jobs: number;
  /** In the store: segments of its log, outputs, streamed text. */
  readonly streams: number;
  readonly bytes: number;
}

export interface WaitIdleOptions {
  /** Wait until the log has gone beyond this `seq` too, e.g. the one `send` answered. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}
