import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect } from "vitest";
import type { JobOutputPiece } from "../../src/client/job-output.js";
import { commands } from "../../src/cli/commands/index.js";
import { openBackend } from "../../src/cli/open-backend.js";
import { runCli } from "../../src/cli/run.js";
import type { JobsFrame } from "../../src/contracts/jobs.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { fakeIo } from "../support/fake-cli.js";
import { test, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const read = { tool: "job_output", args: { job_id: "bash-1" } };

describe.concurrent("a job that a client starts", () => {
  test("runs, is waited for without the session being the less told, and is one for one id", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [{ steps: [{ calls: [read] }, { text: "read it" }] }],
    });
    const input = { command: "echo out; echo err >&2; exit 3" };
    const started = await session.startJob({ kind: "bash", input, id: "op" });
    expect(started).toEqual({ ok: true, id: "bash-1" });
    await expect(session.startJob({ kind: "bash", input, id: "op" })).resolves.toEqual(started);
    await expect(session.waitJob("bash-1")).resolves.toMatchObject({
      id: "bash-1",
      label: input.command,
      status: "completed",
      detail: "exit code: 3",
    });
    const pieces = await all(session.jobOutput("bash-1"));
    expect([textOf(pieces, "stdout"), textOf(pieces, "stderr")]).toEqual(["out\n", "err\n"]);
    const { jobs, kinds } = await session.jobs();
    expect({ ids: jobs.map(({ id }) => id), kinds }).toEqual({ ids: ["bash-1"], kinds: ["bash"] });

    // Its end opens a turn, in which the model is given all of its output.
    await eventually(async () => {
      expect((await session.view()).turn).toMatchObject({ number: 1, open: false });
    });
    const log = await lab.entries(session);
    expect(resultsOf(log)).toEqual(["out\n[stderr]\nerr\n[status: completed, exit code: 3]"]);
    expect((await session.jobs()).jobs).toMatchObject([{ reported: true }]);
  });

  test("is followed while it prints, and watched through its life", async ({ lab }) => {
    const workspace = await lab.workspace();
    const session = await lab.session({ turns: [] }, { config: { cwd: workspace, jobs: quiet } });
    const stop = new AbortController();
    const frames: JobsFrame[] = [];
    const watching = (async () => {
      for await (const event of session.watch({ signal: stop.signal, intervalMs: 20 }))
        if (event.type === "session/jobs") frames.push(event);
    })();
    const command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two";
    const { id } = await session.startJob({ kind: "bash", input: { command }, label: "counting" });
    const pieces: JobOutputPiece[] = [];
    const following = (async () => {
      for await (const piece of session.jobOutput(id, { follow: true })) pieces.push(piece);
    })();
    await eventually(() => expect(textOf(pieces, "stdout")).toBe("one\n"));
    await eventually(() => expect(frames.at(-1)?.jobs).toMatchObject([{ status: "running" }]));
    await expect(session.waitJob(id, { timeoutMs: 10 })).resolves.toMatchObject({
      status: "running",
    });
    await writeFile(join(workspace, "go"), "");
    await following;
    expect(textOf(pieces, "stdout")).toBe("one\ntwo\n");
    const later = await all(session.jobOutput(id, { from: { stdout: 4 } }));
    expect(later).toMatchObject([{ offset: 4, text: "two\n" }]);
    await eventually(() => expect(frames.at(-1)?.jobs).toMatchObject([{ status: "completed" }]));
    expect(frames[0]).toMatchObject({ sessionId: session.id, jobs: [{ label: "counting" }] });
    expect(Object.keys(frames[0]?.jobs[0] ?? {}).toSorted()).toEqual([
      "id",
      "kind",
      "label",
      "startedAt",
      "status",
    ]);
    // Nobody's reading or waiting has moved the model's own.
    expect(typesOf(await lab.entries(session)).filter((type) => type === "job/cursor")).toEqual([]);
    expect((await session.jobs()).jobs).toMatchObject([{ reported: false }]);
    stop.abort();
    await watching;
  });

  test("is killed with a reason, and what is known of it outlives its session", async ({ lab }) => {
    const session = await lab.session({ turns: [] }, { config: { jobs: quiet } });
    const input = { command: "echo here; sleep 300" };
    const { id } = await session.startJob({ kind: "bash", input });
    await eventually(async () => {
      expect(textOf(await all(session.jobOutput(id)), "stdout")).toBe("here\n");
    });
    await expect(session.killJob(id, { reason: "enough" })).resolves.toMatchObject({
      result: "requested",
    });
    const killed = await session.waitJob(id);
    expect(killed).toMatchObject({ status: "killed", detail: "signal: SIGTERM" });
    await expect(session.killJob(id)).resolves.toMatchObject({ result: "already-finished" });
    const stopping = (await lab.entries(session)).find(({ type }) => type === "job/stopping");
    expect(stopping?.data).toMatchObject({ id, reason: "enough" });
    await session.close();
    expect((await session.jobs()).jobs).toMatchObject([{ id, status: "killed" }]);
    await expect(session.waitJob(id)).resolves.toMatchObject({ status: "killed" });
    const kept = await all(session.jobOutput(id, { follow: true }));
    expect(textOf(kept, "stdout")).toBe("here\n");
  });

  test("is refused for a kind, an id or a session that is not there", async ({ lab }) => {
    const session = await lab.session({ turns: [] });
    await expect(session.startJob({ kind: "bahs", input: {} })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("this session knows bash"),
    });
    await expect(session.killJob("bash-9")).rejects.toMatchObject({ code: "JOB_NOT_FOUND" });
    await expect(session.waitJob("bash-9")).rejects.toMatchObject({ code: "JOB_NOT_FOUND" });
    const nowhere = lab.client.session("not-there");
    await expect(nowhere.jobs()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(nowhere.startJob({ kind: "bash", input: {} })).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });
});

test("the command line starts, lists, follows, kills and waits for jobs", async ({ lab }) => {
  const session = await lab.session({ turns: [] }, { config: { jobs: quiet } });
  const line = (...words: readonly string[]) => cli(lab, words);
  const good = await line("jobs", "start", session.id, "--", "printf", "%s|", "a b", "c");
  expect(good).toEqual({ exitCode: 0, stdout: "bash-1\n", stderr: "" });
  expect(await line("jobs", "wait", session.id, "bash-1")).toMatchObject({
    exitCode: 0,
    stdout: "job bash-1 has ended: completed, exit code: 0\n",
  });
  expect(await line("jobs", "logs", session.id, "bash-1")).toMatchObject({
    exitCode: 0,
    stdout: "a b|c|",
    stderr: "",
  });
  await line("jobs", "start", session.id, "--label", "sleeper", "--", "echo up >&2; sleep 300");
  expect(await line("jobs", "wait", session.id, "bash-2", "--timeout", "10ms")).toMatchObject({
    exitCode: 124,
  });
  expect((await line("show", session.id)).stdout).toContain("bash-2  running  sleeper");
  await eventually(async () => {
    expect((await line("jobs", "logs", session.id, "bash-2")).stderr).toBe("up\n");
  });
  const following = line("jobs", "logs", session.id, "bash-2", "-f");
  expect(await line("jobs", "kill", session.id, "bash-2", "--reason", "r")).toMatchObject({
    stdout: "job bash-2 is asked to stop\n",
  });
  expect(await line("jobs", "wait", session.id, "bash-2")).toMatchObject({ exitCode: 1 });
  expect(await following).toEqual({ exitCode: 0, stdout: "", stderr: "up\n" });
  const listed = await line("jobs", session.id);
  expect(listed.stdout).toMatch(
    /^JOB .*\nbash-1 +bash +completed, exit code: 0 .*\nbash-2 +bash +killed, signal: SIGTERM .* sleeper\n$/,
  );
  expect(await line("jobs", "logs", session.id, "bash-3")).toMatchObject({
    exitCode: 1,
    stderr: "error: JOB_NOT_FOUND: unknown job bash-3\n",
  });
});

/** A job that ends is told at the next turn, so that no turn opens by itself. */
const quiet = { completionDelivery: "quiet" } as const;

async function cli(lab: Lab, words: readonly string[]) {
  // The store lies in the data directory of the command line.
  const home = dirname(dirname(dirname(lab.store.locator("session", "stream"))));
  const io = fakeIo({ env: { LONGHAUL_HOME: home, TEMPORAL_ADDRESS: lab.address } });
  const exitCode = await runCli(words, io, { commands, version: "0", openBackend });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

async function all(pieces: AsyncIterable<JobOutputPiece>): Promise<readonly JobOutputPiece[]> {
  const taken: JobOutputPiece[] = [];
  for await (const piece of pieces) taken.push(piece);
  return taken;
}

function textOf(pieces: readonly JobOutputPiece[], stream: string): string {
  return pieces.flatMap((piece) => (piece.stream === stream ? [piece.text] : [])).join("");
}

function typesOf(log: readonly LogEntry[]): readonly string[] {
  return log.map(({ type }) => type);
}

function resultsOf(log: readonly LogEntry[]): readonly string[] {
  return log.flatMap((entry) => {
    if (entry.type !== "tool/result") return [];
    const [block] = entry.data.message.content;
    return block?.type === "tool-result" ? [block.content[0]?.text ?? ""] : [];
  });
}
