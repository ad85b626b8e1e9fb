import { minEverySeconds } from "../../contracts/schedule.js";
import type { RemindOptions } from "../../client/session-reminders.js";
import { targetProblem } from "../../time/check-target.js";
import { comesAgain, localText } from "../../time/local-text.js";
import { durationForms, formatDuration, parseDuration } from "../../time/typed-duration.js";
import { momentForms, parseMoment } from "../../time/typed-moment.js";
import { canonicalZone, machineZone } from "../../time/zones.js";
import { ReminderRefused } from "../failure.js";
import { usage } from "../parse.js";

export interface WhenOptions {
  readonly in?: string;
  readonly at?: string;
  readonly every?: string;
  readonly tz?: string;
}

/** When a reminder is to come, as the user typed it and as it was understood. */
export interface When {
  /** What the session is asked for. */
  readonly rule: Pick<RemindOptions, "in" | "at" | "every">;
  /** Says it back, e.g. `in 10m: 2026-12-01T08:00:00.000Z, that is Tue 2026-12-01 09:00:00 +01:00 Europe/Berlin`. */
  readonly text: string;
  readonly timeZone: string;
}

/** Reads --in, --at, --every and --tz, at `now` (epoch ms). Throws USAGE, and ReminderRefused with the code of a rule. */
export function whenOf(options: WhenOptions, now: number): When {
  const given = [options.in, options.at, options.every].filter((one) => one !== undefined);
  if (given.length !== 1) {
    const got = given.length === 0 ? "none" : `${given.length}`;
    throw usage(`remind add expected one of --in, --at and --every, got ${got}`, help);
  }
  const zone = options.tz === undefined ? machineZone() : zoneOf(options.tz);
  if (options.at !== undefined) return momentOf(options.at, zone, now);
  const timeZone = zone ?? "UTC";
  if (options.in !== undefined) {
    const seconds = secondsOf(options.in, "--in");
    const text = `in ${formatDuration(seconds)}: ${sayInstant(now + seconds * 1_000, timeZone, now)}`;
    return { rule: { in: seconds }, text, timeZone };
  }
  const seconds = secondsOf(options.every ?? "", "--every");
  if (seconds < minEverySeconds) {
    throw new ReminderRefused({
      code: "frequency_too_high",
      message: `--every expected at least ${formatDuration(minEverySeconds)}, got ${formatDuration(seconds)}`,
    });
  }
  const first = sayInstant(now + seconds * 1_000, timeZone, now);
  return {
    rule: { every: seconds },
    text: `every ${formatDuration(seconds)}, first ${first}`,
    timeZone,
  };
}

/** The zone of --tz. Throws USAGE. */
export function zoneOf(name: string): string {
  const zone = canonicalZone(name.toLowerCase() === "utc" ? "UTC" : name);
  if (zone !== undefined) return zone;
  throw usage(
    `--tz expected UTC or a name of the zone database such as Europe/Berlin, got ${JSON.stringify(name)}`,
    help,
  );
}

/** An instant for people: in UTC, and on the clocks of a zone. */
export function instantText(ms: number, timeZone: string): string {
  const utc = new Date(ms).toISOString();
  return timeZone === "UTC" ? utc : `${utc}, that is ${localText(ms, timeZone)}`;
}

const help = "longhaul remind add --help";

function momentOf(text: string, zone: string | undefined, now: number): When {
  const moment = parseMoment(text, now, zone);
  const got = JSON.stringify(text);
  if (moment.kind === "unreadable") {
    const missing = zone === undefined ? "; this machine names no time zone, so give --tz" : "";
    const why = moment.why === undefined ? "" : ` (${moment.why}${missing})`;
    throw usage(`--at expected ${momentForms}, got ${got}${why}`, help);
  }
  if (moment.kind === "refused") {
    const { code, message } = moment.refusal;
    throw new ReminderRefused({ code, message: `--at ${got}: ${message}` });
  }
  const { ms, timeZone, absolute } = moment;
  const again =
    !absolute && comesAgain(ms, timeZone)
      ? "; clocks show it twice that day, the first is meant"
      : "";
  return {
    rule: { at: new Date(ms).toISOString() },
    text: `at ${sayInstant(ms, timeZone, now)}${again}`,
    timeZone,
  };
}

function sayInstant(ms: number, timeZone: string, now: number): string {
  const problem = targetProblem(ms, now);
  if (problem !== undefined) throw new ReminderRefused(problem);
  return instantText(ms, timeZone);
}

function secondsOf(text: string, option: string): number {
  const seconds = parseDuration(text);
  if (seconds !== undefined && seconds > 0) return seconds;
  throw usage(
    `${option} expected ${durationForms}, in whole seconds from 1, got ${JSON.stringify(text)}`,
    help,
  );
}
