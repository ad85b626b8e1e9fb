import { RetryState, TimeoutType } from "@temporalio/common";
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setCurrentDetails,
  setHandler,
  TimeoutFailure,
} from "@temporalio/workflow";
import type { FollowJobInput, JobRef } from "../contracts/activities.js";
import type {
  JobOutcome,
  JobProgress,
  JobReport,
  JobWorkflowInput,
  JobWorkflowResult,
} from "../contracts/jobs.js";
import { commands, signals } from "../contracts/names.js";
import { jobRunDetails } from "../domain/job-details.js";
import { jobInputProblem, parseKillRequest, parseProgress } from "../domain/job-input.js";
import { jobDetails } from "../domain/job-texts.js";
import { beginCalls, endCalls, followCalls, patienceOf } from "./job-activities.js";

/** How a job ended; `silent`: no worker of its host answered for it (design D5). */
interface Ended {
  readonly outcome: JobOutcome;
  readonly silent?: true;
}

/**
 * One background job (spec/jobs J1, J6): begins it on its host, follows it until its processes are gone and its output is
 * stored, and tells its session by signal. Abandoned by the session's workflow, so it outlives a roll-over.
 *
 * Invariants:
 * 1. The command is begun once: `job.begin` has one attempt, and everything after it only attaches.
 * 2. A kill, and a cancellation of this workflow, cancels the follower; what no follower confirmed is ended by `job.end`.
 * 3. Whatever happens, one report is sent before it returns.
 */
export function job(input: JobWorkflowInput): Promise<JobWorkflowResult> {
  const problem = jobInputProblem(input);
  if (problem !== undefined) {
    throw ApplicationFailure.create({
      type: "INVALID_INPUT",
      message: problem,
      nonRetryable: true,
    });
  }
  const root = CancellationScope.current();
  return CancellationScope.nonCancellable(() => {
    const following = new CancellationScope();
    let reason: string | undefined;
    let progress: JobProgress | undefined;
    const show = (ended?: JobOutcome): void =>
      setCurrentDetails(jobRunDetails(input, following.consideredCancelled, progress, ended));
    const stop = (why: string | undefined): void => {
      reason ??= why;
      following.cancel();
      show();
    };
    setHandler(defineSignal<[unknown]>(commands.jobKill), (request) => {
      stop(parseKillRequest(request).reason);
    });
    setHandler(defineSignal<[unknown]>(signals.jobProgress), (told) => {
      progress = parseProgress(told) ?? progress;
      show();
    });
    root.cancelRequested.catch(() => stop("cancelled through Temporal"));
    show();
    return run(input, following, () => reason, show);
  });
}

async function run(
  input: JobWorkflowInput,
  following: CancellationScope,
  reason: () => string | undefined,
  show: (ended: JobOutcome) => void,
): Promise<JobWorkflowResult> {
  const ended = (await begin(input)) ?? (await follow(input, following, reason));
  show(ended.outcome);
  await report(input, ended);
  const { status, detail } = ended.outcome;
  return { status, ...(detail === undefined ? {} : { detail }) };
}

/** Undefined when it runs, or may run: then following it tells. */
async function begin(input: JobWorkflowInput): Promise<Ended | undefined> {
  const { kind, label, input: given, cwd, outsideWorkspace, orphanGraceMs, outputBytes } = input;
  try {
    const answer = await beginCalls(input)["job.begin"]({
      ...refOf(input),
      kind,
      label,
      input: given,
      ...(cwd === undefined ? {} : { cwd }),
      outsideWorkspace,
      orphanGraceMs,
      outputBytes,
    });
    return answer.ok ? undefined : { outcome: { status: "failed", detail: answer.detail } };
  } catch (error) {
    if (!isUnstarted(error)) return undefined;
    return {
      outcome: { status: "failed", detail: jobDetails.notStarted(input.host, 30) },
      silent: true,
    };
  }
}

async function follow(
  input: JobWorkflowInput,
  following: CancellationScope,
  reason: () => string | undefined,
): Promise<Ended> {
  if (following.consideredCancelled) return await end(input, reason());
  try {
    return {
      outcome: await following.run(() =>
        inTime(input, (patienceMs) =>
          followCalls(input, patienceMs)["job.follow"](followInput(input)),
        ),
      ),
    };
  } catch (error) {
    if (isUnstarted(error)) return lost(input);
    const cause = error instanceof ActivityFailure ? error.cause : error;
    if (following.consideredCancelled && wasCancelled(error, cause))
      return await end(input, reason());
    // Nobody follows it any more, so nobody would end it either.
    const ended = await end(input, "its follower failed");
    const detail = cause instanceof Error ? cause.message : String(cause);
    return { ...ended, outcome: { ...ended.outcome, status: "failed", detail } };
  }
}

/** Ends what may still run. A host that is silent for longer than the orphan grace has no process of it left. */
async function end(input: JobWorkflowInput, reason: string | undefined): Promise<Ended> {
  try {
    return {
      outcome: await inTime(input, (patienceMs) =>
        endCalls(input, patienceMs)["job.end"]({
          ...followInput(input),
          ...(reason === undefined ? {} : { reason }),
        }),
      ),
    };
  } catch (error) {
    if (isUnstarted(error)) return lost(input);
    const cause = error instanceof ActivityFailure ? error.cause : error;
    const message = cause instanceof Error ? cause.message : String(cause);
    return { outcome: { status: "failed", detail: jobDetails.cancelFailed(message) } };
  }
}

/** Asks the host, and once more when nobody took the call: who has come back meanwhile knows how the job ended (J8). */
async function inTime(
  input: JobWorkflowInput,
  call: (patienceMs: number) => Promise<JobOutcome>,
): Promise<JobOutcome> {
  const [first, last] = patienceOf(input);
  try {
    return await call(first);
  } catch (error) {
    if (!isUnstarted(error)) throw error;
    return await call(last);
  }
}

function lost(input: JobWorkflowInput): Ended {
  const seconds = Math.round(input.orphanGraceMs / 1_000) + 60;
  const detail = jobDetails.workerLost(input.host, seconds);
  return { outcome: { status: "failed", detail, lost: true }, silent: true };
}

/** A session that is gone needs no report. */
async function report(input: JobWorkflowInput, { outcome, silent }: Ended): Promise<void> {
  const { session, jobId, nonce, token } = input;
  const told: JobReport = {
    id: jobId,
    nonce,
    owner: token,
    report: "settled",
    outcome,
    host: input.host,
    ...(silent === undefined ? {} : { silent }),
  };
  try {
    await getExternalWorkflowHandle(session).signal(
      defineSignal<[JobReport]>(signals.jobReport),
      told,
    );
  } catch {
    // It was closed or terminated; the job is ended all the same.
  }
}

function refOf({ session, jobId, nonce, token }: JobWorkflowInput): JobRef {
  return { v: 1, sessionId: session, jobId, nonce, token };
}

function followInput(input: JobWorkflowInput): FollowJobInput {
  const { kind, heartbeatMs, outputBytes } = input;
  return { ...refOf(input), kind, heartbeatMs, outputBytes };
}

function isUnstarted(error: unknown): boolean {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return cause instanceof TimeoutFailure && cause.timeoutType === TimeoutType.SCHEDULE_TO_START;
}

/** By a kill, or by a worker that was lost or stopped when the kill was on its way to it. */
function wasCancelled(error: unknown, cause: unknown): boolean {
  return (
    isCancellation(error) ||
    cause instanceof TimeoutFailure ||
    (error instanceof ActivityFailure && error.retryState === RetryState.CANCEL_REQUESTED)
  );
}
