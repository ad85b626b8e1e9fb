import type { ScheduleRecord, ScheduleView } from "../contracts/schedule.js";
import { targetOf, type ScheduleState } from "./schedule.js";

/**
 * A record as it is shown at `now`. Queries return records, for the workflow's clock stands still between tasks; whoever asked
 * makes the view with its own clock (spec/schedule C7).
 */
export function viewOf(record: ScheduleRecord, now: number): ScheduleView {
  return {
    ...record,
    state: now >= targetOf(record) ? "overdue" : "scheduled",
    deliveryMode: "session-local",
  };
}

/** What is due first, of equals the one that was created first; undefined when nothing is active or can be read. */
export function nextReminder(state: ScheduleState): ScheduleRecord | undefined {
  return state.fault === undefined ? inOrder(state.records)[0] : undefined;
}

/** By target, of equals by creation. */
export function inOrder<T extends ScheduleRecord>(records: readonly T[]): readonly T[] {
  return records.toSorted((a, b) => targetOf(a) - targetOf(b));
}
