import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/spec-coverage.mjs", import.meta.url));
// Put together here, so that the titles made below are not counted as titles of this file.
const id = (name: string) => `[${["todo", name].join("/")}]`;
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longhaul-coverage-"));
  for (const folder of ["scripts", "docs/spec", "test/unit"]) {
    mkdirSync(join(dir, folder), { recursive: true });
  }
  cpSync(script, join(dir, "scripts/spec-coverage.mjs"));
  for (const spec of ["jobs", "schedule", "harness"])
    writeFileSync(join(dir, `docs/spec/${spec}.md`), "");
  writeFileSync(
    join(dir, "docs/spec/todo.md"),
    "| # | case |\n|--|--|\n| 1 | a |\n| 2 | b |\n| 3 | c |\n| 4 | d |\n",
  );
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

test("counts cases named by titles of tests that run, from calls and from tables", () => {
  writeTests(
    `test("${id("1")} it's counted", () => {}); // don't mind`,
    `test.skip("${id("2")} skipped", () => {});`,
    `const rows = [['${id("3")} a row in place of an event']];`,
    `// test("${id("4")} commented out", () => {});`,
  );
  const { stdout, status } = run("--missing");
  expect(stdout).toContain("todo: 2 of 4 cases have a test, 1 of them in place of");
  expect(stdout).toContain("missing: 2 4");
  expect(status).toBe(0);
});

test("fails on ids that no spec has and does not count titles with more than five", () => {
  const six = ["1", "2", "3", "4", "5", "6"].map(id).join(" ");
  writeTests(`test("${id("9")}", () => {});`, `test("${six}", () => {});`);
  const { stdout, status } = run();
  expect(stdout).toContain("todo: 0 of 4");
  expect(stdout).toContain("no spec has: todo/9");
  expect(stdout).toContain("more than 5 ids");
  expect(status).toBe(1);
});

test("with a report counts only tests that passed", () => {
  const results = [
    { fullName: `x ${id("1")}`, status: "passed" },
    { fullName: `x ${id("2")}`, status: "failed" },
  ];
  const report = join(dir, "report.json");
  writeFileSync(report, JSON.stringify({ testResults: [{ assertionResults: results }] }));
  expect(run("--report", report).stdout).toContain("todo: 1 of 4");
});

function writeTests(...lines: string[]): void {
  writeFileSync(join(dir, "test/unit/sample.test.ts"), lines.join("\n"));
}

function run(...flags: string[]) {
  const path = join(dir, "scripts/spec-coverage.mjs");
  return spawnSync(process.execPath, [path, ...flags], { encoding: "utf8" });
}
