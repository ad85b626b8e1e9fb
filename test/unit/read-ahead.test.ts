import { describe, expect, test } from "vitest";
import { ReadAhead } from "../../src/workflows/read-ahead.js";

type Jobs = NonNullable<Parameters<ReadAhead["take"]>[0]["activation"]["jobs"]>;
type Commands = Parameters<ReadAhead["conclude"]>[0]["commands"];

const query = (queryId: string): Jobs => [{ queryWorkflow: { queryId } }];
const legacy = query("legacy_query");
const signal: Jobs[number] = { signalWorkflow: { signalName: "session.send" } };
const state: Commands = [{ upsertWorkflowSearchAttributes: {} }];

/** A run of which a worker is told activation by activation. */
function openRun() {
  const ahead = new ReadAhead();
  const take = (historyLength: number, second: number, jobs: Jobs, isReplaying = false): boolean =>
    ahead.take({
      activation: { historyLength, jobs, isReplaying, timestamp: { seconds: second as never } },
      batchIndex: 0,
    });
  const play = (
    historyLength: number,
    second: number,
    jobs: Jobs,
    { commands = state, isReplaying = false }: { commands?: Commands; isReplaying?: boolean } = {},
  ): boolean => {
    const taken = take(historyLength, second, jobs, isReplaying);
    if (taken) ahead.conclude({ commands });
    return taken;
  };
  return { ahead, take, play };
}

/** Started, scheduled, task; a search attribute is left. */
function openReplayed() {
  const run = openRun();
  expect(run.play(3, 1, [{ initializeWorkflow: {} }], { isReplaying: true })).toBe(true);
  return run;
}

describe("a query that comes without a task is answered", () => {
  test("after tasks that went as they should, replayed or not", () => {
    for (const isReplaying of [true, false]) {
      const run = openRun();
      run.play(3, 1, [{ initializeWorkflow: {} }], { isReplaying });
      expect(run.take(3, 1, legacy)).toBe(true);
      // The task's end, what it left, two signals, scheduled, started.
      run.play(9, 2, [signal, signal], { isReplaying });
      expect(run.take(9, 2, legacy)).toBe(true);
      // An activity's start and end; an update beside.
      const accepted: Commands = [
        { updateResponse: { accepted: {} } },
        { updateResponse: { completed: {} } },
        { scheduleActivity: { seq: 1 } },
      ];
      run.play(15, 3, [{ resolveActivity: { seq: 1 } }, { doUpdate: { id: "u" } }], {
        commands: accepted,
        isReplaying,
      });
      expect(run.take(15, 3, legacy)).toBe(true);
      run.play(22, 4, [{ fireTimer: { seq: 1 } }], { isReplaying });
      expect(run.take(22, 4, legacy)).toBe(true);
    }
  });

  test("when jobs come in batches", () => {
    const { ahead, take } = openReplayed();
    expect(take(9, 2, [signal])).toBe(true);
    expect(take(9, 2, [{ fireTimer: { seq: 1 } }])).toBe(true);
    ahead.conclude({ commands: state });
    expect(take(9, 2, legacy)).toBe(true);
  });

  test("after tasks that timed out, once they are only replayed", () => {
    const { play, take } = openReplayed();
    play(11, 2, [signal], { isReplaying: true });
    expect(take(11, 2, legacy)).toBe(true);
  });
});

describe("what a query brought along is not applied, or not answered", () => {
  test("when it has the time of the task before", () => {
    const { play } = openReplayed();
    expect(play(6, 1, [signal])).toBe(false);
  });

  test("when it has the time of a task that timed out, and the next one is not scheduled yet", () => {
    const { play, take } = openReplayed();
    // The task's end, what it left, a signal, scheduled, started, timed out.
    expect(play(9, 2, [signal])).toBe(true);
    expect(take(9, 2, legacy)).toBe(false);
  });

  test("when it has the time of a task that timed out, and the next one is scheduled", () => {
    const { play, take } = openReplayed();
    play(10, 2, [signal]);
    expect(take(10, 2, legacy)).toBe(false);
  });
});

test("a query that belongs to a task is answered whatever became of the tasks before", () => {
  const { play, take } = openReplayed();
  play(11, 2, [signal]);
  expect(take(11, 2, query("a-query-of-the-task"))).toBe(true);
  expect(take(11, 2, legacy)).toBe(false);
  // The next task went as it should.
  play(16, 3, [signal]);
  expect(take(16, 3, legacy)).toBe(true);
});
