import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { comesAgain, localText } from "../../src/time/local-text.js";
import { formatDuration, parseDuration } from "../../src/time/typed-duration.js";
import { parseMoment } from "../../src/time/typed-moment.js";

describe("a duration", () => {
  test.each<[string, number]>([
    ["10m", 600],
    ["45s", 45],
    ["1h30m", 5_400],
    ["1h 30m", 5_400],
    ["1 hour and 30 minutes", 5_400],
    ["1 h, 30 min", 5_400],
    ["2 days", 172_800],
    ["2d", 172_800],
    ["1 week", 604_800],
    ["1w2d3h4m5s", 788_645],
    ["1.5h", 5_400],
    ["0.1h", 360],
    ["90 MIN", 5_400],
    ["  3hrs ", 10_800],
    ["0s", 0],
    ["99999999999d", 8_639_999_999_913_600],
  ])("%j is %i seconds", (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  test.each([
    "",
    "10",
    "m",
    "10 x",
    "30m1h",
    "1h1h",
    "1m 60",
    "-5m",
    "1,5h",
    "0.0001s",
    "500ms",
    "1 month",
    "ten minutes",
    "1h and",
    "1h,",
    "and 1h",
    "10m!",
    "1e3s",
    "１0m",
  ])("%j is none", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test("is read back as it is written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 9 }), (seconds) => {
        expect(parseDuration(formatDuration(seconds))).toBe(seconds);
      }),
    );
    expect(formatDuration(900)).toBe("15m");
    expect(formatDuration(90_061)).toBe("1d1h1m1s");
  });
});

/** A Wednesday; 14:00 in Berlin. */
const now = Date.parse("2026-08-05T12:00:00.000Z");

function read(text: string, zone: string | undefined = "Europe/Berlin", at = now): string {
  const moment = parseMoment(text, at, zone);
  switch (moment.kind) {
    case "moment":
      return `${new Date(moment.ms).toISOString()} ${moment.timeZone}`;
    case "refused":
      return moment.refusal.code;
    case "unreadable":
      return moment.why ?? "unreadable";
  }
}

describe("a moment", () => {
  test.each<[string, string]>([
    ["tomorrow 9:00", "2026-08-06T07:00:00.000Z"],
    ["Tomorrow at 9am", "2026-08-06T07:00:00.000Z"],
    ["tomorrow, 09:00:30", "2026-08-06T07:00:30.000Z"],
    ["9:00 tomorrow", "2026-08-06T07:00:00.000Z"],
    ["today 17:00", "2026-08-05T15:00:00.000Z"],
    ["today 9:00", "2026-08-05T07:00:00.000Z"],
    ["14:30", "2026-08-05T12:30:00.000Z"],
    ["at 14:30", "2026-08-05T12:30:00.000Z"],
    ["09:30", "2026-08-06T07:30:00.000Z"],
    ["14:00", "2026-08-06T12:00:00.000Z"],
    ["5pm", "2026-08-05T15:00:00.000Z"],
    ["5:30 PM", "2026-08-05T15:30:00.000Z"],
    ["12am", "2026-08-05T22:00:00.000Z"],
    ["12pm", "2026-08-06T10:00:00.000Z"],
    ["fri 17:00", "2026-08-07T15:00:00.000Z"],
    ["17:00 on Friday", "2026-08-07T15:00:00.000Z"],
    ["thurs 9:00", "2026-08-06T07:00:00.000Z"],
    ["tues 9:00", "2026-08-11T07:00:00.000Z"],
    ["wed 17:00", "2026-08-05T15:00:00.000Z"],
    ["wednesday 13:00", "2026-08-12T11:00:00.000Z"],
    ["2026-12-01 09:00", "2026-12-01T08:00:00.000Z"],
    ["2026-12-01T09:00", "2026-12-01T08:00:00.000Z"],
    ["2026-12-01 at 9:00:00.5", "2026-12-01T08:00:00.500Z"],
    ["  2026-12-01   9:00 ", "2026-12-01T08:00:00.000Z"],
    // The first of two.
    ["2026-10-25 02:30", "2026-10-25T00:30:00.000Z"],
    ["2020-01-01 00:00", "2019-12-31T23:00:00.000Z"],
  ])("%j is %s where it is read", (text, expected) => {
    expect(read(text)).toBe(`${expected} Europe/Berlin`);
  });

  test.each<[string, string]>([
    ["2026-12-01T09:00:00Z", "2026-12-01T09:00:00.000Z"],
    ["2026-12-01 09:00z", "2026-12-01T09:00:00.000Z"],
    ["2026-12-01T09:00:00.25+01:00", "2026-12-01T08:00:00.250Z"],
    ["2026-12-01 9:00 +0530", "2026-12-01T03:30:00.000Z"],
    ["2026-12-01T09:00-08:00", "2026-12-01T17:00:00.000Z"],
  ])("%j is %s everywhere", (text, expected) => {
    for (const zone of ["Europe/Berlin", "Asia/Tokyo"])
      expect(read(text, zone)).toBe(`${expected} ${zone}`);
    expect(read(text, undefined)).toContain(expected);
  });

  test.each<[string, string]>([
    ["2026-12-01 09:00 Asia/Tokyo", "2026-12-01T00:00:00.000Z Asia/Tokyo"],
    ["9am america/new_york", "2026-08-05T13:00:00.000Z America/New_York"],
    ["tomorrow 00:30 utc", "2026-08-06T00:30:00.000Z UTC"],
    // There it is Thursday already.
    ["today 10:00 Pacific/Kiritimati", "2026-08-05T20:00:00.000Z Pacific/Kiritimati"],
  ])("%j names its zone, which wins: %s", (text, expected) => {
    expect(read(text)).toBe(expected);
  });

  test.each<[string, string]>([
    ["2027-03-28 02:30", "invalid_rule"],
    ["2026-02-30 9:00", "invalid_rule"],
    ["25:00", "invalid_rule"],
    ["9:60", "invalid_rule"],
    ["2026-12-01T09:00:00-00:00", "invalid_rule"],
    ["2026-12-01T24:00Z", "invalid_rule"],
    ["9999-12-31 23:59 America/New_York", "time_out_of_range"],
  ])("%j is refused by the rules of reminders: %s", (text, code) => {
    expect(read(text)).toBe(code);
  });

  test.each<[string, string]>([
    ["", "unreadable"],
    ["soon", "unreadable"],
    ["next friday 17:00", "unreadable"],
    ["2026-12-01 09:00 EST", "unreadable"],
    ["t 9:00", "unreadable"],
    ["birthday 9:00", "no day of the week is called birthday"],
    ["9:00 Nowhere/X", "no zone of the zone database is called Nowhere/X"],
    ["tomorrow 9", "an hour alone needs its minutes, or am or pm: 9:00"],
    ["13pm", "with am or pm the hour is 1 to 12"],
    ["0am", "with am or pm the hour is 1 to 12"],
    ["01/12/2026 9:00", "a date is year-month-day, for others read it otherwise"],
    ["1.12.26", "a date is year-month-day, for others read it otherwise"],
    ["tomorrow", "the time of day is missing"],
    ["2026-12-01", "the time of day is missing"],
    ["Friday", "the time of day is missing"],
    ["in 10m", "a delay goes with --in"],
  ])("%j is none: %s", (text, why) => {
    expect(read(text)).toBe(why);
  });

  test("of which nobody knows the zone is none", () => {
    expect(parseMoment("9:00", now, undefined)).toEqual({
      kind: "unreadable",
      why: "which time zone is meant is not known",
    });
  });

  test("that clocks skip today is refused before, and is tomorrow's afterwards", () => {
    expect(read("02:30", "Europe/Berlin", Date.parse("2027-03-28T00:30:00Z"))).toBe("invalid_rule");
    expect(read("02:30", "Europe/Berlin", Date.parse("2027-03-28T12:00:00Z"))).toContain(
      "2027-03-29T00:30:00.000Z",
    );
  });

  test("never throws, whatever is typed", () => {
    const piece = fc.constantFrom(
      ..."2026-12-01|09:00|9|am|pm|tomorrow|fri| |T|Z|+01:00|utc|Asia/Tokyo|,|at|:|-|99|é|\n".split(
        "|",
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        for (const text of [pieces.join(""), pieces.join(" ")]) expect(read(text)).not.toBe("");
      }),
    );
  });
});

test("an instant is told on the clocks of a zone", () => {
  expect(localText(Date.parse("2026-12-01T08:00:00Z"), "Europe/Berlin")).toBe(
    "Tue 2026-12-01 09:00:00 +01:00 Europe/Berlin",
  );
  expect(localText(Date.parse("2026-08-09T12:00:00.250Z"), "UTC")).toBe(
    "Sun 2026-08-09 12:00:00.250 UTC",
  );
  expect(localText(Date.parse("2026-08-05T12:00:00Z"), "Europe/London")).toBe(
    "Wed 2026-08-05 13:00:00 +01:00 Europe/London",
  );
});

test("a time that clocks show twice is known, at its first showing", () => {
  expect(comesAgain(Date.parse("2026-10-25T00:30:00Z"), "Europe/Berlin")).toBe(true);
  expect(comesAgain(Date.parse("2026-10-25T01:30:00Z"), "Europe/Berlin")).toBe(false);
  expect(comesAgain(Date.parse("2026-10-25T02:30:00Z"), "Europe/Berlin")).toBe(false);
});
