import { afterEach, expect, test } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { createRandom } from "../chaos/random.js";
import { openSite, type Site } from "../chaos/site.js";
import { runTrial, type Trial } from "../chaos/trial.js";
import { killWorkers, type Target } from "../chaos/worker-kills.js";

const seed = Number(process.env["LONGHAUL_TEST_SEED"] ?? Math.floor(Math.random() * 1e9));

let site: Site | undefined;

afterEach(async () => {
  const left = await site?.dispose();
  site = undefined;
  expect(left ?? []).toEqual([]);
});

/** One session in two steps of tool calls and a closing one, with the worker killed at one moment; its log. */
async function killOnce(target: Target): Promise<readonly LogEntry[]> {
  console.info(`seed ${seed} (LONGHAUL_TEST_SEED repeats it)`);
  site = await openSite();
  const log: LogEntry[] = [];
  const attack = async (trial: Trial): Promise<void> => {
    await killWorkers(trial, [target]);
    await trial.session.waitIdle();
    for await (const entry of trial.session.log()) log.push(entry);
  };
  const size = { turns: 3, steps: 2 };
  const { problems, blows } = await runTrial(site, createRandom(seed), console.info, size, attack);
  expect(problems).toEqual([]);
  expect(blows.map(({ kind, moment }) => [kind, moment.window])).toEqual([
    ["worker killed", target],
  ]);
  return log;
}

function count(log: readonly LogEntry[], type: LogEntry["type"], turn = 1): number {
  return log.filter((one) => one.type === type && "turn" in one.data && one.data.turn === turn)
    .length;
}

test("[harness/R11] a worker killed while the model is asked: the same turn finishes, each message and reply once", async () => {
  const log = await killOnce("model running, no token yet");
  const users = log.filter(
    (one) => one.type === "user/message" && one.data.message.source.kind === "user",
  );
  expect(users).toHaveLength(1);
  expect(count(log, "turn/end")).toBe(1);
  expect(count(log, "assistant/message")).toBe(3);
});

test("[harness/R12] a worker killed while bash runs: one TOOL_OUTCOME_UNKNOWN, the command ended and not run twice, the turn goes on", async () => {
  const log = await killOnce("tool running");
  const errors = log.flatMap((one) =>
    one.type === "tool/result" && one.data.error !== undefined ? [one.data.error.code] : [],
  );
  expect(errors).toEqual(["TOOL_OUTCOME_UNKNOWN"]);
  expect(count(log, "turn/end")).toBe(1);
});
