// Builds, then runs the vitest projects one after the other and prints one line of totals.
// Usage: node scripts/test.mjs [project ...]; reports go to node_modules/.longhaul/reports/<project>.json.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { reportOf, reportsDirectory, totals } from "./test-totals.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const projects = ["unit", "replay", "temporal", "temporal-cold", "e2e"];
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !projects.includes(name));
if (unknown.length > 0) {
  console.error(`Unknown project ${unknown.join(", ")}; there are ${projects.join(", ")}.`);
  process.exit(2);
}

rmSync(reportsDirectory, { recursive: true, force: true });
mkdirSync(reportsDirectory, { recursive: true });

let failed = run("scripts/build.mjs") !== 0;
if (!failed) {
  for (const project of asked.length > 0 ? asked : projects) {
    const report = reportOf(project);
    const code = run(
      "node_modules/vitest/vitest.mjs",
      "run",
      `--project=${project}`,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
    );
    if (code !== 0 || !existsSync(report)) failed = true;
  }
}
const sum = totals();
if (failed && sum.failed === 0) sum.failed = 1;
console.log(`${sum.passed} passed, ${sum.failed} failed`);
process.exitCode = failed || sum.failed > 0 ? 1 : 0;

function run(script, ...flags) {
  const { status } = spawnSync(process.execPath, [join(root, script), ...flags], {
    cwd: root,
    stdio: "inherit",
  });
  return status ?? 1;
}
