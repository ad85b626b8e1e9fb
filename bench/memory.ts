// What an idle session costs a worker that has it cached, beside a bare workflow. `npm run bench:memory -- --help`
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { LonghaulClient } from "../src/client/index.js";
import { boundRows, reportBound, type BoundRow } from "./support/memory-bound.js";
import { memoryCases, memoryLoads, type MemoryCase } from "./support/memory-cases.js";
import { growAndSample, perWorkflow } from "./support/memory-run.js";
import type { MemorySample } from "./support/memory-worker.js";
import { peerQueue, writePeerBundle } from "./support/peer/worker.js";
import { median, printResult, printTable, round } from "./support/report.js";
import { buildProject, withServer, type BenchPlace } from "./support/server.js";
import { scriptedConfig } from "./support/session-config.js";
import { scenarioOf, type Workload } from "./support/workload.js";

const { values: options } = parseArgs({
  options: {
    repeat: { type: "string", default: "1" },
    scale: { type: "string", default: "1" },
    only: { type: "string" },
    bound: { type: "string" },
    to: { type: "string", default: "5000" },
    samples: { type: "boolean", default: false },
    modules: { type: "boolean", default: false },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

interface Row {
  readonly case: string;
  /** Cached at the last sample. */
  readonly sessions: number;
  readonly kbPerSession: number;
  readonly bareKbPerSession: number;
  readonly heapKbPerSession: number;
  readonly bareHeapKbPerSession: number;
}

interface Measured {
  readonly rssKb: number;
  readonly heapKb: number;
  readonly modules: readonly string[];
}

type Kind = "session" | "bare";

const budget = 1.3;

if (options.help) {
  console.log(`bench:memory measures what one idle cached session adds to a worker's memory after its turn.
  --repeat <n>    measure everything n times and take medians (default 1)
  --scale <n>     n times as many workflows (default 1: 500, and 50 of the long ones)
  --only <text>   only cases whose name contains the text
  --bound <n>     instead: a worker that keeps n sessions in memory, and how it grows while there are ever more of them
  --to <n>        with --bound: how many (default 5,000)
  --samples       the samples the slopes are drawn through
  --modules       which modules a session evaluates for itself
  --no-build      use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  if (options.bound === undefined) {
    const rows = await withServer(measureAll);
    report(rows);
    printResult("memory", rows);
  } else {
    const [bound, to] = [Number(options.bound), Number(options.to)];
    const rows = await withServer((place) => measureBound(place, bound, to));
    reportBound(rows);
    printResult("memory", rows);
  }
}

async function measureAll(place: BenchPlace): Promise<readonly Row[]> {
  const peerBundle = join(place.directory, "peer-bundle.js");
  await writePeerBundle(peerBundle);
  const cases = memoryCases
    .filter(({ load }) => load.name.includes(options.only ?? ""))
    .map(({ load, counts }) => ({
      load,
      counts: counts.map((count) => count * Number(options.scale)),
    }));
  const measured = new Map<string, Measured[]>();
  for (let pass = 0; pass < Number(options.repeat); pass++) {
    const order: readonly Kind[] = pass % 2 === 0 ? ["session", "bare"] : ["bare", "session"];
    for (const one of pass % 2 === 0 ? cases : cases.toReversed()) {
      for (const kind of order) {
        const result = await measure(place, peerBundle, one, kind, pass);
        const key = `${one.load.name}/${kind}`;
        measured.set(key, [...(measured.get(key) ?? []), result]);
        console.error(
          `${one.load.name}, ${kind}: ${result.rssKb.toFixed(1)} KB RSS, ${result.heapKb.toFixed(1)} KB heap`,
        );
      }
    }
  }
  return cases.map(({ load, counts }) => {
    const of = (kind: Kind): readonly Measured[] => measured.get(`${load.name}/${kind}`) ?? [];
    const middle = (kind: Kind, value: (one: Measured) => number): number =>
      round(median(of(kind).map(value)), 1);
    if (options.modules) printModules(load.name, of("session"), of("bare"));
    return {
      case: load.name,
      sessions: counts.at(-1) ?? 0,
      kbPerSession: middle("session", (one) => one.rssKb),
      bareKbPerSession: middle("bare", (one) => one.rssKb),
      heapKbPerSession: middle("session", (one) => one.heapKb),
      bareHeapKbPerSession: middle("bare", (one) => one.heapKb),
    };
  });
}

async function measure(
  place: BenchPlace,
  peerBundle: string,
  { load, counts }: MemoryCase,
  kind: Kind,
  pass: number,
): Promise<Measured> {
  const { address, directory } = place;
  const home = join(directory, `${kind}-${load.name.replaceAll(" ", "-")}-${pass}`);
  const connection = await Connection.connect({ address });
  const longhaul = await LonghaulClient.connect({ connection: { address } });
  try {
    const add =
      kind === "session"
        ? await sessions(longhaul, directory, load)
        : bareWorkflows(new Client({ connection }), load, pass);
    const samples = await growAndSample({ kind, address, home, peerBundle }, counts, add);
    if (options.samples) printSamples(`${load.name}, ${kind}`, samples);
    return {
      rssKb: perWorkflow(samples, (sample) => sample.rssBytes) / 1_024,
      heapKb: perWorkflow(samples, (sample) => sample.heapBytes) / 1_024,
      modules: samples.at(-1)?.modules ?? [],
    };
  } finally {
    await longhaul.close();
    await connection.close();
  }
}

/** Sessions one after the other in a worker that keeps no more than `bound` of them, sampled at each multiple of it. */
async function measureBound(
  { address, directory }: BenchPlace,
  bound: number,
  to: number,
): Promise<readonly BoundRow[]> {
  const counts = Array.from(
    { length: Math.max(1, Math.floor(to / bound)) },
    (_, index) => (index + 1) * bound,
  );
  const longhaul = await LonghaulClient.connect({ connection: { address } });
  try {
    const [load] = memoryLoads;
    if (load === undefined) throw new Error("there is no load");
    const place = { kind: "session", address, home: join(directory, "bound") } as const;
    const samples = await growAndSample(
      { ...place, maxCachedWorkflows: bound },
      counts,
      await sessions(longhaul, directory, load),
      [],
    );
    return boundRows(counts, samples);
  } finally {
    await longhaul.close();
  }
}

/** A session that has had one turn. */
async function sessions(
  longhaul: LonghaulClient,
  directory: string,
  load: Workload,
): Promise<() => Promise<void>> {
  const config = await scriptedConfig(directory, load.name, scenarioOf(load), directory);
  return async () => {
    const session = await longhaul.createSession({ config });
    const { seq } = await session.followup("go");
    const view = await session.waitIdle({ after: seq });
    if (view.lastEnd?.kind !== "completed") {
      throw new Error(`the turn ended ${JSON.stringify(view.lastEnd)}`);
    }
  };
}

/** A workflow that has had one update, its activities and one query. */
function bareWorkflows(client: Client, load: Workload, pass: number): () => Promise<void> {
  let count = 0;
  return async () => {
    const handle = await client.workflow.start(load.tool === "none" ? "peerIdle" : "peerAgent", {
      taskQueue: peerQueue,
      workflowId: `bare-${load.name.replaceAll(" ", "-")}-${pass}-${count++}`,
    });
    await handle.executeUpdate("peer.send", { args: ["go", load.name] });
    while ((await handle.query<number>("peer.done")) === 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
}

function printSamples(title: string, samples: readonly MemorySample[]): void {
  console.log(`\n${title}`);
  printTable(
    ["workflows", "RSS KB", "heap KB", "activity thread's heap KB"],
    samples.map(({ workflows, rssBytes, heapBytes, mainHeapBytes }) => [
      workflows,
      round(rssBytes / 1_024),
      round(heapBytes / 1_024),
      round(mainHeapBytes / 1_024),
    ]),
  );
}

function printModules(name: string, own: readonly Measured[], bare: readonly Measured[]): void {
  const of = (list: readonly Measured[]): readonly string[] => list.at(-1)?.modules ?? [];
  const more = of(own).filter((module) => !of(bare).includes(module));
  console.log(`\n${name}: a session evaluates ${of(own).length} modules, a bare one ${of(bare).length}.
Only the session:\n  ${more.join("\n  ")}`);
}

function report(rows: readonly Row[]): void {
  console.log(`
What one more idle cached workflow adds to its worker. Each figure is the median slope between samples of a worker
in a process of its own while the number of workflows grows, the first sample after a warm-up; for each sample both threads
collect their garbage until the process shrinks no further (the workflow thread on request, support/collect-in-thread.cjs),
and the number of cached workflows is counted there. RSS is of the whole process, heap of the thread that holds the workflows. Medians of
${options.repeat} run(s) in alternating order. "Bare": a workflow on the bare SDK with one update, one query and the same model answers.
`);
  printTable(
    ["case", "workflows", "KB RSS", "bare", "ratio", "budget", "KB heap", "bare heap", "ratio"],
    rows.map((row) => {
      const ratio = round(row.kbPerSession / row.bareKbPerSession, 2);
      return [
        row.case,
        row.sessions,
        row.kbPerSession,
        row.bareKbPerSession,
        ratio,
        row.case === "empty" ? `${budget} ${ratio <= budget ? "holds" : "BROKEN"}` : "",
        row.heapKbPerSession,
        row.bareHeapKbPerSession,
        round(row.heapKbPerSession / row.bareHeapKbPerSession, 2),
      ];
    }),
  );
}
