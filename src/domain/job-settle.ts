import type {
  CancelJob,
  JobEntry,
  JobEventData,
  JobNotice,
  JobOutcome,
  JobSnapshot,
  JobsConfig,
} from "../contracts/jobs.js";
import type { NewEntry } from "../contracts/log.js";
import { decideCancelFailed } from "./job-kill.js";
import { decideLane, noticeEntry, noticeMessage, type OwnerView } from "./job-notices.js";
import { parseReport } from "./job-report.js";
import { wholeTime } from "./job-start.js";
import { jobDetails } from "./job-texts.js";
import { snapshotOf } from "./job-views.js";
import { releaseWaits, type JobWaits } from "./job-waits.js";
import {
  foldEntries,
  isLive,
  jobOf,
  staysReported,
  type JobRecord,
  type JobsState,
} from "./jobs.js";

export interface SettleContext {
  readonly now: number;
  readonly waits: JobWaits;
  /** The owner's session as it is in this step; absent: it is not here, and nobody is told. */
  readonly owner?: OwnerView;
  readonly config: Pick<JobsConfig, "completionDelivery" | "maxConsecutiveWakes">;
}

/** All of it is to be carried out in one span: the entries logged in order, then the waits released (spec/jobs §5, J19). */
export interface Settlement {
  readonly ok: true;
  readonly entries: readonly (JobEntry | NewEntry)[];
  /** The job once the entries are folded. */
  readonly snapshot: JobSnapshot;
  readonly waits: JobWaits;
  readonly released: readonly string[];
  readonly notice?: JobNotice;
  readonly warnings: readonly string[];
}

/** A report that changes nothing: to be logged for operators, never an error (J10, J20). */
export interface IgnoredReport {
  readonly ok: false;
  readonly why: "malformed" | "unknown-job" | "token-mismatch" | "already-settled" | "not-stopping";
  readonly message: string;
}

export interface ReportAccepted {
  readonly ok: true;
  readonly entries: readonly JobEntry[];
}

/** What a job workflow reported, of any shape. The first outcome wins; late, repeated and foreign reports are ignored. */
export function decideReport(
  state: JobsState,
  input: unknown,
  context: SettleContext,
): Settlement | ReportAccepted | IgnoredReport {
  const parsed = parseReport(input);
  if (parsed === undefined) {
    return ignored("malformed", "a job report needs id, nonce and what it reports");
  }
  const { report, warnings } = parsed;
  const job = jobOf(state, report.id);
  if (job === undefined) return ignored("unknown-job", `unknown job ${report.id}`);
  if (report.nonce !== job.nonce || report.owner !== job.owner?.token) {
    return ignored("token-mismatch", `the report is for another start or owner of ${job.id}`);
  }
  if (!isLive(job)) return ignored("already-settled", `job ${job.id} is ${job.status} already`);
  if (report.report === "settled") {
    return settle(state, job, report.outcome, context, warnings);
  }
  const change = decideCancelFailed(state, job.id, report.message);
  return change.ok ? change : ignored("not-stopping", change.why);
}

/**
 * Settles a live job with an outcome the session decided itself, such as `worker lost` or `job host ended` (spec/jobs §18).
 */
export function decideSettle(
  state: JobsState,
  id: string,
  outcome: JobOutcome,
  context: SettleContext,
): Settlement | IgnoredReport {
  const job = jobOf(state, id);
  if (job === undefined) return ignored("unknown-job", `unknown job ${id}`);
  if (!isLive(job)) return ignored("already-settled", `job ${id} is ${job.status} already`);
  return settle(state, job, outcome, context, []);
}

/** A teardown's cancel failed: the job is given up, and not awaited (spec/jobs §8). */
export function failTeardown(
  state: JobsState,
  { id }: CancelJob,
  message: string,
  context: SettleContext,
): Settlement | IgnoredReport {
  const detail = jobDetails.cancelThrew(message);
  const settlement = decideSettle(state, id, { status: "failed", detail }, context);
  if (!settlement.ok) return settlement;
  return { ...settlement, warnings: [...settlement.warnings, `job ${id}: ${detail}`] };
}

/** §5, steps 2 to 8: the record, reported when a wait is counted, the waits, and the notice last. */
function settle(
  state: JobsState,
  job: JobRecord,
  outcome: JobOutcome,
  context: SettleContext,
  warnings: readonly string[],
): Settlement {
  const { waits, released } = releaseWaits(context.waits, job.id);
  const reported = released.length > 0 || staysReported(job, outcome.lost);
  const data: JobEventData["job/settled"] = {
    id: job.id,
    ...outcome,
    finishedAt: Math.max(job.startedAt, wholeTime(context.now)),
  };
  const lane = reported ? undefined : laneOf(job, context);
  const entries: (JobEntry | NewEntry)[] = [
    { type: "job/settled", data: lane === undefined ? data : { ...data, lane } },
  ];
  if (reported && !staysReported(job, outcome.lost)) {
    entries.push({ type: "job/reported", data: { id: job.id, by: "wait" } });
  }
  const snapshot = snapshotOf(jobOf(foldEntries(state, entries), job.id) as JobRecord);
  const done = { ok: true as const, snapshot, waits, released, warnings };
  if (lane === undefined || context.owner === undefined || job.owner === undefined) {
    return { ...done, entries };
  }
  const message = noticeMessage(snapshot);
  return {
    ...done,
    entries: [...entries, noticeEntry(context.owner.inbox, lane, message)],
    notice: { lane, owner: job.owner, message },
  };
}

/** Undefined when nobody is to be told: an unowned job, an owner that was replaced, or one that is closing. */
function laneOf(job: JobRecord, { owner, config }: SettleContext): JobNotice["lane"] | undefined {
  if (owner === undefined || owner.closing || owner.token !== job.owner?.token) return undefined;
  return decideLane(owner, config);
}

function ignored(why: IgnoredReport["why"], message: string): IgnoredReport {
  return { ok: false, why, message };
}
