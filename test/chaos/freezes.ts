import { setTimeout as delay } from "node:timers/promises";
import { look } from "./moment.js";
import { hold, type Blow, type Trial } from "./trial.js";
import { approach } from "./worker-kills.js";

/** Freezes the worker while a command of the session runs, for so long each, and wakes it. */
export async function freezeWorkers(trial: Trial, plan: readonly number[]): Promise<void> {
  const { site } = trial;
  for (const forMs of plan) {
    for (;;) {
      await approach(trial, "tool running");
      await site.worker.freeze();
      const moment = await hold(trial, await look(site, trial));
      if (moment.window !== "tool running") {
        site.worker.thaw();
        trial.release(moment.claims);
        continue;
      }
      const blow: Blow = { kind: "worker frozen", moment, from: Date.now(), to: Infinity };
      trial.blows.push(blow);
      await delay(forMs);
      site.worker.thaw();
      blow.to = Date.now();
      trial.say(`  frozen for ${forMs} ms: ${moment.window} (${moment.detail})`);
      break;
    }
  }
}
