import { setTimeout as delay } from "node:timers/promises";
import { EventType } from "./history.js";
import { beatsOf, pendingActivities, type Window } from "./moment.js";
import { killWhen, type Trial } from "./trial.js";

export type Target = Window | "random";

/** Deals every kill of the plan, in order, each at the next moment that is its window, from its step on. */
export async function killWorkers(trial: Trial, plan: readonly Target[]): Promise<void> {
  for (const target of plan) {
    if (target === "random") await killAtRandom(trial);
    else await killIn(trial, target);
  }
}

/** Any moment of the next seconds. */
async function killAtRandom(trial: Trial): Promise<void> {
  await trial.keepRunning();
  await delay(trial.random.between(0, 4_000));
  await killWhen(trial, () => true);
}

async function killIn(trial: Trial, window: Window): Promise<void> {
  do await approach(trial, window);
  while (!(await killWhen(trial, (moment) => moment.window === window)));
}

/** Returns when the window may just be open; whether it is, a look must tell. */
export async function approach(trial: Trial, window: Window): Promise<void> {
  await approaches[window](trial);
}

const approaches: { readonly [name in Window]: (trial: Trial) => Promise<void> } = {
  "model running, no token yet": (trial) => untilPending(trial, "callModel", 100),
  streaming: (trial) => untilPending(trial, "callModel", trial.random.between(600, 1_100)),
  "tool running": untilLooping,
  "model result reported, not processed": (trial) => untilCompleted(trial, "callModel"),
  "between two tools of a step": (trial) => untilCompleted(trial, "tool.run"),
};

/** An activity of the type runs, for so long at least. */
async function untilPending(trial: Trial, type: string, forMs: number): Promise<void> {
  for (;;) {
    const running = (await pendingActivities(trial.site, trial.id)).some(
      (one) => one.type === type && one.started && !one.lost && Date.now() - one.since >= forMs,
    );
    if (running) return;
    await trial.keepRunning();
    await delay(20);
  }
}

/** A command appends to its file; it is held there. */
async function untilLooping(trial: Trial): Promise<void> {
  for (;;) {
    for (const { id, lost } of await pendingActivities(trial.site, trial.id)) {
      if (lost) continue;
      const claim = id.replace(/^tool\//, "");
      if ((await beatsOf(trial.workspace, claim)) === 0) continue;
      trial.hold([claim]);
      return;
    }
    await trial.keepRunning();
    await delay(10);
  }
}

/** History gets the result of an activity of the type. */
async function untilCompleted(trial: Trial, type: string): Promise<void> {
  const { history } = trial;
  for (let from = history.events.length; ;) {
    await history.beyond(from, 1_000);
    const fresh = history.events.slice(from);
    from += fresh.length;
    const hit = fresh.some(
      (event) =>
        event.eventType === EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED &&
        history.activityType(event) === type,
    );
    if (hit) return;
    await trial.keepRunning();
  }
}
