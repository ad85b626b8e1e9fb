import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { windows } from "./moment.js";
import { parts, planFull, planShort, type Lane, type Part } from "./plan.js";
import { createRandom, type Random } from "./random.js";
import { openSite, type Site } from "./site.js";
import type { TrialResult } from "./trial.js";

const usage = "usage: npm run chaos -- [--short] [--seed N] [--only worker|server|jobs|reminders]";

interface Row {
  readonly name: string;
  readonly result?: TrialResult;
  readonly problems: readonly string[];
  readonly seconds: number;
}

/** Open now; a signal must not leave their processes behind. */
const sites = new Set<Site>();
const root = new URL("../../", import.meta.url);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    console.log(`chaos: ${signal}, cleaning up`);
    void Promise.allSettled([...sites].map((site) => site.dispose(8_000))).then(() =>
      process.exit(1),
    );
  });
}
process.exitCode = await main();

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) {
    console.error(usage);
    return 2;
  }
  const { short, seed, only } = options;
  console.log(`chaos: seed ${seed}${short ? ", short" : ""}`);
  execFileSync(process.execPath, [fileURLToPath(new URL("scripts/build.mjs", root))], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const random = createRandom(seed);
  const lanes = (short ? planShort(random) : planFull(random))
    .map((lane) => lane.filter(({ part }) => only === undefined || part === only))
    .filter((lane) => lane.length > 0);
  const rows = (await Promise.all(lanes.map((lane) => runLane(lane, random)))).flat();
  const missing = only === undefined || only === "worker" ? windowsMissed(rows) : [];
  printTable(rows, missing);
  const failed = rows.filter(({ problems }) => problems.length > 0).length + missing.length;
  const passed = rows.filter(({ problems }) => problems.length === 0).length;
  if (failed > 0) {
    const flags = [
      `--seed ${seed}`,
      short ? "--short" : "",
      only === undefined ? "" : `--only ${only}`,
    ];
    console.log(`to repeat: npm run chaos -- ${flags.filter((flag) => flag !== "").join(" ")}`);
  }
  writeReport(passed, failed);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

/** Where `scripts/test-totals.mjs` counts it in. */
function writeReport(passed: number, failed: number): void {
  const directory = new URL("node_modules/.longhaul/reports/", root);
  mkdirSync(directory, { recursive: true });
  const report = {
    numPassedTests: passed,
    numFailedTests: failed,
    success: failed === 0,
    testResults: [],
  };
  writeFileSync(new URL("chaos.json", directory), JSON.stringify(report));
}

function readOptions(): { short: boolean; seed: number; only: Part | undefined } | undefined {
  try {
    const { values } = parseArgs({
      options: { short: { type: "boolean" }, seed: { type: "string" }, only: { type: "string" } },
    });
    const { short = false, only } = values;
    const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : Number(values.seed);
    if (!Number.isSafeInteger(seed)) return undefined;
    const part = parts.find((one) => one === only);
    if (only !== undefined && part === undefined) return undefined;
    return { short, seed, only: part };
  } catch {
    return undefined;
  }
}

async function runLane(lane: Lane, random: Random): Promise<Row[]> {
  const rows: Row[] = [];
  const broken = (name: string, error: unknown): Row => ({
    name,
    problems: [String(error)],
    seconds: 0,
  });
  let site: Site;
  try {
    site = await openSite();
    sites.add(site);
  } catch (error) {
    return lane.map(({ name }) => broken(name, error));
  }
  try {
    for (const { name, run } of lane) {
      const say = (line: string): void => console.log(`[${name}] ${line.trim()}`);
      const began = Date.now();
      try {
        const result = await run(site, random.fork(name), say);
        rows.push({
          name,
          result,
          problems: result.problems,
          seconds: (Date.now() - began) / 1_000,
        });
      } catch (error) {
        rows.push(broken(name, error));
        say(`broke off: ${error instanceof Error ? error.stack : String(error)}`);
        say(`the worker's last lines: ${site.worker.lastLines(5)}`);
        break;
      }
    }
  } finally {
    sites.delete(site);
    const left = await site.dispose();
    if (left.length > 0)
      rows.push({ name: `${lane[0]?.name}: after it`, problems: left, seconds: 0 });
  }
  return rows;
}

/** Named windows in which no worker was killed. */
function windowsMissed(rows: readonly Row[]): string[] {
  const kills = rows
    .flatMap(({ result }) => result?.blows ?? [])
    .filter(({ kind }) => kind === "worker killed");
  return windows.filter((window) => !kills.some(({ moment }) => moment.window === window));
}

function printTable(rows: readonly Row[], missing: readonly string[]): void {
  const blows = rows.flatMap(({ result }) => result?.blows ?? []);
  console.log("\nblows by moment");
  const lines = blows.map(({ kind, moment }) => `${kind}: ${moment.window}`);
  for (const line of [...new Set(lines)].toSorted())
    console.log(`  ${String(lines.filter((one) => one === line).length).padStart(3)}  ${line}`);
  for (const window of missing)
    console.log(`    0  worker killed: ${window} (a window that must be hit)`);
  console.log("\ntrials");
  for (const { name, result, problems, seconds } of rows) {
    console.log(
      `  ${problems.length === 0 ? "ok    " : "FAILED"} ${name}, ${Math.round(seconds)} s: ${result?.summary ?? ""}`,
    );
    for (const problem of problems) console.log(`           ${problem}`);
  }
  console.log("");
}
