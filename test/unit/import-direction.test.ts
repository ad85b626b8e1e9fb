import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

const shared = ["contracts", "contracts/schemas"];
const node = [
  "zod",
  "node:fs/promises",
  "yaml",
  "@noble/hashes/sha2.js",
  "temporal-polyfill/implementation",
];

/** What each folder of src may import besides itself, written down a second time (docs/design.md §2). */
const allowed: Record<string, string[]> = {
  contracts: [],
  "contracts/schemas": ["contracts", "domain", "zod"],
  domain: ["contracts", "@noble/hashes/sha2.js"],
  workflows: ["contracts", "domain", "@temporalio/workflow", "@temporalio/common"],
  models: [...shared, ...node],
  process: [...shared, ...node, "store"],
  store: [...shared, ...node],
  tools: [...shared, ...node, "process", "store"],
  kinds: [...shared, ...node, "process", "store", "tools"],
  time: ["contracts", "domain", "temporal-polyfill/implementation"],
  activities: [
    ...shared,
    ...node,
    "domain",
    "time",
    "models",
    "tools",
    "kinds",
    "process",
    "store",
    "@temporalio/activity",
    "@temporalio/client",
    "@temporalio/common",
  ],
  testing: ["contracts", "models"],
  client: [
    ...shared,
    ...node,
    "domain",
    "time",
    "store",
    "@temporalio/client",
    "@temporalio/common",
    "@temporalio/proto",
  ],
};

const targets = [
  ...shared,
  ...node,
  "domain",
  "time",
  "workflows",
  "models",
  "process",
  "store",
  "tools",
  "kinds",
  "activities",
  "client",
  "worker",
  "server",
  "cli",
  "@temporalio/workflow",
  "@temporalio/common",
  "@temporalio/activity",
  "@temporalio/client",
  "@temporalio/worker",
  "@temporalio/proto",
  "@temporalio/testing",
];

interface Report {
  readonly file: string;
  readonly line: number;
  readonly code: string;
  readonly message: string;
}

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "longhaul-lint-"));
  cpSync(join(root, ".oxlintrc.json"), join(dir, ".oxlintrc.json"));
  cpSync(join(root, "scripts/lint"), join(dir, "scripts/lint"), { recursive: true });
  cpSync(join(root, "tsconfig.json"), join(dir, "tsconfig.json"));
  symlinkSync(join(root, "node_modules"), join(dir, "node_modules"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe("lint refuses imports against the direction of the layers", () => {
  test.each(["", "inner/"])("from files in src/<area>/%s", (inner) => {
    const expected: string[] = [];
    for (const [area, open] of Object.entries(allowed)) {
      const own = targets.filter((target) => target !== area);
      write(
        `src/${area}/${inner}probe.ts`,
        own.map((target, i) => importLine(area, inner, target, i)),
      );
      for (const target of own) if (!open.includes(target)) expected.push(`${area} -> ${target}`);
    }
    const refused = lint()
      .filter((report) => report.code === "longhaul(import-direction)")
      .map((report) => {
        const area = dirname(report.file)
          .slice("src/".length)
          .replace(/\/?inner$/, "");
        return `${area} -> ${targets.filter((target) => target !== area)[report.line - 1]}`;
      });
    expect(refused.toSorted()).toEqual(expected.toSorted());
  });

  test("to the edges that only a command line may use", () => {
    write("src/worker/probe.ts", [
      'import "../cli/x.js";',
      'import "../server/x.js";',
      'import "../client/x.js";',
    ]);
    write("src/server/probe.ts", [
      'import "../client/x.js";',
      'import "../cli/x.js";',
      'import "../activities/x.js";',
      'import "../worker/x.js";',
    ]);
    write("src/cli/probe.ts", [
      'import "../activities/x.js";',
      'import "../domain/x.js";',
      'import "../client/x.js";',
    ]);
    write("src/elsewhere/probe.ts", ['import "node:fs";']);
    write("src/config-file.ts", ['import "./worker/x.js";', 'import "./contracts/x.js";']);
    expect(places("longhaul(import-direction)")).toEqual([
      "src/cli/probe.ts:1",
      "src/cli/probe.ts:2",
      "src/config-file.ts:1",
      "src/elsewhere/probe.ts:1",
      "src/server/probe.ts:1",
      "src/server/probe.ts:2",
      "src/server/probe.ts:3",
      "src/worker/probe.ts:1",
      "src/worker/probe.ts:2",
    ]);
  });

  test("in every form an import can take", () => {
    write("src/domain/probe.ts", [
      'import type { A } from "zod";',
      'export { b } from "zod";',
      'export * from "zod";',
      'export type C = import("zod").ZodType;',
      'export const d = await import("zod");',
      "export const e = (name: string) => import(name);",
      "declare const require: (name: string) => A;",
      'export const f = require("zod");',
      'import g = require("zod");',
      "export { g };",
    ]);
    expect(places("longhaul(import-direction)").map((place) => place.split(":")[1])).toEqual([
      "1",
      "2",
      "3",
      "4",
      "5",
      "6",
      "8",
      "9",
    ]);
  });

  test("of src into the witness", () => {
    write("test/support/witness.ts", [
      'import type { A } from "../../src/contracts/log.js";',
      'import "node:fs";',
    ]);
    write("test/support/other.ts", ['import "../../src/contracts/log.js";']);
    expect(places("longhaul(import-direction)")).toEqual(["test/support/witness.ts:1"]);
  });
});

test("lint keeps clocks, chance and the outside world out of workflow-side code", () => {
  const lines = ["Date", "process", "fetch", "crypto", "setTimeout", "performance"].map(
    (name, i) => `export const v${i}: unknown = ${name};`,
  );
  write("src/domain/probe.ts", [...lines, "export const chance = Math.random();"]);
  write("src/contracts/probe.ts", lines);
  write("src/workflows/probe.ts", lines);
  write("src/tools/probe.ts", lines);
  expect(places("eslint(no-restricted-globals)")).toEqual([
    ...[1, 2, 3, 4, 5, 6].map((line) => `src/contracts/probe.ts:${line}`),
    ...[1, 2, 3, 4, 5, 6].map((line) => `src/domain/probe.ts:${line}`),
    ...[2, 3, 4, 6].map((line) => `src/workflows/probe.ts:${line}`),
  ]);
  expect(places("eslint(no-restricted-properties)")).toEqual(["src/domain/probe.ts:7"]);
});

test("lint reports lost promises, open switches, import cycles and printing", () => {
  write("src/tools/probe.ts", [
    'import { other } from "./other.js";',
    "export async function work(): Promise<void> {}",
    "work();",
    'export function name(kind: "a" | "b"): string | undefined {',
    "  switch (kind) {",
    '    case "a": return other;',
    "  }",
    "}",
    'console.log("x");',
  ]);
  write("src/tools/other.ts", [
    'import { work } from "./probe.js";',
    "export const other = work.name;",
  ]);
  const codes = new Set(lint("--type-aware").map((report) => report.code));
  expect(codes).toContain("typescript(no-floating-promises)");
  expect(codes).toContain("typescript(switch-exhaustiveness-check)");
  expect(codes).toContain("import(no-cycle)");
  expect(codes).toContain("eslint(no-console)");
});

function importLine(area: string, inner: string, target: string, i: number): string {
  const isPackage =
    target.includes(":") ||
    target.startsWith("@") ||
    ["zod", "yaml", "temporal-polyfill/implementation"].includes(target);
  const up = "../".repeat(`${area}/${inner}`.split("/").filter(Boolean).length);
  return `import type { T${i} } from "${isPackage ? target : `${up}${target}/absent.js`}";`;
}

function write(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), `${lines.join("\n")}\n`);
}

function places(code: string): string[] {
  return lint()
    .filter((report) => report.code === code)
    .map((report) => `${report.file}:${report.line}`)
    .toSorted();
}

function lint(...flags: string[]): Report[] {
  const oxlint = join(root, "node_modules/oxlint/bin/oxlint");
  const run = spawnSync(process.execPath, [oxlint, "-f", "json", ...flags, "src", "test"], {
    cwd: dir,
    encoding: "utf8",
  });
  const output = JSON.parse(run.stdout) as {
    diagnostics: {
      code: string;
      message: string;
      filename: string;
      labels: { span: { line: number } }[];
    }[];
  };
  return output.diagnostics.map(({ code, message, filename, labels }) => ({
    file: filename,
    line: labels[0]?.span.line ?? 0,
    code,
    message,
  }));
}
