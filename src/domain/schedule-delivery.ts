import type { UserMessage } from "../contracts/content.js";
import type { NewEntry } from "../contracts/log.js";
import type { EveryRecord, ScheduleEntry, ScheduleRecord } from "../contracts/schedule.js";
import type { InboxState } from "./inbox.js";
import { stepGrid } from "./schedule-grid.js";
import { formatInstant, isInstant } from "./schedule-instant.js";
import { batchText, reminderText, type DueOccurrence } from "./schedule-texts.js";
import { inOrder } from "./schedule-views.js";
import { targetOf, type ScheduleState } from "./schedule.js";

/** What is due at a time (spec/schedule §7): a one-shot alone, else every fixed-rate rule, else what to wait for. */
export type Due =
  | { readonly kind: "once"; readonly record: Exclude<ScheduleRecord, EveryRecord> }
  | { readonly kind: "batch"; readonly records: readonly EveryRecord[] }
  /** `next` absent: nothing is active, or nothing can be decided. */
  | { readonly kind: "wait"; readonly next?: ScheduleRecord };

/** Looks at records, not at liveness or idleness. A clock out of range decides nothing. */
export function decideDue(state: ScheduleState, now: number): Due {
  if (state.fault !== undefined || !isInstant(now)) return { kind: "wait" };
  const records = inOrder(state.records);
  const due = records.filter((record) => targetOf(record) <= now);
  const once = due.find((record) => record.kind !== "every");
  if (once !== undefined) return { kind: "once", record: once };
  const every = due.filter((record) => record.kind === "every");
  if (every.length > 0) return { kind: "batch", records: every };
  return records[0] === undefined ? { kind: "wait" } : { kind: "wait", next: records[0] };
}

/**
 * What a delivery appends, all of it in one block: the message into the inbox, then a dispatch for each reminder in it. The
 * message id follows from what is delivered, so that no replay can deliver it under another (design D9).
 */
export function deliver(
  inbox: InboxState,
  due: Exclude<Due, { kind: "wait" }>,
  now: number,
): readonly (ScheduleEntry | NewEntry)[] {
  if (due.kind === "once") {
    const { id, scheduledAt } = due.record;
    return [
      insertion(inbox, `schedule/${id}/${scheduledAt}`, reminderText(due.record)),
      { type: "schedule/change", data: { version: 1, operation: "dispatch", id } },
    ];
  }
  const acceptedAt = formatInstant(now);
  return [
    insertion(
      inbox,
      `schedule/batch/${acceptedAt}`,
      batchText(due.records.map((record) => occurrenceOf(record, now))),
    ),
    ...due.records.map(({ id }): ScheduleEntry => ({
      type: "schedule/change",
      data: { version: 1, operation: "dispatch", id, acceptedAt },
    })),
  ];
}

function occurrenceOf(record: EveryRecord, now: number): DueOccurrence {
  const step = stepGrid(targetOf(record), record.everySeconds, now);
  return {
    record,
    occurrenceAt: step.ok ? formatInstant(step.occurrence) : record.scheduledAt,
  };
}

function insertion(inbox: InboxState, id: string, text: string): NewEntry {
  const message: UserMessage = {
    id,
    role: "user",
    content: [{ type: "text", text }],
    source: { kind: "plugin", plugin: "schedule" },
  };
  return {
    type: "agent/inbox/spliced",
    data: {
      target: "next-turn",
      start: inbox.nextTurn.length,
      inserted: [message],
      wake: true,
    },
  };
}
