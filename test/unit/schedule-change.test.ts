import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultScheduleConfig } from "../../src/contracts/schedule.js";
import { decideScheduleChange, outcomeOf } from "../../src/domain/schedule-change.js";
import { restoreSchedule } from "../../src/domain/schedule-snapshot.js";
import { emptySchedule, foldSchedule } from "../../src/domain/schedule.js";
import { N0, ScheduleRig } from "../support/schedule-rig.js";

const create = (requestId: string, extra: object = { afterSeconds: 30 }) => ({
  requestId,
  operation: "create",
  prompt: "p",
  ...extra,
});

describe("a schedule.change from outside", () => {
  it.each([
    [{ afterSeconds: 30 }, "2026-08-05T12:00:30.000Z", "after"],
    [{ everySeconds: 300 }, "2026-08-05T12:05:00.000Z", "every"],
    [{ at: "2026-08-06T09:00:00+08:00" }, "2026-08-06T01:00:00.000Z", "at"],
  ])("creates by %j", (extra, scheduledAt, kind) => {
    const rig = new ScheduleRig();
    const answer = { operation: "create", id: "schedule-1", scheduledAt };
    expect(rig.change(create("r", extra))).toEqual({ ok: true, answer });
    expect(rig.state.records).toMatchObject([{ id: "schedule-1", kind, scheduledAt }]);
    expect(rig.log).toMatchObject([
      { type: "schedule/change" },
      { type: "schedule/accepted", data: { requestId: "r", answer } },
    ]);
  });

  it("deletes, and accepts that there was nothing to delete", () => {
    const rig = new ScheduleRig();
    rig.change(create("r1"));
    const remove = (requestId: string) =>
      rig.change({ requestId, operation: "delete", id: "schedule-1" });
    const answer = (deleted: boolean) => ({
      ok: true,
      answer: { operation: "delete", id: "schedule-1", deleted },
    });
    expect(remove("r2")).toEqual(answer(true));
    expect(remove("r3")).toEqual(answer(false));
    expect(remove("r2")).toEqual(answer(true));
    expect(rig.changes).toHaveLength(2);
    expect(outcomeOf(rig.state, "r3")).toEqual(answer(false));
    expect(outcomeOf(rig.state, "r4")).toBeUndefined();
  });

  it("[schedule/T10] sent twice makes one reminder, and two make two in the order they came", () => {
    const rig = new ScheduleRig();
    const first = rig.change(create("a"));
    rig.now += 5_000;
    expect(rig.change(create("b"))).toMatchObject({ answer: { id: "schedule-2" } });
    expect(rig.change(create("a", { everySeconds: 300 }))).toEqual(first);
    expect(rig.state.records.map((record) => record.id)).toEqual(["schedule-1", "schedule-2"]);
    expect(rig.log).toHaveLength(4);
  });

  it.each([
    ["nothing", undefined],
    ["a text", "create"],
    ["no requestId", { operation: "create", prompt: "p", afterSeconds: 30 }],
    ["an empty requestId", create("")],
    ["a huge requestId", create("x".repeat(201))],
    ["a number for a requestId", { ...create("r"), requestId: 1 }],
  ])("that nobody can ask about is kept as a refused signal: %s", (_, command) => {
    const rig = new ScheduleRig();
    expect(rig.change(command)).toMatchObject({ ok: false, code: "INVALID_INPUT" });
    expect(rig.log).toMatchObject([
      { type: "session/rejected", data: { command: "schedule.change", code: "INVALID_INPUT" } },
    ]);
    expect(rig.state).toBe(emptySchedule);
  });

  it.each([
    ["another operation", { requestId: "r", operation: "dispatch", id: "a" }, "INVALID_INPUT"],
    ["no prompt", { ...create("r"), prompt: undefined }, "INVALID_INPUT"],
    ["seconds as text", create("r", { afterSeconds: "30" }), "INVALID_INPUT"],
    ["an interval of null", create("r", { everySeconds: null }), "INVALID_INPUT"],
    ["a delete of a number", { requestId: "r", operation: "delete", id: 1 }, "INVALID_INPUT"],
    [
      "a delete of a huge id",
      { requestId: "r", operation: "delete", id: "x".repeat(201) },
      "INVALID_INPUT",
    ],
    ["a padded id", { requestId: "r", operation: "delete", id: " a" }, "invalid_rule"],
    ["a strange key", create("r", { afterSeconds: 30, cron: "* * *" }), "invalid_selector"],
    ["two selectors", create("r", { afterSeconds: 30, at: "x" }), "invalid_selector"],
    ["no selector", create("r", {}), "invalid_selector"],
    ["a blank prompt", { ...create("r"), prompt: " " }, "invalid_prompt"],
    ["no delay", create("r", { afterSeconds: 0 }), "invalid_rule"],
    ["too often", create("r", { everySeconds: 60 }), "frequency_too_high"],
    ["the past", create("r", { at: "2026-08-05T12:00:00Z" }), "not_future"],
    ["no time", create("r", { at: "tomorrow" }), "invalid_rule"],
    ["no instant", create("r", { at: 5 }), "invalid_rule"],
    [
      "a local time",
      create("r", { at: { date: "2026-08-06", time: "09:00:00", time_zone: "UTC" } }),
      "invalid_rule",
    ],
  ])(
    "is refused with %s, the log of reminders unchanged and later ones fine",
    (_, command, code) => {
      const rig = new ScheduleRig();
      const result = rig.change(command);
      expect(result).toMatchObject({ ok: false, code });
      expect(rig.log).toMatchObject([
        { type: "schedule/rejected", data: { requestId: "r", code } },
      ]);
      expect(rig.state.records).toEqual([]);
      expect(rig.change(command)).toEqual(result);
      expect(rig.log).toHaveLength(1);
      expect(rig.change(create("r2"))).toMatchObject({ ok: true });
    },
  );

  it("is refused when the log cannot be read, and by the limits", () => {
    const rig = new ScheduleRig();
    rig.config = { ...rig.config, maxActive: 1 };
    rig.change(create("a"));
    expect(rig.change(create("b"))).toMatchObject({ code: "too_many_schedules" });
    rig.append({ type: "schedule/change", data: { version: 1, operation: "delete", id: "x" } });
    expect(rig.change(create("c"))).toMatchObject({ code: "corrupt_schedule_log" });
    expect(rig.change({ requestId: "d", operation: "delete", id: "schedule-1" })).toMatchObject({
      code: "corrupt_schedule_log",
    });
    expect(outcomeOf(rig.state, "c")).toMatchObject({ code: "corrupt_schedule_log" });
  });

  it("never throws and logs lossless JSON, whatever it is", () => {
    const command = fc.record(
      {
        requestId: fc.oneof(fc.string(), fc.anything()),
        operation: fc.constantFrom("create", "delete", "dispatch"),
        prompt: fc.oneof(fc.string(), fc.anything()),
        afterSeconds: fc.oneof(fc.integer(), fc.anything()),
        everySeconds: fc.anything(),
        at: fc.oneof(fc.string(), fc.anything()),
        id: fc.oneof(fc.string(), fc.anything()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(command, fc.anything()), (given) => {
        const context = { now: N0, config: defaultScheduleConfig };
        const { result, events } = decideScheduleChange(emptySchedule, given, context);
        expect(JSON.parse(JSON.stringify({ result, events }))).toEqual({ result, events });
        expect(events.length).toBeGreaterThan(0);
        const folded = events.reduce(
          (state, event, seq) => foldSchedule(state, { ...event, seq, time: N0 }),
          emptySchedule,
        );
        expect(folded.fault).toBeUndefined();
        expect(restoreSchedule(JSON.parse(JSON.stringify(folded)))).toEqual(folded);
      }),
    );
  });

  it("is remembered with the last 200 verdicts and about 64 KB", () => {
    const rig = new ScheduleRig();
    for (let n = 0; n < 201; n += 1)
      rig.change({ requestId: `r${n}`, operation: "delete", id: "a" });
    expect(rig.state.outcomes).toHaveLength(200);
    expect(outcomeOf(rig.state, "r0")).toBeUndefined();
    for (let n = 0; n < 200; n += 1)
      rig.change(create(`${n}`.padStart(200, "x"), { at: "9".repeat(90) }));
    const { outcomes } = rig.state;
    const size = outcomes.reduce(
      (sum, { requestId, result }) =>
        sum + requestId.length + (result.ok ? 0 : result.message.length),
      0,
    );
    expect(size).toBeLessThanOrEqual(64 * 1024);
    expect(outcomes.length).toBeGreaterThan(100);
  });
});
