import type { ScheduleRefusal } from "../contracts/schedule.js";
import { checkFuture } from "../domain/schedule-time.js";

/** Why no reminder can be set for this instant: `time_out_of_range`, `not_future`; undefined when one can. */
export function targetProblem(ms: number, now: number): ScheduleRefusal | undefined {
  const checked = checkFuture(ms, now);
  return checked.ok ? undefined : checked;
}
