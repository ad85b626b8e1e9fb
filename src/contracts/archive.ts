import type { LogEntry } from "./log.js";

/**
 * First line of a segment: entries `from` to `to` of a session, which follow as JSON, one a line. A segment is named by the SHA-256
 * of its whole text (hex) and stored as the stream `segment/<name>` (design D8).
 */
export interface SegmentHeader {
  readonly v: 1;
  readonly session: string;
  /** Run that had the entries; `seed` of those that a fork or an import began with. */
  readonly run: string;
  readonly from: number;
  readonly to: number;
  /** Name of the segment that ends with `from - 1`; empty for the first. */
  readonly previous: string;
}

/** Text of a segment: its header and its entries, a line each. The same wherever it is made of the same entries. */
export function segmentText(header: SegmentHeader, entries: readonly LogEntry[]): string {
  const { v, session, run, from, to, previous } = header;
  const lines = [{ v, session, run, from, to, previous }, ...entries].map(
    (line) => `${JSON.stringify(line)}\n`,
  );
  return lines.join("");
}

export interface Segment {
  readonly name: string;
  readonly header: SegmentHeader;
  readonly entries: readonly LogEntry[];
}

/** How a session ended, once all of its log is archived: the stream `archived/<run>` of the store (design D8). */
export interface ArchivedSession {
  readonly v: 1;
  readonly session: string;
  /** Last run. */
  readonly run: string;
  /** Name of the last segment. */
  readonly segment: string;
  readonly lastSeq: number;
  /** As Temporal says it. */
  readonly status: "completed" | "failed" | "terminated" | "cancelled" | "timed-out";
  readonly title?: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly closedAt: number;
}

/**
 * The archive in a store: segments, texts of checkpoints, and how sessions ended. Rejects with ARCHIVE_UNAVAILABLE for what is not there,
 * LOG_CORRUPT for what is damaged, and as the store does.
 */
export interface Archive {
  /** Writes and flushes a segment; idempotent. Returns its name. */
  write(header: SegmentHeader, entries: readonly LogEntry[]): Promise<string>;
  /** One segment, proved by its name. */
  segment(session: string, name: string): Promise<Segment>;
  /** Entries after `after` (-1: all) up to the end of segment `name`, from the oldest, each segment read once. */
  entries(session: string, name: string, after: number): AsyncGenerator<LogEntry, void, undefined>;
  /** One entry of the chain that ends with segment `name`. */
  entry(session: string, name: string, seq: number): Promise<LogEntry>;
  /** Headers of the chain that ends with `name`, the newest first, back to the one that has `until` (default 0). */
  chain(session: string, name: string, until?: number): Promise<readonly SegmentHeader[]>;
  /** Texts by name; those that are there. */
  putBody(session: string, name: string, json: string): Promise<void>;
  bodies(session: string, names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** All of a session that has ended is archived. */
  mark(ended: ArchivedSession): Promise<void>;
  /** How a session ended, of its last run; undefined while it is not marked. */
  ended(session: string): Promise<ArchivedSession | undefined>;
  /** Sessions that are marked, those that closed last first. */
  list(): AsyncGenerator<ArchivedSession, void, undefined>;
}

export interface BodiesQuery {
  readonly names: readonly string[];
}

/** Answer of the `session.bodies` query: texts that the checkpoint being made tells by name only, as JSON by their names. */
export interface BodiesPage {
  readonly bodies: { readonly [name: string]: string };
  /** Of the names asked for, those that did not fit; to be asked for again. */
  readonly left: readonly string[];
}

/** When a session rolls over to a new run (design D8); what is left out has its default. */
export interface RollOverConfig {
  /** History events. */
  readonly events: number;
  /** Bytes of history. */
  readonly bytes: number;
  /** Signals of the run. */
  readonly signals: number;
  /** Updates of the run. */
  readonly updates: number;
  /** Shortest life of a run, ms. */
  readonly minIntervalMs: number;
}

/** The server stops a run at 10,000 signals, 2,000 updates, 51,200 events and 50 MB. @public */
export const defaultRollOverConfig: RollOverConfig = {
  events: 2_000,
  bytes: 4_194_304,
  signals: 5_000,
  updates: 1_000,
  minIntervalMs: 1_000,
};
