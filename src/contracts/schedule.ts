/** Least interval of a fixed-rate reminder, seconds. Takes part in replay (spec/schedule C17). */
export const minEverySeconds = 300;

/** What a refused reminder answers, as a value of a tool that succeeded: the closed set, and our own code of the cap (spec/schedule §3.4, C16). */
export const scheduleErrorCodes = [
  "invalid_prompt",
  "invalid_selector",
  "invalid_rule",
  "invalid_time_zone",
  "not_future",
  "time_out_of_range",
  "frequency_too_high",
  "corrupt_schedule_log",
  "persistence_uncertain",
  "internal_error",
  "too_many_schedules",
] as const;
export type ScheduleErrorCode = (typeof scheduleErrorCodes)[number];

export const scheduleOperations = ["create", "list", "delete"] as const;
export type ScheduleOperation = (typeof scheduleOperations)[number];

/** The value the model is given instead of a view. `operation` and `id` only with `persistence_uncertain`. */
export interface ScheduleError {
  readonly code: ScheduleErrorCode;
  readonly message: string;
  readonly operation?: ScheduleOperation;
  readonly id?: string;
}

/** A refusal inside `domain`, as `Refusal` is, with the codes of this feature. */
export interface ScheduleRefusal {
  readonly ok: false;
  readonly code: ScheduleErrorCode;
  readonly message: string;
}

/** `2026-08-05T12:00:00.000Z`: three fraction digits, year 0001 to 9999. */
export type InstantText = string;

/** After a delay, once; keeps the delay that was asked for. Key order is that of the log (spec/schedule §2). */
export interface AfterRecord {
  readonly id: string;
  readonly kind: "after";
  readonly prompt: string;
  readonly afterSeconds: number;
  readonly scheduledAt: InstantText;
}

/** At an instant, once; keeps neither offset nor zone. */
export interface AtRecord {
  readonly id: string;
  readonly kind: "at";
  readonly prompt: string;
  readonly scheduledAt: InstantText;
}

/** At a fixed rate; `scheduledAt` is the first grid point that is still owed. */
export interface EveryRecord {
  readonly id: string;
  readonly kind: "every";
  readonly prompt: string;
  readonly everySeconds: number;
  readonly scheduledAt: InstantText;
}

export type ScheduleRecord = AfterRecord | AtRecord | EveryRecord;

/** A record as it is shown; `overdue` also while it is due and waits for idle. Computed when read, never stored. */
export type ScheduleView = ScheduleRecord & {
  readonly state: "scheduled" | "overdue";
  readonly deliveryMode: "session-local";
};

export type DeleteAnswer =
  | { readonly id: string; readonly deleted: true }
  | { readonly id: string; readonly deleted: false; readonly code: "schedule_not_found" };

/** Data of `schedule/change`, with exactly these keys (spec/schedule §6). */
export type ScheduleChange =
  | { readonly version: 1; readonly operation: "create"; readonly schedule: ScheduleRecord }
  | { readonly version: 1; readonly operation: "delete"; readonly id: string }
  /** `acceptedAt` exactly for a fixed-rate reminder. */
  | {
      readonly version: 1;
      readonly operation: "dispatch";
      readonly id: string;
      readonly acceptedAt?: InstantText;
    };

/** Data of the `schedule/*` entries, for `EventData`. The last two are Longhaul's own: verdicts on `schedule.change`. */
export interface ScheduleEventData {
  "schedule/change": ScheduleChange;
  /** Logged right after the change it answers for; alone when nothing had to be deleted. */
  "schedule/accepted": { readonly requestId: string; readonly answer: ScheduleChangeAnswer };
  "schedule/rejected": {
    readonly requestId: string;
    readonly code: ScheduleRejectCode;
    readonly message: string;
  };
}

export type ScheduleEventType = keyof ScheduleEventData;

/** A `schedule/*` entry before it has a place in the log. */
export type ScheduleEntry = {
  [T in ScheduleEventType]: { readonly type: T; readonly data: ScheduleEventData[T] };
}[ScheduleEventType];

/** A `schedule/*` entry of the log. */
export type ScheduleLogEntry = {
  [T in ScheduleEventType]: {
    readonly type: T;
    readonly seq: number;
    readonly time: number;
    readonly data: ScheduleEventData[T];
  };
}[ScheduleEventType];

/**
 * `schedule.change`, from outside the agent loop; the same `requestId` again gets the first verdict. `at` carries its
 * offset: who asks resolves a local time first (design D11). @public
 */
export type ScheduleChangeCommand = { readonly requestId: string } & (
  | ({ readonly operation: "create"; readonly prompt: string } & (
      | { readonly afterSeconds: number }
      | { readonly everySeconds: number }
      | { readonly at: string }
    ))
  | { readonly operation: "delete"; readonly id: string }
);

/** What a change did. Small, for it is remembered: the list shows the whole record. */
export type ScheduleChangeAnswer =
  | { readonly operation: "create"; readonly id: string; readonly scheduledAt: InstantText }
  | { readonly operation: "delete"; readonly id: string; readonly deleted: boolean };

/** `INVALID_INPUT`: the payload itself has another shape. */
export type ScheduleRejectCode = ScheduleErrorCode | "INVALID_INPUT";

export type ScheduleChangeResult =
  | { readonly ok: true; readonly answer: ScheduleChangeAnswer }
  | { readonly ok: false; readonly code: ScheduleRejectCode; readonly message: string };

/** The local form of `at`; resolved outside workflow code (spec/schedule §4, C10). */
export interface LocalTime {
  /** `2026-08-06` */
  readonly date: string;
  /** `09:00:00`, with up to three fraction digits. */
  readonly time: string;
  /** `UTC`, or a name such as `Europe/Berlin`. */
  readonly time_zone: string;
}

/** The instant a local time means on this host, with the zone's own spelling and the zone data that said so. */
export type ZoneAnswer =
  | {
      readonly ok: true;
      readonly scheduledAt: InstantText;
      readonly timeZone: string;
      /** Version of the zone data, e.g. `2025c`. */
      readonly tz: string;
    }
  | ScheduleRefusal;

/** Limits of reminders, captured in the session (spec/schedule C16). */
export interface ScheduleConfig {
  /** Active reminders. */
  readonly maxActive: number;
  /** UTF-8 bytes of a trimmed prompt. */
  readonly maxPromptBytes: number;
}

export const defaultScheduleConfig: ScheduleConfig = { maxActive: 100, maxPromptBytes: 4_096 };
