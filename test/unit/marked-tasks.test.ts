import { describe, expect, test } from "vitest";
import { MarkedTasks } from "../../src/workflows/marked-tasks.js";

type Jobs = Parameters<MarkedTasks["take"]>[0];
type Commands = Parameters<MarkedTasks["conclude"]>[0];

const signal: Jobs = [{ signalWorkflow: { signalName: "session.send" } }];

function marksOf(jobs: readonly Jobs[], commands: Commands): number {
  const tasks = new MarkedTasks();
  for (const batch of jobs) tasks.take(batch);
  const concluded = tasks.conclude(commands);
  expect(concluded.slice(0, commands.length)).toEqual(commands);
  return concluded.length - commands.length;
}

describe("a task that would leave no event is marked", () => {
  test.each<readonly [string, Jobs]>([
    ["a signal", signal],
    ["an activity's end", [{ resolveActivity: { seq: 1 } }]],
    ["a timer", [{ fireTimer: { seq: 1 } }]],
    ["a child that started", [{ resolveChildWorkflowExecutionStart: { seq: 1 } }]],
    ["the start of the run", [{ initializeWorkflow: {} }]],
  ])("after %s", (_, jobs) => {
    expect(marksOf([jobs], [])).toBe(1);
    expect(marksOf([[{ notifyHasPatch: { patchId: "one" } }], jobs, []], [])).toBe(1);
  });

  test.each<readonly [string, Commands]>([
    ["a timer that is stopped at once", [{ startTimer: { seq: 3 } }, { cancelTimer: { seq: 3 } }]],
    [
      "an activity that is cancelled at once",
      [{ scheduleActivity: { seq: 4 } }, { requestCancelActivity: { seq: 4 } }],
    ],
    ["an update that is rejected", [{ updateResponse: { rejected: {} } }]],
    ["an answer to a query", [{ respondToQuery: { queryId: "q" } }]],
  ])("with nothing but %s", (_, commands) => {
    expect(marksOf([signal], commands)).toBe(1);
  });
});

describe("a task is not marked", () => {
  test.each<readonly [string, Commands]>([
    ["a timer", [{ startTimer: { seq: 1 } }]],
    ["an older timer that is stopped", [{ startTimer: { seq: 2 } }, { cancelTimer: { seq: 1 } }]],
    ["an older timer that is stopped, alone", [{ cancelTimer: { seq: 1 } }]],
    ["an activity", [{ scheduleActivity: { seq: 1 } }]],
    ["an update that is accepted", [{ updateResponse: { accepted: {} } }]],
    ["search attributes", [{ upsertWorkflowSearchAttributes: {} }]],
    ["its end", [{ completeWorkflowExecution: {} }]],
    ["its next run", [{ continueAsNewWorkflowExecution: {} }]],
  ])("that leaves %s", (_, commands) => {
    expect(marksOf([signal], commands)).toBe(0);
  });

  test.each<readonly [string, Jobs]>([
    ["queries", [{ queryWorkflow: { queryId: "q" } }]],
    ["an update that is rejected", [{ doUpdate: { id: "u" } }]],
    ["an eviction", [{ removeFromCache: {} }]],
  ])("that brought nothing but %s", (_, jobs) => {
    expect(marksOf([jobs], [])).toBe(0);
  });

  test("because of what an earlier one brought", () => {
    const tasks = new MarkedTasks();
    tasks.take(signal);
    expect(tasks.conclude([])).toHaveLength(1);
    tasks.take([{ queryWorkflow: { queryId: "q" } }]);
    expect(tasks.conclude([])).toHaveLength(0);
  });
});
