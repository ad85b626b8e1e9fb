// Counts the acceptance cases of docs/spec that a test title names. Usage: node scripts/spec-coverage.mjs
// [--missing] list the cases without a test · [--report <file>] count passed tests of a vitest JSON report only.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const specs = ["todo", "jobs", "schedule", "harness"];
const idPattern = new RegExp(`\\[((?:${specs.join("|")})/[A-Z]?\\d+)\\]`, "g");
const mostIdsOfATitle = 5;

const flags = process.argv.slice(2);
const report = flags.includes("--report") ? flags[flags.indexOf("--report") + 1] : undefined;
const titles = report === undefined ? titlesInSources(join(root, "test")) : titlesPassed(report);

/** @type {Set<string>} */
const covered = new Set();
const inPlace = new Set();
const crowded = [];
for (const title of titles) {
  const ids = new Set([...title.matchAll(idPattern)].map((match) => match[1]));
  if (ids.size > mostIdsOfATitle) {
    crowded.push(title);
    continue;
  }
  for (const id of ids) {
    covered.add(id);
    if (title.includes("in place of")) inPlace.add(id);
  }
}

const known = new Set();
for (const spec of specs) {
  const cases = casesOf(spec).map((name) => `${spec}/${name}`);
  for (const id of cases) known.add(id);
  const missing = cases.filter((id) => !covered.has(id));
  const replaced = cases.filter((id) => inPlace.has(id)).length;
  const note = replaced === 0 ? "" : `, ${replaced} of them in place of the reference's mechanism`;
  console.log(
    `${spec}: ${cases.length - missing.length} of ${cases.length} cases have a test${note}`,
  );
  if (flags.includes("--missing") && missing.length > 0) {
    console.log(`  missing: ${missing.map((id) => id.slice(spec.length + 1)).join(" ")}`);
  }
}
const unknown = [...covered].filter((id) => !known.has(id)).toSorted();
if (unknown.length > 0) console.log(`no spec has: ${unknown.join(" ")}`);
for (const title of crowded) console.log(`more than ${mostIdsOfATitle} ids, not counted: ${title}`);
process.exitCode = unknown.length > 0 || crowded.length > 0 ? 1 : 0;

/** First cells of the rows of acceptance tables, e.g. `3`, `T14`, `A7`; each once, in order. */
function casesOf(spec) {
  const row =
    spec === "harness"
      ? /^\|\s*([A-Z]\d+)\s*\|/
      : spec === "schedule"
        ? /^\|\s*(T?\d+)\s*\|/
        : /^\|\s*(\d+)\s*\|/;
  const lines = readFileSync(join(root, "docs/spec", `${spec}.md`), "utf8").split("\n");
  return [...new Set(lines.map((line) => row.exec(line)?.[1]).filter((id) => id !== undefined))];
}

function* titlesInSources(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.isFile() && entry.name.endsWith(".test.ts")) {
      yield* titlesOf(readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8"));
    }
  }
}

/** The strings of a test file that hold an id, on one line each, but not the titles of tests that never run. */
function titlesOf(source) {
  const neverRun = /\.(?:skip|todo|fails)\s*\(\s*(["'`])(?:(?!\1).)*\1/g;
  const comments = /^\s*(?:\/\/|\/?\*).*$/gm;
  const withId = new RegExp(`(["'\`])((?:(?!\\1).)*${idPattern.source}(?:(?!\\1).)*)\\1`, "g");
  const kept = source.replaceAll(comments, "").replaceAll(neverRun, "");
  return [...kept.matchAll(withId)].map((match) => match[2]);
}

function titlesPassed(file) {
  const { testResults } = JSON.parse(readFileSync(file, "utf8"));
  return testResults
    .flatMap((suite) => suite.assertionResults)
    .filter((result) => result.status === "passed")
    .map((result) => result.fullName);
}
