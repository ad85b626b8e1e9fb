import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import type { JobKindRow } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { followJob, readRecorded } from "../process/jobs/follow.js";
import { readIdentity } from "../process/jobs/job-identity.js";
import { spoolDirectory } from "../process/jobs/spool.js";
import { startJob } from "../process/jobs/start.js";
import { sweepJobs } from "../process/jobs/sweep.js";
import { violations } from "../tools/outcome.js";
import { commandDirectory } from "../tools/workspace-path.js";
import type {
  BeginJob,
  BegunJob,
  EndedJob,
  FollowedJob,
  FollowKind,
  SweepQuestions,
} from "./following.js";

export const shellKind: JobKindRow = { kind: "bash", output: "stream" };

/** The arguments of the `bash` tool; what else it has means nothing to a job. */
const shellInput = z.object({
  command: z.string().min(1),
  workdir: z.string().min(1).optional(),
});

/** Starts a command under its supervisor (spec/jobs J6, J23). */
export async function beginShell(
  job: BeginJob,
  { home, maxJobs }: { readonly home: string; readonly maxJobs: number },
): Promise<BegunJob> {
  const parsed = shellInput.safeParse(job.input);
  if (!parsed.success) return { kind: "refused", reason: violations(parsed.error) };
  const { command, workdir } = parsed.data;
  if (command.includes("\0")) return { kind: "refused", reason: "command must not contain NUL" };
  let cwd: string;
  try {
    cwd = await commandDirectory(job.cwd === undefined ? {} : { cwd: job.cwd }, workdir);
  } catch (error) {
    if (!(error instanceof LonghaulError)) throw error;
    return { kind: "refused", reason: error.message };
  }
  const { sessionId, jobId, nonce, token, orphanGraceMs } = job;
  const started = await startJob({
    home,
    sessionId,
    jobId,
    nonce,
    kind: "bash",
    token,
    command,
    cwd,
    limits: { orphanGraceMs, maxJobs },
  });
  switch (started.kind) {
    case "full":
      return started;
    case "failed":
      return { kind: "refused", reason: started.detail.replace(/^spawn failed: /, "") };
    case "started":
    case "already":
      return { kind: "begun" };
  }
}

export function followShell(
  { outputBytes, onProgress, ...job }: FollowKind,
  { home, host, store }: { readonly home: string; readonly host: string; readonly store: Store },
): FollowedJob {
  const following = followJob({
    ...job,
    home,
    host,
    store,
    storeBytes: outputBytes,
    onBytes: ({ stdout, stderr, lastLine }) => onProgress?.({ stdout, stderr, lastLine }),
  });
  return {
    done: following.done,
    outlivesWorker: true,
    takesReason: false,
    kill: () => following.kill(),
    detach: () => following.detach(),
    shutDown: () => following.detach(),
  };
}

/** Looks after the shell jobs that nobody follows (spec/jobs J23). */
export async function sweepShell(
  host: { readonly home: string; readonly host: string; readonly store: Store },
  questions: SweepQuestions,
): Promise<readonly EndedJob[]> {
  const { ended } = await sweepJobs({ ...host, ...questions });
  const found = await Promise.all(
    ended.map(async (job) => {
      const directory = spoolDirectory(job);
      const [identity, recorded] = [await readIdentity(directory), await readRecorded(directory)];
      return identity === undefined || recorded?.kind !== "ended"
        ? []
        : [{ job, token: identity.token, outcome: recorded.outcome }];
    }),
  );
  return found.flat();
}
