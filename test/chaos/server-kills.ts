import { setTimeout as delay } from "node:timers/promises";
import { look } from "./moment.js";
import type { Blow, Trial } from "./trial.js";
import { approach, type Target } from "./worker-kills.js";

/** Kills the server at each target and brings it back after 1 to 15 s; during each outage a user sends a message. */
export async function killServers(trial: Trial, plan: readonly Target[]): Promise<void> {
  const { site, random } = trial;
  for (const target of plan) {
    if (target === "random") await delay(random.between(0, 4_000));
    else await approach(trial, target);
    const moment = await look(site, trial);
    trial.hold(moment.claims);
    const blow: Blow = { kind: "server killed", moment, from: Date.now(), to: Infinity };
    trial.blows.push(blow);
    await site.server.kill();
    const sent = trial.send(
      `Sent while the server was away, ${trial.sends.length + 1}.`,
      random.pick(["followup", "steer"]),
    );
    // It is awaited below; a failure before that is no unhandled rejection.
    sent.catch(() => {});
    await delay(random.between(1_000, 15_000));
    await site.startServer();
    blow.to = Date.now();
    trial.say(
      `  server killed: ${moment.window} (${moment.detail}); back after ${blow.to - blow.from} ms`,
    );
    await sent;
    trial.release(moment.claims);
    await trial.keepRunning();
  }
}
