import type { InstantText } from "../contracts/schedule.js";

/** `0001-01-01T00:00:00.000Z` and `9999-12-31T23:59:59.999Z`, epoch ms (spec/schedule §2). */
export const minInstant = -62_135_596_800_000;
export const maxInstant = 253_402_300_799_999;

const dayMs = 86_400_000;

/** The seven fields of a date and time that exists in the calendar; no zone. */
export interface CivilTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly millisecond: number;
}

/** Is this a whole millisecond that reminders can name? */
export function isInstant(ms: unknown): ms is number {
  return Number.isSafeInteger(ms) && Number(ms) >= minInstant && Number(ms) <= maxInstant;
}

/** Canonical form of an instant; `ms` must be one (`isInstant`). */
export function formatInstant(ms: number): InstantText {
  const days = Math.floor(ms / dayMs);
  const { year, month, day } = dateOfDays(days);
  const rest = ms - days * dayMs;
  const [hour, minute] = [Math.floor(rest / 3_600_000), Math.floor(rest / 60_000) % 60];
  const [second, fraction] = [Math.floor(rest / 1_000) % 60, rest % 1_000];
  const date = `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;
  return `${date}T${pad(hour, 2)}:${pad(minute, 2)}:${pad(second, 2)}.${pad(fraction, 3)}Z`;
}

const canonical = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d\.\d{3})Z$/;

/** Epoch ms of a canonical instant; undefined for any other value. */
export function parseInstant(text: unknown): number | undefined {
  const match = typeof text === "string" ? canonical.exec(text) : null;
  const civil = match === null ? undefined : parseCivil(match[1], match[2]);
  return civil === undefined ? undefined : civilMs(civil);
}

const datePattern = /^(\d{4})-(\d\d)-(\d\d)$/;
const timePattern = /^(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?$/;

/** Date and time by the grammar of spec/schedule §4, never normalised; undefined when they are no such thing. */
export function parseCivil(date: unknown, time: unknown): CivilTime | undefined {
  const ymd = typeof date === "string" ? datePattern.exec(date) : null;
  const hms = typeof time === "string" ? timePattern.exec(time) : null;
  if (ymd === null || hms === null) return undefined;
  const civil: CivilTime = {
    year: Number(ymd[1]),
    month: Number(ymd[2]),
    day: Number(ymd[3]),
    hour: Number(hms[1]),
    minute: Number(hms[2]),
    second: Number(hms[3]),
    millisecond: Number((hms[4] ?? "").padEnd(3, "0")),
  };
  return isReal(civil) ? civil : undefined;
}

/** Epoch ms of the fields read as UTC. */
export function civilMs(civil: CivilTime): number {
  const { year, month, day, hour, minute, second, millisecond } = civil;
  return (
    daysOfDate(year, month, day) * dayMs +
    ((hour * 60 + minute) * 60 + second) * 1_000 +
    millisecond
  );
}

function isReal({ year, month, day, hour, minute, second }: CivilTime): boolean {
  return (
    year >= 1 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysInMonth(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59
  );
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** Days since 1970-01-01. The year is counted from March, so that the leap day is its last. */
function daysOfDate(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return daysBeforeMarchYear(marchYear) + dayOfYear - daysTo1970;
}

function dateOfDays(days: number): { year: number; month: number; day: number } {
  const since = days + daysTo1970;
  let marchYear = Math.floor(since / 365.2425);
  if (daysBeforeMarchYear(marchYear + 1) <= since) marchYear += 1;
  if (daysBeforeMarchYear(marchYear) > since) marchYear -= 1;
  const dayOfYear = since - daysBeforeMarchYear(marchYear);
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = ((fromMarch + 2) % 12) + 1;
  const day = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  return { year: month <= 2 ? marchYear + 1 : marchYear, month, day };
}

/** Days from 0000-03-01 to 1970-01-01. */
const daysTo1970 = 719_468;

function daysBeforeMarchYear(year: number): number {
  return 365 * year + Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400);
}

function pad(value: number, digits: number): string {
  return `${value}`.padStart(digits, "0");
}
