import { readdir, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";

import type { Store } from "../../contracts/store.js";
import { followJob } from "./follow.js";
import { isFollowed } from "./follower-lock.js";
import { isStartOverdue, sealSpool } from "./seal.js";
import { type JobKey, listSpools, type Spool, spoolFiles, spoolHas, spoolRoot } from "./spool.js";

export interface SweepInput {
  readonly home: string;
  readonly host: string;
  readonly store: Store;
  /**
   * Is the job's workflow closed for certain? `open` and `unknown` (nobody could say, also by rejecting) leave the process alone.
   */
  readonly isOwnerClosed: (job: JobKey) => Promise<"closed" | "open" | "unknown">;
  /** Age above which a finished spool is removed, ms; default a week, as for other claims: a start of that name is barred as long. */
  readonly keepMs?: number;
  readonly onTrouble?: (job: JobKey, error: unknown) => void;
}

export interface SweepResult {
  /** Jobs whose owner was gone: ended, and their output stored. */
  readonly ended: readonly JobKey[];
  /** Spools that were removed. */
  readonly removed: number;
}

const week = 7 * 24 * 3_600_000;

/**
 * Looks after the spools that no follower is attached to (spec/jobs J23): at worker start and every 60 s. One call at a time
 * is enough for a host, more do no harm.
 */
export async function sweepJobs(input: SweepInput): Promise<SweepResult> {
  const ended: JobKey[] = [];
  let removed = 0;
  for (const spool of await listSpools(input.home)) {
    try {
      const done = await sweepSpool(spool, input);
      if (done === "ended") ended.push(spool.job);
      if (done === "removed") removed += 1;
    } catch (error) {
      input.onTrouble?.(spool.job, error);
    }
  }
  await removeEmpty(input.home);
  return { ended, removed };
}

async function sweepSpool(
  spool: Spool,
  input: SweepInput,
): Promise<"ended" | "removed" | undefined> {
  const { directory, job } = spool;
  const finished = spoolHas(directory, "outcome") || spoolHas(directory, "sealed");
  if (finished) {
    if ((await finishedFor(directory)) <= (input.keepMs ?? week)) return undefined;
    await rm(directory, { recursive: true, force: true });
    return "removed";
  }
  if (await isStartOverdue(spool)) {
    await sealSpool(spool);
    return undefined;
  }
  if (await isFollowed(directory)) return undefined;
  const owner = await input.isOwnerClosed(job).catch(() => "unknown" as const);
  if (owner !== "closed") return undefined;
  const { host, store } = input;
  // A follower that comes in the meantime takes over.
  const following = followJob({ ...job, host, store, rank: { scheduledAt: 0, attempt: 0 } });
  following.kill();
  const result = await following.done;
  return result.kind === "ended" ? "ended" : undefined;
}

async function finishedFor(directory: string): Promise<number> {
  for (const name of [spoolFiles.outcome, spoolFiles.sealed]) {
    const facts = await stat(join(directory, name)).catch(() => undefined);
    if (facts !== undefined) return Date.now() - facts.mtimeMs;
  }
  return 0;
}

async function removeEmpty(home: string): Promise<void> {
  for (const session of await readdir(spoolRoot(home)).catch(() => [])) {
    await rmdir(join(spoolRoot(home), session)).catch(() => undefined);
  }
}
