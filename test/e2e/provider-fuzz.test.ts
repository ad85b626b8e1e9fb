import { expect } from "vitest";
import { createRandom } from "../chaos/random.js";
import { playSessions } from "../chaos/fuzz/drive.js";
import { planSessions } from "../chaos/fuzz/plan.js";
import { test } from "../support/temporal.js";

const seed = Number(process.env["LONGHAUL_TEST_SEED"] ?? Math.floor(Math.random() * 1e9));

test("40 turns of a provider that fails in every way each end as stated, and no session is left running", async ({
  lab,
}) => {
  console.info(`seed ${seed} (LONGHAUL_TEST_SEED repeats it)`);
  const place = await lab.emptyPlace();
  const { turns, problems } = await playSessions(
    {
      startWorker: async (options) => void (await place.start(options)),
      createSession: ({ provider, model }, limits) =>
        lab.session({ turns: [] }, { at: place, config: { request: { provider, model } }, limits }),
      history: (id) => lab.history(id),
    },
    planSessions(createRandom(seed), { turns: 40, sessions: 10, short: true }),
    { silenceMs: 8_000, callMs: 20_000 },
  );
  expect([...turns.flatMap((turn) => turn.problems), ...problems]).toEqual([]);
  expect(turns).toHaveLength(40);
  expect(turns.reduce((sum, turn) => sum + turn.requests, 0)).toBeGreaterThan(40);
});
