import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { emptySchedule, foldSchedule } from "../../src/domain/schedule.js";
import { restoreSchedule } from "../../src/domain/schedule-snapshot.js";
import { codeOf, ScheduleRig } from "../support/schedule-rig.js";

/** Everything that may happen to the reminders of a session. */
const action = fc.oneof(
  fc.record({
    prompt: fc.constantFrom("a", " b ", ""),
    after_seconds: fc.integer({ min: 0, max: 900 }),
  }),
  fc.record({ prompt: fc.constant("c"), every_seconds: fc.integer({ min: 299, max: 900 }) }),
  fc.nat(12).map((n) => ({ delete: `schedule-${n}` })),
  fc.record({
    requestId: fc.constantFrom("x", "y", "z"),
    operation: fc.constant("delete"),
    id: fc.constantFrom("schedule-1", "schedule-2", " "),
  }),
  fc.record({
    requestId: fc.string({ maxLength: 2 }),
    operation: fc.constant("create"),
    prompt: fc.constant("d"),
    afterSeconds: fc.integer({ min: -1, max: 900 }),
  }),
  fc.nat(1_000_000).map((wait) => ({ wait })),
  fc
    .constantFrom("custom", "schedule-7", "schedule-9", "schedule-2")
    .map((foreign) => ({ foreign })),
);

function act(rig: ScheduleRig, given: object): void {
  if ("wait" in given) {
    rig.now += Number(given.wait);
    rig.settle();
  } else if ("delete" in given) rig.delete(given.delete);
  else if ("operation" in given) rig.change(given);
  else if ("foreign" in given) {
    const schedule = {
      id: String(given.foreign),
      kind: "at",
      prompt: "f",
      scheduledAt: "2030-01-01T00:00:00.000Z",
    } as const;
    rig.append({ type: "schedule/change", data: { version: 1, operation: "create", schedule } });
  } else rig.create(given);
}

describe("a checkpoint of reminders", () => {
  it("carried over at any entry of any log, with the rest folded, is the fold of the whole", () => {
    let faults = 0;
    fc.assert(
      fc.property(fc.array(action, { maxLength: 40 }), fc.nat(), (actions, cut) => {
        const rig = new ScheduleRig();
        for (const each of actions) act(rig, each);
        if (rig.state.fault !== undefined) faults += 1;
        const at = rig.log.length === 0 ? 0 : cut % (rig.log.length + 1);
        const before = rig.log.slice(0, at).reduce(foldSchedule, emptySchedule);
        const carried = restoreSchedule(JSON.parse(JSON.stringify(before)));
        expect(carried).toEqual(before);
        const after = rig.log.slice(at).reduce(foldSchedule, carried);
        expect(after).toEqual(rig.state);
      }),
      { numRuns: 300 },
    );
    expect(faults).toBeGreaterThan(0);
  });

  const good = (() => {
    const rig = new ScheduleRig();
    rig.create({ prompt: "a", after_seconds: 30 });
    rig.change({ requestId: "r", operation: "delete", id: "none" });
    return rig.state;
  })();
  const [record] = good.records;

  it.each([
    ["nothing", undefined],
    ["a list", []],
    ["a strange key", { ...good, live: true }],
    ["no ids", { ...good, seen: undefined }],
    [
      "ids that overlap",
      {
        ...good,
        seen: {
          ranges: [
            [1, 3],
            [3, 5],
          ],
          others: [],
        },
      },
    ],
    [
      "ids that touch",
      {
        ...good,
        seen: {
          ranges: [
            [1, 3],
            [4, 5],
          ],
          others: [],
        },
      },
    ],
    ["ids upside down", { ...good, seen: { ranges: [[3, 1]], others: [] } }],
    ["a range of one end", { ...good, seen: { ranges: [[1]], others: [] } }],
    ["ids from 0", { ...good, seen: { ranges: [[0, 1]], others: [] } }],
    [
      "a numbered id among the others",
      { ...good, seen: { ranges: [[1, 1]], others: ["schedule-9"] } },
    ],
    ["an id twice among the others", { ...good, seen: { ranges: [[1, 1]], others: ["a", "a"] } }],
    ["a record whose id was never used", { ...good, seen: { ranges: [], others: [] } }],
    ["a record twice", { ...good, records: [record, record] }],
    ["a broken record", { ...good, records: [{ ...record, afterSeconds: 0 }] }],
    ["no records", { ...good, records: null }],
    [
      "outcomes of another shape",
      { ...good, outcomes: [{ requestId: "r", result: { ok: true } }] },
    ],
    [
      "a refusal without a code",
      { ...good, outcomes: [{ requestId: "r", result: { ok: false } }] },
    ],
    [
      "too many outcomes",
      { ...good, outcomes: Array.from({ length: 201 }, () => good.outcomes[0]) },
    ],
    ["a fault that is no text", { ...good, fault: 1 }],
  ])("that is broken faults the reminders and nothing else: %s", (_, snapshot) => {
    const state = restoreSchedule(snapshot);
    expect(state).toEqual({ ...emptySchedule, fault: expect.stringMatching(/^checkpoint: /) });
    const rig = new ScheduleRig();
    rig.state = state;
    expect(codeOf(rig.list())).toBe("corrupt_schedule_log");
    expect(rig.drive()).toEqual({ kind: "keep" });
  });

  it("keeps a fault", () => {
    const faulted = { ...good, fault: "entry 3: delete of x" };
    expect(restoreSchedule(faulted)).toEqual(faulted);
    expect(restoreSchedule(good)).toEqual(good);
  });
});
