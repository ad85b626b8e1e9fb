import { describe, expect, it } from "vitest";
import { at, codeOf, iso, N0, ScheduleRig, targetOfCall } from "../support/schedule-rig.js";

const most = Number.MAX_SAFE_INTEGER;

describe("schedule_create", () => {
  it("[schedule/1] answers the view and logs the record without state and delivery mode", () => {
    const rig = new ScheduleRig();
    const record = {
      id: "schedule-1",
      kind: "after",
      prompt: "check logs",
      afterSeconds: 30,
      scheduledAt: "2026-08-05T12:00:30.000Z",
    };
    const { value, outcome } = rig.create({ prompt: "  check logs  ", after_seconds: 30 });
    expect(JSON.stringify(value)).toBe(
      JSON.stringify({ ...record, state: "scheduled", deliveryMode: "session-local" }),
    );
    expect(outcome.meta).toEqual({
      scheduleId: "schedule-1",
      scheduledAt: "2026-08-05T12:00:30.000Z",
    });
    expect(rig.log).toHaveLength(1);
    expect(JSON.stringify(rig.changes[0]?.data)).toBe(
      JSON.stringify({ version: 1, operation: "create", schedule: record }),
    );
  });

  it.each([" ", "\u00a0\ufeff", "\u2028\n"])(
    "[schedule/2] refuses the blank prompt %j, logs nothing and looks nothing up",
    (prompt) => {
      const rig = new ScheduleRig();
      expect(codeOf(rig.create({ prompt, after_seconds: 1 }))).toBe("invalid_prompt");
      expect(rig.log).toEqual([]);
    },
  );

  it.each([0, -5, 1.5, Number.POSITIVE_INFINITY])(
    "[schedule/3] refuses %d seconds of delay",
    (seconds) => {
      expect(targetOfCall({ after_seconds: seconds })).toBe("invalid_rule");
    },
  );

  it.each([
    [251_616_369_599, "9999-12-31T23:59:59.000Z"],
    [251_616_369_600, "time_out_of_range"],
    [most, "time_out_of_range"],
  ])("[schedule/4] a delay of %d seconds gives %s", (seconds, expected) => {
    expect(targetOfCall({ after_seconds: seconds })).toBe(expected);
  });

  it.each([
    ["two selectors", { after_seconds: 1, at: "later" }],
    ["no selector", {}],
    ["a key that is none", { after_seconds: 1, cron: "* * * * *" }],
  ])("[schedule/5] refuses %s, also with a blank prompt", (_, args) => {
    expect(targetOfCall(args)).toBe("invalid_selector");
    expect(targetOfCall({ ...args, prompt: " " })).toBe("invalid_selector");
  });

  it.each([
    [{ after_seconds: "30" }, '"after_seconds" must be a number'],
    [{ after_seconds: null }, '"after_seconds" must be a number'],
    [{ prompt: undefined }, '"prompt" must be a string'],
    [{ at: 42 }, '"at" must be a string or an object'],
    [{ at: null }, '"at" must be a string or an object'],
    [{ at: ["2026-08-06T01:00:00Z"] }, '"at" must be a string or an object'],
  ])("[schedule/6] %j is an error of the arguments, not a value", (args, message) => {
    const rig = new ScheduleRig();
    const { outcome, value } = rig.create({ prompt: "check", ...args });
    expect(outcome).toMatchObject({ isError: true, error: { code: "INVALID_ARGS" } });
    expect(outcome.content[0]?.text).toBe(`Error: invalid arguments: ${message}`);
    expect(value).toBeUndefined();
    expect(rig.log).toEqual([]);
    expect(codeOf(rig.create({ after_seconds: 1 }))).toBe("INVALID_ARGS");
    expect(codeOf(rig.create("{broken"))).toBe("INVALID_ARGS");
  });

  it.each([
    [N0, "2026-08-05T12:05:00.000Z"],
    [N0 + 123, "2026-08-05T12:05:00.123Z"],
  ])("[schedule/7] a fixed rate keeps the millisecond it was created in", (now, expected) => {
    expect(targetOfCall({ every_seconds: 300 }, now)).toBe(expected);
  });

  it.each([
    ["[schedule/8] too often", 299, "frequency_too_high"],
    ["[schedule/8] too often", 0, "frequency_too_high"],
    ["[schedule/8] too often", -300, "frequency_too_high"],
    ["[schedule/9] not whole", 300.5, "invalid_rule"],
    ["[schedule/9] not whole, before too often", 299.9, "invalid_rule"],
    ["[schedule/10] beyond the last year", most, "time_out_of_range"],
  ])("%s: every %d seconds gives %s", (_, seconds, expected) => {
    expect(targetOfCall({ every_seconds: seconds })).toBe(expected);
  });

  it("[schedule/39] is scheduled until its time and overdue from then on", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "check logs", after_seconds: 30 });
    rig.now = at("2026-08-05T12:00:29.999Z");
    expect(rig.list().value).toMatchObject([{ id: "schedule-1", state: "scheduled" }]);
    rig.now += 1;
    expect(rig.list().value).toMatchObject([{ id: "schedule-1", state: "overdue" }]);
  });

  it("refuses when the clock itself is out of range", () => {
    expect(targetOfCall({ after_seconds: 1 }, Number.NaN)).toBe("time_out_of_range");
    expect(targetOfCall({ after_seconds: 1 }, at("9999-12-31T23:59:59.999Z"))).toBe(
      "time_out_of_range",
    );
  });
});

describe("a time with an offset", () => {
  it.each([
    ["[schedule/11] east", "2026-08-06T09:00:00+08:00", "2026-08-06T01:00:00.000Z"],
    ["[schedule/12] west", "2026-08-05T20:30:00-05:30", "2026-08-06T02:00:00.000Z"],
    ["[schedule/13] tenths", "2026-08-06T01:00:00.1Z", "2026-08-06T01:00:00.100Z"],
    ["[schedule/13] hundredths", "2026-08-06T01:00:00.12Z", "2026-08-06T01:00:00.120Z"],
    ["[schedule/13] thousandths", "2026-08-06T01:00:00.123Z", "2026-08-06T01:00:00.123Z"],
    ["[schedule/13] finer", "2026-08-06T01:00:00.1234Z", "invalid_rule"],
    ["[schedule/14] plus zero", "2026-08-06T01:00:00+00:00", "2026-08-06T01:00:00.000Z"],
    ["[schedule/14] minus zero", "2026-08-06T01:00:00-00:00", "invalid_rule"],
    ["[schedule/15] widest offset", "2026-08-06T01:00:00-23:59", "2026-08-07T00:59:00.000Z"],
    ["[schedule/15] offset of a day", "2026-08-06T01:00:00+24:00", "invalid_rule"],
    ["[schedule/15] offset minute 60", "2026-08-06T01:00:00+01:60", "invalid_rule"],
    ["[schedule/16] no offset", "2026-08-06T01:00:00", "invalid_rule"],
    ["[schedule/16] a space", "2026-08-06 01:00:00Z", "invalid_rule"],
    ["[schedule/16] a small t", "2026-08-06t01:00:00Z", "invalid_rule"],
    ["[schedule/16] a small z", "2026-08-06T01:00:00z", "invalid_rule"],
    ["[schedule/16] no seconds", "2026-08-06T01:00Z", "invalid_rule"],
    ["[schedule/16] a comma", "2026-08-06T01:00:00,5Z", "invalid_rule"],
    ["[schedule/16] a dot alone", "2026-08-06T01:00:00.Z", "invalid_rule"],
    ["[schedule/16] an offset without colon", "2026-08-06T01:00:00+0800", "invalid_rule"],
    ["[schedule/16] an offset of hours", "2026-08-06T01:00:00+08", "invalid_rule"],
    ["[schedule/16] a zone", "2026-08-06T01:00:00+08:00[Asia/Shanghai]", "invalid_rule"],
    ["[schedule/16] a zone alone", "2026-08-06T01:00:00[Asia/Shanghai]", "invalid_rule"],
    ["[schedule/16] a leading space", " 2026-08-06T01:00:00Z", "invalid_rule"],
    ["[schedule/16] a trailing line feed", "2026-08-06T01:00:00Z\n", "invalid_rule"],
    ["[schedule/16] a long year", "+002026-08-06T01:00:00Z", "invalid_rule"],
    ["[schedule/16] the sign U+2212", "2026-08-06T01:00:00\u221205:00", "invalid_rule"],
    ["[schedule/16] other digits", "２026-08-06T01:00:00Z", "invalid_rule"],
    ["[schedule/16] nothing", "", "invalid_rule"],
    ["[schedule/17] February 30", "2026-02-30T00:00:00Z", "invalid_rule"],
    ["[schedule/17] February 29", "2027-02-29T00:00:00Z", "invalid_rule"],
    ["[schedule/17] February 29, 2100", "2100-02-29T00:00:00Z", "invalid_rule"],
    ["[schedule/17] April 31", "2026-04-31T00:00:00Z", "invalid_rule"],
    ["[schedule/17] month 13", "2026-13-01T00:00:00Z", "invalid_rule"],
    ["[schedule/17] month 0", "2026-00-01T00:00:00Z", "invalid_rule"],
    ["[schedule/17] day 0", "2026-08-00T00:00:00Z", "invalid_rule"],
    ["[schedule/17] hour 24", "2026-08-06T24:00:00Z", "invalid_rule"],
    ["[schedule/17] second 60", "2026-08-06T01:00:60Z", "invalid_rule"],
    ["[schedule/17] year 0", "0000-08-06T01:00:00Z", "invalid_rule"],
    ["[schedule/18] a leap day", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000Z"],
    ["[schedule/18] the leap day of 2400", "2400-02-29T00:00:00Z", "2400-02-29T00:00:00.000Z"],
    ["[schedule/19] now", "2026-08-05T12:00:00Z", "not_future"],
    ["[schedule/19] a moment later", "2026-08-05T12:00:00.001Z", "2026-08-05T12:00:00.001Z"],
    ["[schedule/20] the last instant", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ["[schedule/20] after it", "9999-12-31T23:59:59.999-00:01", "time_out_of_range"],
    ["[schedule/21] before the first", "0001-01-01T00:00:00+23:59", "time_out_of_range"],
    ["[schedule/21] the first instant", "0001-01-01T00:00:00Z", "not_future"],
  ])("%s: %j gives %s", (_, text, expected) => {
    expect(targetOfCall({ at: text })).toBe(expected);
  });

  it("[schedule/11] leaves no offset in the record", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "go", at: "2026-08-06T09:00:00+08:00" });
    expect(rig.state.records).toEqual([
      { id: "schedule-1", kind: "at", prompt: "go", scheduledAt: iso(at("2026-08-06T01:00:00Z")) },
    ]);
    expect(rig.lookups).toBe(0);
  });
});
