import type {
  JobLogEntry,
  JobOwner,
  JobSnapshot,
  JobsFrame,
  PublicJob,
} from "../contracts/jobs.js";
import type { LogEntry } from "../contracts/log.js";
import { isEnd, jobOf, mayTouch, type JobRecord, type JobsState } from "./jobs.js";

/** A fresh object; keys that have no value are absent. */
export function snapshotOf(job: JobRecord): JobSnapshot {
  return {
    id: job.id,
    kind: job.kind,
    label: job.label,
    ...(job.limit === undefined ? {} : { outputLimitBytes: job.limit }),
    ...(job.owner === undefined ? {} : { ownerSession: job.owner.session }),
    status: job.status,
    ...(job.detail === undefined ? {} : { detail: job.detail }),
    startedAt: job.startedAt,
    ...(job.finishedAt === undefined ? {} : { finishedAt: job.finishedAt }),
    reported: job.reported,
  };
}

export function publicJob(job: JobSnapshot): PublicJob {
  return {
    id: job.id,
    kind: job.kind,
    label: job.label,
    status: job.status,
    ...(job.detail === undefined ? {} : { detail: job.detail }),
    startedAt: job.startedAt,
    ...(job.finishedAt === undefined ? {} : { finishedAt: job.finishedAt }),
  };
}

/** The caller's jobs and unowned ones, in the order of their start (spec/jobs §4). */
export function listJobs(state: JobsState, caller: string | undefined): readonly JobSnapshot[] {
  return state.jobs.filter((job) => mayTouch(job, caller)).map(snapshotOf);
}

/** Whole-set frame of a session's jobs (spec/jobs §15). */
export function jobsFrame(state: JobsState, sessionId: string): JobsFrame {
  return { type: "session/jobs", sessionId, jobs: listJobs(state, sessionId).map(publicJob) };
}

/** What a new observer is sent first; nothing when there are no jobs. */
export function baselineFrame(state: JobsState, sessionId: string): JobsFrame | undefined {
  const frame = jobsFrame(state, sessionId);
  return frame.jobs.length === 0 ? undefined : frame;
}

/**
 * Whose visible set an entry moves, by the state before it: owners, `undefined` for everyone (an unowned job). Empty when
 * nothing visible moves, as for a cursor (spec/jobs §5).
 */
export function changedOwners(
  before: JobsState,
  entry: LogEntry | JobLogEntry,
): readonly (JobOwner | undefined)[] {
  switch (entry.type) {
    case "job/start":
      return [entry.data.owner];
    case "job/stopping":
    case "job/settled": {
      const job = jobOf(before, entry.data.id);
      return job === undefined || isEnd(job.status) ? [] : [job.owner];
    }
    case "job/removed": {
      const gone = before.jobs.filter((job) => entry.data.ids.includes(job.id));
      return gone
        .map((job) => job.owner)
        .filter(
          (owner, index, all) => all.findIndex((one) => one?.token === owner?.token) === index,
        );
    }
    default:
      return [];
  }
}

/**
 * What is wrong with a snapshot, of any shape; undefined when nothing is (spec/jobs §16). `owner`: the session of the owner
 * it was handed to.
 */
export function checkSnapshot(job: unknown, owner: string | undefined): string | undefined {
  if (typeof job !== "object" || job === null) return "job snapshot must be an object";
  const { id, kind, label, status, startedAt, finishedAt, ownerSession } = job as {
    readonly [key in keyof JobSnapshot]?: unknown;
  };
  if (typeof kind !== "string" || kind === "") return "job kind must be non-empty";
  if (typeof id !== "string" || !id.startsWith(`${kind}-`))
    return `job id must begin with ${kind}-`;
  const ordinal = id.slice(kind.length + 1);
  if (!/^[1-9]\d*$/u.test(ordinal) || !Number.isSafeInteger(Number(ordinal))) {
    return "job id must end in a positive safe integer";
  }
  if (typeof label !== "string" || label === "") return "job label must be non-empty";
  if (!isTime(startedAt)) return "startedAt must be a non-negative integer";
  const ended = status === "completed" || status === "killed" || status === "failed";
  if (!ended && status !== "running" && status !== "stopping") return "status must be a job status";
  if (!ended && finishedAt !== undefined) return "finishedAt must be absent while the job is live";
  if (ended && finishedAt === undefined) return "finishedAt must be present once the job has ended";
  if (finishedAt !== undefined && !isTime(finishedAt)) return "finishedAt must be an integer";
  if (isTime(finishedAt) && finishedAt < startedAt) return "finishedAt must not precede startedAt";
  if (ownerSession !== owner) return "ownerSession must be the session of the owner it is given to";
  return undefined;
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
