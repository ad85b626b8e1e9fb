import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { createStorm, deliveredIn, stormProblems } from "../support/reminder-storm.js";
import { answering, remindersOn } from "../support/reminder-script.js";
import { seededRandom } from "../support/seeded.js";
import { cacheSize, test } from "../support/temporal.js";
import { eventually } from "../support/until.js";
import { startWorkerProcess } from "../support/worker-process.js";

const [deliveries, kills] = [50, 4];

// Every restart reads the history from its start as it is.
test.runIf(cacheSize > 0)(
  "[schedule/T14] 50 deliveries while their worker is killed at random moments: each is in the transcript once",
  { timeout: 600_000 },
  async ({ lab }) => {
    const random = seededRandom();
    const place = await lab.emptyPlace();
    const session = await lab.session(answering(), { ...remindersOn, at: place, waitReady: false });
    let worker = await startWorkerProcess(lab, place, { roles: ["session"] });
    try {
      await eventually(async () => expect((await session.view()).ready).toBe(true));
      const between = (low: number, high: number): number => low + random.int(high - low + 1);
      await createStorm(lab.handle(session.id), deliveries, between, 15_000);
      for (let kill = 1; kill <= kills; kill++) {
        await delay(between(200, 3_000));
        await worker.kill();
        worker = await startWorkerProcess(lab, place, { roles: ["session"] });
      }
      await eventually(async () => {
        const { turn } = await session.view();
        expect(turn).toMatchObject({ number: deliveries, open: false });
      }, 300_000);
      const log = await lab.entries(session);
      expect(stormProblems(log, deliveries)).toEqual([]);
      expect(deliveredIn(log)).toBe(deliveries);
      await lab.witness(session);
    } finally {
      await worker.kill();
    }
  },
);
