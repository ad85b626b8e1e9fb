import type { Client } from "@temporalio/client";
import { jobDetails } from "../domain/job-texts.js";
import type { EndedJob } from "../kinds/following.js";
import type { JobHost } from "../kinds/job-host.js";
import { type JobKey, spoolDirectory } from "../process/jobs/spool.js";
import { endOfHost, reportJob } from "./job-calls.js";

export interface SweepDeps {
  readonly client: Client;
  readonly jobs: JobHost;
  /** What kept a job from being looked after; it is tried again. */
  readonly onTrouble: (job: JobKey, error: unknown) => void;
  /** Asks no more once it has aborted. */
  readonly signal: AbortSignal;
}

/** Ends the jobs of this host that nobody follows and whose workflow is closed, and tells their sessions (spec/jobs J23). */
export async function sweepHostJobs(deps: SweepDeps): Promise<void> {
  const { client, jobs, onTrouble, signal } = deps;
  const closed = new Map<string, string>();
  const ended = await jobs.sweep({
    onTrouble,
    async isOwnerClosed(job) {
      if (signal.aborted) return "unknown";
      const status = await endOfHost(client, job);
      if (status === undefined) return "unknown";
      closed.set(spoolDirectory(job), status);
      return "closed";
    },
  });
  await Promise.all(ended.map((one) => tell(deps, one, closed.get(spoolDirectory(one.job)) ?? "")));
}

async function tell(
  { client, signal }: SweepDeps,
  { job, token, outcome }: EndedJob,
  status: string,
): Promise<void> {
  const settled = {
    ...outcome,
    status: "failed" as const,
    detail: jobDetails.hostEnded(status),
  };
  await reportJob(client, { ...job, token }, { report: "settled", outcome: settled }, signal);
}
