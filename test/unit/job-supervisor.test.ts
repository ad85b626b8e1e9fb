import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";

import type { FollowResult } from "../../src/process/jobs/follow.js";
import {
  isAlive,
  type JobBench,
  openJobBench,
  patience,
  pidIn,
  type RunningJob,
  streamOf,
} from "../support/job-bench.js";

type Ended = Extract<FollowResult, { kind: "ended" }>;

async function endOf(bench: JobBench, job: RunningJob): Promise<Ended> {
  return endedBy(await bench.follow(job.key).done);
}

function endedBy(result: FollowResult): Ended {
  if (result.kind !== "ended") throw new Error(`expected an end, got ${result.why}`);
  return result;
}

describe("a background shell job", { timeout: 120_000 }, () => {
  it("reports its exit code, both streams, their digests and tails", async () => {
    const bench = await openJobBench();
    const job = await bench.start("echo out; echo err >&2; pwd; exit 7");
    const { outcome, streams } = await endOf(bench, job);
    const out = `out\n${bench.cwd}\n`;
    expect(outcome).toEqual({
      status: "completed",
      detail: "exit code: 7",
      tails: [
        { stream: "stdout", from: 0, to: out.length, text: out },
        { stream: "stderr", from: 0, to: 4, text: "err\n" },
      ],
    });
    expect(streamOf(streams, "stdout")).toEqual({
      stream: "stdout",
      total: out.length,
      stored: out.length,
      digest: createHash("sha256").update(out).digest("hex"),
      parts: [{ stream: "job/bash-1/n0nce/1", base: 0, bytes: out.length }],
    });
    expect(await bench.follow(job.key).done).toEqual({ kind: "ended", outcome, streams });
  });

  it("is completed by `exit 143`, and killed by TERM from inside", async () => {
    const bench = await openJobBench();
    const [left, shot] = [await bench.start("exit 143"), await bench.start("kill -TERM $$")];
    expect((await endOf(bench, left)).outcome).toMatchObject({
      status: "completed",
      detail: "exit code: 143",
    });
    expect((await endOf(bench, shot)).outcome).toMatchObject({
      status: "killed",
      detail: "signal: SIGTERM",
    });
  });

  it("that is killed while it runs ends by TERM at once", async () => {
    const bench = await openJobBench();
    const job = await bench.start("sleep 60");
    const following = bench.follow(job.key);
    following.kill();
    expect(endedBy(await following.done).outcome).toMatchObject({
      status: "killed",
      detail: "signal: SIGTERM",
    });
  });

  it("that prints nothing completes with two empty streams", async () => {
    const bench = await openJobBench();
    const { outcome, streams } = await endOf(bench, await bench.start("true"));
    expect(outcome).toEqual({
      status: "completed",
      detail: "exit code: 0",
      tails: [
        { stream: "stdout", from: 0, to: 0, text: "" },
        { stream: "stderr", from: 0, to: 0, text: "" },
      ],
    });
    expect(streams.map(({ total }) => total)).toEqual([0, 0]);
    expect(await bench.store.size("session-1", "job/bash-1/n0nce/1")).toBe(0);
  });

  it("that daemonizes runs until its daemon is gone, and a kill ends the daemon", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "setsid sh -c 'echo $$ >daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 & echo started",
    );
    const following = bench.follow(job.key);
    const daemon = await pidIn(bench, "daemon");
    await vi.waitFor(async () => expect(await isAlive(job.identity.pid)).toBe(false), patience);
    expect(await isAlive(daemon)).toBe(true);
    following.kill();
    const { outcome } = endedBy(await following.done);
    expect(outcome).toMatchObject({ status: "killed", detail: "killed before exit" });
    expect(await isAlive(daemon)).toBe(false);
    expect(String(await bench.stored(job.key, 1))).toBe("started\n");
  });

  it("that closes its output and lives on is running until it exits", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "echo before; exec >&- 2>&-; until [ -e go ]; do sleep 0.05; done; exit 5",
    );
    const following = bench.follow(job.key);
    await vi.waitFor(
      async () => expect(String(await bench.stored(job.key, 1))).toBe("before\n"),
      patience,
    );
    expect(await isAlive(job.identity.pid)).toBe(true);
    await bench.write("go");
    expect(endedBy(await following.done).outcome).toMatchObject({ detail: "exit code: 5" });
  });

  it("whose grandchild holds the pipe has all its output, and the exit code of its shell", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "(until [ -e go ]; do sleep 0.05; done; echo late) & echo early; exit 3",
    );
    const following = bench.follow(job.key);
    await vi.waitFor(async () => expect(await isAlive(job.identity.pid)).toBe(false), patience);
    await bench.write("go");
    const { outcome, streams } = endedBy(await following.done);
    expect(outcome).toMatchObject({ status: "completed", detail: "exit code: 3" });
    expect(String(await bench.stored(job.key, 1))).toBe("early\nlate\n");
    expect(streamOf(streams, "stdout").total).toBe(11);
  });

  it("that ignores TERM is killed after the grace, and its children too", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo $! >child; while :; do sleep 0.1; done",
    );
    const following = bench.follow(job.key);
    const child = await pidIn(bench, "child");
    following.kill();
    const { outcome } = endedBy(await following.done);
    expect(outcome).toMatchObject({ status: "killed", detail: "signal: SIGKILL" });
    expect(await isAlive(child)).toBe(false);
  });

  it("that traps TERM and exits 0 is killed before exit, with what it printed last", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    );
    const following = bench.follow(job.key);
    await vi.waitFor(
      async () => expect(String(await bench.stored(job.key, 1))).toBe("ready\n"),
      patience,
    );
    following.kill();
    const { outcome } = endedBy(await following.done);
    expect(outcome).toMatchObject({ status: "killed", detail: "killed before exit" });
    expect(String(await bench.stored(job.key, 1))).toBe("ready\nbye\n");
  });

  it("that ends in & runs until the last of its group is gone", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "(until [ -e go ]; do sleep 0.05; done; echo done >ran) >/dev/null 2>&1 &",
    );
    const following = bench.follow(job.key);
    await vi.waitFor(async () => expect(await isAlive(job.identity.pid)).toBe(false), patience);
    expect(await bench.content("ran")).toBe("");
    await bench.write("go");
    expect(endedBy(await following.done).outcome).toMatchObject({ detail: "exit code: 0" });
    expect(await bench.content("ran")).toBe("done\n");
  });

  it("does not wait for a stranger without marks that holds its pipe", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "env -i setsid sh -c 'echo $$ >stranger; exec sleep 1000' & exit 4",
    );
    const stranger = await pidIn(bench, "stranger");
    expect((await endOf(bench, job)).outcome).toMatchObject({ detail: "exit code: 4" });
    expect(await isAlive(stranger)).toBe(true);
    process.kill(stranger, "SIGKILL");
  });

  it("passes half a character on at once, and cuts none in its tail", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "printf 'a\\342\\202'; until [ -e go ]; do sleep 0.05; done; printf '\\254'; for i in $(seq 3000); do printf '\\342\\202\\254'; done",
    );
    const following = bench.follow(job.key);
    await vi.waitFor(
      async () => expect([...(await bench.stored(job.key, 1))]).toEqual([0x61, 0xe2, 0x82]),
      patience,
    );
    await bench.write("go");
    const { outcome, streams } = endedBy(await following.done);
    expect(String(await bench.stored(job.key, 1))).toBe(`a${"€".repeat(3001)}`);
    const tail = outcome.tails?.[0];
    expect(tail?.text).toMatch(/^€+$/);
    expect(tail?.to).toBe(streamOf(streams, "stdout").total);
    expect(Buffer.byteLength(tail?.text ?? "")).toBe((tail?.to ?? 0) - (tail?.from ?? 0));
    expect(Buffer.byteLength(tail?.text ?? "")).toBeGreaterThan(4_000);
    expect(Buffer.byteLength(tail?.text ?? "")).toBeLessThanOrEqual(4_096);
  });
});
