import { Temporal } from "temporal-polyfill/implementation";
import type { LocalTime, ScheduleRefusal } from "../contracts/schedule.js";
import { parseInstant } from "../domain/schedule-instant.js";
import { parseAt } from "../domain/schedule-time.js";
import { resolveLocalTime } from "./resolve-zone.js";
import { canonicalZone } from "./zones.js";

/** For messages: what `parseMoment` reads. */
export const momentForms =
  'a time such as "tomorrow 9:00", "2026-12-01 09:00", "2026-12-01T09:00:00+01:00", "09:30", "5pm" or "fri 17:00"';

export type Moment =
  /** `timeZone`: the one it was read in; `absolute`: it named its own offset. */
  | {
      readonly kind: "moment";
      readonly ms: number;
      readonly timeZone: string;
      readonly absolute: boolean;
    }
  /** Read, but the rules of reminders refuse it (spec/schedule §4). */
  | { readonly kind: "refused"; readonly refusal: ScheduleRefusal }
  /** Not of the grammar; `why` says more when there is more to say. */
  | { readonly kind: "unreadable"; readonly why?: string };

const days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const clock = String.raw`(?<hour>\d{1,2})(?::(?<minute>\d\d)(?::(?<second>\d\d)(?<fraction>\.\d{1,3})?)?)?(?: ?(?<half>[ap]m))?`;
const date = String.raw`(?<date>\d{4}-\d\d-\d\d)`;
const zone = String.raw`(?: (?<zone>utc|[a-z][\w+.-]*(?:/[\w+.-]+)+))?`;
const offset = String.raw` ?(?<offset>z|[+-]\d\d:?\d\d)`;
const day = String.raw`(?<day>today|tomorrow|[a-z]+day|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)`;
const whole = (pattern: string) => new RegExp(`^${pattern}$`, "i");

const absolute = whole(`${date}(?:t| |, )${clock}${offset}`);
const locals = [
  whole(`${date}(?:t|,? (?:at )?)${clock}${zone}`),
  whole(`${day},? (?:at )?${clock}${zone}`),
  whole(`(?:at )?${clock}(?: (?:on )?${day})?${zone}`),
];

/**
 * The instant that a person means, who types a date or time where it is `now` (epoch ms) in `timeZone`. A clock time alone is
 * the next such time; a day of the week the next such day, today while that time is still to come. A zone at its end wins over `timeZone`,
 * which is undefined where nobody knows it.
 */
export function parseMoment(text: string, now: number, timeZone: string | undefined): Moment {
  const typed = text.trim().replaceAll(/\s+/g, " ");
  const fixed = absolute.exec(typed)?.groups;
  if (fixed !== undefined) return absoluteMoment(fixed, timeZone ?? "UTC");
  const local = locals
    .map((pattern) => pattern.exec(typed)?.groups)
    .find((one) => one !== undefined);
  if (local === undefined) return { kind: "unreadable", ...hintFor(typed) };
  const time = clockTime(local);
  if (typeof time !== "string") return time;
  const named = local["zone"];
  const used = named === undefined ? timeZone : zoneOf(named);
  if (used === undefined) {
    const why =
      named === undefined
        ? "which time zone is meant is not known"
        : `no zone of the zone database is called ${named}`;
    return { kind: "unreadable", why };
  }
  const here = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(used);
  const today = here.toPlainDate();
  const on = (chosen: string): Moment => resolved({ date: chosen, time, time_zone: used });
  const later = (count: number): Moment => on(today.add({ days: count }).toString());
  if (local["date"] !== undefined) return on(local["date"]);
  /** Today's while it is to come; one that clocks skip today and that would be past is the next one as well. */
  const todayOr = (count: number): Moment => {
    const first = later(0);
    const past = first.kind === "moment" ? first.ms <= now : time <= here.toPlainTime().toString();
    return past ? later(count) : first;
  };
  const word = local["day"]?.toLowerCase();
  switch (word) {
    case "today":
      return later(0);
    case "tomorrow":
      return later(1);
    case undefined:
      return todayOr(1);
    default: {
      const wanted = days.findIndex(
        (name) => name === word || (name.startsWith(word) && word.length < 6),
      );
      if (wanted === -1) return { kind: "unreadable", why: `no day of the week is called ${word}` };
      const ahead = (wanted + 1 - today.dayOfWeek + 7) % 7;
      return ahead > 0 ? later(ahead) : todayOr(7);
    }
  }
}

type Groups = { readonly [name: string]: string | undefined };

function absoluteMoment(groups: Groups, timeZone: string): Moment {
  const time = clockTime(groups);
  if (typeof time !== "string") return time;
  const given = (groups["offset"] ?? "").toUpperCase();
  const shift = /^[+-]\d{4}$/.test(given) ? `${given.slice(0, 3)}:${given.slice(3)}` : given;
  const parsed = parseAt(`${groups["date"]}T${time}${shift}`);
  return parsed.ok
    ? { kind: "moment", ms: parsed.ms, timeZone, absolute: true }
    : { kind: "refused", refusal: parsed };
}

/** `HH:mm:ss[.fff]`, which the rules of reminders judge. */
function clockTime({
  hour = "",
  minute,
  second = "00",
  fraction = "",
  half,
}: Groups): string | Moment {
  if (half === undefined) {
    if (minute === undefined)
      return {
        kind: "unreadable",
        why: `an hour alone needs its minutes, or am or pm: ${hour}:00`,
      };
    return `${hour.padStart(2, "0")}:${minute}:${second}${fraction}`;
  }
  const hours = Number(hour);
  if (hours < 1 || hours > 12)
    return { kind: "unreadable", why: "with am or pm the hour is 1 to 12" };
  const counted = (hours % 12) + (half.toLowerCase() === "pm" ? 12 : 0);
  return `${`${counted}`.padStart(2, "0")}:${minute ?? "00"}:${second}${fraction}`;
}

function resolved(local: LocalTime): Moment {
  const answer = resolveLocalTime(local);
  if (!answer.ok) return { kind: "refused", refusal: answer };
  const ms = parseInstant(answer.scheduledAt);
  return ms === undefined
    ? { kind: "unreadable" }
    : { kind: "moment", ms, timeZone: answer.timeZone, absolute: false };
}

function zoneOf(name: string): string | undefined {
  return canonicalZone(/^utc$/i.test(name) ? "UTC" : name);
}

function hintFor(typed: string): { readonly why?: string } {
  if (/^\d{1,2}[./]\d{1,2}[./]\d{2,4}/.test(typed))
    return { why: "a date is year-month-day, for others read it otherwise" };
  if (
    /^\d{4}-\d\d-\d\d$/.test(typed) ||
    days.includes(typed.toLowerCase()) ||
    /^to(day|morrow)$/i.test(typed)
  )
    return { why: "the time of day is missing" };
  if (/^in /i.test(typed)) return { why: "a delay goes with --in" };
  return {};
}
