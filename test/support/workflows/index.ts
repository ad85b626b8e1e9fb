import {
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  defineUpdate,
  proxyActivities,
  setHandler,
  sleep,
} from "@temporalio/workflow";
import { signals } from "../../../src/contracts/names.js";
import { createSession } from "../../../src/workflows/session.js";
import { opinionated } from "./policy.js";

/** The session workflow under a policy of its own; the type's name is the product's. */
export const session = createSession(opinionated);

/** The hazard itself: a loop that acts on a message before all handlers have finished (facts §0.11). */
export async function unsettled(): Promise<void> {
  let added = 0;
  let done = 0;
  setHandler(defineUpdate<number>("add"), () => ++added);
  for (;;) {
    await condition(() => added > done);
    done = added;
    await sleep(20);
  }
}

export { job } from "../../../src/workflows/job.js";

/** Stands in for a session: keeps what jobs report, moves on to another run when told, and answers any activity. */
export async function listener(reports: readonly unknown[] = []): Promise<void> {
  let heard = reports;
  let moves = false;
  setHandler(defineSignal<[unknown]>(signals.jobReport), (report) => {
    heard = [...heard, report];
  });
  setHandler(defineSignal("move"), () => {
    moves = true;
  });
  setHandler(defineQuery<readonly unknown[]>("heard"), () => heard);
  await condition(() => moves);
  await continueAsNew<typeof listener>(heard);
}

/** Runs one activity of the queue as it is asked to, and gives its answer. */
export async function ask(name: string, input: unknown, taskQueue: string): Promise<unknown> {
  const activities = proxyActivities<Record<string, (input: unknown) => Promise<unknown>>>({
    taskQueue,
    startToCloseTimeout: "1m",
    heartbeatTimeout: "10s",
    retry: { initialInterval: "500ms", backoffCoefficient: 1 },
  });
  return await activities[name]?.(input);
}
