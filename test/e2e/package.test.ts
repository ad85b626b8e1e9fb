import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

/** An empty project with the packed package in it; its dependencies are this checkout's. */
let project: string;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "longhaul-package-"));
  const packed = await run(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", project],
    { cwd: root },
  );
  const [{ filename }]: [{ filename: string }] = JSON.parse(packed.stdout);
  const modules = join(project, "node_modules");
  await mkdir(join(modules, "longhaul"), { recursive: true });
  await run("tar", [
    "-xzf",
    join(project, filename),
    "-C",
    join(modules, "longhaul"),
    "--strip-components=1",
  ]);
  for (const name of await readdir(join(root, "node_modules"))) {
    if (name.startsWith(".") || name === "longhaul") continue;
    await symlink(join(root, "node_modules", name), join(modules, name));
  }
  await writeFile(
    join(project, "package.json"),
    JSON.stringify({ name: "user", private: true, type: "module" }),
  );
  await cp(join(root, "examples/embed.ts"), join(project, "embed.ts"));
});

afterAll(async () => {
  await rm(project, { recursive: true, force: true });
});

test("the packed package runs the embedding example from an empty project", async () => {
  const { stdout } = await run(
    process.execPath,
    ["--import", "tsx", "embed.ts", inject("temporalAddress"), join(project, "data")],
    { cwd: project, timeout: 60_000 },
  );
  expect(stdout).toBe("[bash]\nBash says hello.\nturn 1: completed\n");
});

test("its types are enough to check the example strictly", async () => {
  const options = {
    compilerOptions: {
      strict: true,
      module: "nodenext",
      target: "es2023",
      lib: ["es2023", "esnext.disposable"],
      skipLibCheck: true,
      noEmit: true,
      types: ["node"],
    },
    files: ["embed.ts"],
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify(options));
  const checked = await run(
    process.execPath,
    [join(root, "node_modules/typescript/bin/tsc"), "-p", "."],
    {
      cwd: project,
    },
  );
  expect(checked.stdout).toBe("");
});

test("what is not exported cannot be imported", async () => {
  const deep = run(
    process.execPath,
    ["--input-type=module", "-e", 'await import("longhaul/dist/domain/turn.js")'],
    {
      cwd: project,
    },
  );
  await expect(deep).rejects.toThrow("ERR_PACKAGE_PATH_NOT_EXPORTED");
});
