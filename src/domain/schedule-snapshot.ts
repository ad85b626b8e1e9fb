import {
  checkAnswer,
  checkReject,
  decodeRecord,
  isRecord,
  type Decoded,
} from "./schedule-events.js";
import { checkSeen, hasSeen, type SeenIds } from "./schedule-ids.js";
import {
  emptySchedule,
  windowOutcomes,
  type ScheduleOutcome,
  type ScheduleState,
} from "./schedule.js";

/**
 * The state a checkpoint carries (it is the state itself), decoded strictly. Total: a broken one is a faulted state, so that the
 * tools say so and the conversation goes on (spec/schedule C5, C13). @public
 */
export function restoreSchedule(snapshot: unknown): ScheduleState {
  const decoded = decodeSnapshot(snapshot);
  return decoded.ok ? decoded.value : { ...emptySchedule, fault: `checkpoint: ${decoded.problem}` };
}

function decodeSnapshot(snapshot: unknown): Decoded<ScheduleState> {
  if (!isRecord(snapshot)) return bad("it must be an object");
  const { records, seen, outcomes, fault, ...rest } = snapshot;
  if (Object.keys(rest).length > 0) return bad(`it has the strange key ${Object.keys(rest)[0]}`);
  if (fault !== undefined && typeof fault !== "string") return bad("its fault must be text");
  const used = checkSeen(seen);
  if (used !== undefined) return bad(used);
  if (!Array.isArray(records)) return bad("its reminders must be a list");
  const active: ScheduleState["records"][number][] = [];
  for (const record of records) {
    const decoded = decodeRecord(record);
    if (!decoded.ok) return decoded;
    const { id } = decoded.value;
    if (!hasSeen(seen as SeenIds, id))
      return bad(`${JSON.stringify(id)} is not among the used ids`);
    if (active.some((one) => one.id === id)) return bad(`${JSON.stringify(id)} is there twice`);
    active.push(decoded.value);
  }
  if (!Array.isArray(outcomes) || outcomes.length > windowOutcomes || !outcomes.every(isOutcome))
    return bad("its outcomes must be verdicts of changes");
  return {
    ok: true,
    value: {
      records: active,
      seen: seen as SeenIds,
      outcomes,
      ...(fault === undefined ? {} : { fault }),
    },
  };
}

function isOutcome(outcome: unknown): outcome is ScheduleOutcome {
  if (!isRecord(outcome) || typeof outcome["requestId"] !== "string") return false;
  const result = outcome["result"];
  if (!isRecord(result)) return false;
  return result["ok"] === true
    ? checkAnswer(result["answer"]) === undefined
    : result["ok"] === false && checkReject(result["code"], result["message"]) === undefined;
}

function bad(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}
