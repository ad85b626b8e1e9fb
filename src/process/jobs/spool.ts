import { existsSync, readdirSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { escapeName } from "../claim.js";
import type { CallMarks } from "../environment.js";

/** Names one start of a job on this host. */
export interface JobKey {
  /** `$LONGHAUL_HOME` */
  readonly home: string;
  readonly sessionId: string;
  readonly jobId: string;
  readonly nonce: string;
}

/** Output streams in the order of their file descriptors, 1 and 2. */
export const jobStreams = ["stdout", "stderr"] as const;
export type JobStreamName = (typeof jobStreams)[number];

/** Files of a spool directory; those of the supervisor's script are named there too. */
export const spoolFiles = {
  job: "job.json",
  identity: "identity.json",
  sealed: "sealed",
  kill: "kill",
  stopping: "stopping",
  stuck: "stuck",
  end: "end.json",
  outcome: "outcome.json",
  poke: "poke",
  log: "supervisor.log",
} as const;

/** `<home>/host/jobs/<session>/<jobId>-<nonce>`: claim, identity and output of one job on this host (spec/jobs J6, J23). */
export function spoolDirectory(job: JobKey): string {
  const { jobId, nonce } = job;
  const name = `${jobId}-${nonce}`;
  const plain = /^[A-Za-z0-9][A-Za-z0-9._-]{0,150}$/.test(name);
  return join(spoolRoot(job.home), escapeName(job.sessionId), plain ? name : escapeName(name));
}

export function spoolRoot(home: string): string {
  return join(home, "host", "jobs");
}

/** What the job's processes carry in their environment, and are found by. */
export function jobMarks(job: JobKey): CallMarks {
  return {
    home: job.home,
    sessionId: job.sessionId,
    claim: `job/${job.jobId}/${job.nonce}`,
  };
}

export interface Spool {
  readonly directory: string;
  readonly job: JobKey;
}

/** Every spool of this host whose job is known. */
export async function listSpools(home: string): Promise<readonly Spool[]> {
  const found: Spool[] = [];
  for (const directory of await spoolDirectories(home)) {
    const job = await keyOf(home, directory);
    if (job !== undefined) found.push({ directory, job });
  }
  return found;
}

/** Claims of this host, also those that say nothing yet. */
export async function spoolDirectories(home: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const session of await entries(spoolRoot(home))) {
    for (const name of await entries(join(spoolRoot(home), session)))
      found.push(join(spoolRoot(home), session, name));
  }
  return found;
}

export function spoolHas(directory: string, file: keyof typeof spoolFiles): boolean {
  return existsSync(join(directory, spoolFiles[file]));
}

/** A file of the spool as JSON; undefined when it is not there or broken. */
export async function readSpoolFile(
  directory: string,
  file: "job" | "identity" | "end" | "outcome",
): Promise<unknown> {
  try {
    return JSON.parse(await readFile(join(directory, spoolFiles[file]), "utf8"));
  } catch {
    return undefined;
  }
}

/** Added to a segment's offset in its name; the copier's script has it too. */
const segmentBase = 1_000_000_000_000_000;

export function segmentPath(directory: string, fd: number, start: number): string {
  return join(directory, `${fd}.${start + segmentBase}`);
}

/** Offsets at which the segments of a stream begin, ascending. */
export function segmentStarts(directory: string, fd: number): readonly number[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  const prefix = `${fd}.1`;
  return names
    .filter((name) => name.startsWith(prefix) && /^\d\.\d{16}$/.test(name))
    .map((name) => Number(name.slice(2)) - segmentBase)
    .toSorted((a, b) => a - b);
}

async function keyOf(home: string, directory: string): Promise<JobKey | undefined> {
  const value = await readSpoolFile(directory, "job");
  if (typeof value !== "object" || value === null) return undefined;
  if (!("sessionId" in value && "jobId" in value && "nonce" in value)) return undefined;
  const { sessionId, jobId, nonce } = value;
  if (typeof sessionId !== "string" || typeof jobId !== "string" || typeof nonce !== "string")
    return undefined;
  return { home, sessionId, jobId, nonce };
}

async function entries(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch(() => []);
}
