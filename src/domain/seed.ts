import type { SessionConfig } from "../contracts/config.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry, NewEntry, SessionHeader } from "../contracts/log.js";
import { emptyInbox, foldInbox } from "./inbox.js";
import { emptyJobs } from "./jobs.js";
import { openTurnOf } from "./log-repair.js";
import { emptySchedule, foldSchedule } from "./schedule.js";
import { fold, initialFolds, type SessionFolds } from "./session.js";

/**
 * The entries a fork inherits: those up to the boundary, which is inclusive and the last one when absent. INVALID_BOUNDARY: there
 * is no such entry; OPEN_TURN: it lies inside a turn (spec/harness §1, S8, S9). The source may itself be in a turn.
 */
export function planFork(
  entries: readonly LogEntry[],
  boundary = entries.length - 1,
): { readonly ok: true; readonly seed: readonly LogEntry[] } | Refusal {
  if (!Number.isSafeInteger(boundary) || boundary < 0 || boundary >= entries.length) {
    return refuse(
      "INVALID_BOUNDARY",
      `a fork ends at an entry of its source, 0 to ${entries.length - 1}, got ${boundary}`,
    );
  }
  const seed = entries.slice(0, boundary + 1);
  const turn = openTurnOf(seed);
  if (turn === undefined) return { ok: true, seed };
  const edge = seed.findLast((entry) => entry.type === "turn/end");
  return refuse(
    "OPEN_TURN",
    `entry ${boundary} lies inside turn ${turn}; fork at the end of a turn${edge === undefined ? "" : `, such as entry ${edge.seq}`}`,
  );
}

/** Header of a fork. */
export function forkHeader(
  source: SessionHeader,
  child: { readonly id: string; readonly createdAt: number; readonly seedLength: number },
): SessionHeader {
  return {
    version: 0,
    id: child.id,
    createdAt: child.createdAt,
    ...(source.cwd === undefined ? {} : { cwd: source.cwd }),
    parentSession: source.id,
    seedLength: child.seedLength,
  };
}

/** Header of the session that an imported log goes on in; what the log had inherited stays so. */
export function importHeader(
  source: SessionHeader,
  session: { readonly id: string; readonly createdAt: number },
): SessionHeader {
  return { ...source, id: session.id, createdAt: session.createdAt };
}

/** Longhaul's own entries of a session that was opened and did nothing. */
const opening = new Set<string>([
  "session/open",
  "session/config",
  "session/tools",
  "session/bound",
  "session/live",
]);

/**
 * The mark that follows a seed, also an empty one; none when the seed has ended with one and nothing was done since, so that a
 * session that is only reopened gets no second (S5, S6).
 */
export function endSeed(seed: readonly LogEntry[]): readonly NewEntry[] {
  const last = seed.findLast((entry) => !opening.has(entry.type));
  return last?.type === "session/end-seed" ? [] : [{ type: "session/end-seed", data: {} }];
}

/**
 * The folds a session starts from over a seed that ends between turns. A `fork` inherits the transcript, the todo list and the
 * header in force: inbox, reminders and jobs are its own and empty. An `import` goes on with its log's own: what waits in
 * its inbox waits for the next wake, its reminders stay; of its jobs only the numbers, for none of them lives on. Place,
 * verdicts on operations and wakes are new to both (spec/harness §§1, 11, jobs J29, schedule C15).
 */
export function seedFolds(
  kind: "fork" | "import",
  seed: readonly LogEntry[],
  header: SessionHeader,
  config: SessionConfig,
): SessionFolds {
  const all = seed.reduce(fold, initialFolds);
  const suffix = kind === "fork" ? [] : seed.slice(header.seedLength ?? 0);
  return {
    ...initialFolds,
    inbox: { ...suffix.reduce(foldInbox, emptyInbox), wake: false },
    schedule: suffix.reduce(foldSchedule, emptySchedule),
    jobs: kind === "fork" ? emptyJobs : { ...emptyJobs, counters: all.jobs.counters },
    todo: { ...initialFolds.todo, todos: all.todo.todos },
    turn: all.turn,
    header: all.header,
    context: all.context,
    sessionHeader: header,
    config,
  };
}

/**
 * `fold` over a whole log, of which `before` are the entries before this one: where a seeded session opens, its folds are those of a
 * seed, whatever the log it began with had been through.
 */
export function foldWhole(
  folds: SessionFolds,
  entry: LogEntry,
  before: readonly LogEntry[],
): SessionFolds {
  if (entry.type !== "session/open" || before.length === 0) return fold(folds, entry);
  const { header, config } = entry.data;
  return fold(seedFolds(kindOf(header, before), before, header, config), entry);
}

/** What a fork has inherited reaches up to its opening. */
function kindOf({ seedLength }: SessionHeader, before: readonly LogEntry[]): "fork" | "import" {
  const marked = before.at(-1)?.type === "session/end-seed" ? 1 : 0;
  return seedLength === before.length || seedLength === before.length - marked ? "fork" : "import";
}
