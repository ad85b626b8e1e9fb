// One session of very many turns: what a turn costs when the session is old, beside when it was young. `npm run bench:long -- --help`
import { mkdir } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { LonghaulClient } from "../src/client/index.js";
import { openDirectoryStore } from "../src/store/directory.js";
import { batch, LongDrive, longScenario } from "./support/long-drive.js";
import { readLongLog, type LogReading } from "./support/long-log.js";
import { runOf, sizeSession, type SessionSize } from "./support/long-mark.js";
import { forkMemoryWorker, type MeasuredWorker } from "./support/memory-run.js";
import { printResult, printTable, round, type Cell } from "./support/report.js";
import { buildProject, withServer, type BenchPlace } from "./support/server.js";
import { scriptedConfig } from "./support/session-config.js";

const { values: options } = parseArgs({
  options: {
    turns: { type: "string", default: "10000" },
    "cpu-prof": { type: "string" },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

interface Row extends SessionSize {
  /** Messages answered so far; jobs and reminders open turns beside. */
  readonly turn: number;
  /** Over the last hundred, with their share of what is sent and waited for. */
  readonly msPerTurn: number;
  /** CPU time of the worker. */
  readonly cpuMsPerTurn: number;
  /** Of the worker, all garbage collected. */
  readonly rssMb: number;
  readonly heapMb: number;
}

interface Measured {
  readonly rows: readonly Row[];
  readonly log: LogReading;
}

const budget = 1.5;
const span = 100;

/** The last two are of the transcript's phase and the session's age, which nothing is promised of. */
const columns = [
  ["ms a turn", "msPerTurn"],
  ["worker's CPU", "cpuMsPerTurn"],
  ["history bytes", "historyBytes"],
  ["events", "events"],
  ["replay ms", "replayMs"],
  ["its CPU", "replayCpuMs"],
  ["RSS MB", "rssMb"],
  ["heap MB", "heapMb"],
  ["checkpoint bytes", "checkpointBytes"],
  ["surface", "surface"],
  ["runs", "runs"],
] as const satisfies readonly (readonly [string, keyof Row])[];
const budgeted: ReadonlySet<keyof Row> = new Set([
  "msPerTurn",
  "cpuMsPerTurn",
  "historyBytes",
  "events",
  "replayMs",
  "replayCpuMs",
  "rssMb",
]);

if (options.help) {
  console.log(`bench:long lets one session have very many turns, and measures turn 100, 1,000, 10,000 ...
  --turns <n>        default 10,000; at least 100; each run that is measured is completed first
  --cpu-prof <dir>   profiles of the worker's threads go there
  --no-build         use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  const before = loadavg();
  const { rows, log } = await withServer(measure, { logLevel: "ERROR" });
  report(rows, log);
  const shown = (load: readonly number[]): string => round(load[0] ?? 0, 1).toString();
  console.log(`\nLoad of the machine: ${shown(before)} before, ${shown(loadavg())} after.`);
  for (const problem of log.problems) console.log(`WRONG: ${problem}`);
  printResult("long", rows);
  if (log.problems.length > 0) process.exitCode = 1;
}

async function measure({ address, directory }: BenchPlace): Promise<Measured> {
  const home = join(directory, "home");
  const cwd = join(directory, "workspace");
  await mkdir(cwd);
  const profile = options["cpu-prof"];
  const worker = await forkMemoryWorker(
    { kind: "session", address, home },
    profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`],
  );
  const connection = await Connection.connect({ address });
  const client = await LonghaulClient.connect({
    connection: { address },
    store: await openDirectoryStore(`${home}-store`),
    callTimeoutMs: 60_000,
  });
  try {
    const config = {
      ...(await scriptedConfig(directory, "long", longScenario, cwd)),
      schedule: true,
    };
    // Code is compiled and optimised in the first turns of a worker: another session has them.
    const warm = await client.createSession({ config });
    await new LongDrive(warm).until(3 * span);
    await warm.close();
    const session = await client.createSession({ config });
    const drive = new LongDrive(session);
    const temporal = new Client({ connection });
    const rows: Row[] = [];
    for (const wanted of marks(Number(options.turns))) {
      const mark = Math.max(wanted, drive.messages.length + span);
      const turnsBefore = await drive.until(mark - span);
      const [begun, cpuBefore] = [performance.now(), await worker.cpu()];
      const turns = (await drive.until(mark)) - turnsBefore;
      const msPerTurn = round((performance.now() - begun) / turns, 1);
      const cpuMsPerTurn = round(((await worker.cpu()) - cpuBefore) / turns, 1);
      const memory = await memoryOf(worker);
      const run = await runOf(temporal, session);
      while ((await runOf(temporal, session)) === run)
        await drive.until(drive.messages.length + batch);
      const size = await sizeSession(temporal, session, run);
      const row = { turn: mark, msPerTurn, cpuMsPerTurn, ...memory, ...size };
      rows.push(row);
      console.error(JSON.stringify(row));
    }
    await drive.settle();
    return { rows, log: await readLongLog(session.log(), drive) };
  } finally {
    await client.close();
    await connection.close();
    await worker.end();
  }
}

async function memoryOf(worker: MeasuredWorker): Promise<Pick<Row, "rssMb" | "heapMb">> {
  const { rssBytes, heapBytes, mainHeapBytes } = await worker.sample();
  const megabytes = (bytes: number): number => round(bytes / 1_048_576, 1);
  return { rssMb: megabytes(rssBytes), heapMb: megabytes(heapBytes + mainHeapBytes) };
}

/** Powers of ten up to the last. */
function marks(last: number): readonly number[] {
  const found: number[] = [];
  for (let mark = span; mark < last; mark *= 10) found.push(mark);
  return [...found, Math.max(last, span)];
}

function report(rows: readonly Row[], log: LogReading): void {
  console.log(`
One session, each turn a call of a state tool and an answer; from outside a job at every 50th message and a reminder at every
100th. Default bounds of a roll-over; the model's window is so small that the transcript is compacted again and again. History: of the
run that has the turn, once that is complete, with the checkpoint it hands on and the one it began with, which the first run has
none of. The worker is a process of its own; memory after its garbage is collected.
`);
  const [first, last] = [rows[0], rows.at(-1)];
  printTable(
    ["turn", ...columns.map(([name]) => name)],
    [
      ...rows.map((row) => [
        row.turn.toLocaleString("en-US"),
        ...columns.map(([, key]) => row[key]),
      ]),
      ["last to first", ...columns.map(([, key]) => shownRatio(ratio(first, last, key)))],
      [`budget ${budget}`, ...columns.map(([, key]) => verdict(first, last, key))],
    ],
  );
  console.log(
    `\n${log.turns} turns and ${log.entries} entries read, ${log.compactions} compactions: ${
      log.problems.length === 0
        ? "numbered without a gap; every message, job and reminder exactly once."
        : `${log.problems.length} PROBLEMS.`
    }`,
  );
}

function ratio(first: Row | undefined, last: Row | undefined, key: keyof Row): number {
  return (last?.[key] ?? Number.NaN) / (first?.[key] ?? Number.NaN);
}

/** Nothing where the first has none. */
function shownRatio(value: number): Cell {
  return Number.isFinite(value) ? round(value, 3) : undefined;
}

function verdict(first: Row | undefined, last: Row | undefined, key: keyof Row): Cell {
  if (!budgeted.has(key)) return undefined;
  return ratio(first, last, key) <= budget ? "holds" : "BROKEN";
}
