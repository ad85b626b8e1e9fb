// What Longhaul adds to a provider call, beside the same loop on the bare SDK and the bare call. `npm run bench:overhead -- --help`
import { mkdir } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { LonghaulClient } from "../src/client/index.js";
import { providersFromEnv } from "../src/models/providers.js";
import { openDirectoryStore } from "../src/store/directory.js";
import { startWorker } from "../src/worker/index.js";
import { bareWay, longhaulWay, sdkWay, type Moments, type Way } from "./support/overhead-ways.js";
import { startPeer, writePeerBundle } from "./support/peer/worker.js";
import { percentile, printResult, printTable, round } from "./support/report.js";
import { buildProject, withServer, workflowBundle, type BenchPlace } from "./support/server.js";
import { startTimedProvider, type Script, type TimedProvider } from "./support/timed-provider.js";
import { produce } from "./support/tools.js";

const { values: options } = parseArgs({
  options: {
    samples: { type: "string", default: "100" },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** Milliseconds, nearest rank. */
interface Row {
  readonly case: string;
  readonly samples: number;
  readonly p50: number;
  readonly p99: number;
  /** The same on the bare SDK. */
  readonly bareP50: number;
  readonly bareP99: number;
  /** The same in a process alone. */
  readonly httpP50: number;
  readonly httpP99: number;
}

type Name = "longhaul" | "sdk" | "http";
type Ways = Readonly<Record<Name, Way>>;
/** By case, then by way. */
type Samples = Map<string, Record<Name, number[]>>;

const names: readonly Name[] = ["longhaul", "sdk", "http"];

const cases = {
  first: "request at the provider, a session's first turn",
  request: "request at the provider",
  token: "first token at the worker",
  watched: "first token at a watcher of the sender's",
  elsewhere: "first token at another client's watcher",
  state: "step with a state tool call",
  world: "step with a world tool call",
};

/** Turns of one session, the first of them apart; steps of one turn. */
const turnsPerSession = 10;
const stepsPerTurn = 20;

const talk: Script = { steps: 0, tokens: 30, tokenMs: 10 };
const todos = JSON.stringify({ todos: [{ content: "work on it", status: "in_progress" }] });
const working: Readonly<Record<"state" | "world", Script>> = {
  state: {
    steps: stepsPerTurn,
    tool: { name: "todo_write", arguments: todos },
    tokens: 1,
    tokenMs: 0,
  },
  world: {
    steps: stepsPerTurn,
    tool: { name: "produce", arguments: JSON.stringify({ bytes: 100 }) },
    tokens: 1,
    tokenMs: 0,
  },
};

if (options.help) {
  console.log(`bench:overhead measures what a session adds to the provider's own time, to the first token and a step.
  --samples <n>   of each case (default 100)
  --no-build      use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  const before = loadavg();
  const samples = await withServer(measureAll);
  const rows = Object.values(cases).flatMap((name) => rowOf(name, samples.get(name)));
  report(rows);
  const shown = (load: readonly number[]): string => round(load[0] ?? 0, 1).toString();
  console.log(`\nLoad of the machine: ${shown(before)} before, ${shown(loadavg())} after.`);
  printResult("overhead", rows);
}

async function measureAll({ address, directory }: BenchPlace): Promise<Samples> {
  const cwd = join(directory, "workspace");
  await mkdir(cwd);
  const provider = await startTimedProvider();
  const store = await openDirectoryStore(join(directory, "store"));
  const connection = await Connection.connect({ address });
  const native = await NativeConnection.connect({ address });
  const client = await LonghaulClient.connect({ connection: { address }, store });
  const elsewhere = await LonghaulClient.connect({ connection: { address }, store });
  const longhaul = longhaulWay(client, elsewhere, cwd);
  const sdk = sdkWay(new Client({ connection }), provider.url);
  const env = { LONGHAUL_BASE_URL: provider.url, LONGHAUL_API_KEY: "none" };
  const worker = await startWorker({
    connection: { address },
    home: join(directory, "home"),
    store,
    hostId: "bench",
    models: providersFromEnv(env).map((one) => longhaul.timed(one)),
    tools: [produce],
    workflowBundlePath: workflowBundle,
  });
  const peerBundle = join(directory, "peer-bundle.js");
  await writePeerBundle(peerBundle);
  const stopPeer = await startPeer(native, peerBundle, sdk.activities);
  const ways: Ways = { longhaul, sdk, http: bareWay(provider.url) };
  try {
    return await sampleAll(ways, provider, Number(options.samples));
  } finally {
    for (const name of names) await ways[name].close();
    await client.close();
    await elsewhere.close();
    await worker.stop();
    await stopPeer();
    await connection.close();
    await native.close();
    await provider.close();
  }
}

async function sampleAll(ways: Ways, provider: TimedProvider, wanted: number): Promise<Samples> {
  const samples: Samples = new Map();
  const add = (name: string, way: Name, value: number | undefined): void => {
    const all = samples.get(name) ?? { longhaul: [], sdk: [], http: [] };
    samples.set(name, all);
    if (value !== undefined) all[way].push(value);
  };
  // A turn of each way in turn, so that they share what the machine does meanwhile.
  const everyWay = async (
    script: Script,
    look: (way: Name, moments: Moments, arrivals: readonly number[]) => void,
  ): Promise<void> => {
    for (const name of names) {
      const arrivals = provider.play(script);
      look(name, await ways[name].turn(), arrivals);
    }
  };
  const renew = () => Promise.all(names.map((name) => ways[name].renew()));

  await renew();
  await everyWay(talk, () => {});
  for (let taken = 0; taken < wanted; taken++) {
    if (taken % turnsPerSession === 0) {
      await renew();
      await everyWay(talk, (way, { sent }, [first]) => add(cases.first, way, since(sent, first)));
    }
    await everyWay(talk, (way, { sent, firstToken, ...moments }, [first]) => {
      add(cases.request, way, since(sent, first));
      add(cases.token, way, since(sent, firstToken));
      // Nobody watches the others: their first token is the worker's.
      add(cases.watched, way, since(sent, moments.watched ?? firstToken));
      add(cases.elsewhere, way, since(sent, moments.watchedElsewhere ?? firstToken));
    });
  }
  for (const kind of ["state", "world"] as const) {
    for (let taken = 0; taken < wanted; taken += stepsPerTurn) {
      await renew();
      await everyWay(talk, () => {});
      await everyWay(working[kind], (way, _moments, arrivals) => {
        for (const [index, at] of arrivals.entries())
          add(cases[kind], way, since(arrivals[index - 1], at));
      });
    }
  }
  return samples;
}

function since(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined ? undefined : to - from;
}

function rowOf(name: string, samples: Record<Name, number[]> | undefined): Row[] {
  if (samples === undefined) return [];
  const { longhaul, sdk, http } = samples;
  return [
    {
      case: name,
      samples: longhaul.length,
      p50: percentile(longhaul, 50),
      p99: percentile(longhaul, 99),
      bareP50: percentile(sdk, 50),
      bareP99: percentile(sdk, 99),
      httpP50: percentile(http, 50),
      httpP99: percentile(http, 99),
    },
  ];
}

function report(rows: readonly Row[]): void {
  console.log(`
Milliseconds from sending the user's message; a step: from one request at the provider to the next. The provider answers
at once, so all of it is overhead. "Bare SDK": the same loop in a minimal workflow, the request in a plain activity.
"HTTP": the same loop with nothing around it. These two have no watchers: there the worker's first token stands.
Turns follow one another, so no watcher has slowed down to the one look a second that a quiet session gets.
All of it runs in one process beside its Temporal dev server.\n`);
  printTable(
    ["case", "samples", "p50", "p99", "bare SDK p50", "p99", "HTTP p50", "p99", "over SDK p50"],
    rows.map((row) => [
      row.case,
      row.samples,
      row.p50,
      row.p99,
      row.bareP50,
      row.bareP99,
      row.httpP50,
      row.httpP99,
      round(row.p50 - row.bareP50, 1),
    ]),
  );
}
