import type { RemindersResult } from "../../client/session-reminders.js";
import type { ScheduleView } from "../../contracts/schedule.js";

/** `2, next schedule-1 at 2026-12-01T08:00:00.000Z`; undefined when there is nothing to tell. */
export function remindersText(list: RemindersResult | undefined): string | undefined {
  if (list === undefined) return undefined;
  if (!list.ok) return `${list.code}: ${list.message}`;
  const next = nextOf(list.reminders);
  if (next === undefined) return list.enabled ? "none" : undefined;
  const { id, state, scheduledAt } = next;
  const when = state === "overdue" ? `is overdue since ${scheduledAt}` : `at ${scheduledAt}`;
  return `${list.reminders.length}, next ${id} ${when}`;
}

/** `reminders` of a session's JSON; none when they could not be read. */
export function remindersJson(list: RemindersResult | undefined): object {
  if (list === undefined) return {};
  if (!list.ok) return { reminders: { error: { code: list.code, message: list.message } } };
  const { enabled, live, reminders } = list;
  const next = nextOf(reminders);
  return {
    reminders: {
      enabled,
      live,
      active: reminders.length,
      ...(next === undefined
        ? {}
        : { next: { id: next.id, scheduledAt: next.scheduledAt, state: next.state } }),
    },
  };
}

/** What is due first; the times sort as they are written. */
function nextOf(reminders: readonly ScheduleView[]): ScheduleView | undefined {
  return reminders.toSorted((a, b) => (a.scheduledAt < b.scheduledAt ? -1 : 1))[0];
}
