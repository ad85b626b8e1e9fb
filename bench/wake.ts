// From the end of a background job to the model call it leads to, beside the bare SDK. `npm run bench:wake -- --help`
import { mkdir } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { LonghaulClient } from "../src/client/index.js";
import { openDirectoryStore } from "../src/store/directory.js";
import { startWorker } from "../src/worker/index.js";
import { createHeldModel } from "./support/held-model.js";
import { measureJobHistory, type JobHistoryRow } from "./support/job-history.js";
import { startPeer, writePeerBundle } from "./support/peer/worker.js";
import { percentile, printResult, printTable, round } from "./support/report.js";
import { buildProject, withServer, workflowBundle, type BenchPlace } from "./support/server.js";
import {
  bareWay,
  sessionWay,
  wakeCases,
  type WakeCase,
  type WakeWay,
} from "./support/wake-ways.js";

const { values: options } = parseArgs({
  options: {
    samples: { type: "string", default: "100" },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** Milliseconds, nearest rank. */
interface WakeRow {
  readonly case: string;
  readonly samples: number;
  readonly p50: number;
  readonly p99: number;
  /** The same on the bare SDK. */
  readonly bareP50: number;
  readonly bareP99: number;
  readonly ratio: number;
}

type Samples = Readonly<Record<"session" | "bare", number[]>>;

const names = Object.keys(wakeCases) as WakeCase[];
const samplesPerSession = 10;
/** Of design §5. */
const ratioBudget = 1.3;

if (options.help) {
  console.log(`bench:wake measures from the end of a background job to the model call begun, and what a job costs in history.
  --samples <n>   of each case (default 100)
  --no-build      use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  const before = loadavg();
  // Reports that come too late, as those of the held jobs do, are warnings.
  const { wakes, history } = await withServer(measureAll, { logLevel: "ERROR" });
  report(wakes, history);
  const shown = (load: readonly number[]): string => round(load[0] ?? 0, 1).toString();
  console.log(`\nLoad of the machine: ${shown(before)} before, ${shown(loadavg())} after.`);
  printResult("wake", [...wakes, ...history]);
}

async function measureAll({ address, directory }: BenchPlace): Promise<{
  readonly wakes: readonly WakeRow[];
  readonly history: readonly JobHistoryRow[];
}> {
  const cwd = join(directory, "workspace");
  await mkdir(cwd);
  const store = await openDirectoryStore(join(directory, "store"));
  const connection = await Connection.connect({ address });
  const native = await NativeConnection.connect({ address });
  const temporal = new Client({ connection });
  const client = await LonghaulClient.connect({ connection: { address }, store });
  const model = createHeldModel();
  const session = sessionWay(client, temporal, model, cwd);
  const bare = bareWay(temporal, cwd);
  const worker = await startWorker({
    connection: { address },
    home: join(directory, "home"),
    store,
    hostId: "bench",
    models: [model.provider],
    tools: [session.tool],
    jobKinds: [session.kind],
    workflowBundlePath: workflowBundle,
  });
  const peerBundle = join(directory, "peer-bundle.js");
  await writePeerBundle(peerBundle, "job-workflows");
  const stopPeer = await startPeer(native, peerBundle, bare.activities);
  try {
    const samples = await sampleAll({ session, bare }, Number(options.samples));
    const history = await measureJobHistory(client, temporal, model, cwd);
    return { wakes: names.map((name) => rowOf(name, samples.get(name))), history };
  } finally {
    await session.close();
    await bare.close();
    await client.close();
    await worker.stop();
    await stopPeer();
    await connection.close();
    await native.close();
  }
}

/** The ways in turn, so that they share what the machine does meanwhile. */
async function sampleAll(
  ways: Readonly<Record<keyof Samples, WakeWay>>,
  wanted: number,
): Promise<ReadonlyMap<WakeCase, Samples>> {
  const samples = new Map<WakeCase, Samples>();
  for (let taken = 0; taken < wanted; taken++) {
    if (taken % samplesPerSession === 0) {
      await ways.session.renew();
      await ways.bare.renew();
    }
    for (const name of names) {
      const { session, bare } = samples.get(name) ?? { session: [], bare: [] };
      session.push(await ways.session.sample(name));
      bare.push(await ways.bare.sample(name));
      samples.set(name, { session, bare });
    }
  }
  return samples;
}

function rowOf(name: WakeCase, { session, bare }: Samples = { session: [], bare: [] }): WakeRow {
  const p50 = percentile(session, 50);
  const bareP50 = percentile(bare, 50);
  return {
    case: wakeCases[name],
    samples: session.length,
    p50,
    p99: percentile(session, 99),
    bareP50,
    bareP99: percentile(bare, 99),
    ratio: round(p50 / bareP50, 2),
  };
}

function report(wakes: readonly WakeRow[], history: readonly JobHistoryRow[]): void {
  console.log(`
Milliseconds to the next request at the model. "Bare SDK": the same chain in minimal workflows; where a job is ended, a child
workflow with one activity that signals its parent. Busy: the session runs a tool, which ends right after the report is
sent. Budget: ${ratioBudget} × the bare SDK. All of it runs in one process beside its Temporal dev server.\n`);
  printTable(
    ["case", "samples", "p50", "p99", "bare SDK p50", "p99", "ratio of p50"],
    wakes.map((row) => [
      row.case,
      row.samples,
      row.p50,
      row.p99,
      row.bareP50,
      row.bareP99,
      row.ratio,
    ]),
  );
  console.log(`\nEvents in the session's history beside those of the same turns without a job.\n`);
  printTable(
    ["case", "events", "budget", "changes of search attributes"],
    history.map((row) => [row.case, row.events, row.budget, row.attributes]),
  );
}
