import type { Client } from "@temporalio/client";
import type { Store } from "../contracts/store.js";
import { jobDetails } from "../domain/job-texts.js";
import { endOfHost, reportJob } from "./job-calls.js";
import { readIdentity } from "../process/jobs/job-identity.js";
import { readRecorded } from "../process/jobs/follow.js";
import { type JobKey, spoolDirectory } from "../process/jobs/spool.js";
import { sweepJobs } from "../process/jobs/sweep.js";

export interface SweepDeps {
  readonly client: Client;
  readonly home: string;
  readonly host: string;
  readonly store: Store;
  /** What kept a job from being looked after; it is tried again. */
  readonly onTrouble: (job: JobKey, error: unknown) => void;
  /** Asks no more once it has aborted. */
  readonly signal: AbortSignal;
}

/** Ends the jobs of this host that nobody follows and whose workflow is closed, and tells their sessions (spec/jobs J23). */
export async function sweepHostJobs(deps: SweepDeps): Promise<void> {
  const { client, home, host, store, onTrouble, signal } = deps;
  const closed = new Map<string, string>();
  const { ended } = await sweepJobs({
    home,
    host,
    store,
    onTrouble,
    async isOwnerClosed(job) {
      if (signal.aborted) return "unknown";
      const status = await endOfHost(client, job);
      if (status === undefined) return "unknown";
      closed.set(spoolDirectory(job), status);
      return "closed";
    },
  });
  await Promise.all(ended.map((job) => tell(deps, job, closed.get(spoolDirectory(job)) ?? "")));
}

async function tell({ client, signal }: SweepDeps, job: JobKey, status: string): Promise<void> {
  const directory = spoolDirectory(job);
  const token = (await readIdentity(directory))?.token;
  if (token === undefined) return;
  const recorded = await readRecorded(directory);
  const outcome = {
    ...(recorded?.kind === "ended" ? recorded.outcome : {}),
    status: "failed" as const,
    detail: jobDetails.hostEnded(status),
  };
  await reportJob(client, { ...job, token }, { report: "settled", outcome }, signal);
}
