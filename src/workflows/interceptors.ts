import { patched, type WorkflowInterceptorsFactory } from "@temporalio/workflow";
import { askAgain } from "../contracts/names.js";
import { MarkedTasks } from "./marked-tasks.js";
import { ReadAhead } from "./read-ahead.js";

/**
 * Keeps what a replay gives the same as what was given at first. Queries do not move a session: one that would fails with
 * `askAgain`, the run leaves the cache, and the task to come finds it whole (read-ahead.ts). Tasks that would leave no event are
 * marked (marked-tasks.ts); runs that were begun without marks go on without.
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  const ahead = new ReadAhead();
  const tasks = new MarkedTasks();
  let marks = false;
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
          if (!ahead.take(input)) throw new Error(askAgain);
          tasks.take(input.activation.jobs ?? []);
          next(input);
        },
        concludeActivation({ commands }, next) {
          const marked = tasks.conclude(commands);
          const output = { commands: marks ? marked : commands };
          ahead.conclude(output);
          return next(output);
        },
      },
    ],
  };
};
