import { refuse, type Refusal } from "../contracts/errors.js";
import type { CancelJob, JobEntry } from "../contracts/jobs.js";
import { isLive, jobOf, reach, type JobRecord, type JobsState } from "./jobs.js";
import { jobDetails } from "./job-texts.js";

/** After this long in `stopping` a job is shown as overdue (J11). */
export const stopOverdueMs = 30_000;

export type KillDecision =
  | {
      readonly ok: true;
      readonly result: "already-finished";
      readonly entries: readonly JobEntry[];
    }
  /** Cancel first, then the state: nothing is logged before the request was accepted (J12). */
  | { readonly ok: true; readonly result: "cancel"; readonly effect: CancelJob }
  | Refusal;

export type KillResult =
  | {
      readonly ok: true;
      readonly result: "requested" | "already-finished";
      readonly entries: readonly JobEntry[];
    }
  | Refusal;

/** First phase of a kill (spec/jobs §4): the fence, then the request to cancel. A job that has ended is reported. */
export function decideKill(
  state: JobsState,
  id: string,
  caller: string | undefined,
  reason?: string,
): KillDecision {
  const reached = reach(state, id, caller);
  if (!reached.ok) return reached;
  const { job } = reached;
  if (!isLive(job)) return { ok: true, result: "already-finished", entries: reported(job, "kill") };
  return { ok: true, result: "cancel", effect: cancelOf(job, "kill", reason) };
}

/** The request was accepted: `stopping`, unless the job has ended meanwhile. */
export function acceptKill(state: JobsState, effect: CancelJob): KillResult {
  const job = jobOf(state, effect.id);
  if (job === undefined) return refuse("JOB_NOT_FOUND", `unknown job ${effect.id}`);
  if (!isLive(job)) return { ok: true, result: "already-finished", entries: reported(job, "kill") };
  return {
    ok: true,
    result: "requested",
    entries: [stoppingEntry(effect), ...reported(job, "kill")],
  };
}

/** The request failed: nothing changes, and the error is the caller's; a job that has ended meanwhile has ended. */
export function failKill(state: JobsState, effect: CancelJob, message: string): KillResult {
  const job = jobOf(state, effect.id);
  if (job === undefined) return refuse("JOB_NOT_FOUND", `unknown job ${effect.id}`);
  if (!isLive(job)) return { ok: true, result: "already-finished", entries: reported(job, "kill") };
  return refuse("TOOL_FAILED", message);
}

/** Owner or service disposal: which jobs it ends. */
export type Disposed = (job: JobRecord) => boolean;

export function ownedBy(token: string): Disposed {
  return (job) => job.owner?.token === token;
}

export const everyJob: Disposed = () => true;

/** First phase of a teardown (spec/jobs §8): each live job counts as reported before its cancel is asked for. */
export function decideTeardown(
  state: JobsState,
  disposed: Disposed,
  reason: string,
): { readonly entries: readonly JobEntry[]; readonly effects: readonly CancelJob[] } {
  const live = state.jobs.filter((job) => disposed(job) && isLive(job));
  return {
    entries: live.flatMap((job) => reported(job, "teardown")),
    effects: live.map((job) => cancelOf(job, "teardown", reason)),
  };
}

/** A teardown's request was accepted; its settlement is awaited. Nothing when it has ended meanwhile. */
export function acceptTeardown(state: JobsState, effect: CancelJob): readonly JobEntry[] {
  const job = jobOf(state, effect.id);
  return job === undefined || !isLive(job) ? [] : [stoppingEntry(effect)];
}

/** Once every disposed job has settled: their records go, one entry (none when there were none). */
export function decideRemoval(state: JobsState, disposed: Disposed): readonly JobEntry[] {
  const ids = state.jobs.filter(disposed).map((job) => job.id);
  return ids.length === 0 ? [] : [{ type: "job/removed", data: { ids } }];
}

export type Change =
  | { readonly ok: true; readonly entries: readonly JobEntry[] }
  | { readonly ok: false; readonly why: string };

/** The worker could not end the job: it stays `stopping`, and its end will be told (J12). */
export function decideCancelFailed(state: JobsState, id: string, message: string): Change {
  const job = jobOf(state, id);
  if (job === undefined) return { ok: false, why: `unknown job ${id}` };
  if (job.status !== "stopping") return { ok: false, why: `job ${id} is ${job.status}` };
  const detail = jobDetails.cancelFailed(message);
  return {
    ok: true,
    entries: [{ type: "job/stopping", data: { id, detail, unreported: true } }],
  };
}

/** When the next job in `stopping` becomes overdue, epoch ms; undefined when none will. */
export function nextOverdueAt(state: JobsState): number | undefined {
  const times = state.jobs
    .filter(mayBecomeOverdue)
    .map((job) => (job.stoppingSince ?? 0) + stopOverdueMs);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Shows the jobs whose cancellation nobody has acknowledged by now (J11). They hold their slot on. */
export function decideOverdue(state: JobsState, now: number): readonly JobEntry[] {
  return state.jobs
    .filter((job) => mayBecomeOverdue(job) && (job.stoppingSince ?? 0) + stopOverdueMs <= now)
    .map(({ id }) => ({ type: "job/stopping", data: { id, detail: jobDetails.stopOverdue } }));
}

/** A detail that says more, such as a failed cancellation, stays. */
function mayBecomeOverdue(job: JobRecord): boolean {
  return job.status === "stopping" && job.detail === undefined;
}

function reported(job: JobRecord, by: "kill" | "teardown"): readonly JobEntry[] {
  return job.reported ? [] : [{ type: "job/reported", data: { id: job.id, by } }];
}

function cancelOf(job: JobRecord, by: CancelJob["by"], reason: string | undefined): CancelJob {
  return {
    kind: "cancel-job",
    id: job.id,
    nonce: job.nonce,
    by,
    ...(reason === undefined ? {} : { reason }),
  };
}

function stoppingEntry({ id, reason }: CancelJob): JobEntry {
  return { type: "job/stopping", data: { id, ...(reason === undefined ? {} : { reason }) } };
}
