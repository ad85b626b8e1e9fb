import type { DeleteAnswer, ScheduleEntry, ScheduleRefusal } from "../contracts/schedule.js";
import { corruptLog, refuseSchedule, shown } from "./schedule-errors.js";
import { isId } from "./schedule-ids.js";
import type { ScheduleState } from "./schedule.js";

/** Deletes an active reminder; of any other id it says so and logs nothing (spec/schedule §3.3). */
export function decideDelete(
  state: ScheduleState,
  id: string,
):
  | { readonly ok: true; readonly answer: DeleteAnswer; readonly entries: readonly ScheduleEntry[] }
  | ScheduleRefusal {
  if (!isId(id))
    return refuseSchedule(
      "invalid_rule",
      `\`id\` must be the exact id of a reminder, without outer spaces, got ${shown(id)}`,
    );
  if (state.fault !== undefined) return corruptLog(state.fault);
  if (!state.records.some((record) => record.id === id))
    return {
      ok: true,
      answer: { id, deleted: false, code: "schedule_not_found" },
      entries: [],
    };
  return {
    ok: true,
    answer: { id, deleted: true },
    entries: [{ type: "schedule/change", data: { version: 1, operation: "delete", id } }],
  };
}
