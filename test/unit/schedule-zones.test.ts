import { describe, expect, it } from "vitest";
import { formatInstant } from "../../src/domain/schedule-instant.js";
import { resolveLocalTime } from "../../src/time/resolve-zone.js";
import { at, codeOf, N0, ScheduleRig, targetOfCall } from "../support/schedule-rig.js";
import { resolveByForce, transitionsOf, wallTime } from "../support/zone-brute-force.js";

/** What `schedule_create` makes of a local time. */
function targetOf(given: unknown, now = N0): string {
  return targetOfCall({ at: given }, now);
}

/** `2026-08-06 09:00:00.25 Asia/Shanghai` */
function local(text: string): { date: string; time: string; time_zone: string } {
  const [date = "", time = "", ...zone] = text.split(" ");
  return { date, time, time_zone: zone.join(" ") };
}

describe("a local time with a zone", () => {
  it.each([
    ["[schedule/22]", "2026-08-06 09:00:00.25 Asia/Shanghai", "2026-08-06T01:00:00.250Z"],
    ["[schedule/23]", "2026-08-06 09:00:00 UTC", "2026-08-06T09:00:00.000Z"],
    ["[schedule/23]", "2026-08-06 09:00:00 Asia/Kathmandu", "2026-08-06T03:15:00.000Z"],
    ["[schedule/23]", "2026-08-06 09:00:00 Pacific/Chatham", "2026-08-05T20:15:00.000Z"],
    ["[schedule/23]", "2026-08-06 09:00:00 Pacific/Kiritimati", "2026-08-05T19:00:00.000Z"],
    ["[schedule/23]", "2026-08-06 09:00:00 Etc/GMT+8", "2026-08-06T17:00:00.000Z"],
    ["[schedule/24]", "2026-08-06 09:00:00 US/Eastern", "2026-08-06T13:00:00.000Z"],
    ["[schedule/24]", "2026-08-06 09:00:00 america/new_york", "2026-08-06T13:00:00.000Z"],
    ["[schedule/24]", "2026-08-06 09:00:00 Etc/UTC", "2026-08-06T09:00:00.000Z"],
    ["[schedule/26]", "2026-02-30 09:00:00 No/Zone", "invalid_rule"],
    ["[schedule/27]", "2026-08-06 9:00:00 UTC", "invalid_rule"],
    ["[schedule/27]", "2026-08-06 09:00 UTC", "invalid_rule"],
    ["[schedule/27]", "2026-08-06 24:00:00 UTC", "invalid_rule"],
    ["[schedule/27]", "2026-08-06 09:00:60 UTC", "invalid_rule"],
    ["[schedule/27]", "2026/08/06 09:00:00 UTC", "invalid_rule"],
    ["[schedule/29]", "2026-11-01 01:00:00 America/New_York", "2026-11-01T05:00:00.000Z"],
    ["[schedule/29]", "2026-11-01 01:30:00 America/New_York", "2026-11-01T05:30:00.000Z"],
    ["[schedule/29]", "2026-11-01 01:59:59.999 America/New_York", "2026-11-01T05:59:59.999Z"],
    ["[schedule/29]", "2026-11-01 02:00:00 America/New_York", "2026-11-01T07:00:00.000Z"],
    ["[schedule/30]", "2027-03-14 01:59:59.999 America/New_York", "2027-03-14T06:59:59.999Z"],
    ["[schedule/30]", "2027-03-14 02:00:00 America/New_York", "invalid_rule"],
    ["[schedule/30]", "2027-03-14 02:30:00 America/New_York", "invalid_rule"],
    ["[schedule/30]", "2027-03-14 02:59:59.999 America/New_York", "invalid_rule"],
    ["[schedule/30]", "2027-03-14 03:00:00 America/New_York", "2027-03-14T07:00:00.000Z"],
    ["[schedule/32]", "2026-10-25 02:30:00 Europe/Berlin", "2026-10-25T00:30:00.000Z"],
    ["[schedule/32]", "2027-03-28 02:30:00 Europe/Berlin", "invalid_rule"],
    ["[schedule/33]", "2026-10-25 01:30:00 Europe/London", "2026-10-25T00:30:00.000Z"],
    ["[schedule/33]", "2027-03-28 01:30:00 Europe/London", "invalid_rule"],
    ["[schedule/34]", "2026-10-04 02:15:00 Australia/Lord_Howe", "invalid_rule"],
    ["[schedule/34]", "2026-10-04 02:30:00 Australia/Lord_Howe", "2026-10-03T15:30:00.000Z"],
    ["[schedule/34]", "2027-04-04 01:45:00 Australia/Lord_Howe", "2027-04-03T14:45:00.000Z"],
    ["[schedule/34]", "2027-04-04 02:00:00 Australia/Lord_Howe", "2027-04-03T15:30:00.000Z"],
    ["[schedule/35]", "2026-09-06 00:30:00 America/Santiago", "invalid_rule"],
    ["[schedule/35]", "2027-04-03 23:30:00 America/Santiago", "2027-04-04T02:30:00.000Z"],
    ["[schedule/37]", "9999-12-31 18:59:59.999 America/New_York", "9999-12-31T23:59:59.999Z"],
    ["[schedule/37]", "9999-12-31 19:00:00 America/New_York", "time_out_of_range"],
    ["[schedule/38]", "2026-08-05 08:00:00 America/New_York", "not_future"],
    ["[schedule/38]", "2026-08-05 08:00:00.001 America/New_York", "2026-08-05T12:00:00.001Z"],
  ])("%s %s gives %s", (_, text, expected) => {
    expect(targetOf(local(text))).toBe(expected);
  });

  it.each([
    ["", " UTC", "utc", "GMT", "CST", "PST", "+08:00"],
    ["GMT+8", "Japan", "EST5EDT", "Not/A_Real_Zone", "Asia/Beijing", "Etc/Unknown"],
    ["Asia/Shanghai ", "Asia/Shanghai\n", "/Shanghai", "Asia/", "1Asia/X", "Asia//X"],
  ])("[schedule/25] zones that are none: %j and more", (...zones) => {
    const taken = zones.filter(
      (time_zone) =>
        targetOf({ ...local("2026-08-06 09:00:00"), time_zone }) !== "invalid_time_zone",
    );
    expect(taken).toEqual([]);
  });

  it.each([
    [{ date: "2026-08-06", time: "09:00:00" }, "invalid_rule"],
    [{ ...local("2026-08-06 09:00:00 UTC"), fold: 1 }, "invalid_rule"],
    [{ ...local("2026-08-06 09:00:00 UTC"), date: 20_260_806 }, "invalid_rule"],
    [{ ...local("2026-08-06 09:00:00 UTC"), time_zone: 8 }, "invalid_time_zone"],
  ])("[schedule/28] %j is an error of the arguments, and past the schema %s", (shape, code) => {
    expect(targetOf(shape)).toBe("INVALID_ARGS");
    expect(resolveLocalTime(shape as never)).toMatchObject({ ok: false, code });
  });

  it.each([at("2026-01-01T00:00:00Z"), N0])(
    "[schedule/31] a time that clocks skip says so, ahead or past",
    (now) => {
      expect(targetOf(local("2026-03-08 02:30:00 America/New_York"), now)).toBe("invalid_rule");
    },
  );

  it("[schedule/36] a day that clocks skip is a gap", () => {
    const now = at("2011-01-01T00:00:00Z");
    expect(targetOf(local("2011-12-30 12:00:00 Pacific/Apia"), now)).toBe("invalid_rule");
    expect(targetOf(local("2011-12-29 12:00:00 Pacific/Apia"), now)).toBe(
      "2011-12-29T22:00:00.000Z",
    );
  });

  it("dates before the Gregorian calendar are past, or before the first year", () => {
    expect(targetOf(local("1582-10-10 00:00:00 America/New_York"))).toBe("not_future");
    expect(targetOf(local("0001-01-01 00:00:00 Asia/Shanghai"))).toBe("time_out_of_range");
    expect(targetOf(local("0001-01-01 00:00:00 UTC"))).toBe("not_future");
  });

  it("answers the zone in the spelling of the data, and its version", () => {
    expect(resolveLocalTime(local("2026-08-06 09:00:00 america/new_york"))).toEqual({
      ok: true,
      scheduledAt: "2026-08-06T13:00:00.000Z",
      timeZone: "America/New_York",
      tz: process.versions["tz"],
    });
  });

  it("is looked up only when its form is right and the log can be read", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", at: local("2026-08-06 09:00:00 CST") });
    rig.create({ prompt: " ", at: local("2026-08-06 09:00:00 Asia/Shanghai") });
    expect(rig.lookups).toBe(0);
    rig.create({ prompt: "a", at: local("2026-08-06 09:00:00 Asia/Shanghai") });
    expect(rig.lookups).toBe(1);
    rig.state = { ...rig.state, fault: "entry 7" };
    const late = rig.create({ prompt: "a", at: local("2026-08-06 09:00:00 Asia/Shanghai") });
    expect([rig.lookups, codeOf(late)]).toEqual([1, "corrupt_schedule_log"]);
  });

  it("takes the instant that the look-up answered, whatever this host's zones say", () => {
    const rig = new ScheduleRig();
    rig.zone = () => ({
      ok: true,
      scheduledAt: "2026-12-15T19:00:00.000Z",
      timeZone: "America/Vancouver",
      tz: "2026f",
    });
    const args = { prompt: "a", at: local("2026-12-15 12:00:00 America/Vancouver") };
    expect(rig.create(args).value).toMatchObject({ scheduledAt: "2026-12-15T19:00:00.000Z" });
    rig.zone = () => undefined;
    expect(codeOf(rig.create(args))).toBe("internal_error");
  });
});

describe("around every change of clocks from 2026 to 2031", () => {
  const zones = Intl.supportedValuesOf("timeZone").filter((zone) => zone.includes("/"));
  const [from, to] = [at("2026-01-01T00:00:00Z"), at("2032-01-01T00:00:00Z")];

  it(
    "the resolver says what trying every offset says, in every zone this host knows",
    { timeout: 60_000 },
    () => {
      let compared = 0;
      let changes = 0;
      const wrong: string[] = [];
      for (const zone of zones) {
        for (const { time, before, after } of transitionsOf(zone, from, to)) {
          changes += 1;
          for (const wall of wallTimesAround(time, before, after)) {
            const { date, time: clock } = wallTime(wall);
            const answer = resolveLocalTime({ date, time: clock, time_zone: zone });
            const expected = resolveByForce(wall, zone);
            const got = answer.ok ? answer.scheduledAt : answer.code;
            const want = expected === undefined ? "invalid_rule" : formatInstant(expected);
            compared += 1;
            if (got !== want) wrong.push(`${date} ${clock} ${zone}: ${got}, not ${want}`);
          }
        }
      }
      expect(wrong).toEqual([]);
      expect(zones.length).toBeGreaterThan(300);
      expect(changes).toBeGreaterThan(1_000);
      expect(compared).toBeGreaterThan(10 * changes);
    },
  );
});

/** Edges and middles of what a change of clocks skips or repeats, as ms of wall time. */
function wallTimesAround(time: number, before: number, after: number): readonly number[] {
  const edges = [time + before, time + after];
  const middle = time + (before + after) / 2;
  const near = edges.flatMap((edge) => [edge - 1_800_000, edge - 1, edge, edge + 1, edge + 60_000]);
  return [...new Set([...near, middle, middle + 3_600_000, middle - 3_600_000])];
}
