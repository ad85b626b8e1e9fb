import { open, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { createClaim, writeWhole } from "../claim.js";
import { endProcesses } from "../end-group.js";
import { groupIsOurs, readIdentity } from "./job-identity.js";
import { jobMarks, type Spool, spoolFiles, spoolHas } from "./spool.js";

/** A claim that has no identity after this time is sealed, ms (spec/jobs J23). */
export const identityPatienceMs = 5_000;

/**
 * Bars a start from ever running its command, and ends what it runs after all; makes the claim when there is none, so that a
 * late start finds it taken.
 */
export async function sealSpool(spool: Spool): Promise<void> {
  await createClaim(spool.directory);
  if (!spoolHas(spool.directory, "job")) {
    const { sessionId, jobId, nonce } = spool.job;
    await writeWhole(
      join(spool.directory, spoolFiles.job),
      JSON.stringify({ sessionId, jobId, nonce }),
      false,
    );
  }
  await writeFile(join(spool.directory, spoolFiles.sealed), "");
  const directory = await open(spool.directory, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
  await endJobProcesses(spool, 0);
}

/** TERM, the grace, KILL without the supervisor; nothing is signalled that is not certainly the job's. */
export async function endJobProcesses(spool: Spool, graceMs?: number): Promise<boolean> {
  const identity = await readIdentity(spool.directory);
  const marks = jobMarks(spool.job);
  if (identity === undefined) return true;
  const ours = await groupIsOurs(spool, identity);
  return await endProcesses(ours ? { group: identity.pid, marks } : { marks }, graceMs);
}

/** Has the start had its time? The age of the claim is that of its directory's first file. */
export async function isStartOverdue(spool: Spool, now: number = Date.now()): Promise<boolean> {
  if (spoolHas(spool.directory, "identity")) return false;
  const facts =
    (await stat(join(spool.directory, spoolFiles.job)).catch(() => undefined)) ??
    (await stat(spool.directory).catch(() => undefined));
  return facts === undefined || now - facts.mtimeMs >= identityPatienceMs;
}
