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

/** The failed tests of the last run with their first error, one text each: a log may be cut, and its end is read first. */
export function failures() {
  if (!existsSync(reportsDirectory)) return [];
  return readdirSync(reportsDirectory).flatMap((file) => {
    const report = JSON.parse(readFileSync(join(reportsDirectory, file), "utf8"));
    const project = file.replace(/\.json$/, "");
    return report.testResults
      .filter((result) => result.status === "failed")
      .flatMap((result) => {
        const failed = result.assertionResults.filter((test) => test.status === "failed");
        const tests = failed.map((test) => ({
          title: test.fullName,
          message: test.failureMessages[0] ?? "",
        }));
        if (tests.length === 0) tests.push({ title: result.name, message: result.message });
        return tests.map(({ title, message }) => {
          const lines = message.split("\n").slice(0, 12);
          return `${project}: ${title}\n  ${lines.join("\n  ")}`;
        });
      });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const broken = Number(process.argv[process.argv.indexOf("--broken") + 1]) || 0;
  const { passed, failed } = totals();
  for (const failure of failures()) console.log(`== failed: ${failure}`);
  console.log(`${passed} passed, ${Math.max(failed, broken)} failed`);
}
