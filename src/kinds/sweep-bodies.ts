import { rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { isFollowed } from "../process/jobs/follower-lock.js";
import { identityPatienceMs } from "../process/jobs/seal.js";
import type { JobKey } from "../process/jobs/spool.js";
import { type BodyHost, followBody } from "./body-jobs.js";
import { bodyFinishedAt, type BodySpool, listBodies, sealBody } from "./body-spool.js";
import type { EndedJob, SweepQuestions } from "./following.js";

const week = 7 * 24 * 3_600_000;
/** A body that does not give up is left to the next sweep, ms. */
const patienceMs = 10_000;

/** Looks after the jobs whose bodies run in worker processes and that nobody follows (spec/jobs J23). */
export async function sweepBodies(
  host: BodyHost,
  questions: SweepQuestions,
  keepMs: number = week,
): Promise<readonly EndedJob[]> {
  const ended: EndedJob[] = [];
  for (const body of await listBodies(host.home)) {
    try {
      const end = await sweepBody(body, host, questions, keepMs);
      if (end !== undefined) ended.push(end);
    } catch (error) {
      if (body.job !== undefined) questions.onTrouble({ ...body.job, home: host.home }, error);
    }
  }
  return ended;
}

async function sweepBody(
  { directory, job }: BodySpool,
  host: BodyHost,
  { isOwnerClosed }: SweepQuestions,
  keepMs: number,
): Promise<EndedJob | undefined> {
  const finishedAt = await bodyFinishedAt(directory);
  if (finishedAt !== undefined) {
    if (Date.now() - finishedAt <= keepMs) return undefined;
    await rm(directory, { recursive: true, force: true });
    await rmdir(join(directory, "..")).catch(() => undefined);
    return undefined;
  }
  if (job === undefined) {
    const facts = await stat(directory).catch(() => undefined);
    if (facts !== undefined && Date.now() - facts.mtimeMs > identityPatienceMs)
      await sealBody(directory);
    return undefined;
  }
  if (await isFollowed(directory)) return undefined;
  const { kind, sessionId, jobId, nonce, token } = job;
  const key: JobKey = { home: host.home, sessionId, jobId, nonce };
  if ((await isOwnerClosed(key).catch(() => "unknown")) !== "closed") return undefined;
  const rank = { scheduledAt: 0, attempt: 0 };
  const followed = followBody({ sessionId, jobId, nonce, kind, rank, outputBytes: 0 }, host);
  followed.kill("job host ended");
  const end = await Promise.race([
    followed.done,
    sleep(patienceMs, undefined, { ref: false }).then(() => followed.detach()),
  ]);
  return end?.kind === "ended" ? { job: key, token, outcome: end.outcome } : undefined;
}
