import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";

import type { Store } from "../../src/contracts/store.js";
import { processTable } from "../../src/process/process-table.js";
import { type FollowInput, type Following, followJob } from "../../src/process/jobs/follow.js";
import type { JobIdentity } from "../../src/process/jobs/job-identity.js";
import { keepLease, type LeaseRenewal } from "../../src/process/jobs/lease.js";
import { type JobKey, spoolDirectory } from "../../src/process/jobs/spool.js";
import { type JobLimits, type StartJobInput, startJob } from "../../src/process/jobs/start.js";
import type { JobStreamEnd } from "../../src/process/jobs/stored-parts.js";
import { jobStart, storedParts } from "../../src/store/job-output.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { compiledScript } from "./compiled-script.js";

/** A minute, so that a busy machine is no failure. */
export const patience = { timeout: 60_000, interval: 50 };

export interface RunningJob {
  readonly key: JobKey;
  readonly identity: JobIdentity;
  readonly directory: string;
}

export interface JobBench {
  readonly home: string;
  readonly cwd: string;
  readonly store: Store;
  /** Of this process; stop it to be a host without a worker. */
  readonly lease: LeaseRenewal;
  input(command: string, limits?: JobLimits): StartJobInput;
  start(command: string, limits?: JobLimits): Promise<RunningJob>;
  /** The attempts of one bench are in order unless `changes` says otherwise. */
  follow(job: JobKey, changes?: Partial<FollowInput>): Following;
  /** Everything the store has of a stream, by offset. */
  stored(job: JobKey, fd: 1 | 2): Promise<Buffer>;
  /** A file of the workspace; empty while it is not there. */
  content(name: string): Promise<string>;
  /** Makes an empty file in the workspace. */
  write(name: string): Promise<void>;
  /** A worker process that renews the lease and follows the job, to be killed. */
  followElsewhere(job: JobKey): ChildProcess;
}

/** A host with a data directory and a store; at the end no process of a job or supervisor may be left. */
export async function openJobBench(): Promise<JobBench> {
  const home = await realpath(await mkdtemp(join(tmpdir(), "longhaul-jobs-")));
  const cwd = join(home, "workspace");
  await mkdir(cwd);
  const store = await openDirectoryStore(join(home, "store"));
  const lease = await keepLease(home, () => {});
  let jobs = 0;
  let attempts = 0;
  const children: ChildProcess[] = [];
  onTestFinished(async () => {
    for (const child of children) child.kill("SIGKILL");
    lease.stop();
    let left: readonly number[] = [];
    await vi
      .waitFor(
        async () => {
          left = await processesOf(home);
          expect(left).toEqual([]);
        },
        { timeout: 6_000, interval: 100 },
      )
      .catch(() => {});
    for (const pid of left) process.kill(pid, "SIGKILL");
    await rm(home, { recursive: true, force: true });
    expect(left, "the test left processes running").toEqual([]);
  });
  const input = (command: string, limits: JobLimits = {}): StartJobInput => {
    jobs += 1;
    return {
      home,
      sessionId: "session-1",
      jobId: `bash-${jobs}`,
      nonce: "n0nce",
      kind: "bash",
      token: "owner-1",
      command,
      cwd,
      limits,
    };
  };
  return {
    home,
    cwd,
    store,
    lease,
    input,
    async start(command, limits) {
      const given = input(command, limits);
      const started = await startJob(given);
      if (started.kind !== "started") throw new Error(JSON.stringify(started));
      const { sessionId, jobId, nonce } = given;
      const key = { home, sessionId, jobId, nonce };
      return { key, identity: started.identity, directory: spoolDirectory(given) };
    },
    follow(job, changes = {}) {
      attempts += 1;
      const rank = { scheduledAt: 1_000, attempt: attempts };
      return followJob({ ...job, store, host: "host-1", rank, ...changes });
    },
    async stored(job, fd) {
      const { sessionId } = job;
      const pieces: Uint8Array[] = [];
      for (const { stream, bytes } of await storedParts(store, sessionId, jobStart(job), fd))
        pieces.push(await store.read(sessionId, stream, 0, bytes));
      return Buffer.concat(pieces);
    },
    content: async (name) => await readFile(join(cwd, name), "utf8").catch(() => ""),
    write: async (name) => await writeFile(join(cwd, name), ""),
    followElsewhere(job) {
      attempts += 1;
      const script = compiledScript(new URL("job-follower-script.ts", import.meta.url));
      const args = [home, job.sessionId, job.jobId, job.nonce, String(attempts)];
      const child = spawn(process.execPath, [script, ...args], {
        stdio: ["ignore", "ignore", "inherit"],
      });
      children.push(child);
      return child;
    },
  };
}

/** Processes that carry the marks of this data directory, and supervisors and copiers of its jobs. */
export async function processesOf(home: string): Promise<readonly number[]> {
  const found = new Set(await processTable.carrying({ LONGHAUL_HOME: home }));
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const cwd = await realpath(`/proc/${name}/cwd`);
      if (cwd.startsWith(join(home, "host"))) found.add(Number(name));
      else if (readFileSync(`/proc/${name}/cmdline`, "utf8").includes(`longhaul-job\0`)) {
        if (readFileSync(`/proc/${name}/cmdline`, "utf8").includes(home)) found.add(Number(name));
      }
    } catch {
      // It is gone, or nobody's.
    }
  }
  const living: number[] = [];
  for (const pid of found) if ((await processTable.startTime(pid)) !== undefined) living.push(pid);
  return living;
}

export async function isAlive(pid: number): Promise<boolean> {
  return (await processTable.startTime(pid)) !== undefined;
}

export async function pidIn(bench: JobBench, name: string): Promise<number> {
  await vi.waitFor(async () => expect(await bench.content(name)).toMatch(/^\d+\n$/), patience);
  return Number((await bench.content(name)).trim());
}

export function streamOf(ends: readonly JobStreamEnd[], name: string): JobStreamEnd {
  const found = ends.find(({ stream }) => stream === name);
  if (found === undefined) throw new Error(`no stream ${name}`);
  return found;
}

/** Bytes of all files in a directory. */
export async function diskUse(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory).catch(() => []))
    bytes += (await stat(join(directory, name)).catch(() => undefined))?.size ?? 0;
  return bytes;
}
