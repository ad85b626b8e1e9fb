import { patched, type WorkflowInterceptorsFactory } from "@temporalio/workflow";
import { askAgain } from "../contracts/names.js";
import { MarkedTasks } from "./marked-tasks.js";

/**
 * Keeps queries from moving a session. A query to a worker that has to read the whole history brings along what came
 * after the last workflow task, and the SDK applies that at once, at the old time and apart from what the next task
 * will bring. The commands that follow have another order than a replay gives: the session would be stuck for good
 * (TMPRL1100). Such an activation is known by more history at the same time, since every task starts at a time of its
 * own. It is refused: the query fails with `askAgain`, the run leaves the cache, and the task to come finds it whole.
 *
 * Marks tasks that would leave no event; runs that were begun without marks go on without.
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  let taskTime = "";
  let events = 0;
  let marks = false;
  const tasks = new MarkedTasks();
  return {
    inbound: [
      {
        execute(input, next) {
          marks = patched("marked-tasks");
          return next(input);
        },
      },
    ],
    internals: [
      {
        activate(input, next) {
          const { timestamp, historyLength, jobs } = input.activation;
          if (jobs?.some((job) => job.queryWorkflow) === true) return next(input);
          const time = `${String(timestamp?.seconds)}.${timestamp?.nanos ?? 0}`;
          const length = historyLength ?? 0;
          if (time === taskTime && length > events) throw new Error(askAgain);
          taskTime = time;
          events = length;
          tasks.take(jobs ?? []);
          next(input);
        },
        concludeActivation({ commands }, next) {
          const concluded = tasks.conclude(commands);
          return next({ commands: marks ? concluded : commands });
        },
      },
    ],
  };
};
