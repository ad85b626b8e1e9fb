import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScheduleLogEntry, ScheduleRecord } from "../../src/contracts/schedule.js";
import {
  checkScheduleEvent,
  decodeChange,
  isScheduleEvent,
  ownScheduleTypes,
} from "../../src/domain/schedule-events.js";
import { stepGrid } from "../../src/domain/schedule-grid.js";
import { addSeen, allocateId, hasSeen, noIds } from "../../src/domain/schedule-ids.js";
import { formatInstant, maxInstant, parseInstant } from "../../src/domain/schedule-instant.js";
import {
  applyChange,
  emptySchedule,
  foldSchedule,
  foldScheduleLog,
} from "../../src/domain/schedule.js";
import { at, iso, N0 } from "../support/schedule-rig.js";

const after = {
  id: "a",
  kind: "after",
  prompt: "p",
  afterSeconds: 30,
  scheduledAt: "2026-08-05T12:00:30.000Z",
} as const;
const once = {
  id: "b",
  kind: "at",
  prompt: "p",
  scheduledAt: "2026-08-06T01:00:00.000Z",
} as const;
const every = {
  id: "c",
  kind: "every",
  prompt: "p",
  everySeconds: 300,
  scheduledAt: "2026-08-05T12:05:00.000Z",
} as const;

const create = (schedule: object) => ({ version: 1, operation: "create", schedule });
const remove = (id: unknown) => ({ version: 1, operation: "delete", id });
const dispatch = (id: unknown, ...acceptedAt: unknown[]) => ({
  version: 1,
  operation: "dispatch",
  id,
  ...(acceptedAt.length === 0 ? {} : { acceptedAt: acceptedAt[0] }),
});

function logOf(...changes: readonly unknown[]): readonly ScheduleLogEntry[] {
  return changes.map((data, seq) => ({
    type: "schedule/change",
    seq,
    time: N0,
    data: data as never,
  }));
}

/** The active records after these changes, or why they cannot be read. */
function foldOf(...changes: readonly unknown[]): readonly ScheduleRecord[] | string {
  const folded = foldScheduleLog(logOf(...changes));
  const state = logOf(...changes).reduce(foldSchedule, emptySchedule);
  expect(state.fault).toBe(folded.ok ? undefined : folded.problem);
  return folded.ok ? folded.state.records : folded.problem;
}

describe("the id of a new reminder", () => {
  it.each([
    [[], "schedule-1"],
    [["custom", "schedule-3"], "schedule-4"],
    [["one", "schedule-2"], "schedule-3"],
    [["schedule-2"], "schedule-3"],
    [["schedule-3", "schedule-2"], "schedule-4"],
    [["schedule-3", "schedule-5", "schedule-4"], "schedule-6"],
    [["schedule-5", "schedule-1"], "schedule-3"],
    [["schedule-01", "schedule-0"], "schedule-3"],
  ])("[schedule/44] after %j it is %s", (ids, expected) => {
    expect(allocateId(ids.reduce(addSeen, noIds))).toBe(expected);
  });

  it("was never used, and is the first free number past the count, whatever ids came before", () => {
    const id = fc.oneof(
      fc.integer({ min: 0, max: 12 }).map((n) => `schedule-${n}`),
      fc.constantFrom(
        "custom",
        "schedule-007",
        "schedule-1e3",
        "Schedule-1",
        "schedule-9999999999999999",
      ),
    );
    fc.assert(
      fc.property(fc.uniqueArray(id), (ids) => {
        const seen = ids.reduce(addSeen, noIds);
        for (const one of ids) expect(hasSeen(seen, one)).toBe(true);
        let number = ids.length + 1;
        while (ids.includes(`schedule-${number}`)) number += 1;
        expect(allocateId(seen)).toBe(`schedule-${number}`);
        expect(hasSeen(seen, `schedule-${number}`)).toBe(false);
        expect(seen.ranges.length).toBeLessThanOrEqual(ids.length);
      }),
    );
  });

  it("takes no room however many there were", () => {
    let seen = noIds;
    for (let n = 0; n < 5_000; n += 1) seen = addSeen(seen, allocateId(seen));
    expect(seen).toEqual({ ranges: [[1, 5_000]], others: [] });
  });
});

describe("the data of a schedule/change", () => {
  it("is decoded into a frozen copy with the keys in order", () => {
    const given = JSON.parse(JSON.stringify(create({ ...every }))) as { schedule: object };
    const decoded = decodeChange(given);
    if (!decoded.ok || decoded.value.operation !== "create") throw new Error("refused");
    expect(decoded.value).toEqual(given);
    expect(decoded.value.schedule).not.toBe(given.schedule);
    expect([decoded.value, decoded.value.schedule].every(Object.isFrozen)).toBe(true);
    const shuffled = Object.fromEntries(Object.entries(every).toReversed());
    const again = decodeChange(create(shuffled));
    expect(JSON.stringify(again.ok && again.value)).toBe(JSON.stringify(create(every)));
  });

  it.each([
    ["null", null],
    ["no payload", undefined],
    ["a list", [create(after)]],
    ["version 2", { ...create(after), version: 2 }],
    ["version text", { ...create(after), version: "1" }],
    ["another operation", { version: 1, operation: "pause", id: "a" }],
    ["an extra key", { ...create(after), by: "me" }],
    ["an extra key of no value", { ...remove("a"), reason: undefined }],
    ["a missing key", { version: 1, operation: "create" }],
    ["a missing id", { version: 1, operation: "delete" }],
    ["an empty id", dispatch("")],
    ["a padded id", dispatch(" a")],
    ["a number for an id", remove(1)],
    ["an acceptedAt that is none", dispatch("c", "soon")],
    ["an acceptedAt of no value", dispatch("c", undefined)],
    ["an acceptedAt with an offset", dispatch("c", "2026-08-05T12:05:00.000+00:00")],
    ["a delete with acceptedAt", { ...remove("c"), acceptedAt: every.scheduledAt }],
  ])("[schedule/45] is refused: %s", (_, data) => {
    expect(decodeChange(data)).toEqual({ ok: false, problem: expect.any(String) });
    expect(foldOf(create(after), data)).toMatch(/^entry 1: /);
  });

  it.each([
    ["an extra key", { ...after, state: "scheduled" }],
    ["a missing key", { id: "a", kind: "at", prompt: "p" }],
    ["a key of another kind", { ...once, afterSeconds: 30 }],
    ["keys of another kind", { ...after, kind: "every" }],
    ["another kind", { ...once, kind: "later" }],
    ["no kind", { id: "a", prompt: "p", scheduledAt: once.scheduledAt }],
    ["no record", null],
    ["a list", [once]],
    ["a blank prompt", { ...once, prompt: " " }],
    ["an empty prompt", { ...once, prompt: "" }],
    ["a padded prompt", { ...once, prompt: "p\n" }],
    ["a number for a prompt", { ...once, prompt: 7 }],
    ["a padded id", { ...once, id: "a " }],
    ["no delay", { ...after, afterSeconds: 0 }],
    ["half a second", { ...after, afterSeconds: 1.5 }],
    ["too often", { ...every, everySeconds: 299 }],
    ["a broken interval", { ...every, everySeconds: 300.5 }],
    ["an interval of text", { ...every, everySeconds: "300" }],
    ["an endless interval", { ...every, everySeconds: Number.MAX_SAFE_INTEGER }],
    ["no milliseconds", { ...once, scheduledAt: "2026-08-06T01:00:00Z" }],
    ["an offset", { ...once, scheduledAt: "2026-08-06T01:00:00.000+00:00" }],
    ["February 30", { ...once, scheduledAt: "2026-02-30T01:00:00.000Z" }],
    ["the year 10000", { ...once, scheduledAt: "+010000-01-01T00:00:00.000Z" }],
    ["the year 0", { ...once, scheduledAt: "0000-01-01T00:00:00.000Z" }],
  ])("[schedule/46] is refused for its record: %s", (_, record) => {
    expect(decodeChange(create(record as object))).toEqual({
      ok: false,
      problem: expect.any(String),
    });
  });

  it("is read without a throw whatever it is", () => {
    const record = fc.record(
      {
        id: fc.anything(),
        kind: fc.constantFrom("after", "at", "every"),
        prompt: fc.oneof(fc.string(), fc.anything()),
        afterSeconds: fc.anything(),
        everySeconds: fc.anything(),
        scheduledAt: fc.anything(),
      },
      { requiredKeys: [] },
    );
    const data = fc.record(
      {
        version: fc.constantFrom(1, 2),
        operation: fc.constantFrom("create", "delete", "dispatch"),
        id: fc.anything(),
        schedule: fc.oneof(record, fc.anything()),
        acceptedAt: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(data, fc.anything()), (given) => {
        const [entry] = logOf(given);
        const folded = entry === undefined ? emptySchedule : foldSchedule(emptySchedule, entry);
        expect(folded.fault === undefined).toBe(folded.records.length === 1);
      }),
    );
  });
});

describe("the fold of a log", () => {
  it("keeps the order of creation, also when a fixed rate advances", () => {
    const target = "2026-08-05T12:05:00.000Z";
    expect(foldOf(create(every), create(after), dispatch("c", target), create(once))).toEqual([
      { ...every, scheduledAt: "2026-08-05T12:10:00.000Z" },
      after,
      once,
    ]);
  });

  it.each([
    ["[schedule/47] an id created twice", [create(after), create({ ...once, id: "a" })]],
    [
      "[schedule/47] an id created again after its end",
      [create(after), remove("a"), create(after)],
    ],
    ["[schedule/48] a delete of nothing", [remove("a")]],
    ["[schedule/48] a second delete", [create(after), remove("a"), remove("a")]],
    ["[schedule/48] a dispatch of nothing", [dispatch("a")]],
    ["[schedule/48] a second dispatch", [create(after), dispatch("a"), dispatch("a")]],
    ["[schedule/48] a delete after the dispatch", [create(once), dispatch("b"), remove("b")]],
    ["[schedule/49] acceptedAt of what comes once", [create(after), dispatch("a", iso(N0))]],
    ["[schedule/49] no acceptedAt of a fixed rate", [create(every), dispatch("c")]],
    [
      "[schedule/49] a fixed rate before it is due",
      [create(every), dispatch("c", "2026-08-05T12:04:59.999Z")],
    ],
  ])("%s cannot be read", (_, changes) => {
    expect(foldOf(...changes)).toMatch(new RegExp(`^entry ${changes.length - 1}: `));
  });

  it("a candidate that would break it is told before it is appended, and nothing changes", () => {
    const state = logOf(create(after)).reduce(foldSchedule, emptySchedule);
    expect(applyChange(state, create(after))).toMatchObject({ ok: false });
    expect(state.records).toEqual([after]);
  });

  it("looks at no change after one that cannot be read", () => {
    const state = logOf(create(after), remove("b"), remove("a")).reduce(
      foldSchedule,
      emptySchedule,
    );
    expect(state).toMatchObject({ records: [after], fault: expect.stringMatching(/^entry 1: /) });
  });

  it("[schedule/54] starts where the inherited entries end, and never looks at those", () => {
    const child = { ...once, id: "schedule-1" };
    const log = logOf(create({ ...after, id: "schedule-1" }), create(child));
    const folded = foldScheduleLog(log, 1);
    expect(folded).toMatchObject({ ok: true, state: { records: [child] } });
    expect(folded.ok && allocateId(folded.state.seen)).toBe("schedule-2");
    expect(foldScheduleLog(logOf("broken", create(child)), 1)).toEqual(folded);
    expect(foldScheduleLog(logOf("broken", create(child)), 0)).toMatchObject({ ok: false });
    expect(foldScheduleLog(log, 2)).toEqual({ ok: true, state: emptySchedule });
  });

  it.each([-1, 0.5, 3, Number.NaN])("[schedule/55] a seedLength of %d cannot be", (seedLength) => {
    expect(foldScheduleLog(logOf(create(after), create(once)), seedLength)).toMatchObject({
      ok: false,
    });
  });

  it("what concerns no reminder folds to the same state", () => {
    const entry = { type: "turn/start", seq: 1, time: 1, data: { turn: 1 } } as const;
    expect(foldSchedule(emptySchedule, entry)).toBe(emptySchedule);
    expect(isScheduleEvent("turn/start")).toBe(false);
    expect(["schedule/change", ...ownScheduleTypes].every(isScheduleEvent)).toBe(true);
  });
});

describe("a fixed rate", () => {
  /** Occurrence and next time, both by the arithmetic and by the fold. */
  function step(scheduledAt: string, everySeconds: number, acceptedAt: string) {
    const grid = stepGrid(at(scheduledAt), everySeconds, at(acceptedAt));
    if (!grid.ok) throw new Error(grid.problem);
    const folded = foldOf(
      create({ ...every, everySeconds, scheduledAt }),
      dispatch("c", acceptedAt),
    );
    const next = grid.next === undefined ? undefined : iso(grid.next);
    expect(folded).toEqual(
      next === undefined ? [] : [{ ...every, everySeconds, scheduledAt: next }],
    );
    return [iso(grid.occurrence), next];
  }

  it.each([
    ["12:05:00.000", "12:05", "12:10"],
    ["12:09:59.999", "12:05", "12:10"],
    ["12:10:00.000", "12:10", "12:15"],
    ["12:17:34.000", "12:15", "12:20"],
  ])(
    "[schedule/50] accepted at %s it stands for %s and is next due %s",
    (clock, occurrence, next) => {
      expect(step(every.scheduledAt, 300, `2026-08-05T${clock}Z`)).toEqual([
        `2026-08-05T${occurrence}:00.000Z`,
        `2026-08-05T${next}:00.000Z`,
      ]);
    },
  );

  it("[schedule/51] passes over what was missed, and lateness never shifts it", () => {
    expect(step("2026-08-05T13:00:00.000Z", 3_600, "2026-08-08T09:12:34.567Z")).toEqual([
      "2026-08-08T09:00:00.000Z",
      "2026-08-08T10:00:00.000Z",
    ]);
    expect(step("2026-08-05T13:00:00.250Z", 7_000, "2026-08-06T00:00:00.000Z")).toEqual([
      "2026-08-05T22:43:20.250Z",
      "2026-08-06T00:40:00.250Z",
    ]);
  });

  it("[schedule/52] ends when no later time can be named", () => {
    const last = "9999-12-31T23:59:59.999Z";
    expect(step(last, 300, last)).toEqual([last, undefined]);
    expect(step("9999-12-31T23:58:00.000Z", 300, "9999-12-31T23:58:30.000Z")[1]).toBeUndefined();
    const almost = "9999-12-31T23:54:59.999Z";
    expect(step(almost, 300, almost)).toEqual([almost, last]);
  });

  it("[schedule/53] is on the grid for every interval, number of misses and lateness", () => {
    const given = fc
      .record({ seconds: fc.integer({ min: 300, max: 86_400 }), misses: fc.nat(10_000) })
      .chain((one) => fc.nat(one.seconds * 1_000 - 1).map((late) => ({ ...one, late })));
    fc.assert(
      fc.property(given, fc.nat(86_400_000), ({ seconds, misses, late }, offset) => {
        const target = N0 + offset;
        const interval = seconds * 1_000;
        const accepted = target + misses * interval + late;
        expect(step(iso(target), seconds, iso(accepted))).toEqual([
          iso(target + misses * interval),
          iso(target + (misses + 1) * interval),
        ]);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    [Number.NaN, 300, N0],
    [N0, 300, maxInstant + 1],
    [N0, 300, N0 + 0.5],
    [N0, 0, N0],
    [N0, Number.MAX_SAFE_INTEGER, N0],
    [N0, 300, N0 - 1],
  ])("of target %d, interval %d, accepted at %d makes no sense", (target, seconds, accepted) => {
    expect(stepGrid(target, seconds, accepted)).toEqual({ ok: false, problem: expect.any(String) });
  });
});

it("an instant is written and read as the platform does, from the first to the last", () => {
  const any = fc.integer({ min: -62_135_596_800_000, max: maxInstant });
  const edges = fc
    .record({
      year: fc.integer({ min: 1, max: 9_999 }),
      day: fc.constantFrom(58, 59, 60, 364, 365),
    })
    .map(
      ({ year, day }) => new Date("0001-01-01T00:00:00Z").setUTCFullYear(year) + day * 86_400_000,
    )
    .filter((ms) => ms <= maxInstant);
  fc.assert(
    fc.property(fc.oneof(any, edges), (ms) => {
      expect(formatInstant(ms)).toBe(iso(ms));
      expect(parseInstant(iso(ms))).toBe(ms);
    }),
    { numRuns: 2_000 },
  );
});

it.each([
  ["schedule/accepted", { requestId: "r" }, "the answer of a change"],
  ["schedule/accepted", { requestId: "", answer: {} }, "requestId"],
  ["schedule/accepted", { requestId: "r", answer: { operation: "create", id: "a" } }, "the answer"],
  ["schedule/rejected", { requestId: "r", code: "NOPE", message: "" }, "known code"],
  ["schedule/rejected", { requestId: "r", code: "invalid_rule" }, "a message"],
  ["schedule/rejected", [], "must be an object"],
  ["schedule/change", "x", "must be an object"],
] as const)("%s with %j is refused: %s", (type, data, problem) => {
  expect(checkScheduleEvent(type, data)).toContain(problem);
});
