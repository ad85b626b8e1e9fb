// Builds, then runs the vitest projects and prints one line of totals. Lanes run side by side, since most tests wait for a
// server rather than compute; what a part printed is shown when it has ended.
// Usage: node scripts/test.mjs [part ...]; reports go to node_modules/.longhaul/reports/<part>.json.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { failures, reportOf, reportsDirectory, totals } from "./test-totals.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const walks = "test/e2e/random-walk.test.ts";
/** A part is a vitest project, or some of its files. */
const parts = {
  unit: ["--project=unit"],
  replay: ["--project=replay"],
  temporal: ["--project=temporal"],
  "temporal-cold": ["--project=temporal-cold"],
  e2e: ["--project=e2e", `--exclude=${walks}`],
  walks: ["--project=e2e", walks],
};
/** The walks come when the other lane is about to end: they use both cores. */
const lanes = [
  ["temporal", "temporal-cold", "replay"],
  ["unit", "e2e", "walks"],
];
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0) {
  const all = Object.keys(parts).join(", ");
  console.error(`Unknown part ${unknown.join(", ")}; there are ${all}.`);
  process.exit(2);
}

rmSync(reportsDirectory, { recursive: true, force: true });
mkdirSync(reportsDirectory, { recursive: true });

let failed = (await run("inherit", "scripts/build.mjs")).code !== 0;
if (!failed) {
  await Promise.all(
    lanes.map(async (lane) => {
      for (const name of lane) if (asked.length === 0 || asked.includes(name)) await runPart(name);
    }),
  );
}
const sum = totals();
if (failed && sum.failed === 0) sum.failed = 1;
for (const failure of failures()) console.log(`== failed: ${failure}`);
console.log(`${sum.passed} passed, ${sum.failed} failed`);
process.exitCode = failed || sum.failed > 0 ? 1 : 0;

async function runPart(name) {
  const began = Date.now();
  console.log(`== ${name} begins`);
  const report = reportOf(name);
  const { code, output } = await run(
    "pipe",
    "node_modules/vitest/vitest.mjs",
    "run",
    ...parts[name],
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
  );
  process.stdout.write(output);
  console.log(`== ${name} took ${Math.round((Date.now() - began) / 1_000)} s`);
  if (code !== 0 || !existsSync(report)) failed = true;
}

function run(output, script, ...flags) {
  const child = spawn(process.execPath, [join(root, script), ...flags], {
    cwd: root,
    stdio: ["ignore", output, output],
  });
  const chunks = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => chunks.push(chunk));
  }
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ code: code ?? 1, output: Buffer.concat(chunks) }));
  });
}
