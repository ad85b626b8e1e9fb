import type { LogEntry } from "../contracts/log.js";
import type {
  ScheduleChange,
  ScheduleChangeResult,
  ScheduleLogEntry,
  ScheduleRecord,
} from "../contracts/schedule.js";
import { decodeChange } from "./schedule-events.js";
import { stepGrid } from "./schedule-grid.js";
import { addSeen, hasSeen, noIds, type SeenIds } from "./schedule-ids.js";
import { formatInstant, parseInstant } from "./schedule-instant.js";

/** Reminders of a session: a fold of its own `schedule/*` entries. Plain JSON, never changed in place. */
export interface ScheduleState {
  /** The active ones, in the order of their creation; of a faulted log, those before the fault. */
  readonly records: readonly ScheduleRecord[];
  readonly seen: SeenIds;
  /** Verdicts on changes from outside, oldest first: at most 200 and about 64 KB. */
  readonly outcomes: readonly ScheduleOutcome[];
  /** Why the log cannot be read: nothing is changed, listed or delivered any more (spec/schedule C13). */
  readonly fault?: string;
}

export interface ScheduleOutcome {
  readonly requestId: string;
  readonly result: ScheduleChangeResult;
}

export const emptySchedule: ScheduleState = { records: [], seen: noIds, outcomes: [] };

export const windowOutcomes = 200;
/** Ids and texts of the window together: they travel with every checkpoint. */
const windowCharacters = 64 * 1024;

/**
 * The next state; the same reference comes back when the entry concerns no reminder. Total: an entry that cannot be read sets
 * `fault`, and changes after it are not looked at. Of a fork only entries from `seedLength` on are to be given.
 */
export function foldSchedule(
  state: ScheduleState,
  entry: LogEntry | ScheduleLogEntry,
): ScheduleState {
  switch (entry.type) {
    case "schedule/change": {
      if (state.fault !== undefined) return state;
      const next = applyChange(state, entry.data);
      return next.ok ? next.state : { ...state, fault: `entry ${entry.seq}: ${next.problem}` };
    }
    case "schedule/accepted": {
      const { requestId, answer } = entry.data;
      return remember(state, { requestId, result: { ok: true, answer } });
    }
    case "schedule/rejected": {
      const { requestId, code, message } = entry.data;
      return remember(state, { requestId, result: { ok: false, code, message } });
    }
    default:
      return state;
  }
}

type Applied =
  | { readonly ok: true; readonly state: ScheduleState }
  | { readonly ok: false; readonly problem: string };

/** Decodes and applies the data of a `schedule/change`; also what says beforehand whether it may be appended. */
export function applyChange(state: ScheduleState, data: unknown): Applied {
  const decoded = decodeChange(data);
  if (!decoded.ok) return decoded;
  const change = decoded.value;
  if (change.operation === "create") return create(state, change.schedule);
  const index = state.records.findIndex((one) => one.id === change.id);
  const record = state.records[index];
  if (record === undefined)
    return {
      ok: false,
      problem: `${change.operation} of ${JSON.stringify(change.id)}, which is not active`,
    };
  const next = change.operation === "delete" ? undefined : dispatch(record, change);
  if (next !== undefined && !next.ok) return next;
  const records =
    next?.record === undefined
      ? state.records.toSpliced(index, 1)
      : state.records.with(index, next.record);
  return { ok: true, state: { ...state, records } };
}

/**
 * All of a log's own suffix, or why it cannot be read: nothing in part (spec/schedule §6). `seedLength`: where inherited
 * entries stop; they are not looked at.
 */
export function foldScheduleLog(
  entries: readonly (LogEntry | ScheduleLogEntry)[],
  seedLength = 0,
): Applied {
  if (!Number.isSafeInteger(seedLength) || seedLength < 0 || seedLength > entries.length)
    return { ok: false, problem: `seedLength ${seedLength} is no position in the log` };
  let state = emptySchedule;
  for (const entry of entries.slice(seedLength)) {
    state = foldSchedule(state, entry);
    if (state.fault !== undefined) return { ok: false, problem: state.fault };
  }
  return { ok: true, state };
}

/** Epoch ms of a record's target. */
export function targetOf(record: ScheduleRecord): number {
  return parseInstant(record.scheduledAt) ?? Number.NaN;
}

function create(state: ScheduleState, record: ScheduleRecord): Applied {
  if (hasSeen(state.seen, record.id))
    return { ok: false, problem: `create of ${JSON.stringify(record.id)}, which was used before` };
  return {
    ok: true,
    state: {
      ...state,
      records: [...state.records, record],
      seen: addSeen(state.seen, record.id),
    },
  };
}

/** What is left of a record once it was delivered; nothing of a one-shot. */
function dispatch(
  record: ScheduleRecord,
  { id, acceptedAt }: Extract<ScheduleChange, { operation: "dispatch" }>,
):
  | { readonly ok: true; readonly record?: ScheduleRecord }
  | { readonly ok: false; readonly problem: string } {
  const named = `dispatch of ${JSON.stringify(id)}`;
  if (record.kind !== "every")
    return acceptedAt === undefined
      ? { ok: true }
      : { ok: false, problem: `${named}, which is due once, with acceptedAt` };
  if (acceptedAt === undefined)
    return { ok: false, problem: `${named}, which repeats, without acceptedAt` };
  const step = stepGrid(
    targetOf(record),
    record.everySeconds,
    targetOf({ ...record, scheduledAt: acceptedAt }),
  );
  if (!step.ok) return { ok: false, problem: `${named}: ${step.problem}` };
  if (step.next === undefined) return { ok: true };
  return { ok: true, record: Object.freeze({ ...record, scheduledAt: formatInstant(step.next) }) };
}

function remember(state: ScheduleState, outcome: ScheduleOutcome): ScheduleState {
  const kept = [...state.outcomes, outcome].slice(-windowOutcomes);
  let size = 0;
  for (const each of kept) size += weight(each);
  while (size > windowCharacters && kept.length > 1) size -= weight(kept.shift() ?? outcome);
  return { ...state, outcomes: kept };
}

function weight({ requestId, result }: ScheduleOutcome): number {
  return requestId.length + (result.ok ? result.answer.id.length : result.message.length);
}
