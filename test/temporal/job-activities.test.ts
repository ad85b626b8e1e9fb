import { randomUUID } from "node:crypto";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "@temporalio/client";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { afterAll, beforeAll, expect, inject } from "vitest";
import type { LookJobsAnswer, ReadJobAnswer } from "../../src/contracts/activities.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { JobOutcome } from "../../src/contracts/jobs.js";
import { hostControlQueue, jobWorkflowId } from "../../src/contracts/names.js";
import type { Store } from "../../src/contracts/store.js";
import { isFollowed } from "../../src/process/jobs/follower-lock.js";
import { spoolDirectory } from "../../src/process/jobs/spool.js";
import { isAlive } from "../support/job-bench.js";
import { bundleOfTests, type LabJob, namespace, openJobLab } from "../support/job-lab.js";
import { serverArguments } from "../support/server-arguments.js";
import { test, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

let bundle: { readonly path: string; dispose(): Promise<void> };
beforeAll(async () => {
  bundle = await bundleOfTests();
});
afterAll(() => bundle.dispose());

/** Says its pid, then a line for each file that comes, until `done` is there. */
const counting = `echo $$ > pid; echo "$$" >> runs; n=0
while [ ! -e done ]; do n=$((n + 1)); echo $n; sleep 0.05; done`;

const ended = { status: "completed", detail: "exit code: 0" };

test.concurrent("a shell job is begun, followed and told to its session; its heartbeats show bytes and the last line", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const job = await bench.start("bash", {
    command:
      "echo $$ > pid; echo one; printf 'last line' >&2; while [ ! -e done ]; do sleep 0.05; done",
    description: "waits",
  });
  await bench.pidIn("pid");
  await eventually(async () =>
    expect((await job.follower()).details).toEqual({
      stdout: 4,
      stderr: 9,
      lastLine: "last line",
    }),
  );
  await bench.write("done");
  expect(await job.settled()).toEqual({
    ...ended,
    tails: [
      { stream: "stdout", from: 0, to: 4, text: "one\n" },
      { stream: "stderr", from: 0, to: 9, text: "last line" },
    ],
  });
  expect(await job.handle.result()).toEqual(ended);
});

test.concurrent("what cannot be started is told as a failed start: bad input, and a host that is full [jobs/86] in place of errors of the producer", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path, { maxJobs: 1 });
  await bench.hostUp();
  const failed = async (job: LabJob): Promise<string | undefined> => {
    const { status, detail } = await job.settled();
    expect(status).toBe("failed");
    return detail;
  };
  expect(await failed(await bench.start("bash", { command: "true", workdir: "none" }))).toBe(
    `spawn failed: cannot run in ${bench.cwd}/none: it does not exist; give a workdir that exists`,
  );
  expect(await failed(await bench.start("dream", {}))).toMatch(
    /^spawn failed: .* no job kind dream/,
  );
  const first = await bench.start("bash", { command: counting });
  await bench.pidIn("pid");
  expect(await failed(await bench.start("bash", { command: "true" }))).toBe(
    `not started: ${bench.place.hostId} is full (1 jobs)`,
  );
  await bench.write("done");
  expect(await first.settled()).toMatchObject(ended);
});

test.concurrent("a kill that was asked for ends the job, and its outcome says how", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const shell = await bench.start("bash", { command: "echo $$ > pid; exec sleep 600" });
  const report = await bench.start("report", { text: "", until: "never" });
  const pid = await bench.pidIn("pid");
  await eventually(async () => expect(await bench.content("runs")).not.toBe(""));
  await Promise.all([shell.kill("enough"), report.kill("superseded")]);
  expect(await shell.settled()).toMatchObject({ status: "killed", detail: "signal: SIGTERM" });
  expect(await isAlive(pid)).toBe(false);
  expect(await report.settled()).toEqual({ status: "killed" });
  expect(await bench.content("stops")).toBe("Error: superseded\n");
});

test.concurrent("a worker that stops lets go of its shell jobs at once, and the next one goes on with the same process", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path, { shutdownGraceMs: 600_000 });
  const first = await bench.hostUp();
  const job = await bench.start("bash", { command: counting });
  const pid = await bench.pidIn("pid");
  await eventually(async () => expect((await job.follower()).details).toMatchObject({ stderr: 0 }));
  await first.stop();
  expect(await isAlive(pid)).toBe(true);
  await bench.hostUp({ shutdownGraceMs: 200 });
  await eventually(async () => expect(await isFollowed(spoolDirectory(job.key))).toBe(true));
  await bench.write("done");
  await expectCounted(lab, job, await job.settled());
  expect(await bench.content("runs")).toBe(`${pid}\n`);
});

test.concurrent("a job whose activity is cut off by the worker's grace is left alone too", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path, { shutdownGraceMs: 100 });
  const first = await bench.hostUp();
  const watched = await bench.start("watcher", { from: "log" });
  const doomed = await bench.start("report", { text: "", until: "never" });
  await eventually(async () =>
    expect((await bench.content("runs")).trim().split("\n")).toHaveLength(2),
  );
  await first.stop();
  expect(await doomed.settled()).toEqual({
    status: "failed",
    detail: `worker shutdown on ${bench.place.hostId}`,
  });
  await bench.write("log", "abc\n");
  await bench.hostUp();
  await bench.write("finish");
  // The body lives in this process, and the next worker object of it joins it.
  expect(await watched.settled()).toMatchObject({
    status: "completed",
    detail: "carried by run",
    tails: [{ stream: "output", text: "abc\n" }],
  });
});

test.concurrent("a body that does not heed its kill does not keep its worker from stopping", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  const worker = await bench.hostUp();
  const job = await bench.start("report", { text: "", until: "never", stubborn: true });
  await eventually(async () => expect(await bench.content("runs")).not.toBe(""));
  await job.kill("go away");
  await eventually(async () => expect(await bench.content("stops")).toBe("Error: go away\n"));
  await worker.stop();
  expect(await job.settled()).toEqual({
    status: "failed",
    detail: `worker shutdown on ${bench.place.hostId}`,
  });
  await bench.write("never");
});

test.concurrent("an operator's pause and reset leave the process alone, and nothing runs twice", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const shell = await bench.start("bash", { command: counting });
  const pid = await bench.pidIn("pid");
  const report = await bench.start("report", { text: "once", until: "go" });
  await eventually(async () =>
    expect((await bench.content("runs")).trim().split("\n")).toHaveLength(2),
  );
  for (const job of [shell, report]) {
    const { id } = await job.follower();
    const activity = { namespace, execution: { workflowId: job.handle.workflowId }, id };
    await lab.temporal.workflowService.pauseActivity({ ...activity, identity: "operator" });
    if (job === shell)
      await eventually(async () => expect(await isFollowed(spoolDirectory(job.key))).toBe(false));
    expect((await job.follower()).paused).toBe(true);
    await lab.temporal.workflowService.unpauseActivity({ ...activity, identity: "operator" });
    await eventually(async () => expect((await job.follower()).paused).toBe(false));
    await lab.temporal.workflowService.resetActivity({ ...activity, identity: "operator" });
  }
  expect(await isAlive(pid)).toBe(true);
  await bench.write("done");
  await bench.write("go");
  await expectCounted(lab, shell, await shell.settled());
  expect(await report.settled()).toEqual({
    status: "completed",
    detail: "as asked",
    output: "once",
  });
  expect((await bench.content("runs")).trim().split("\n")).toHaveLength(2);
});

test.concurrent("an attempt that timed out leaves the job to the next one", async ({ lab }) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  // It beats too seldom: every attempt times out.
  const job = await bench.start(
    "bash",
    { command: counting },
    {
      heartbeatMs: 3_600_000,
      heartbeatTimeoutMs: 1_000,
    },
  );
  const pid = await bench.pidIn("pid");
  await eventually(async () => expect((await job.follower()).attempt).toBeGreaterThan(2));
  expect(await isAlive(pid)).toBe(true);
  await bench.write("done");
  await expectCounted(lab, job, await job.settled());
  expect(await bench.content("runs")).toBe(`${pid}\n`);
});

test.concurrent("a job whose workflow was terminated is ended, and its session is told though it is in another run", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const shell = await bench.start("bash", { command: "echo $$ > pid; exec sleep 600" });
  const report = await bench.start("report", { text: "", until: "never" });
  const pid = await bench.pidIn("pid");
  await eventually(async () => expect(await bench.content("runs")).not.toBe(""));
  // Who is followed is cleared up at once; what is not, by the next sweep.
  for (const job of [shell, report])
    await eventually(async () => expect((await job.follower()).details).toBeDefined());
  await bench.owner.signal("move");
  await Promise.all([shell.handle.terminate("by an operator"), report.handle.terminate()]);
  const detail = "job host ended: terminated";
  expect(await shell.settled()).toMatchObject({ status: "failed", detail, tails: [{}, {}] });
  expect(await isAlive(pid)).toBe(false);
  expect(await report.settled()).toEqual({ status: "failed", detail });
  expect(await bench.content("stops")).toBe(`Error: ${detail}\n`);
});

test("a server without worker commands tells the same by heartbeats: a kill, a terminate, a reset", async ({
  lab,
}) => {
  const server = await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: "existing-path", path: inject("temporalBinary") },
      log: { format: "pretty", level: "error" },
      extraArgs: serverArguments().map((argument) =>
        argument.replace(/(WorkerCommand\w*)=true$/, "$1=false"),
      ),
    },
  });
  try {
    const { address, client } = server;
    const bench = await openJobLab(lab, bundle.path, { connection: { address } }, client);
    await bench.hostUp();
    const killed = await bench.start("bash", { command: "echo $$ > killed; exec sleep 600" });
    const cut = await bench.start("bash", { command: "echo $$ > cut; exec sleep 600" });
    const again = await bench.start("bash", { command: counting });
    const pids = [await bench.pidIn("killed"), await bench.pidIn("cut"), await bench.pidIn("pid")];
    for (const job of [killed, cut, again]) await job.follower();
    await killed.kill("enough");
    await cut.handle.terminate("by an operator");
    await resetToBegin(client, again);
    expect(await killed.settled()).toMatchObject({ status: "killed", detail: "signal: SIGTERM" });
    expect(await cut.settled()).toMatchObject({
      status: "failed",
      detail: "job host ended: terminated",
    });
    await eventually(async () => {
      expect((await again.handle.describe()).status.name).toBe("RUNNING");
      expect((await again.follower()).details).toMatchObject({ stderr: 0 });
    });
    expect(await Promise.all(pids.map(isAlive))).toEqual([false, false, true]);
    await bench.write("done");
    await expectCounted(lab, again, await again.settled());
    expect(await bench.content("runs")).toBe(`${pids[2]}\n`);
    await bench.place.stop();
  } finally {
    await server.teardown();
  }
});

test.concurrent("a job workflow that was terminated while its host had no worker is cleared up when one starts", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  const first = await bench.hostUp();
  const job = await bench.start("bash", { command: "echo $$ > pid; exec sleep 600" });
  const pid = await bench.pidIn("pid");
  await first.stop();
  await job.handle.terminate("by an operator");
  expect(await isAlive(pid)).toBe(true);
  await bench.hostUp();
  expect(await job.settled()).toMatchObject({
    status: "failed",
    detail: "job host ended: terminated",
  });
  expect(await isAlive(pid)).toBe(false);
});

test.concurrent("a job workflow that was reset goes on with the same process", async ({ lab }) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const job = await bench.start("bash", { command: counting });
  const pid = await bench.pidIn("pid");
  await job.follower();
  await resetToBegin(lab.temporal, job);
  await eventually(async () => {
    expect((await job.handle.describe()).status.name).toBe("RUNNING");
    expect((await job.follower()).details).toMatchObject({ stderr: 0 });
  });
  expect(await isAlive(pid)).toBe(true);
  await bench.write("done");
  await expectCounted(lab, job, await job.settled());
  expect(await bench.content("runs")).toBe(`${pid}\n`);
});

test.concurrent("a job outlives a roll-over of its session, and not its session or another incarnation of it", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path, { ownerCheckMs: 100 });
  await bench.hostUp();
  const job = await bench.start("report", { text: "", until: "never" });
  const stranger = await bench.start(
    "bash",
    { command: "exec sleep 600" },
    {
      token: `${job.key.sessionId}:${randomUUID()}`,
    },
  );
  expect(await stranger.settled()).toMatchObject({ status: "killed" });
  await eventually(async () => expect(await bench.content("runs")).not.toBe(""));
  await bench.owner.signal("move");
  await eventually(async () =>
    expect((await bench.owner.describe()).raw.workflowExecutionInfo?.firstRunId).not.toBe(
      (await bench.owner.describe()).runId,
    ),
  );
  const beats = await followedFor(job, 5);
  expect(beats).toBe(5);
  expect(await bench.content("stops")).toBe("");
  await bench.owner.terminate("by an operator");
  expect(await job.handle.result()).toEqual({ status: "killed" });
  expect(await bench.content("stops")).toBe("Error: owner disposed\n");
});

test.concurrent("a kill while the host has no worker is carried out by `job.end` when one is back", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  const first = await bench.hostUp();
  const job = await bench.start(
    "bash",
    { command: "echo $$ > pid; exec sleep 600" },
    {
      heartbeatTimeoutMs: 1_000,
    },
  );
  const pid = await bench.pidIn("pid");
  await first.stop();
  await job.kill("nobody listens");
  expect(await isAlive(pid)).toBe(true);
  await bench.hostUp();
  expect(await job.settled()).toMatchObject({ status: "killed", detail: "signal: SIGTERM" });
  expect(await isAlive(pid)).toBe(false);
});

test.concurrent("`job.end` takes a job from its living follower", async ({ lab }) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const job = await bench.start("bash", { command: "echo $$ > pid; exec sleep 600" });
  const pid = await bench.pidIn("pid");
  const { sessionId, jobId, nonce } = job.key;
  const outcome = await bench.ask(
    "job.end",
    {
      v: 1,
      sessionId,
      jobId,
      nonce,
      token: job.token,
      kind: "bash",
      heartbeatMs: 200,
      outputBytes: 1_000_000,
    },
    hostControlQueue(bench.place.hostId),
  );
  expect(outcome).toMatchObject({ status: "killed", detail: "signal: SIGTERM" });
  expect(await isAlive(pid)).toBe(false);
  // Its follower finds the end on disk.
  expect(await job.settled()).toEqual(outcome);
});

test.concurrent("a job's streams are read from the cursor on, whole characters only, and say what was dropped", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  const session = `t-${randomUUID()}`;
  const read = async (
    jobId: string,
    streams: Record<string, number>,
    isEnd = false,
  ): Promise<ReadJobAnswer> =>
    (await bench.ask("job.read", {
      v: 1,
      sessionId: session,
      runId: "r",
      jobId,
      nonce: "n0nce",
      from: { streams, ended: isEnd },
    })) as ReadJobAnswer;
  const append = async (stream: string, offset: number, bytes: Buffer): Promise<void> =>
    void (await lab.store.append(session, stream, offset, bytes));

  expect(await read("bash-1", {})).toEqual({ reads: [], locators: [] });
  await append("job/bash-1/n0nce/1", 0, Buffer.from("a\0€").subarray(0, 4));
  await append("job/bash-1/n0nce/2", 0, Buffer.from("err"));
  const first = await read("bash-1", {});
  expect(first).toEqual({
    reads: [
      { stream: "stdout", text: "a\uFFFD", to: 2 },
      { stream: "stderr", text: "err", to: 3 },
    ],
    locators: [],
  });
  expect((await read("bash-1", { stdout: 2, stderr: 3 }, true)).reads).toEqual([
    { stream: "stdout", text: "\uFFFD", to: 4 },
    { stream: "stderr", text: "", to: 3 },
  ]);
  await append("job/bash-1/n0nce/1", 0, Buffer.from("a\0€b"));
  expect((await read("bash-1", { stdout: 2, stderr: 3 })).reads[0]).toEqual({
    stream: "stdout",
    text: "€b",
    to: 6,
  });

  // 64,000 bytes from the end lie inside a character.
  const long = Buffer.from(`${"é".repeat(50_000)}.`);
  await append("job/ticker-1/n0nce/output", 0, long);
  await append("job/ticker-1/n0nce/notes", 0, Buffer.from("n"));
  const tail = await read("ticker-1", { output: 10 });
  expect(tail.reads).toEqual([
    { stream: "output", text: `${"é".repeat(31_999)}.`, to: long.length, dropped: true },
    { stream: "notes", text: "n", to: 1 },
  ]);
  expect(tail.locators).toEqual([lab.store.locator(session, "job/ticker-1/n0nce/output")]);
  await expect(read("ticker-1", { output: -1 })).rejects.toMatchObject({
    cause: { cause: { type: "INVALID_INPUT" } },
  });
});

test.concurrent("a read waits for a store that is away, and fails at once where no wait would help", async ({
  lab,
}) => {
  let refusals = 0;
  const store: Store = {
    ...boundStore(lab.store),
    async list(session, prefix) {
      if (refusals < 2) {
        refusals += 1;
        throw new LonghaulError("STORE_UNAVAILABLE", "the disk is away; mount it");
      }
      return await lab.store.list(session, prefix);
    },
  };
  const bench = await openJobLab(lab, bundle.path, { store });
  const session = `t-${randomUUID()}`;
  await lab.store.append(session, "job/bash-1/n0nce/1", 0, Buffer.from("x"));
  const input = { v: 1, sessionId: session, runId: "r", jobId: "bash-1", nonce: "n0nce" };
  expect(
    await bench.ask("job.read", { ...input, from: { streams: {}, ended: true } }),
  ).toMatchObject({ reads: [{ stream: "stdout", text: "x", to: 1 }] });
  expect(refusals).toBe(2);
  const ref = { ref: "job/bash-1/n0nce/none", bytes: 1, digest: "0" };
  await expect(bench.ask("job.read", { ...input, from: { ref } })).rejects.toMatchObject({
    cause: { cause: { type: "STREAM_NOT_FOUND" } },
  });
});

test.concurrent("a final output in the store is read whole or by its end, and only if its digest is right", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const job = await bench.start("report", { text: "0123456789", times: 7_000 });
  const { ref } = await job.settled();
  const { sessionId, jobId } = job.key;
  const input = { v: 1, sessionId, runId: "r", jobId };
  expect(await bench.ask("job.read", { ...input, from: { ref } })).toEqual({
    reads: [{ stream: "output", text: "0123456789".repeat(6_400), to: 70_000, dropped: true }],
    locators: [lab.store.locator(sessionId, ref?.ref ?? "")],
  });
  const other = { ...ref, digest: "0".repeat(64) };
  await expect(bench.ask("job.read", { ...input, from: { ref: other } })).rejects.toMatchObject({
    cause: { cause: { type: "STORE_CONFLICT" } },
  });
});

test.concurrent("`job.look` says of each workflow how it stands", async ({ lab }) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const [done, live, cut] = [
    await bench.start("report", { text: "" }),
    await bench.start("report", { text: "", until: "go" }),
    await bench.start("report", { text: "", until: "go" }),
  ];
  await done.settled();
  await cut.handle.terminate();
  const ids = [done, live, cut].map(({ handle }) => handle.workflowId);
  const none = jobWorkflowId(done.key.sessionId, "report-9", "n0nce");
  const answer = (await bench.ask("job.look", {
    v: 1,
    workflowIds: [...ids, none],
  })) as LookJobsAnswer;
  expect(answer.statuses).toEqual(["completed", "running", "terminated", "missing"]);
  await bench.write("go");
  await live.settled();
  await cut.settled();
});

test.concurrent("jobs of the three test kinds run beside shell jobs: final output, streams, and one that is taken up", async ({
  lab,
}) => {
  const bench = await openJobLab(lab, bundle.path);
  await bench.hostUp();
  const final = await bench.start("report", { text: "the answer" });
  const stream = await bench.start("ticker", { lines: 2 });
  await bench.write("log", "x\n");
  const watched = await bench.start("watcher", { from: "log" });
  expect(await final.settled()).toEqual({
    status: "completed",
    detail: "as asked",
    output: "the answer",
  });
  expect(await stream.settled()).toEqual({
    status: "completed",
    detail: "2 lines",
    tails: [
      { stream: "output", from: 0, to: 4, text: "1\n2\n" },
      { stream: "notes", from: 0, to: 6, text: "noted\n" },
    ],
  });
  await eventually(async () =>
    expect((await watched.follower()).details).toEqual({ output: 2, lastLine: "x" }),
  );
  await appendFile(join(bench.cwd, "log"), "y\n");
  await bench.write("finish");
  expect(await watched.settled()).toMatchObject({ tails: [{ text: "x\ny\n" }] });
});

function boundStore(store: Store): Store {
  return {
    append: (...given) => store.append(...given),
    read: (...given) => store.read(...given),
    size: (...given) => store.size(...given),
    sync: (...given) => store.sync(...given),
    list: (...given) => store.list(...given),
    sessions: () => store.sessions(),
    remove: (...given) => store.remove(...given),
    locator: (...given) => store.locator(...given),
    check: () => store.check(),
  };
}

async function resetToBegin(client: Client, { handle }: LabJob): Promise<void> {
  const { events } = await handle.fetchHistory();
  const task = events?.find(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === "job.begin",
  )?.activityTaskScheduledEventAttributes?.workflowTaskCompletedEventId;
  await client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: handle.workflowId },
    reason: "by an operator",
    requestId: randomUUID(),
    workflowTaskFinishEventId: task ?? null,
  });
}

/** The numbers 1 to n, each once. */
async function expectCounted(lab: Lab, { key }: LabJob, outcome: JobOutcome): Promise<void> {
  expect(outcome).toMatchObject(ended);
  const { sessionId, jobId } = key;
  const bytes = await lab.store.read(sessionId, `job/${jobId}/n0nce/1`, 0, 1_000_000);
  const lines = Buffer.from(bytes).toString().trim().split("\n");
  expect(lines).toEqual(lines.map((_, index) => String(index + 1)));
  expect(outcome.tails?.[0]?.to).toBe(bytes.length);
}

/** Counts to `times` descriptions that show the job followed. */
async function followedFor(job: LabJob, times: number): Promise<number> {
  let seen = 0;
  await eventually(async () => {
    await job.follower();
    seen += 1;
    expect(seen).toBe(times);
  });
  return seen;
}
