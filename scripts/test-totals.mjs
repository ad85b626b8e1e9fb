// Sums the JSON reports of the last test run. As a program it prints `N passed, N failed`, with at least
// `--broken <n>` failures: stages that failed without a failed test, e.g. lint, count as one each.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const reportsDirectory = fileURLToPath(
  new URL("../node_modules/.longhaul/reports", import.meta.url),
);

export function reportOf(project) {
  return join(reportsDirectory, `${project}.json`);
}

/** A test file that could not be run, or a run that broke outside a test, counts as one failure. */
export function totals() {
  const sum = { passed: 0, failed: 0 };
  if (!existsSync(reportsDirectory)) return sum;
  for (const file of readdirSync(reportsDirectory)) {
    const report = JSON.parse(readFileSync(join(reportsDirectory, file), "utf8"));
    const unrun = report.testResults.filter(
      (result) => result.status === "failed" && result.assertionResults.length === 0,
    ).length;
    const failed = report.numFailedTests + unrun;
    sum.passed += report.numPassedTests;
    sum.failed += failed === 0 && !report.success ? 1 : failed;
  }
  return sum;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const broken = Number(process.argv[process.argv.indexOf("--broken") + 1]) || 0;
  const { passed, failed } = totals();
  console.log(`${passed} passed, ${Math.max(failed, broken)} failed`);
}
