import type { SessionConfig } from "../contracts/config.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry, SessionHeader } from "../contracts/log.js";
import { utf8Bytes } from "./guards.js";
import type { SessionLog } from "./log.js";
import { closersOf } from "./log-repair.js";
import { endSeed, seedFolds } from "./seed.js";
import { Session } from "./session.js";

/** A session that is to begin with the log of another. */
export interface Seed {
  readonly kind: "fork" | "import";
  /** Its own; what it inherits ends with `log`, to which the end of the seed is added. */
  readonly header: SessionHeader;
  readonly config: SessionConfig;
  readonly log: SessionLog;
}

/** The session as it stands before it opens: its log is the seed and its end, its folds are those of a seed (spec/harness §1). */
export function plantSeed({ kind, header, config, log }: Seed): Session {
  const marks = endSeed(log.entries);
  for (const mark of marks) must(log.append(mark, header.createdAt));
  const folds = seedFolds(kind, log.entries, header, config);
  return new Session(header.id, () => header.createdAt, undefined, { log, folds });
}

/** Closes a turn that the log of an import ends in (spec/harness §11). Returns how many entries that took. */
export function closeLog(log: SessionLog): number {
  const closed = closersOf(log.entries);
  if (!closed.ok) throw new Error(closed.message);
  for (const entry of closed.closers) must(log.append(entry, entry.time));
  return closed.closers.length;
}

/** The last that a log says of itself: header, configuration, and the host it was bound to. */
export interface LogFacts {
  readonly header?: SessionHeader;
  readonly config?: SessionConfig;
  readonly host?: string;
}

export function factsOf(entries: Iterable<LogEntry>): LogFacts {
  let facts: LogFacts = {};
  for (const entry of entries) facts = foldFacts(facts, entry);
  return facts;
}

export function foldFacts(facts: LogFacts, entry: LogEntry): LogFacts {
  switch (entry.type) {
    case "session/open":
      // Of a seed the host was another session's.
      return { header: entry.data.header, config: entry.data.config };
    case "session/config":
      return { ...facts, config: entry.data.config };
    case "session/bound":
      return { ...facts, host: entry.data.host };
    default:
      return facts;
  }
}

/** Largest segment of a seed, UTF-8 bytes; one entry may be larger. */
const maxSegmentBytes = 4_194_304;

/** Cuts entries into stretches that make segments of bounded size. */
export function* stretchesOf(
  entries: readonly LogEntry[],
  maxBytes = maxSegmentBytes,
): Generator<readonly LogEntry[], void> {
  let stretch: LogEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const size = utf8Bytes(JSON.stringify(entry)) + 1;
    if (stretch.length > 0 && bytes + size > maxBytes) {
      yield stretch;
      stretch = [];
      bytes = 0;
    }
    stretch.push(entry);
    bytes += size;
  }
  if (stretch.length > 0) yield stretch;
}

/** The configuration of a seeded session: what is asked for, over that of the log. INVALID_INPUT when there is neither. */
export function seedConfig(
  facts: LogFacts,
  asked: Partial<SessionConfig> = {},
  fallback?: SessionConfig,
): { readonly ok: true; readonly config: SessionConfig } | Refusal {
  const base = facts.config ?? fallback;
  return base === undefined
    ? refuse(
        "INVALID_INPUT",
        "the log tells no configuration, as one of another harness does not; give one for the new session",
      )
    : { ok: true, config: { ...base, ...asked } };
}

function must(appended: { readonly ok: true } | Refusal): void {
  if (!appended.ok) throw new Error(appended.message);
}
