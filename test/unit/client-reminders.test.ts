import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { overdueAmong } from "../../src/client/overdue.js";
import { defineSessionConfig } from "../../src/client/session-config.js";
import { SessionClient } from "../../src/client/session-client.js";
import { UndecidedError } from "../../src/client/undecided.js";
import { Watchers } from "../../src/client/watch.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import { commands } from "../../src/contracts/names.js";
import type { LocalTime } from "../../src/contracts/schedule.js";
import { sessionConfigSchema } from "../../src/contracts/schemas/config.js";
import { parseInput } from "../../src/contracts/schemas/parse.js";
import type { RemindOptions } from "../../src/client/session-reminders.js";
import { ReminderWire } from "../support/reminder-wire.js";
import { at, N0 } from "../support/schedule-rig.js";

let wire: ReminderWire;
let session: SessionClient;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: N0 });
  wire = new ReminderWire();
  const watchers = new Watchers(() => {
    throw new Error("nothing is watched here");
  });
  session = new SessionClient("s", wire, watchers, () => Promise.resolve());
});

afterEach(() => {
  vi.useRealTimers();
});

const payloads = () => wire.sent.map(({ payload }) => payload);
const tokyo: LocalTime = { date: "2026-08-06", time: "09:00:00", time_zone: "asia/tokyo" };

describe("a reminder", () => {
  test.each<[RemindOptions, object, string]>([
    [{ prompt: " look ", in: 30 }, { afterSeconds: 30 }, "2026-08-05T12:00:30.000Z"],
    [{ prompt: "look", every: 300 }, { everySeconds: 300 }, "2026-08-05T12:05:00.000Z"],
    [
      { prompt: "look", at: "2026-08-06T09:00:00+08:00" },
      { at: "2026-08-06T09:00:00+08:00" },
      "2026-08-06T01:00:00.000Z",
    ],
    // A local time is looked up here: the session never sees it.
    [{ prompt: "look", at: tokyo }, { at: "2026-08-06T00:00:00.000Z" }, "2026-08-06T00:00:00.000Z"],
  ])("%j is sent and answered with its id and time", async (options, rule, scheduledAt) => {
    await expect(session.remind({ ...options, id: "op" })).resolves.toEqual({
      ok: true,
      requestId: "op",
      id: "schedule-1",
      scheduledAt,
    });
    const { prompt } = options;
    expect(wire.sent).toEqual([
      {
        as: "update",
        name: commands.scheduleChange,
        id: "op",
        payload: { requestId: "op", operation: "create", prompt, ...rule },
      },
    ]);
  });

  test("has a request id of its own each time, unless one is given", async () => {
    const first = await session.remind({ prompt: "p", in: 5 });
    const second = await session.remind({ prompt: "p", in: 5 });
    expect(first).toMatchObject({ id: "schedule-1" });
    expect(second).toMatchObject({ id: "schedule-2" });
    expect((first as { requestId: string }).requestId).toBe(wire.sent[0]?.id);
    expect(wire.sent[0]?.id).not.toBe(wire.sent[1]?.id);
  });

  const gap: LocalTime = { date: "2027-03-14", time: "02:30:00", time_zone: "America/New_York" };
  test.each<[string, object, string]>([
    ["no selector", { prompt: "p" }, "invalid_selector"],
    ["two selectors", { prompt: "p", in: 5, every: 300 }, "invalid_selector"],
    [
      "a strange key, also with a blank prompt",
      { prompt: " ", in: 5, cron: 1 },
      "invalid_selector",
    ],
    ["a blank prompt before a bad zone", { prompt: " ", at: gap }, "invalid_prompt"],
    ["a fraction of a second", { prompt: "p", in: 1.5 }, "invalid_rule"],
    ["often", { prompt: "p", every: 299 }, "frequency_too_high"],
    ["a time that clocks skip", { prompt: "p", at: gap }, "invalid_rule"],
    ["an unknown zone", { prompt: "p", at: { ...gap, time_zone: "No/Zone" } }, "invalid_time_zone"],
    ["an abbreviation", { prompt: "p", at: { ...gap, time_zone: "EST" } }, "invalid_time_zone"],
    ["a missing zone", { prompt: "p", at: { date: gap.date, time: gap.time } }, "invalid_rule"],
  ])("is refused here as a value, for %s", async (_, options, code) => {
    await expect(session.remind(options as RemindOptions)).resolves.toMatchObject({
      ok: false,
      code,
      message: expect.stringMatching(/^[^\n]+$/u),
      requestId: expect.any(String),
    });
    expect(wire.sent).toEqual([]);
  });

  test.each<[string, object, string]>([
    ["a time that is past", { prompt: "p", at: "2026-08-05T12:00:00Z" }, "not_future"],
    ["text that is no time", { prompt: "p", at: "soon" }, "invalid_rule"],
    ["empty text as its time", { prompt: "p", at: "" }, "invalid_rule"],
    ["a time past all years", { prompt: "p", in: 2 ** 53 - 1 }, "time_out_of_range"],
    ["a long prompt", { prompt: "x".repeat(4_097), in: 5 }, "invalid_prompt"],
  ])("is refused by the session as a value, for %s", async (_, options, code) => {
    await expect(session.remind(options as RemindOptions)).resolves.toMatchObject({
      ok: false,
      code,
    });
    expect(wire.rig.changes).toEqual([]);
  });

  test.each<[object, string]>([
    [{ in: 5 }, "prompt"],
    [{ prompt: "p", in: "5" }, "in: expected a number of seconds"],
    [{ prompt: "p", at: 5 }, "at: expected text, or a local time"],
    [{ prompt: "p", in: 5, id: " x" }, "id"],
  ])("of another shape, %j, is a mistake of the program", async (options, message) => {
    await expect(session.remind(options as RemindOptions)).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining(message),
    });
  });

  test("throws what is no verdict on it, such as that the session has none or is closed", async () => {
    for (const code of ["INVALID_INPUT", "SESSION_CLOSED"] as const) {
      wire.verdict = { ok: false, code, message: "m" };
      const failing = session.remind({ prompt: "p", in: 5 });
      await expect(failing).rejects.toBeInstanceOf(LonghaulError);
      await expect(failing).rejects.toMatchObject({ code, message: "m" });
    }
  });

  test("under an id that named another kind of change is DUPLICATE_ID", async () => {
    await session.remind({ prompt: "p", in: 5, id: "op" });
    await expect(session.deleteReminder("schedule-1", { id: "op" })).rejects.toMatchObject({
      code: "DUPLICATE_ID",
    });
    await session.deleteReminder("schedule-1", { id: "op2" });
    await expect(session.remind({ prompt: "p", in: 5, id: "op2" })).rejects.toMatchObject({
      code: "DUPLICATE_ID",
    });
  });
});

describe("the list", () => {
  test("tells by this machine's clock what is overdue, at the millisecond", async () => {
    await session.remind({ prompt: "p", in: 30 });
    vi.setSystemTime(N0 + 29_999);
    await expect(session.reminders()).resolves.toEqual({
      ok: true,
      enabled: true,
      live: true,
      reminders: [
        {
          id: "schedule-1",
          kind: "after",
          prompt: "p",
          afterSeconds: 30,
          scheduledAt: "2026-08-05T12:00:30.000Z",
          state: "scheduled",
          deliveryMode: "session-local",
        },
      ],
    });
    vi.setSystemTime(N0 + 30_000);
    wire.live = false;
    await expect(session.reminders()).resolves.toMatchObject({
      live: false,
      reminders: [{ state: "overdue" }],
    });
  });

  test("says when it cannot be read", async () => {
    wire.losses.push("answer");
    await expect(session.reminders()).resolves.toEqual({
      ok: false,
      code: "persistence_uncertain",
      operation: "list",
      message: "the reminders could not be read: no worker",
    });
  });
});

describe("a deletion", () => {
  test("tells whether there was one", async () => {
    await session.remind({ prompt: "p", in: 5 });
    await expect(session.deleteReminder("schedule-1", { id: "d" })).resolves.toEqual({
      ok: true,
      requestId: "d",
      id: "schedule-1",
      deleted: true,
    });
    await expect(session.deleteReminder("schedule-1")).resolves.toMatchObject({
      ok: true,
      deleted: false,
      code: "schedule_not_found",
    });
    await expect(session.deleteReminder(" schedule-1")).resolves.toMatchObject({
      ok: false,
      code: "invalid_rule",
    });
  });
});

describe("a change without waiting", () => {
  test("is a signal, and its outcome can be read by its request id", async () => {
    const signalled = await session.signalReminder({ operation: "create", prompt: "p", in: 5 });
    const { requestId } = signalled as { requestId: string };
    expect(wire.sent).toMatchObject([{ as: "signal", payload: { requestId, afterSeconds: 5 } }]);
    const set = { ok: true, requestId, id: "schedule-1", scheduledAt: "2026-08-05T12:00:05.000Z" };
    await expect(session.reminderOutcome(requestId)).resolves.toEqual(set);
    await session.signalReminder({ operation: "delete", reminder: "schedule-1", id: "d" });
    await expect(session.reminderOutcome("d")).resolves.toEqual({
      ok: true,
      requestId: "d",
      id: "schedule-1",
      deleted: true,
    });
    await session.signalReminder({ operation: "create", prompt: "p", at: "soon", id: "bad" });
    await expect(session.reminderOutcome("bad")).resolves.toMatchObject({
      ok: false,
      code: "invalid_rule",
      requestId: "bad",
    });
    await expect(session.reminderOutcome("never")).resolves.toBeUndefined();
    wire.losses.push("request");
    await expect(
      session.signalReminder({ operation: "delete", reminder: "schedule-1", id: "d2" }),
    ).resolves.toMatchObject({
      code: "persistence_uncertain",
      operation: "delete",
      requestId: "d2",
    });
  });
});

describe("a call that ends without a verdict", () => {
  test("[schedule/67] in place of barriers: lost before or after the session took it, a repeat makes one reminder, delivered once", async () => {
    for (const loss of ["request", "answer"] as const) {
      wire.losses.push(loss);
      const options = { prompt: loss, in: 30, id: loss };
      await expect(session.remind(options)).resolves.toMatchObject({
        ok: false,
        code: "persistence_uncertain",
        operation: "create",
        requestId: loss,
      });
      await expect(session.remind(options)).resolves.toMatchObject({ ok: true });
    }
    const { rig } = wire;
    expect(rig.state.records.map(({ id, prompt }) => [id, prompt])).toEqual([
      ["schedule-1", "request"],
      ["schedule-2", "answer"],
    ]);
    rig.settle();
    expect(rig.turns).toEqual([]);
    rig.now = N0 + 30_000;
    rig.settle();
    expect(rig.turns).toHaveLength(2);
    rig.settle();
    expect(rig.turns).toHaveLength(2);
  });

  test("[schedule/68] in place of a barrier: persistence_uncertain, the list tells the truth and the timer is armed; so for a deletion", async () => {
    wire.losses.push("answer");
    const created = await session.remind({ prompt: "p", in: 30, id: "op" });
    expect(created).toEqual({
      ok: false,
      code: "persistence_uncertain",
      operation: "create",
      requestId: "op",
      message:
        "whether the create was stored is not known; list the reminders to see (no worker answered)",
    });
    await expect(session.reminders()).resolves.toMatchObject({ reminders: [{ id: "schedule-1" }] });
    expect(wire.rig.drive()).toMatchObject({ kind: "arm", at: N0 + 30_000 });
    wire.losses.push("answer");
    await expect(session.deleteReminder("schedule-1")).resolves.toMatchObject({
      code: "persistence_uncertain",
      operation: "delete",
      id: "schedule-1",
      message: expect.stringContaining("the delete of schedule-1"),
    });
    await expect(session.reminders()).resolves.toMatchObject({ ok: true, reminders: [] });
  });

  test("[schedule/69] in place of a missing listener: persistence_uncertain while nobody answers, then corrupt_schedule_log", async () => {
    await session.remind({ prompt: "p", in: 5 });
    wire.rig.append({
      type: "schedule/change",
      data: { version: 1, operation: "delete", id: "schedule-9" },
    });
    wire.losses.push("request", "request", "request");
    const calls = () => [
      session.reminders(),
      session.remind({ prompt: "p", in: 30 }),
      session.deleteReminder("schedule-1"),
    ];
    const codes = async () =>
      (await Promise.all(calls())).map((result) => (result.ok ? "ok" : result.code));
    await expect(codes()).resolves.toEqual([
      "persistence_uncertain",
      "persistence_uncertain",
      "persistence_uncertain",
    ]);
    await expect(codes()).resolves.toEqual([
      "corrupt_schedule_log",
      "corrupt_schedule_log",
      "corrupt_schedule_log",
    ]);
    wire.rig.now = N0 + 60_000;
    wire.rig.settle();
    expect(wire.rig.turns).toEqual([]);
  });
});

describe("where a session is", () => {
  test("is asked for by updates, which a session may refuse", async () => {
    await session.suspend();
    await session.resume();
    await session.rebind("host-b");
    expect(wire.sent.map(({ name, payload }) => [name, payload])).toEqual([
      [commands.suspend, {}],
      [commands.resume, {}],
      [commands.rebind, { host: "host-b" }],
    ]);
    wire.verdict = { ok: false, code: "INVALID_INPUT", message: "no world tools" };
    await expect(session.rebind("host-b")).rejects.toMatchObject({ message: "no world tools" });
    await expect(session.rebind("a b")).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(wire.sent).toHaveLength(4);
  });
});

describe("a message", () => {
  test("carries the writer's zone as zone data spells it", async () => {
    wire.verdict = { ok: true, id: "m", seq: 1 };
    await session.send("hi", { timeZone: "america/new_york", id: "m" });
    expect(payloads()).toEqual([
      { id: "m", mode: "followup", content: "hi", timeZone: "America/New_York" },
    ]);
  });

  test.each(["Nowhere/X", "EST", "+01:00", "", "utc"])("has no zone %j", async (timeZone) => {
    await expect(session.send("hi", { timeZone })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining(JSON.stringify(timeZone)),
    });
    expect(wire.sent).toEqual([]);
  });
});

describe("the settings", () => {
  const choices = { model: "p/m", allowParallelInProgress: true };
  test.each<[object]>([
    [{}],
    [{ schedule: true, timeContext: false }],
    [{ schedule: { maxActive: 3 }, timeContext: { refreshIntervalMs: 0 } }],
  ])("%j are part of a session's configuration", (settings) => {
    const config = defineSessionConfig({ ...choices, ...settings });
    expect(config).toMatchObject(settings);
    expect(parseInput(sessionConfigSchema, config, "config")).toEqual(config);
  });

  test.each<[object, string]>([
    [{ schedule: "yes" }, "schedule expected true, false or an object"],
    [{ schedule: { maxActive: 0 } }, "schedule.maxActive expected a whole number from 1 to 1000"],
    [{ schedule: { max: 1 } }, 'schedule has no key "max"'],
    [{ timeContext: { refreshIntervalMs: -1 } }, "`timeContext` is true, false or"],
    [{ timeContext: { every: 1 } }, '`timeContext` has no key "every"'],
  ])("%j cannot be", (settings, message) => {
    expect(() => defineSessionConfig({ ...choices, ...settings })).toThrow(message);
    const config = { ...defineSessionConfig(choices), ...settings };
    expect(() => parseInput(sessionConfigSchema, config, "config")).toThrow(
      /^config: (?:schedule|timeContext)/u,
    );
  });
});

test("overdue sessions are found by asking each, and one that does not answer is left out", async () => {
  const summary = (id: string) => ({ id, state: "cold" as const, startedAt: 0 });
  const due = (scheduledAt: string) => ({
    ok: true as const,
    enabled: true,
    live: false,
    reminders: [
      {
        id: "schedule-1",
        kind: "at" as const,
        prompt: "p",
        scheduledAt,
        state: "scheduled" as const,
        deliveryMode: "session-local" as const,
      },
    ],
  });
  const answers: Record<string, () => Promise<ReturnType<typeof due>>> = {
    late: () => Promise.resolve(due("2026-08-05T12:00:00.000Z")),
    later: () => Promise.resolve(due("2026-08-05T12:00:00.001Z")),
    away: () => Promise.reject(new LonghaulError("SESSION_CLOSED", "m")),
  };
  const found = await overdueAmong(Object.keys(answers).map(summary), (id) => ({
    reminders: () => (answers[id] as () => Promise<ReturnType<typeof due>>)(),
  }));
  expect(found).toEqual([{ ...summary("late"), nextReminder: at("2026-08-05T12:00:00.000Z") }]);
});

test("an undecided write keeps the code of what was met", () => {
  expect(new UndecidedError("NO_WORKER", "m")).toMatchObject({
    name: "LonghaulError",
    code: "NO_WORKER",
  });
});
