import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { importLog } from "../../src/domain/log-text.js";
import { stopServer } from "../../src/server/index.js";
import {
  runCliProcess,
  startCli,
  userEnvironment,
  type CliProcess,
  type CliResult,
} from "../support/cli-process.js";

/** The command line on whole logs, as users run it: a server and a worker of its own, and files. */
let root: string;
let env: Record<string, string>;
let worker: CliProcess;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "longhaul-logs-e2e-"));
  await writeFile(
    join(root, "talk.yaml"),
    "name: talk\nturns:\n  - repeat: 100\n    steps: [{ text: 'Answer ${turn}.' }]\n",
  );
  await mkdir(join(root, "work"));
  env = userEnvironment({
    LONGHAUL_HOME: join(root, "home"),
    LONGHAUL_MODEL: `scripted:${join(root, "talk.yaml")}`,
  });
  worker = startCli(["worker"], { env });
  await worker.shows("worker ready");
});
afterAll(async () => {
  worker.child.kill("SIGTERM");
  await worker.ended;
  await stopServer({ home: join(root, "home"), force: true });
  await rm(root, { recursive: true, force: true });
});

const cli = (args: readonly string[]): Promise<CliResult> =>
  runCliProcess(args, { env, cwd: join(root, "work") });

test("a session's log goes through files into new sessions, and each of them verifies", async () => {
  expect(await cli(["run", "Say something."])).toMatchObject({ code: 0, stdout: "Answer 1.\n" });
  const id = await vi.waitFor(async () => {
    const [first] = JSON.parse((await cli(["sessions", "--json"])).stdout) as { id: string }[];
    if (first === undefined) throw new Error("the list lags behind");
    return first.id;
  }, 20_000);

  const plain = join(root, "log.jsonl");
  const zip = join(root, "log.zip");
  expect(await cli(["export", id, "-o", plain])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await cli(["export", id, "-o", zip, "--zip"])).toEqual({
    code: 0,
    stdout: "",
    stderr: "",
  });
  const text = await readFile(plain, "utf8");
  expect((await cli(["export", id])).stdout).toBe(text);
  expect(importLog(text)).toMatchObject({ ok: true, dropped: 0 });
  expect(await cli(["export", id, "-o", plain])).toMatchObject({ code: 2 });

  const made = [
    await cli(["import", plain, "--id", "from-lines", "--title", "Again"]),
    await cli(["import", zip, "--id", "from-zip"]),
    await cli(["fork", id, "--id", "forked"]),
  ];
  expect(made.map(({ code, stderr }) => [code, stderr])).toEqual([
    [0, ""],
    [0, ""],
    [0, ""],
  ]);
  expect(await cli(["import", plain, "--id", "from-lines"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("SESSION_EXISTS"),
  });
  for (const session of ["from-lines", "from-zip", "forked"]) {
    expect(await cli(["send", session, "And more."])).toMatchObject({ code: 0 });
    const following = startCli(["log", session, "-f"], { env });
    await following.shows("Answer 2.");
    following.child.kill("SIGTERM");
    await following.ended;
    const verified = await cli(["verify", session]);
    expect(verified).toMatchObject({ code: 0, stderr: "" });
    expect(verified.stdout.split("\n").filter((line) => line.startsWith("ok "))).toHaveLength(6);
  }
  // The zip brought what the first session had streamed.
  const streams = await readdir(join(root, "home", "store", "from-zip"));
  expect(streams.filter((name) => name.startsWith("model+1.1."))).toHaveLength(1);
  const shown = await cli(["show", "from-lines"]);
  expect(shown.stdout).toContain("Again");
});
