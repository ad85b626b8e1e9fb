import type { LocalTime, ScheduleRefusal } from "../contracts/schedule.js";
import { refuseSchedule, shown } from "./schedule-errors.js";
import { fieldsOf } from "./fields.js";
import {
  civilMs,
  formatInstant,
  isInstant,
  parseCivil,
  type CivilTime,
} from "./schedule-instant.js";

type Instant = { readonly ok: true; readonly ms: number };

const atPattern = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{1,3})?)(?:Z|([+-])(\d\d):(\d\d))$/;

/** The instant of an `at` text with an offset, maybe out of range. Refusal: `invalid_rule` (spec/schedule §4). */
export function parseAt(text: string): Instant | ScheduleRefusal {
  const [matched, date, time, sign, offsetHour = "00", offsetMinute = "00"] =
    atPattern.exec(text) ?? [];
  if (matched === undefined) {
    return refuseSchedule(
      "invalid_rule",
      `\`at\` must be YYYY-MM-DDTHH:mm:ss[.fff] followed by Z or an offset such as +08:00, got ${shown(text)}`,
    );
  }
  const civil = parseCivil(date, time);
  if (civil === undefined) {
    return refuseSchedule(
      "invalid_rule",
      `\`at\` must be a date and time of the calendar, got ${shown(text)}`,
    );
  }
  const [hours, minutes] = [Number(offsetHour), Number(offsetMinute)];
  if (hours > 23 || minutes > 59 || (sign === "-" && hours === 0 && minutes === 0)) {
    return refuseSchedule(
      "invalid_rule",
      `the offset of \`at\` must be within -23:59 and +23:59 and not -00:00, got ${shown(text)}`,
    );
  }
  const offset = (hours * 60 + minutes) * 60_000 * (sign === "-" ? -1 : 1);
  return { ok: true, ms: civilMs(civil) - offset };
}

const zonePattern = /^[A-Za-z][A-Za-z0-9_+.-]*(?:\/[A-Za-z0-9_+.-]+)+$/;

/**
 * The fields of a local time, and its zone's name, of any shape. Date and time are judged first (`invalid_rule`), then the form
 * of the zone (`invalid_time_zone`); whether the zone exists only zone data can say (spec/schedule §4).
 */
export function parseLocal(
  local: unknown,
): { readonly ok: true; readonly civil: CivilTime; readonly local: LocalTime } | ScheduleRefusal {
  const { date, time, time_zone } = fieldsOf(local);
  const keys = Object.keys(fieldsOf(local)).toSorted().join(", ");
  if (keys !== "date, time, time_zone") {
    return refuseSchedule(
      "invalid_rule",
      `\`at\` must have exactly date, time and time_zone, got ${shown(keys)}`,
    );
  }
  const civil = parseCivil(date, time);
  if (typeof date !== "string" || typeof time !== "string" || civil === undefined) {
    return refuseSchedule(
      "invalid_rule",
      `\`at\` needs a \`date\` YYYY-MM-DD and a \`time\` HH:mm:ss[.fff] of the calendar, got ${shown(date)} and ${shown(time)}`,
    );
  }
  if (typeof time_zone !== "string" || !isZoneName(time_zone)) return strangeZone(time_zone);
  return { ok: true, civil, local: { date, time, time_zone } };
}

/** Has a name the form of a zone that reminders take? */
export function isZoneName(name: string): boolean {
  return name === "UTC" || zonePattern.test(name);
}

/** For a zone of another form, or one that zone data does not know. */
export function strangeZone(zone: unknown): ScheduleRefusal {
  return refuseSchedule(
    "invalid_time_zone",
    `\`time_zone\` must be UTC or a name of the zone database such as Europe/Berlin, got ${shown(zone)}`,
  );
}

/** For a local time that clocks of its zone skip. */
export function skippedTime({ date, time, time_zone }: LocalTime): ScheduleRefusal {
  return refuseSchedule(
    "invalid_rule",
    `${date} ${time} does not exist in ${time_zone}: clocks skip it`,
  );
}

/** Is a target within the years that can be named? Refusal: `time_out_of_range`. */
export function checkRange(ms: number): Instant | ScheduleRefusal {
  if (isInstant(ms)) return { ok: true, ms };
  return refuseSchedule(
    "time_out_of_range",
    "the time must lie between 0001-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z",
  );
}

/** Range first, of the clock too, then the future; now itself is past. Refusals: `time_out_of_range`, `not_future`. */
export function checkFuture(ms: number, now: number): Instant | ScheduleRefusal {
  const clock = checkRange(now);
  const target = checkRange(ms);
  if (!clock.ok || !target.ok) return clock.ok ? target : clock;
  if (ms > now) return target;
  return refuseSchedule(
    "not_future",
    `the time must be after now, ${formatInstant(now)}, got ${formatInstant(ms)}`,
  );
}
