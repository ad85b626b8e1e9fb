import { defaultPayloadConverter } from "@temporalio/common";
import { describe, expect, test } from "vitest";
import { ReadAhead, type Verdict } from "../../src/workflows/read-ahead.js";

type Jobs = NonNullable<Parameters<ReadAhead["take"]>[0]["activation"]["jobs"]>;
type Commands = Parameters<ReadAhead["conclude"]>[0]["commands"];

const query = (queryId: string): Jobs => [{ queryWorkflow: { queryId } }];
const legacy = query("legacy_query");
const signal: Jobs[number] = { signalWorkflow: { signalName: "session.send" } };
const state: Commands = [{ upsertWorkflowSearchAttributes: {} }];

/** A run of which a worker is told activation by activation. */
function openRun() {
  const ahead = new ReadAhead();
  const take = (historyLength: number, second: number, jobs: Jobs, isReplaying = false): Verdict =>
    ahead.take({
      activation: { historyLength, jobs, isReplaying, timestamp: { seconds: second as never } },
      batchIndex: 0,
    });
  const play = (
    historyLength: number,
    second: number,
    jobs: Jobs,
    { commands = state, isReplaying = false }: { commands?: Commands; isReplaying?: boolean } = {},
  ): Verdict => {
    const taken = take(historyLength, second, jobs, isReplaying);
    if (taken === "taken") ahead.conclude({ commands });
    return taken;
  };
  return { ahead, take, play };
}

/** Started, scheduled, task; a search attribute is left. */
function openReplayed() {
  const run = openRun();
  expect(run.play(3, 1, [{ initializeWorkflow: {} }], { isReplaying: true })).toBe("taken");
  return run;
}

describe("a query that comes without a task is answered", () => {
  test("after tasks that went as they should, replayed or not", () => {
    for (const isReplaying of [true, false]) {
      const run = openRun();
      run.play(3, 1, [{ initializeWorkflow: {} }], { isReplaying });
      expect(run.take(3, 1, legacy)).toBe("taken");
      // The task's end, what it left, two signals, scheduled, started.
      run.play(9, 2, [signal, signal], { isReplaying });
      expect(run.take(9, 2, legacy)).toBe("taken");
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
      expect(run.take(15, 3, legacy)).toBe("taken");
      run.play(22, 4, [{ fireTimer: { seq: 1 } }], { isReplaying });
      expect(run.take(22, 4, legacy)).toBe("taken");
    }
  });

  test("when jobs come in batches", () => {
    const { ahead, take } = openReplayed();
    expect(take(9, 2, [signal])).toBe("taken");
    expect(take(9, 2, [{ fireTimer: { seq: 1 } }])).toBe("taken");
    ahead.conclude({ commands: state });
    expect(take(9, 2, legacy)).toBe("taken");
  });

  test("after tasks that timed out, once they are only replayed", () => {
    const { play, take } = openReplayed();
    play(11, 2, [signal], { isReplaying: true });
    expect(take(11, 2, legacy)).toBe("taken");
  });
});

describe("what a query brought along is not applied, or not answered", () => {
  test("when it has the time of the task before", () => {
    const { play, take } = openReplayed();
    expect(play(6, 1, [signal])).toBe("left out");
    expect(play(6, 1, [{ fireTimer: { seq: 1 } }])).toBe("left out");
    expect(take(6, 1, legacy)).toBe("refused");
    expect(take(9, 2, [signal])).toBe("refused");
  });

  test("when it has the time of a task that timed out, and the next one is not scheduled yet", () => {
    const { play, take } = openReplayed();
    // The task's end, what it left, a signal, scheduled, started, timed out.
    expect(play(9, 2, [signal])).toBe("taken");
    expect(take(9, 2, legacy)).toBe("refused");
  });

  test("when it has the time of a task that timed out, and the next one is scheduled", () => {
    const { play, take } = openReplayed();
    play(10, 2, [signal]);
    expect(take(10, 2, legacy)).toBe("refused");
  });
});

test("a query that belongs to a task is answered whatever became of the tasks before", () => {
  const { play, take } = openReplayed();
  play(11, 2, [signal]);
  expect(take(11, 2, query("a-query-of-the-task"))).toBe("taken");
  expect(take(11, 2, legacy)).toBe("refused");
  // The next task went as it should.
  play(16, 3, [signal]);
  expect(take(16, 3, legacy)).toBe("taken");
});

describe("a query of a run that has ended is answered", () => {
  const ended: Jobs = [
    {
      queryWorkflow: {
        queryId: "legacy_query",
        arguments: [defaultPayloadConverter.toPayload({ after: -1, limit: 1, ended: true })],
      },
    },
  ];

  test("as of its last task, whatever came after it; a task that came all the same is refused", () => {
    const { play, take } = openReplayed();
    expect(play(6, 1, [signal])).toBe("left out");
    expect(take(6, 1, ended)).toBe("taken");
    expect(take(6, 1, ended)).toBe("taken");
    expect(take(6, 1, legacy)).toBe("refused");
    expect(take(9, 2, [signal])).toBe("refused");
  });

  test("after a task that timed out", () => {
    const { play, take } = openReplayed();
    play(9, 2, [signal]);
    expect(take(9, 2, ended)).toBe("taken");
  });
});

test.each([[[]], [[null]], [["ended"]], [[{ ended: "true" }]]])(
  "a query with %j is one of an open run",
  (args) => {
    const { play, take } = openReplayed();
    play(6, 1, [signal]);
    const given = args.map((arg) => defaultPayloadConverter.toPayload(arg));
    expect(take(6, 1, [{ queryWorkflow: { queryId: "legacy_query", arguments: given } }])).toBe(
      "refused",
    );
  },
);
