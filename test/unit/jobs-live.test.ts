import { mkdir, mkdtemp, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { countLiveJobs } from "../../src/process/jobs/live-jobs.js";
import { type JobKey, spoolDirectory, spoolFiles } from "../../src/process/jobs/spool.js";
import { processTable } from "../../src/process/process-table.js";

/** A data directory, and spools in it that say what the test writes. */
async function openHome() {
  const home = await mkdtemp(join(tmpdir(), "longhaul-live-"));
  onTestFinished(() => rm(home, { recursive: true }));
  const startTime = await processTable.startTime(process.pid);
  const identity = {
    pid: process.pid,
    startTime,
    bootId: await processTable.bootId(),
    pidNamespace: await readlink("/proc/self/ns/pid"),
    supervisor: { pid: process.pid, startTime },
    token: "t",
  };
  const write = async (jobId: string, file?: keyof typeof spoolFiles, content: object = {}) => {
    const job: JobKey = { home, sessionId: "s1", jobId, nonce: "n" };
    await mkdir(spoolDirectory(job), { recursive: true });
    if (file !== undefined)
      await writeFile(join(spoolDirectory(job), spoolFiles[file]), JSON.stringify(content));
    return spoolDirectory(job);
  };
  return { home, identity, write };
}

test("jobs hold a place from their start until they are over; claims that say nothing hold none", async () => {
  const { home, identity, write } = await openHome();
  expect(await countLiveJobs(home)).toBe(0);
  await write("bash-1");
  expect(await countLiveJobs(home)).toBe(0);
  await write("bash-1", "job");
  expect(await countLiveJobs(home)).toBe(1);
  await write("bash-1", "identity", identity);
  await write("bash-2", "job");
  expect(await countLiveJobs(home)).toBe(2);
  await write("bash-1", "end");
  await write("bash-2", "sealed");
  expect(await countLiveJobs(home)).toBe(0);
});

test("a job of another boot, or whose supervisor is gone, holds no place", async () => {
  const { home, identity, write } = await openHome();
  await write("bash-1", "identity", { ...identity, bootId: "another" });
  await write("bash-2", "identity", { ...identity, pidNamespace: "pid:[1]" });
  const gone = { pid: process.pid, startTime: `${identity.startTime}1` };
  await write("bash-3", "identity", { ...identity, supervisor: gone });
  await write("bash-4", "identity", identity);
  expect(await countLiveJobs(home)).toBe(1);
});

test("a spool is read until it says who runs its job, not each time", async () => {
  const { home, identity, write } = await openHome();
  const first = await write("bash-1", "identity", identity);
  await write("bash-2", "end");
  expect(await countLiveJobs(home)).toBe(1);
  const gone = { pid: process.pid, startTime: `${identity.startTime}1` };
  await write("bash-1", "identity", { ...identity, supervisor: gone });
  await rm(join(await write("bash-2", "identity", identity), spoolFiles.end));
  expect(await countLiveJobs(home)).toBe(1);
  await rm(first, { recursive: true });
  expect(await countLiveJobs(home)).toBe(0);
});
