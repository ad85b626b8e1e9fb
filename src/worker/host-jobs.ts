import { setTimeout as delay } from "node:timers/promises";
import { keepLease } from "../process/jobs/lease.js";
import type { JobKey } from "../process/jobs/spool.js";

export interface HostJobsOptions {
  readonly home: string;
  /** Ends what nobody follows any more; never at the same time twice. */
  readonly sweep: (
    onTrouble: (job: JobKey, error: unknown) => void,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly warn: (message: string) => void;
}

export interface HostJobs {
  /** Sweeps now and every minute. */
  beginSweeping(): void;
  /** Until now the host's jobs counted as watched over (spec/jobs J9). */
  stop(): Promise<void>;
}

const sweepEveryMs = 60_000;
const stopPatienceMs = 2_000;

/** What a host's worker process does for its jobs beside following them. Rejects when the lease cannot be written. */
export async function watchHostJobs({ home, sweep, warn }: HostJobsOptions): Promise<HostJobs> {
  let troubled = false;
  const lease = await keepLease(home, (error) => {
    if (!troubled) warn(`the lease of this host's jobs cannot be renewed: ${reason(error)}`);
    troubled = true;
  });
  const stopping = new AbortController();
  let sweeping: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const run = (): void => {
    sweeping ??= sweep(
      (job, error) => warn(`job ${job.jobId} of session ${job.sessionId}: ${reason(error)}`),
      stopping.signal,
    )
      .catch((error: unknown) => warn(`jobs were not looked after: ${reason(error)}`))
      .finally(() => {
        sweeping = undefined;
      });
  };
  return {
    beginSweeping() {
      run();
      timer = setInterval(run, sweepEveryMs).unref();
    },
    async stop() {
      clearInterval(timer);
      stopping.abort();
      // What it has begun to end, ends without it.
      await Promise.race([sweeping, delay(stopPatienceMs, undefined, { ref: false })]);
      lease.stop();
    },
  };
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
