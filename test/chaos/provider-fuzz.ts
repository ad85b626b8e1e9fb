// Turns of a provider that does everything wrong, at random. `npm run fuzz:provider -- --help`
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { printTable } from "../../bench/support/report.js";
import {
  buildProject,
  withServer,
  workflowBundle,
  type BenchPlace,
} from "../../bench/support/server.js";
import { defineSessionConfig } from "../../src/client/session-config.js";
import { LonghaulClient } from "../../src/client/index.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker, type RunningWorker } from "../../src/worker/index.js";
import { playSessions, type FuzzResult } from "./fuzz/drive.js";
import { planSessions } from "./fuzz/plan.js";
import { createRandom } from "./random.js";
import { tableOf } from "./fuzz/table.js";

const usage = `fuzz:provider plays sessions against a provider that fails in every way, and says how each turn ended.
  --seed <n>      repeats a run
  --turns <n>     default 500
  --sessions <n>  at once; default 20
  --no-build      use dist as it is`;

process.exitCode = await main();

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    console.error(usage);
    return 2;
  }
  const { seed, turns, sessions, build } = options;
  console.log(`fuzz:provider: seed ${seed}, ${turns} turns in ${sessions} sessions`);
  if (build) buildProject();
  const plan = planSessions(createRandom(seed), { turns, sessions, short: false });
  const began = Date.now();
  const result = await withServer((place) =>
    withPlace(place, (fuzz) => playSessions(fuzz, plan, { silenceMs: 4_000, callMs: 10_000 })),
  );
  const problems = [...result.turns.flatMap((turn) => turn.problems), ...result.problems];
  const { head, rows } = tableOf(result.turns);
  printTable(head, rows);
  for (const problem of problems) console.log(`PROBLEM ${problem}`);
  const asStated = result.turns.filter((turn) => turn.problems.length === 0).length;
  const requests = result.turns.reduce((sum, turn) => sum + turn.requests, 0);
  console.log(
    `\n${asStated} of ${result.turns.length} turns as stated, ${requests} requests, ${Math.round((Date.now() - began) / 1_000)} s`,
  );
  if (problems.length === 0) return 0;
  console.log(
    `to repeat: npm run fuzz:provider -- --seed ${seed} --turns ${turns} --sessions ${sessions}`,
  );
  return 1;
}

function readOptions():
  | { seed: number; turns: number; sessions: number; build: boolean }
  | undefined {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: "string" },
        turns: { type: "string", default: "500" },
        sessions: { type: "string", default: "20" },
        "no-build": { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : Number(values.seed);
    const [turns, sessions] = [Number(values.turns), Number(values.sessions)];
    const counts = [turns, sessions].every((count) => Number.isSafeInteger(count) && count > 0);
    if (values.help || !counts || !Number.isSafeInteger(seed)) return undefined;
    return { seed, turns, sessions: Math.min(sessions, turns), build: !values["no-build"] };
  } catch {
    return undefined;
  }
}

async function withPlace(
  { address, directory }: BenchPlace,
  body: (place: Parameters<typeof playSessions>[0]) => Promise<FuzzResult>,
): Promise<FuzzResult> {
  const store = await openDirectoryStore(join(directory, "store"));
  const cwd = join(directory, "workspace");
  await mkdir(cwd);
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection });
  const client = await LonghaulClient.connect({ connection: { address }, store });
  let worker: RunningWorker | undefined;
  try {
    return await body({
      async startWorker(options) {
        worker = await startWorker({
          connection: { address },
          home: join(directory, "home"),
          store,
          hostId: "fuzz",
          workflowBundlePath: workflowBundle,
          ...options,
        });
      },
      createSession({ provider, model }, limits) {
        const route = { provider, model };
        const choices = { model: route, allowParallelInProgress: true, cwd, limits };
        return client.createSession({ config: defineSessionConfig(choices), host: "fuzz" });
      },
      history: (id) => temporal.workflow.getHandle(id).fetchHistory(),
    });
  } finally {
    await client.close();
    await connection.close();
    await worker?.stop();
  }
}
