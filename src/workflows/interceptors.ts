import { patched, workflowInfo, type WorkflowInterceptorsFactory } from "@temporalio/workflow";
import { askAgain, workflowTypes } from "../contracts/names.js";
import { changesState } from "./event-counts.js";
import { MarkedTasks } from "./marked-tasks.js";
import { StandingMoment } from "./moment.js";
import { ReadAhead } from "./read-ahead.js";

/**
 * Keeps what a replay gives the same as what was given at first. Queries do not move a session: one that would fails with
 * `askAgain`, the run leaves the cache, and the task to come finds it whole (read-ahead.ts). Tasks that would leave no event are
 * marked (marked-tasks.ts); runs that were begun without marks go on without. A session is given its moment as a second argument
 * (moment.ts).
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  const ahead = new ReadAhead();
  const tasks = new MarkedTasks();
  let marks = false;
  let moment: StandingMoment | undefined;
  return {
    inbound: [
      {
        execute(input, next) {
          marks = patched("marked-tasks");
          if (workflowInfo().workflowType !== workflowTypes.session) return next(input);
          moment = new StandingMoment();
          return next({ ...input, args: [input.args[0], moment] });
        },
        // It was not rejected.
        handleUpdate(input, next) {
          moment?.moveOn();
          return next(input);
        },
      },
    ],
    internals: [
      {
        activate(input, next) {
          const verdict = ahead.take(input);
          if (verdict === "refused") throw new Error(askAgain);
          if (verdict === "left out") return;
          const jobs = input.activation.jobs ?? [];
          tasks.take(jobs);
          if (jobs.some((job) => changesState(job) && !job.doUpdate)) moment?.moveOn();
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
