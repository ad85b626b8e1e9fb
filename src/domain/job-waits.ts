import { refuse, type Refusal } from "../contracts/errors.js";
import type { JobEntry, JobSnapshot } from "../contracts/jobs.js";
import { isLive, jobOf, reach, type JobRecord, type JobsState } from "./jobs.js";
import { jsonOf } from "./job-texts.js";
import { snapshotOf } from "./job-views.js";

/** Longest timer of a live wait, ms. */
export const maxTimerMs = 2_147_483_647;

/**
 * The agent loop's waits that are counted now. A job that settles while one is counted is delivered by it, not by a notice
 * (spec/jobs §4). Belongs to one run, never to the log: a run with a live wait does not roll over (J17). A read that
 * suspends is counted in the same way, so that the end of a job that comes meanwhile is told once.
 */
export interface JobWaits {
  readonly live: readonly { readonly wait: string; readonly job: string }[];
}

export const noWaits: JobWaits = { live: [] };

export type WaitDecision =
  | {
      readonly ok: true;
      readonly kind: "ended";
      readonly snapshot: JobSnapshot;
      readonly entries: readonly JobEntry[];
    }
  | { readonly ok: true; readonly kind: "wait"; readonly ms: number }
  | Refusal;

/** Existence, fence, timeout, state: in this order. A job that has ended answers at once, aborted or not. */
export function decideWait(
  state: JobsState,
  id: string,
  caller: string | undefined,
  timeoutMs: unknown,
  aborted: boolean,
): WaitDecision {
  const reached = reach(state, id, caller);
  if (!reached.ok) return reached;
  if (typeof timeoutMs !== "number" || !Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    return refuse(
      "INVALID_INPUT",
      `invalid wait timeout: expected a positive number of milliseconds, got ${jsonOf(timeoutMs)}`,
    );
  }
  if (!isLive(reached.job)) {
    return { ok: true, kind: "ended", ...endedWait(reached.job) };
  }
  if (aborted) return refuse("ABORTED", "wait aborted");
  if (timeoutMs > maxTimerMs) {
    return refuse(
      "INVALID_INPUT",
      `invalid wait timeout: expected at most ${maxTimerMs} milliseconds, got ${timeoutMs}`,
    );
  }
  return { ok: true, kind: "wait", ms: timeoutMs };
}

/** Counts a wait. Its id must be new. */
export function beginWait(waits: JobWaits, wait: string, job: string): JobWaits {
  return { live: [...waits.live, { wait, job }] };
}

/** Un-counts a wait, at once: a settlement after this sees it no more. Nothing happens to one that was released. */
export function endWait(waits: JobWaits, wait: string): JobWaits {
  const live = waits.live.filter((one) => one.wait !== wait);
  return live.length === waits.live.length ? waits : { live };
}

export function isCounted(waits: JobWaits, wait: string): boolean {
  return waits.live.some((one) => one.wait === wait);
}

/** Releases every wait of a job that settles. */
export function releaseWaits(
  waits: JobWaits,
  job: string,
): { readonly waits: JobWaits; readonly released: readonly string[] } {
  const released = waits.live.filter((one) => one.job === job).map((one) => one.wait);
  if (released.length === 0) return { waits, released };
  return { waits: { live: waits.live.filter((one) => one.job !== job) }, released };
}

/**
 * What a wait resumes with: `abort` when its abort un-counted it (`endWait` on a counted one), `settled` when a settlement
 * released it, whatever came after, else `timeout`: a normal return of the live job.
 */
export function resumeWait(
  state: JobsState,
  id: string,
  cause: "settled" | "timeout" | "abort",
):
  | { readonly ok: true; readonly snapshot: JobSnapshot; readonly entries: readonly JobEntry[] }
  | Refusal {
  if (cause === "abort") return refuse("ABORTED", "wait aborted");
  const job = jobOf(state, id);
  if (job === undefined) return refuse("JOB_NOT_FOUND", `unknown job ${id}`);
  if (!isLive(job)) return { ok: true, ...endedWait(job) };
  return { ok: true, snapshot: snapshotOf(job), entries: [] };
}

/** The snapshot of a wait that returns an end: reported. */
function endedWait(job: JobRecord): {
  readonly snapshot: JobSnapshot;
  readonly entries: readonly JobEntry[];
} {
  return {
    snapshot: { ...snapshotOf(job), reported: true },
    entries: job.reported ? [] : [{ type: "job/reported", data: { id: job.id, by: "wait" } }],
  };
}
