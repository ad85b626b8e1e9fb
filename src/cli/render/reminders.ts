import type { RemindersResult } from "../../client/session-reminders.js";
import type { MessageSource } from "../../contracts/content.js";
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

/**
 * A delivered reminder as a person reads it, `[reminder schedule-1] check the build`; a batch joins them. Undefined for a
 * message that is none, or is of another form.
 */
export function reminderLine(source: MessageSource, text: string): string | undefined {
  if (source.kind !== "plugin" || source["plugin"] !== "schedule") return undefined;
  try {
    const id = jsonField(text, "schedule_id_json");
    if (typeof id === "string")
      return `[reminder ${id}] ${String(jsonField(text, "reminder_prompt_json"))}`;
    const batch = jsonField(text, "reminders_json");
    if (!Array.isArray(batch) || batch.length === 0) return undefined;
    return batch
      .map(
        (one: Readonly<Record<string, unknown>>) =>
          `[reminder ${String(one["schedule_id"])}] ${String(one["reminder_prompt"])}`,
      )
      .join(" ");
  } catch {
    return undefined;
  }
}

function jsonField(text: string, name: string): unknown {
  const line = text.split("\n").find((one) => one.startsWith(`${name}: `));
  return line === undefined ? undefined : JSON.parse(line.slice(name.length + 2));
}

/** What is due first; the times sort as they are written. */
function nextOf(reminders: readonly ScheduleView[]): ScheduleView | undefined {
  return reminders.toSorted((a, b) => (a.scheduledAt < b.scheduledAt ? -1 : 1))[0];
}
