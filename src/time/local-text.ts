import { Temporal } from "temporal-polyfill/implementation";

const days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** An instant as a person reads it in a zone: `Tue 2026-12-01 09:00:00 +01:00 Europe/Berlin`. */
export function localText(ms: number, timeZone: string): string {
  return timeZone === "UTC"
    ? localClock(ms, timeZone).replace(/\+00:00$/, "UTC")
    : `${localClock(ms, timeZone)} ${timeZone}`;
}

/** The same without the zone's name: `Tue 2026-12-01 09:00:00 +01:00`. */
export function localClock(ms: number, timeZone: string): string {
  const here = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone);
  const digits = here.millisecond === 0 ? 0 : 3;
  const time = here.toPlainTime().toString({ fractionalSecondDigits: digits });
  return `${days[here.dayOfWeek - 1]} ${here.toPlainDate().toString()} ${time} ${here.offset}`;
}

/** Do clocks of the zone show this time again later, because they are put back? */
export function comesAgain(ms: number, timeZone: string): boolean {
  const here = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone);
  const last = here.toPlainDateTime().toZonedDateTime(timeZone, { disambiguation: "later" });
  return last.epochMilliseconds > ms;
}
