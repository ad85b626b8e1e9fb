import type {
  ScheduleError,
  ScheduleErrorCode,
  ScheduleOperation,
  ScheduleRefusal,
} from "../contracts/schedule.js";

export function refuseSchedule(code: ScheduleErrorCode, message: string): ScheduleRefusal {
  return { ok: false, code, message };
}

export function corruptLog(why: string): ScheduleRefusal {
  return refuseSchedule(
    "corrupt_schedule_log",
    `the stored reminders of this session cannot be read (${why}); nothing was changed`,
  );
}

/**
 * What a caller outside is told when its call ended without a verdict (spec/schedule C12). Never made by the session
 * itself: what it answers is durable. @public
 */
export function persistenceUncertain(operation: ScheduleOperation, id?: string): ScheduleError {
  const which = id === undefined ? "" : ` of ${id}`;
  return {
    code: "persistence_uncertain",
    message: `whether the ${operation}${which} was stored is not known; list the reminders to see`,
    operation,
    ...(id === undefined ? {} : { id }),
  };
}

/** A value a caller gave, short enough for a message. */
export function shown(value: unknown): string {
  if (typeof value === "number") return `${value}`;
  if (typeof value === "string")
    return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (value === null || typeof value === "boolean") return `${value}`;
  return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
}
