import { type Client, isGrpcServiceError, WorkflowNotFoundError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import type { JobRef } from "../contracts/activities.js";
import { LonghaulError } from "../contracts/errors.js";
import type { JobReport } from "../contracts/jobs.js";
import { jobWorkflowId, signals } from "../contracts/names.js";

/** How long one question may take, ms. */
const callMs = 10_000;
/** How long a report is tried again while the server is away, ms; the session looks after its jobs itself as well. */
const reportPatienceMs = 60_000;

/** `PENDING_ACTIVITY_STATE_CANCEL_REQUESTED` */
const cancelRequested = 3;

/** What the server says of a workflow, by its latest run unless another is named. */
export type Seen =
  | {
      readonly state: "open" | "closed";
      readonly status: string;
      readonly runId: string;
      readonly firstRunId: string;
      /** Ids of its activities that are to be cancelled. */
      readonly cancelled: readonly string[];
    }
  /** It never was, or is no longer kept. */
  | { readonly state: "missing" }
  /** Nobody could say. */
  | { readonly state: "unknown"; readonly error: unknown };

export async function lookAt(client: Client, workflowId: string, runId?: string): Promise<Seen> {
  try {
    const handle = client.workflow.getHandle(workflowId, runId);
    const found = await unbound(client, () => handle.describe());
    const { status } = found;
    if (status.name === "UNKNOWN" || status.name === "UNSPECIFIED")
      return { state: "unknown", error: new Error(`status ${status.name}`) };
    // A workflow that goes on in another run is described by that one, if not in this instant.
    const open = ["RUNNING", "PAUSED", "CONTINUED_AS_NEW"].includes(status.name);
    return {
      state: open ? "open" : "closed",
      status: status.name.toLowerCase(),
      runId: found.runId,
      firstRunId: found.raw.workflowExecutionInfo?.firstRunId ?? "",
      cancelled: (found.raw.pendingActivities ?? []).flatMap(({ activityId, state }) =>
        Number(state) === cancelRequested && typeof activityId === "string" ? [activityId] : [],
      ),
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { state: "missing" };
    return { state: "unknown", error };
  }
}

/** What a cancel of a follower means. */
export type CancelMeaning =
  /** It was asked for, or nobody needs the job any more because its workflow has ended. */
  | { readonly does: "kill"; readonly hostEnded?: string }
  /** It is for this attempt or this run only; another one goes on with the job. */
  | { readonly does: "detach" };

/**
 * Asks the server until it answers. A server with worker commands tells its worker `cancelRequested` also when a workflow is
 * terminated or reset (facts §0.16), so that alone is no reason to end a job. Undefined when `signal` aborts.
 */
export async function meaningOfCancel(
  client: Client,
  job: Pick<JobRef, "sessionId" | "jobId" | "nonce">,
  activity: { readonly runId: string; readonly activityId: string },
  signal: AbortSignal,
): Promise<CancelMeaning | undefined> {
  const workflowId = jobWorkflowId(job.sessionId, job.jobId, job.nonce);
  for (let pause = 100; !signal.aborted; pause = Math.min(pause * 2, 2_000)) {
    const run = await lookAt(client, workflowId, activity.runId);
    if (run.state === "open") {
      return { does: run.cancelled.includes(activity.activityId) ? "kill" : "detach" };
    }
    const latest = run.state === "unknown" ? run : await lookAt(client, workflowId);
    if (latest.state === "open") return { does: "detach" };
    if (latest.state === "closed") return { does: "kill", hostEnded: latest.status };
    if (latest.state === "missing") return { does: "kill", hostEnded: "missing" };
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return undefined;
}

/** The job's workflow is closed for certain: how it ended. Undefined when it is open or nobody could say. */
export async function endOfHost(
  client: Client,
  job: Pick<JobRef, "sessionId" | "jobId" | "nonce">,
): Promise<string | undefined> {
  const seen = await lookAt(client, jobWorkflowId(job.sessionId, job.jobId, job.nonce));
  if (seen.state === "closed") return seen.status;
  return seen.state === "missing" ? "missing" : undefined;
}

type Report = JobReport extends infer R
  ? R extends unknown
    ? Omit<R, "id" | "nonce" | "owner">
    : never
  : never;

/** Tells the session by its workflow id, whatever run it is in now (spec/jobs J1). A session that is gone is not told. */
export async function reportJob(
  client: Client,
  { sessionId, jobId: id, nonce, token }: Omit<JobRef, "v">,
  report: Report,
  signal?: AbortSignal,
): Promise<void> {
  const payload = { id, nonce, ...(token === "" ? {} : { owner: token }), ...report };
  const until = Date.now() + reportPatienceMs;
  for (let pause = 200; ; pause = Math.min(pause * 2, 5_000)) {
    try {
      await unbound(client, () =>
        client.workflow.getHandle(sessionId).signal(signals.jobReport, payload),
      );
      return;
    } catch (error) {
      if (!isGrpcServiceError(rootOf(error)) || error instanceof WorkflowNotFoundError) return;
      if (Date.now() + pause > until || signal?.aborted === true) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/** Asks with a deadline of its own, also when the activity was cancelled: that is when it has something to ask. */
export async function unbound<T>(client: Client, ask: () => Promise<T>): Promise<T> {
  return await client.withAbortSignal(AbortSignal.timeout(callMs), () =>
    client.withDeadline(Date.now() + callMs, ask),
  );
}

/** Only the store being away is worth another attempt. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof LonghaulError)) return error;
  const nonRetryable = error.code !== "STORE_UNAVAILABLE";
  return ApplicationFailure.create({ type: error.code, message: error.message, nonRetryable });
}

function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof Error && root.cause instanceof Error) root = root.cause;
  return root;
}
