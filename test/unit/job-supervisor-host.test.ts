import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";

import { LonghaulError } from "../../src/contracts/errors.js";
import type { Store } from "../../src/contracts/store.js";
import type { FollowResult, JobProgress } from "../../src/process/jobs/follow.js";
import { readJobStream } from "../../src/process/jobs/stored-parts.js";
import { startJob } from "../../src/process/jobs/start.js";
import { sweepJobs } from "../../src/process/jobs/sweep.js";
import {
  diskUse,
  isAlive,
  openJobBench,
  patience,
  processesOf,
  streamOf,
} from "../support/job-bench.js";

const mebibyte = 1024 * 1024;
const counter =
  "i=0; while [ ! -e go ]; do echo $i; i=$((i+1)); sleep 0.02; done; echo end $i; exit 9";

type Ended = Extract<FollowResult, { kind: "ended" }>;

function endedBy(result: FollowResult): Ended {
  if (result.kind !== "ended") throw new Error(`expected an end, got ${result.why}`);
  return result;
}

function withAppend(store: Store, append: Store["append"]): Store {
  return new Proxy(store, {
    get: (_, name: keyof Store) =>
      name === "append" ? append : (store[name] as () => unknown).bind(store),
  });
}

function countedTo(text: string): number {
  const lines = text.trimEnd().split("\n");
  const last = lines.pop();
  expect(lines).toEqual(lines.map((_, index) => String(index)));
  expect(last).toBe(`end ${lines.length}`);
  return lines.length;
}

describe("the output of a job", { timeout: 300_000 }, () => {
  const megabytes = Number(process.env["LONGHAUL_TEST_OUTPUT_MB"] ?? 50);

  it("is stored byte for byte when it is large and binary", async () => {
    const bench = await openJobBench();
    const bytes = megabytes * 1_000_000;
    const script = `const {createHash}=require("crypto");const h=createHash("sha256");let left=${bytes};let x=1;
      const next=()=>{for(;;){if(left===0){require("fs").writeFileSync("digest",h.digest("hex"));return}
      const b=Buffer.alloc(Math.min(left,65521));for(let i=0;i<b.length;i++){x=(x*1103515245+12345)&0x7fffffff;b[i]=x>>16}
      left-=b.length;h.update(b);if(!process.stdout.write(b)){process.stdout.once("drain",next);return}}};next()`;
    await writeFile(join(bench.cwd, "print.cjs"), script);
    const job = await bench.start(`exec '${process.execPath}' print.cjs`);
    const { outcome, streams } = endedBy(
      await bench.follow(job.key, { storeBytes: 2 * bytes }).done,
    );
    expect(outcome).toMatchObject({ detail: "exit code: 0" });
    const end = streamOf(streams, "stdout");
    expect(end).toMatchObject({
      total: bytes,
      stored: bytes,
      digest: await bench.content("digest"),
    });
    expect(end.parts).toHaveLength(1);
    expect(await diskUse(job.directory)).toBeLessThan(mebibyte);
  });

  it("stays within the cap while nobody follows, and its end is there afterwards", async () => {
    const bench = await openJobBench();
    const cap = 4 * mebibyte;
    const job = await bench.start(
      "yes 0123456789abcde & until [ -e go ]; do sleep 0.05; done; kill $!; wait; echo the end",
      { spoolBytes: cap },
    );
    let most = 0;
    const first = async (): Promise<number> =>
      Number(
        (await readdir(job.directory))
          .filter((name) => name.startsWith("1."))
          .toSorted()[0]
          ?.slice(2),
      ) - 1e15;
    await vi.waitFor(async () => {
      most = Math.max(most, await diskUse(job.directory));
      expect(await first()).toBeGreaterThan(100 * mebibyte);
    }, patience);
    await bench.write("go");
    const { streams, outcome } = endedBy(await bench.follow(job.key).done);
    const end = streamOf(streams, "stdout");
    expect(most).toBeGreaterThan(mebibyte);
    expect(most).toBeLessThanOrEqual(cap + 2 * mebibyte);
    expect(end.total).toBeGreaterThan(100 * mebibyte);
    expect(outcome.tails?.[0]).toMatchObject({ to: end.total });
    expect(outcome.tails?.[0]?.text).toMatch(/0123456789abcde\n[0-9a-e]*\n?the end\n$/);
    for (const { stream, base } of end.parts.filter(({ bytes }) => bytes >= 64)) {
      const head = String(Buffer.from(await bench.store.read("session-1", stream, 0, 32)));
      const at = base % 16;
      expect(head).toBe("0123456789abcde\n".repeat(3).slice(at, at + 32));
    }
    expect(end.parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(end.stored);
  });

  it("beyond the store's limit is counted, and its last 64,000 bytes are kept", async () => {
    const bench = await openJobBench();
    const job = await bench.start("seq -w 1 500000; echo last");
    const { streams } = endedBy(await bench.follow(job.key, { storeBytes: mebibyte }).done);
    const end = streamOf(streams, "stdout");
    expect(end.total).toBe(500_000 * 7 + 5);
    expect(end.parts).toEqual([
      { stream: "job/bash-1/n0nce/1", base: 0, bytes: mebibyte },
      {
        stream: `job/bash-1/n0nce/1@${end.total - 64_000}`,
        base: end.total - 64_000,
        bytes: 64_000,
      },
    ]);
    const read = await readJobStream(bench.store, "session-1", "bash-1/n0nce", 1, mebibyte + 5);
    expect(read).toMatchObject({ from: end.total - 64_000, to: end.total, dropped: true });
    expect(String(read.bytes).slice(-19)).toBe("499999\n500000\nlast\n");
    expect(
      await readJobStream(bench.store, "session-1", "bash-1/n0nce", 1, end.total - 5),
    ).toMatchObject({
      from: end.total - 5,
      to: end.total,
      bytes: Buffer.from("last\n"),
      dropped: false,
    });
  });

  it("loses and doubles nothing when its follower is killed with -9, and the process goes on", async () => {
    const bench = await openJobBench();
    const job = await bench.start(counter);
    for (let round = 0; round < 3; round += 1) {
      const before = (await bench.stored(job.key, 1)).length;
      const worker = bench.followElsewhere(job.key);
      await vi.waitFor(
        async () => expect((await bench.stored(job.key, 1)).length).toBeGreaterThan(before + 20),
        patience,
      );
      worker.kill("SIGKILL");
      await once(worker, "exit");
    }
    const seen: JobProgress[] = [];
    const following = bench.follow(job.key, { onBytes: (progress) => seen.push(progress) });
    await vi.waitFor(() => expect(seen.at(-1)?.lastLine).toMatch(/^\d+$/), patience);
    expect(await isAlive(job.identity.pid)).toBe(true);
    await bench.write("go");
    const { outcome } = endedBy(await following.done);
    expect(outcome).toMatchObject({ status: "completed", detail: "exit code: 9" });
    expect(countedTo(String(await bench.stored(job.key, 1)))).toBeGreaterThan(10);
  });

  it("is not stored twice by a follower that was frozen while another one went on", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "seq -w 1 300000; until [ -e more ]; do sleep 0.05; done; seq -w 300001 1600000; until [ -e go ]; do sleep 0.05; done; echo end",
      { spoolBytes: 32 * mebibyte },
    );
    const worker = bench.followElsewhere(job.key);
    const length = async (): Promise<number> => (await bench.stored(job.key, 1)).length;
    await vi.waitFor(async () => expect(await length()).toBe(300_000 * 7), patience);
    worker.kill("SIGSTOP");
    const following = bench.follow(job.key);
    await bench.write("more");
    await vi.waitFor(async () => {
      expect(await length()).toBe(300_000 * 7 + 1_300_000 * 8);
      expect((await readdir(job.directory)).toSorted()[0]).not.toBe("1.1000000000000000");
    }, patience);
    worker.kill("SIGCONT");
    await once(worker, "exit");
    await bench.write("go");
    const { streams } = endedBy(await following.done);
    const end = streamOf(streams, "stdout");
    expect(end.parts).toHaveLength(1);
    expect(end.stored).toBe(end.total);
    expect(
      String(await bench.stored(job.key, 1))
        .split("\n")
        .map(Number)
        .slice(0, 1_600_000),
    ).toEqual(Array.from({ length: 1_600_000 }, (_, index) => index + 1));
  });

  it("waits in the spool while the store is unavailable", async () => {
    const bench = await openJobBench();
    let broken = true;
    const append: typeof bench.store.append = async (...args) => {
      if (broken) throw new LonghaulError("STORE_UNAVAILABLE", "the disk is on fire");
      return await bench.store.append(...args);
    };
    const job = await bench.start(counter);
    const following = bench.follow(job.key, { store: withAppend(bench.store, append) });
    await vi.waitFor(
      async () => expect(await diskUse(job.directory)).toBeGreaterThan(600),
      patience,
    );
    broken = false;
    await bench.write("go");
    endedBy(await following.done);
    countedTo(String(await bench.stored(job.key, 1)));
  });
});

describe("the host of a job", { timeout: 120_000 }, () => {
  it("runs a command once, however often it is started", async () => {
    const bench = await openJobBench();
    const input = bench.input("echo ran >>runs");
    const kinds = (await Promise.all([startJob(input), startJob(input), startJob(input)])).map(
      ({ kind }) => kind,
    );
    expect(kinds.toSorted()).toEqual(["already", "already", "started"]);
    const { home, sessionId, jobId, nonce } = input;
    endedBy(await bench.follow({ home, sessionId, jobId, nonce }).done);
    expect(await startJob(input)).toEqual({ kind: "already" });
    expect(await bench.content("runs")).toBe("ran\n");
  });

  it("gives no place above its limit, and gives it when one is free", async () => {
    const bench = await openJobBench();
    const job = await bench.start("sleep 1000", { maxJobs: 1 });
    const next = bench.input("true", { maxJobs: 1 });
    expect(await startJob(next)).toEqual({ kind: "full", jobs: 1 });
    const following = bench.follow(job.key);
    following.kill();
    await following.done;
    expect(await startJob(next)).toMatchObject({ kind: "started" });
    await bench.follow(next).done;
  });

  it("says why a job could not be started, and bars it", async () => {
    const bench = await openJobBench();
    const input = { ...bench.input("touch ran"), cwd: join(bench.cwd, "nowhere") };
    expect(await startJob(input)).toMatchObject({
      kind: "failed",
      detail: expect.stringMatching(/^spawn failed: .*nowhere/),
    });
    expect(endedBy(await bench.follow(input).done).outcome).toEqual({
      status: "failed",
      detail: "spawn failed: start lost",
    });
  });

  it("bars a job that was never started from starting late", async () => {
    const bench = await openJobBench();
    const input = bench.input("touch ran");
    expect(endedBy(await bench.follow(input).done).outcome).toEqual({
      status: "failed",
      detail: "spawn failed: start lost",
    });
    expect(await startJob(input)).toEqual({ kind: "already" });
  });

  it("leaves the job to the follower of the highest rank", async () => {
    const bench = await openJobBench();
    const job = await bench.start(counter);
    const low = bench.follow(job.key, { rank: { scheduledAt: 5, attempt: 1 } });
    await vi.waitFor(
      async () => expect((await bench.stored(job.key, 1)).length).toBeGreaterThan(0),
      patience,
    );
    const high = bench.follow(job.key, { rank: { scheduledAt: 9, attempt: 1 } });
    expect(await low.done).toEqual({ kind: "detached", why: "displaced" });
    const late = bench.follow(job.key, { rank: { scheduledAt: 5, attempt: 7 } });
    expect(await late.done).toEqual({ kind: "detached", why: "displaced" });
    expect(await isAlive(job.identity.pid)).toBe(true);
    await bench.write("go");
    endedBy(await high.done);
    countedTo(String(await bench.stored(job.key, 1)));
  });

  it("leaves the process alone when its follower detaches", async () => {
    const bench = await openJobBench();
    const job = await bench.start(counter);
    const following = bench.follow(job.key);
    following.detach();
    expect(await following.done).toEqual({ kind: "detached", why: "asked" });
    expect(await isAlive(job.identity.pid)).toBe(true);
    await bench.write("go");
    expect(endedBy(await bench.follow(job.key).done).outcome).toMatchObject({
      detail: "exit code: 9",
    });
  });

  it("has no process left when no worker renewed its lease for the orphan grace", async () => {
    const bench = await openJobBench();
    const job = await bench.start(
      "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo on >stray; while :; do sleep 0.1; done' & while :; do echo tick; sleep 0.05; done",
      { orphanGraceMs: 1_500 },
    );
    await vi.waitFor(async () => expect(await bench.content("stray")).toBe("on\n"), patience);
    const renewed = bench.lease.renewedAt();
    await vi.waitFor(
      () => expect(bench.lease.renewedAt()).toBeGreaterThan(renewed + 3_000),
      patience,
    );
    expect(await isAlive(job.identity.pid)).toBe(true);
    bench.lease.stop();
    await vi.waitFor(async () => expect(await processesOf(bench.home)).toEqual([]), patience);
    expect(endedBy(await bench.follow(job.key).done).outcome).toMatchObject({
      status: "failed",
      detail: "worker lost: no worker on host-1 for 2s; work may be orphaned",
      lost: true,
      tails: [{ text: expect.stringContaining("tick\n") }, { text: "" }],
    });
  });

  it("signals nothing after a reboot, and collects what was printed before", async () => {
    const bench = await openJobBench();
    const job = await bench.start("echo before; exec sleep 1000");
    await vi.waitFor(async () => expect(await diskUse(job.directory)).toBeGreaterThan(0), patience);
    await vi.waitFor(
      async () =>
        expect(await readFile(join(job.directory, "1.1000000000000000"), "utf8")).toBe("before\n"),
      patience,
    );
    const path = join(job.directory, "identity.json");
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(job.identity.bootId, "another-boot"));
    const kill = vi.spyOn(process, "kill");
    const following = bench.follow(job.key);
    following.kill();
    const { outcome } = endedBy(await following.done);
    expect(kill).not.toHaveBeenCalled();
    kill.mockRestore();
    expect(outcome).toMatchObject({
      status: "failed",
      detail: "worker lost: host-1 was restarted, and the job ended with it",
      lost: true,
      tails: [{ text: "before\n" }, { text: "" }],
    });
    expect(await isAlive(job.identity.pid)).toBe(true);
    process.kill(-job.identity.pid, "SIGKILL");
  });

  it("ends a job whose supervisor was killed", async () => {
    const bench = await openJobBench();
    const job = await bench.start(counter);
    const following = bench.follow(job.key);
    await vi.waitFor(
      async () => expect((await bench.stored(job.key, 1)).length).toBeGreaterThan(0),
      patience,
    );
    process.kill(job.identity.supervisor.pid, "SIGKILL");
    expect(endedBy(await following.done).outcome).toMatchObject({
      status: "failed",
      detail: "supervisor lost: it was ended from outside, and the job with it",
    });
    expect(await isAlive(job.identity.pid)).toBe(false);
  });

  it("kills a job whose supervisor is frozen", async () => {
    const bench = await openJobBench();
    const job = await bench.start("sleep 1000");
    process.kill(job.identity.supervisor.pid, "SIGSTOP");
    const following = bench.follow(job.key);
    following.kill();
    expect(endedBy(await following.done).outcome).toMatchObject({
      status: "killed",
      detail: "killed before exit",
    });
    expect(await isAlive(job.identity.supervisor.pid)).toBe(false);
  });

  it("sweeps the jobs whose owner is closed, and leaves the others alone", async () => {
    const bench = await openJobBench();
    const [gone, open, unknown, followed] = [
      await bench.start("echo kept; exec sleep 1000"),
      await bench.start("sleep 1000"),
      await bench.start("sleep 1000"),
      await bench.start("sleep 1000"),
    ];
    const following = bench.follow(followed.key);
    await vi.waitFor(
      async () => expect((await readdir(followed.directory)).join()).toContain("follower."),
      patience,
    );
    const sweep = () =>
      sweepJobs({
        home: bench.home,
        host: "host-1",
        store: bench.store,
        keepMs: 0,
        isOwnerClosed: ({ jobId }) =>
          jobId === unknown.key.jobId
            ? Promise.reject(new Error("no server"))
            : Promise.resolve(jobId === open.key.jobId ? "open" : "closed"),
      });
    const swept = await sweep();
    expect(swept).toEqual({ ended: [gone.key], removed: 0 });
    expect(await isAlive(gone.identity.pid)).toBe(false);
    expect(String(await bench.stored(gone.key, 1))).toBe("kept\n");
    for (const { identity } of [open, unknown, followed])
      expect(await isAlive(identity.pid)).toBe(true);
    await vi.waitFor(async () => expect((await sweep()).removed).toBe(1), patience);
    following.kill();
    await following.done;
    for (const { key } of [open, unknown]) {
      const last = bench.follow(key);
      last.kill();
      await last.done;
    }
  });
});
