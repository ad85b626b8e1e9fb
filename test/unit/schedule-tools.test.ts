import { describe, expect, it } from "vitest";
import { defaultScheduleConfig } from "../../src/contracts/schedule.js";
import { checkArguments } from "../../src/domain/argument-schema.js";
import { loadScheduleConfig } from "../../src/domain/schedule-config.js";
import { persistenceUncertain } from "../../src/domain/schedule-errors.js";
import {
  createParameters,
  isScheduleTool,
  offersReminders,
  scheduleToolRows,
} from "../../src/domain/schedule-tool-rows.js";
import { nextReminder } from "../../src/domain/schedule-views.js";
import { at, codeOf, N0, ScheduleRig } from "../support/schedule-rig.js";

const local = { date: "2026-08-06", time: "09:00:00", time_zone: "Asia/Shanghai" };

describe("the tools of reminders", () => {
  it("are exclusive, run in the session and say what they do", () => {
    const rows = scheduleToolRows(defaultScheduleConfig);
    expect(rows.map((row) => row.name)).toEqual([
      "schedule_create",
      "schedule_list",
      "schedule_delete",
    ]);
    for (const row of rows) {
      expect(row).toMatchObject({ where: "state", parallel: false, idempotent: false });
      expect(row).not.toHaveProperty("timeoutMs");
      expect(isScheduleTool(row.name)).toBe(true);
    }
    const described = rows.map((row) => row.description).join("\n");
    for (const must of ["300", "`after_seconds`", "`at`", "`every_seconds`", "live", "overdue"])
      expect(described).toContain(must);
    expect(isScheduleTool("job_list")).toBe(false);
  });

  it("[schedule/72] in place of a wrong owner: are offered to no child, and not where they are off", () => {
    expect(scheduleToolRows(undefined)).toEqual([]);
    expect(scheduleToolRows(defaultScheduleConfig)).toHaveLength(3);
    expect(offersReminders({ origin: "subagent" })).toBe(false);
    expect(offersReminders({ delegationDepth: 1 })).toBe(false);
    expect(offersReminders({ delegationDepth: 0 })).toBe(true);
    expect(offersReminders(undefined)).toBe(true);
  });

  it("the schema takes each of the three forms", () => {
    const prompt = "p";
    for (const form of [{ after_seconds: 1 }, { every_seconds: 300 }, { at: "x" }, { at: local }])
      expect(checkArguments(createParameters, { prompt, ...form })).toEqual([]);
  });
});

describe("schedule_list", () => {
  it("[schedule/40] shows all kinds in the order of creation, also after a fixed rate advanced", () => {
    const rig = new ScheduleRig();
    expect(rig.list().outcome.content).toEqual([{ type: "text", text: "[]" }]);
    rig.create({ prompt: "a", after_seconds: 30 });
    rig.create({ prompt: "b", at: local });
    rig.create({ prompt: "c", every_seconds: 300 });
    rig.create({ prompt: "d", after_seconds: 9_000 });
    rig.now = at("2026-08-05T12:07:00Z");
    rig.settle();
    expect(rig.turns).toHaveLength(2);
    const shared = { deliveryMode: "session-local", state: "scheduled" };
    expect(rig.list().value).toEqual([
      {
        id: "schedule-2",
        kind: "at",
        prompt: "b",
        scheduledAt: "2026-08-06T01:00:00.000Z",
        ...shared,
      },
      {
        id: "schedule-3",
        kind: "every",
        prompt: "c",
        everySeconds: 300,
        scheduledAt: "2026-08-05T12:10:00.000Z",
        ...shared,
      },
      {
        id: "schedule-4",
        kind: "after",
        prompt: "d",
        afterSeconds: 9_000,
        scheduledAt: "2026-08-05T14:30:00.000Z",
        ...shared,
      },
    ]);
    expect(nextReminder(rig.state)?.id).toBe("schedule-3");
  });
});

describe("schedule_delete", () => {
  it("[schedule/41] deletes what is active, and says when nothing is", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    expect(rig.delete("schedule-1").value).toEqual({ id: "schedule-1", deleted: true });
    expect(rig.changes.at(-1)?.data).toEqual({ version: 1, operation: "delete", id: "schedule-1" });
    const entries = rig.log.length;
    for (const id of ["schedule-1", "nope"])
      expect(rig.delete(id).value).toEqual({ id, deleted: false, code: "schedule_not_found" });
    expect(rig.log).toHaveLength(entries);
    expect(rig.list().value).toEqual([]);
  });

  it("says the same of what was delivered, and the message still has its turn", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    rig.now += 30_000;
    rig.drive();
    expect(rig.delete("schedule-1").value).toMatchObject({ code: "schedule_not_found" });
    expect(rig.turn()?.id).toBe("schedule/schedule-1/2026-08-05T12:00:30.000Z");
  });

  it.each(["", " schedule-1", "schedule-1\n"])("[schedule/42] refuses the id %j", (id) => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    expect(codeOf(rig.delete(id))).toBe("invalid_rule");
    expect(codeOf(rig.delete(7))).toBe("INVALID_ARGS");
    expect(rig.log).toHaveLength(1);
  });

  it("[schedule/43] frees no id: the next reminder has another", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    rig.delete("schedule-1");
    expect(rig.create({ prompt: "a", after_seconds: 30 }).value).toMatchObject({
      id: "schedule-2",
    });
  });
});

describe("any tool of reminders", () => {
  it("[schedule/71] changes nothing once its call was cancelled", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    for (const { outcome, value } of [
      rig.create({ prompt: "b", after_seconds: 30 }, true),
      rig.delete("schedule-1", true),
    ]) {
      expect(outcome).toMatchObject({ isError: true, error: { code: "ABORTED" } });
      expect(value).toBeUndefined();
    }
    expect(rig.log).toHaveLength(1);
  });

  it("answers corrupt_schedule_log when the log cannot be read, and changes nothing", () => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    rig.append({ type: "schedule/change", data: { version: 1, operation: "delete", id: "x" } });
    const before = rig.log.length;
    for (const result of [
      rig.create({ prompt: "b", after_seconds: 30 }),
      rig.create({ prompt: "b", at: "never" }),
      rig.list(),
      rig.delete("schedule-1"),
    ])
      expect(codeOf(result)).toBe("corrupt_schedule_log");
    expect(codeOf(rig.create({ prompt: " ", after_seconds: 30 }))).toBe("invalid_prompt");
    expect(rig.log).toHaveLength(before);
    expect(nextReminder(rig.state)).toBeUndefined();
    expect(rig.settle()).toEqual({ kind: "keep" });
  });

  it("[schedule/T20] keeps to the declared limits: a hundred active, four KiB of prompt", () => {
    const rig = new ScheduleRig();
    const create = (prompt: string) => rig.create({ prompt, after_seconds: 30 });
    expect(codeOf(create("é".repeat(2_048)))).toBeUndefined();
    expect(codeOf(create(`${"é".repeat(2_048)}x`))).toBe("invalid_prompt");
    expect(codeOf(create(`  ${"x".repeat(4_096)}  `))).toBeUndefined();
    for (let n = 2; n < 100; n += 1) create("a");
    expect(rig.state.records).toHaveLength(100);
    const entries = rig.log.length;
    expect(create("a").value).toEqual({
      code: "too_many_schedules",
      message: "at most 100 reminders may be active; delete one first",
    });
    expect(rig.log).toHaveLength(entries);
    rig.delete("schedule-50");
    expect(create("a").value).toMatchObject({ id: "schedule-101" });
    rig.config = { maxActive: 1_000, maxPromptBytes: 1 };
    expect(codeOf(create("a"))).toBeUndefined();
    expect(codeOf(create("ab"))).toBe("invalid_prompt");
  });
});

describe("the configuration of reminders", () => {
  it.each([
    [undefined, undefined],
    [false, undefined],
    [true, defaultScheduleConfig],
    [{}, { maxActive: 100, maxPromptBytes: 4_096 }],
    [{ maxActive: 3 }, { maxActive: 3, maxPromptBytes: 4_096 }],
    [{ maxPromptBytes: undefined }, defaultScheduleConfig],
  ])("%j loads as %j", (input, config) => {
    expect(loadScheduleConfig(input)).toEqual({ ok: true, config });
  });

  it.each([
    [null, "schedule expected true, false or an object, got null"],
    ["on", "schedule expected true, false or an object, got string"],
    [[], "schedule expected true, false or an object, got a list"],
    [{ max: 1 }, 'schedule has no key "max"'],
    [{ toString: 1 }, 'schedule has no key "toString"'],
    [{ maxActive: 0 }, "schedule.maxActive expected a whole number from 1 to 1000, got 0"],
    [{ maxActive: 1_001 }, "schedule.maxActive expected a whole number from 1 to 1000, got 1001"],
    [
      { maxActive: Number.NaN },
      "schedule.maxActive expected a whole number from 1 to 1000, got NaN",
    ],
    [
      { maxPromptBytes: "4k" },
      "schedule.maxPromptBytes expected a whole number from 1 to 65536, got string",
    ],
  ])("%j is refused: %s", (input, message) => {
    expect(loadScheduleConfig(input)).toEqual({ ok: false, code: "INVALID_CONFIG", message });
  });
});

it("a call whose verdict is not known says which, and how to find out", () => {
  expect(persistenceUncertain("create")).toEqual({
    code: "persistence_uncertain",
    message: "whether the create was stored is not known; list the reminders to see",
    operation: "create",
  });
  expect(persistenceUncertain("delete", "schedule-1")).toMatchObject({ id: "schedule-1" });
  expect(N0).toBe(1_785_931_200_000);
});
