// Many real shell jobs on one host: its worker's event loop, a foreground command beside them, kills. `npm run bench:jobs -- --help`
import { mkdir } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { LonghaulClient } from "../src/client/index.js";
import { defineSessionConfig } from "../src/client/session-config.js";
import { openDirectoryStore } from "../src/store/directory.js";
import { Foreground } from "./support/foreground.js";
import { JobFleet, killAndWait, supervisorBytes } from "./support/job-fleet.js";
import type { JobsWorkerSample } from "./support/jobs-worker.js";
import { percentile, printResult, printTable, round } from "./support/report.js";
import { buildProject, withServer, type BenchPlace } from "./support/server.js";
import { forkJobsWorker, type WorkerChild } from "./support/worker-child.js";

const { values: options } = parseArgs({
  options: {
    jobs: { type: "string", default: "200" },
    sessions: { type: "string", default: "50" },
    kills: { type: "string", default: "20" },
    seconds: { type: "string", default: "20" },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

interface Row {
  readonly case: string;
  readonly value: number;
  readonly unit: "ms" | "%" | "MB" | "jobs";
  readonly target?: number;
}

const megabyte = 1_000_000;

if (options.help) {
  console.log(`bench:jobs measures a host with many real shell jobs, and how soon a kill ends one.
  --jobs <n>       jobs (default 200)
  --sessions <n>   in so many sessions (default 50)
  --kills <n>      kills of each kind, one after the other (default 20)
  --seconds <n>    how long all jobs are watched (default 20)
  --no-build       use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  const before = loadavg();
  const sizes = { jobs: Number(options.jobs), sessions: Number(options.sessions) };
  const kills = Number(options.kills);
  const few = { jobs: kills, sessions: Math.ceil(kills / 5) };
  const rows = [
    ...(await withServer((place) => withHost(place, sizes, measureFleet))),
    ...(await withServer((place) =>
      withHost(place, few, (host) => measureKills(host, "worker commands")),
    )),
    ...(await withServer(
      (place) => withHost(place, few, (host) => measureKills(host, "heartbeats alone")),
      { workerCommands: false },
    )),
  ];
  report(rows);
  const shown = (load: readonly number[]): string => round(load[0] ?? 0, 1).toString();
  console.log(`\nLoad of the machine: ${shown(before)} before, ${shown(loadavg())} after.`);
  printResult("jobs", rows);
}

interface Host {
  readonly worker: WorkerChild;
  /** A process that does nothing. */
  readonly idler: WorkerChild;
  readonly fleet: JobFleet;
  readonly foreground: Foreground;
  readonly home: string;
  readonly jobs: number;
}

/** A worker process, a client, and sessions without jobs; all jobs are ended afterwards. */
async function withHost(
  { address, directory }: BenchPlace,
  sizes: { readonly jobs: number; readonly sessions: number },
  body: (host: Host) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const [home, cwd, notes] = [join(directory, "home"), join(directory, "w"), join(directory, "n")];
  await mkdir(cwd);
  await mkdir(notes);
  const store = await openDirectoryStore(join(directory, "store"));
  const worker = await forkJobsWorker({ address, home, store: join(directory, "store") });
  const idler = await forkJobsWorker();
  const client = await LonghaulClient.connect({
    connection: { address },
    store,
    // All at once on a small machine takes its time.
    callTimeoutMs: 120_000,
  });
  const config = defineSessionConfig({
    model: "scripted/nobody-asks",
    allowParallelInProgress: true,
    cwd,
    jobs: { completionDelivery: "quiet", maxConcurrentJobsPerOwner: 1_000, orphanGraceMs: 30_000 },
  });
  const fleet = new JobFleet(client, config, notes);
  try {
    const foreground = await Foreground.open(client, directory, cwd);
    await fleet.open(sizes.sessions);
    const rows = await body({ worker, idler, fleet, foreground, home, jobs: sizes.jobs });
    await foreground.close();
    return rows;
  } finally {
    // Whatever failed, the worker must be gone before its directory is.
    await fleet.close().catch((error: unknown) => console.error(error));
    await client.close();
    await worker.end();
    await idler.end();
  }
}

async function measureFleet(host: Host): Promise<Row[]> {
  const { fleet, foreground, home, jobs } = host;
  await foreground.sample();
  await sampleBoth(host);
  const alone = await foreground.sample();
  const quiet = await sampleBoth(host);

  const began = performance.now();
  let started = false;
  let allRun = 0;
  const starting = fleet.start(jobs).finally(() => {
    started = true;
    allRun = performance.now() - began;
  });
  // A failure below is the one to tell.
  starting.catch(() => {});
  const during: number[] = [];
  while (!started) during.push(...(await foreground.sample()));
  const { running: all, unstarted } = await starting;
  for (const why of new Set(unstarted)) console.error(`A job did not start: ${why}`);
  const start = await sampleBoth(host);

  await sleep(Number(options.seconds) * 1_000);
  const running = await sampleBoth(host);
  const beside = [...(await foreground.sample()), ...(await foreground.sample())];
  const supervisors = await supervisorBytes(home);

  const kills: number[] = [];
  for (const job of all.slice(0, Number(options.kills))) kills.push(await killAndWait(job));
  await sampleBoth(host);
  const asked = performance.now();
  await Promise.all(all.slice(kills.length).map(killAndWait));
  const allGone = performance.now() - asked;
  const ending = await sampleBoth(host);
  return [
    { case: `${jobs} jobs asked for at once, all run`, value: round(allRun), unit: "ms" },
    { case: "  of them not started", value: unstarted.length, unit: "jobs", target: 0 },
    ...delays("idle", quiet),
    ...delays("while they start", start),
    ...delays("while they run", running),
    ...delays("while all end", ending),
    ...spread("foreground bash, alone", alone),
    ...spread("foreground bash, while they start", during),
    ...spread("foreground bash, beside them", beside),
    memory("supervisor of a job", supervisors / all.length, 5),
    memory("worker, for each job", (running.worker.rssBytes - quiet.worker.rssBytes) / all.length),
    ...spread("kill beside them, to the process gone", kills, 3_000),
    { case: "all the others killed at once, to all gone", value: round(allGone), unit: "ms" },
  ];
}

async function measureKills({ fleet, jobs }: Host, how: string): Promise<Row[]> {
  const kills: number[] = [];
  for (const job of (await fleet.start(jobs)).running) {
    // Anywhere between two heartbeats.
    await sleep(Math.random() * 2_000);
    kills.push(await killAndWait(job));
  }
  return spread(`kill by ${how}, to the process gone`, kills, 3_000);
}

interface Both {
  readonly worker: JobsWorkerSample;
  readonly idler: JobsWorkerSample;
}

async function sampleBoth({ worker, idler }: Host): Promise<Both> {
  return { worker: await worker.sample(), idler: await idler.sample() };
}

function delays(when: string, { worker, idler }: Both): Row[] {
  const name = `worker's event loop ${when}`;
  return [
    { case: `${name}, delay p50`, value: round(worker.delayP50, 1), unit: "ms" },
    { case: `${name}, delay p99`, value: round(worker.delayP99, 1), unit: "ms", target: 100 },
    { case: "  p99 of a process that does nothing", value: round(idler.delayP99, 1), unit: "ms" },
    { case: `${name}, longest delay`, value: round(worker.delayMax, 1), unit: "ms" },
    { case: `${name}, busy`, value: round(worker.busy * 100), unit: "%" },
  ];
}

function spread(name: string, values: readonly number[], target?: number): Row[] {
  const goal = target === undefined ? {} : { target };
  return [
    { case: `${name}, p50`, value: percentile(values, 50), unit: "ms" },
    { case: `${name}, p99`, value: percentile(values, 99), unit: "ms", ...goal },
  ];
}

function memory(name: string, bytes: number, target?: number): Row {
  const goal = target === undefined ? {} : { target };
  return { case: `memory of the ${name}`, value: round(bytes / megabyte, 2), unit: "MB", ...goal };
}

function report(rows: readonly Row[]): void {
  console.log(`
Jobs are shell loops that print a line a second. The worker runs in a process of its own with both roles, beside the
Temporal dev server on the same machine. Delay: beyond the 10 ms after which its event loop looks again. A foreground command:
from its call in the log to the command begun. Memory: a proportional share of shared pages, the command itself not counted.\n`);
  printTable(
    ["case", "value", "", "target"],
    rows.map((row) => [row.case, row.value, row.unit, row.target]),
  );
}
