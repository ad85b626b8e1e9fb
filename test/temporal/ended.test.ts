import { writeFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { commands } from "../../src/cli/commands/index.js";
import { openBackend } from "../../src/cli/open-backend.js";
import { runCli } from "../../src/cli/run.js";
import { defaultLimits, LonghaulClient, type SessionConfig } from "../../src/client/index.js";
import { queues, workflowTypes } from "../../src/contracts/names.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker, type RunningWorker } from "../../src/worker/index.js";
import { fakeIo } from "../support/fake-cli.js";
import { takeSharedQueue } from "../support/shared-queue.js";

const connection = { address: inject("temporalAddress") };
const scenario = `name: ended
turns:
  - repeat: 10
    steps:
      - text: "too slow to be waited for"
        chunk: 1
        delayMs: 60000
`;

let home: string;
let temporal: Connection;
let worker: RunningWorker | undefined;
let release: (() => Promise<void>) | undefined;
let config: SessionConfig;

beforeAll(async () => {
  release = await takeSharedQueue();
  home = await mkdtemp(join(tmpdir(), "longhaul-ended-"));
  const model = join(home, "scenario.yaml");
  await writeFile(model, scenario);
  config = {
    request: { provider: "scripted", model },
    allowParallelInProgress: false,
    worldTools: false,
    outsideWorkspace: false,
    deny: [],
    ask: [],
    limits: defaultLimits,
  };
  temporal = await Connection.connect(connection);
  worker = await startWorker({
    connection,
    home,
    store: await openDirectoryStore(join(home, "store")),
    hostId: "ended-test",
    roles: ["session"],
    workflowBundlePath: inject("workflowBundlePath"),
    maxCachedWorkflows: Number(process.env["LONGHAUL_TEST_CACHE"]),
  });
}, 300_000);

afterAll(async () => {
  await worker?.stop();
  await temporal.close();
  await release?.();
  await rm(home, { recursive: true });
});

/** A command line in a data directory of its own, whose store is a file: nothing here needs it. */
async function line(...argv: readonly string[]) {
  const io = fakeIo({ env: { TEMPORAL_ADDRESS: connection.address } });
  const exitCode = await runCli(argv, io, {
    commands,
    version: "0",
    async openBackend(request, given) {
      await writeFile(join(io.home, "store"), "a file");
      return openBackend(request, given);
    },
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

describe("a session that ended otherwise than by being closed", () => {
  test("that failed at its start says why, and that nothing can be sent", async () => {
    const id = `ended-${process.pid}-${Date.now()}-failed`;
    const handle = await new Client({ connection: temporal }).workflow.start(
      workflowTypes.session,
      { workflowId: id, taskQueue: queues.sessions, args: [{ nonsense: true }] },
    );
    await expect(handle.result()).rejects.toThrow("Workflow execution failed");
    await using client = await LonghaulClient.connect({ connection });
    const session = client.session(id);
    const record = await session.record();
    expect(record).toMatchObject({ state: "failed", status: "failed" });
    const why = record.failure?.message ?? "no reason was given";
    await expect(session.view()).rejects.toMatchObject({
      code: record.failure?.code ?? "SESSION_CLOSED",
      message: expect.stringContaining(why),
    });
    await expect(session.send("x")).rejects.toMatchObject({
      code: "SESSION_CLOSED",
      message: expect.not.stringContaining("can still be read"),
    });
    await session.close();
    const log = await line("log", id);
    expect(log).toMatchObject({ exitCode: 1, stdout: "" });
    expect(log.stderr).toContain(why);
    expect((await line("show", id)).stdout).toMatch(/^State\s+failed at /mu);
    expect((await line("close", id)).stdout).toMatch(/has ended already: failed at /u);
  });

  test("that was terminated in a turn is not said to run, whichever way one looks", async () => {
    await using client = await LonghaulClient.connect({ connection });
    const session = await client.createSession({ config });
    const { seq } = await session.send("go");
    const following = line("log", session.id, "--follow");
    await expect
      .poll(async () => (await session.view()).lastSeq, { timeout: 60_000 })
      .toBeGreaterThan(seq);
    await new Client({ connection: temporal }).workflow.getHandle(session.id).terminate("by hand");
    expect(await session.record()).toMatchObject({ state: "terminated", status: "terminated" });
    await expect
      .poll(async () => showsTerminated(await line("show", session.id)), { timeout: 60_000 })
      .toMatch(/^Log\s+\d+ entries$/mu);
    await expect
      .poll(async () => JSON.parse((await line("show", session.id, "--json")).stdout) as unknown, {
        timeout: 60_000,
      })
      .toMatchObject({ state: "terminated", live: true });
    const followed = await following;
    expect(followed.exitCode).toBe(0);
    expect(followed.stderr).toMatch(/^session \S+ has ended: terminated at [^\n]+\n$/mu);
    expect((await line("close", session.id)).stdout).toMatch(/has ended already: terminated at /u);
  });
});

/** The text of a `show`, which says in every case that the session was terminated: also when no worker answered. */
function showsTerminated(shown: Awaited<ReturnType<typeof line>>): string {
  expect(shown).toMatchObject({ exitCode: 0, stderr: "" });
  expect(shown.stdout).toMatch(/^State\s+terminated at \d{4}-[^\n]+Z$/mu);
  return shown.stdout;
}
