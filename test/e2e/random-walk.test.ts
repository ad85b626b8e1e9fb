import { expect } from "vitest";
import { walkBatch, type Walked } from "../chaos/walk/batch.js";
import { test } from "../support/temporal.js";

/** `npm run fuzz` sets both, and takes more and others; see test/chaos/walk/run.ts. */
const base = Number(process.env["LONGHAUL_TEST_SEED"] ?? 1);
const count = Number(process.env["LONGHAUL_WALKS"] ?? 20);
/** So many sessions share a worker that is killed, and so many batches go at once. */
const batchSize = 50;
const lanes = 2;

test(
  `[harness/K12] ${count} sessions that walk at random while their worker is killed are what the pure model makes of their logs, and replay`,
  { timeout: 120_000 + count * 6_000 },
  async ({ lab }) => {
    console.info(`seeds from ${base} on (LONGHAUL_TEST_SEED=${base} repeats them)`);
    const seeds = Array.from({ length: count }, (_, index) => base + index);
    const walked: Walked[] = [];
    const lane = async (): Promise<void> => {
      for (;;) {
        const batch = seeds.splice(0, batchSize);
        const [first] = batch;
        if (first === undefined) return;
        walked.push(...(await walkBatch(lab, batch, (line) => console.info(`[${first}] ${line}`))));
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    const failed = walked.filter(({ problems }) => problems.length > 0);
    expect(failed.map(textOf)).toEqual([]);
    expect(walked).toHaveLength(count);
    const entries = walked.reduce((sum, one) => sum + one.entries, 0);
    const runs = walked.reduce((sum, one) => sum + one.runs, 0);
    console.info(`${count} sessions, ${entries} entries, ${runs} runs`);
    // Walks of which none ever rolled over would show little.
    if (count >= 20) expect(runs).toBeGreaterThan(count);
  },
);

function textOf({ seed, problems, lines }: Walked): string {
  return [
    `seed ${seed} (npm run fuzz -- --seed ${seed}):`,
    ...problems.map((problem) => `  ${problem.slice(0, 2_000)}`),
    "walked:",
    ...lines.map((line, index) => `  ${index + 1}. ${line}`),
  ].join("\n");
}
