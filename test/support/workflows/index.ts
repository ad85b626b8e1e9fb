import { condition, defineUpdate, setHandler, sleep } from "@temporalio/workflow";
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
