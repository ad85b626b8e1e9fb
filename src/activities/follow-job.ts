import { Context } from "@temporalio/activity";
import type { Client } from "@temporalio/client";
import { ApplicationFailure, ApplicationFailureCategory } from "@temporalio/common";
import type {
  BeginJobAnswer,
  BeginJobInput,
  EndJobInput,
  FollowJobInput,
} from "../contracts/activities.js";
import type { JobOutcome } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { jobDetails, ownerDisposed } from "../domain/job-texts.js";
import type { FollowedJob, JobProgressDetails } from "../kinds/following.js";
import type { JobHost } from "../kinds/job-host.js";
import { whileBeating } from "./heartbeat.js";
import { meaningOfCancel, reportJob } from "./job-calls.js";
import { killReason } from "./kill-reason.js";
import { ProgressTeller } from "./progress-teller.js";
import { watchOwner } from "./watch-owner.js";

export interface JobActivityDeps {
  readonly client: Client;
  readonly host: string;
  readonly jobs: JobHost;
  readonly store: Store;
  /** Aborts when the worker begins to stop. */
  readonly stopping: AbortSignal;
  /** How long activities may go on after that, ms. */
  readonly shutdownGraceMs: number;
  /** How often a follower asks whether the job's owner still is, ms (spec/jobs J22). */
  readonly ownerCheckMs: number;
}

/** Claims and starts a job (spec/jobs J6, J25). One attempt: a claim that exists is success. */
export function createBeginJob({
  jobs,
  host,
}: Pick<JobActivityDeps, "jobs" | "host">): (input: BeginJobInput) => Promise<BeginJobAnswer> {
  return async function beginJob(input) {
    const begun = await jobs.begin(input);
    switch (begun.kind) {
      case "begun":
        return { ok: true };
      case "full":
        return { ok: false, detail: jobDetails.hostFull(host, begun.jobs) };
      case "refused":
        return { ok: false, detail: jobDetails.spawnFailed(begun.reason) };
    }
  };
}

/**
 * Follows a job to its end (spec/jobs §18). Only a cancel that was asked for, a job workflow or an owner that is gone for
 * certain end it; every other reason leaves it to the next attempt, here or in another worker of this host.
 */
export function createFollowJob(
  deps: JobActivityDeps,
): (input: FollowJobInput) => Promise<JobOutcome> {
  return async function followJob(input) {
    const context = Context.current();
    const { currentAttemptScheduledTimestampMs: scheduledAt, attempt } = context.info;
    return await attend(deps, context, input, { scheduledAt, attempt }, async (followed) => {
      const stopWatching = watchOwner(deps.client, input, deps.ownerCheckMs, () =>
        followed.kill(ownerDisposed),
      );
      let hostEnded: string | undefined;
      const over = new AbortController();
      const onCancel = async (): Promise<void> => {
        const why = context.cancellationDetails;
        if (why?.workerShutdown === true) return followed.shutDown();
        if (why?.cancelRequested !== true && why?.notFound !== true) return followed.detach();
        const { activityId, workflowExecution } = context.info;
        const activity = { activityId, runId: workflowExecution?.runId ?? "" };
        const meaning = await meaningOfCancel(deps.client, input, activity, over.signal);
        if (meaning === undefined) return undefined;
        if (meaning.does === "detach") return followed.detach();
        hostEnded = meaning.hostEnded;
        if (hostEnded !== undefined) return followed.kill(jobDetails.hostEnded(hostEnded));
        return followed.kill(
          followed.takesReason ? await killReason(deps.client, input) : undefined,
        );
      };
      onAbort(context.cancellationSignal, onCancel);
      try {
        const outcome = await endOf(followed, context);
        if (hostEnded === undefined) return outcome;
        const settled: JobOutcome = {
          ...outcome,
          status: "failed",
          detail: jobDetails.hostEnded(hostEnded),
        };
        await reportJob(deps.client, input, { report: "settled", outcome: settled });
        return settled;
      } finally {
        stopWatching();
        over.abort();
      }
    });
  };
}

/** Ends a job whose follower did not confirm its end (spec/jobs §18): before every follower, however late. */
export function createEndJob(deps: JobActivityDeps): (input: EndJobInput) => Promise<JobOutcome> {
  return async function endJob(input) {
    const context = Context.current();
    const rank = { scheduledAt: Number.MAX_SAFE_INTEGER, attempt: context.info.attempt };
    return await attend(deps, context, input, rank, async (followed) => {
      followed.kill(input.reason);
      onAbort(context.cancellationSignal, () => followed.detach());
      return await endOf(followed, context);
    });
  };
}

async function attend(
  deps: JobActivityDeps,
  context: Context,
  input: FollowJobInput,
  rank: { readonly scheduledAt: number; readonly attempt: number },
  work: (followed: FollowedJob) => Promise<JobOutcome>,
): Promise<JobOutcome> {
  let progress: JobProgressDetails = {};
  let failed = false;
  const teller = new ProgressTeller(deps, input);
  const { sessionId, jobId, nonce, kind, outputBytes } = input;
  const followed = deps.jobs.follow({
    sessionId,
    jobId,
    nonce,
    kind,
    outputBytes,
    rank,
    onProgress(now) {
      progress = now;
      teller.note(now);
    },
    onKillFailed(message) {
      if (failed) return;
      failed = true;
      void reportJob(deps.client, input, { report: "cancel-failed", message });
    },
  });
  const timers: NodeJS.Timeout[] = [];
  const onStopping = (): void => {
    // What it was told is carried out if there is time; it hears of no other reason any more.
    if (context.cancellationSignal.aborted)
      timers.push(setTimeout(() => followed.shutDown(), deps.shutdownGraceMs));
    else if (followed.outlivesWorker) followed.detach();
  };
  const forget = onAbort(deps.stopping, onStopping);
  try {
    return await whileBeating(
      context,
      () => progress,
      () => work(followed),
      input.heartbeatMs,
    );
  } finally {
    forget();
    teller.stop();
    for (const timer of timers) clearTimeout(timer);
  }
}

/** The outcome, or a failure that makes the server try again. */
async function endOf(followed: FollowedJob, context: Context): Promise<JobOutcome> {
  const end = await followed.done;
  if (end.kind === "ended") return end.outcome;
  if (end.why === "displaced") throw again("a later attempt follows this job", "JobDisplaced");
  if (context.cancellationSignal.aborted) await context.cancelled;
  throw again("the worker stops; the job goes on", "WorkerStops");
}

function again(message: string, type: string): ApplicationFailure {
  return ApplicationFailure.create({ message, type, category: ApplicationFailureCategory.BENIGN });
}

/** Acts at once when it has aborted already; returns how to forget it. */
function onAbort(signal: AbortSignal, act: () => void | Promise<void>): () => void {
  const listener = (): void => void act();
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}
