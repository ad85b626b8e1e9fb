import type {
  JobEnd,
  JobEntry,
  JobEventData,
  JobLogEntry,
  JobOffsets,
  JobOutputForm,
  JobOwner,
  JobStatus,
  JobTail,
  StoredOutput,
} from "../contracts/jobs.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { headBytes } from "./job-bytes.js";
import { utf8Bytes } from "./guards.js";

/** More records than this: the oldest that ended and was reported is dropped at the next start (J28). */
export const maxRecords = 500;
/** More than this: the oldest that ended is dropped, reported or not; its notice was given when it settled. */
export const maxUnreadRecords = 1_000;
/** Of a label, in records and all that is made from them. */
export const maxLabelBytes = 1_024;

/** So many settled jobs keep their result or tail in the state; older ones are read from the log or the store. */
const maxBodies = 16;
const maxBodyBytes = 8_192;

/** All background jobs of a registry: a fold of the `job/*` entries. Plain JSON, never changed in place. */
export interface JobsState {
  /** Last number given to each kind; never reused. */
  readonly counters: { readonly [kind: string]: number };
  /** In the order of their start. */
  readonly jobs: readonly JobRecord[];
}

export interface JobRecord {
  readonly id: string;
  readonly kind: string;
  /** At most 1 KiB. */
  readonly label: string;
  readonly limit?: number;
  readonly owner?: JobOwner;
  readonly form: JobOutputForm;
  readonly nonce: string;
  readonly opId?: string;
  readonly status: JobStatus;
  readonly detail?: string;
  readonly reported: boolean;
  readonly startedAt: number;
  /** When the first request to stop was accepted. */
  readonly stoppingSince?: number;
  readonly finishedAt?: number;
  /** The model's cursor (J15). */
  readonly offsets: JobOffsets;
  /** Its worker was lost: output may be incomplete. */
  readonly lost?: true;
  /** Where the output of a job that has ended is; absent while it is live. */
  readonly output?: JobOutputPlace;
}

export type JobOutputPlace =
  | { readonly at: "nowhere" }
  /** The final output itself. */
  | { readonly at: "here"; readonly text: string; readonly seq: number }
  /** The final output in the entry `job/settled` of this `seq`. */
  | { readonly at: "entry"; readonly seq: number }
  | { readonly at: "store"; readonly ref: StoredOutput }
  /** Streams, with their last bytes when these were few. */
  | { readonly at: "streams"; readonly tails?: readonly JobTail[] };

export const emptyJobs: JobsState = { counters: {}, jobs: [] };

/** The next state. The same reference comes back when the entry does not concern jobs; unknown ids and late ends change nothing. */
export function foldJobs(state: JobsState, entry: LogEntry | JobLogEntry): JobsState {
  switch (entry.type) {
    case "job/start": {
      const { kind } = entry.data;
      return {
        counters: { ...state.counters, [kind]: lastNumber(state, kind) + 1 },
        jobs: [...state.jobs, recordOf(entry.data)],
      };
    }
    case "job/stopping":
      return update(state, entry.data.id, (job) => stopping(job, entry.data, entry.time));
    case "job/settled": {
      const next = update(state, entry.data.id, (job) => settled(job, entry.data, entry.seq));
      return next === state ? state : forgetBodies(next);
    }
    case "job/reported":
      return update(state, entry.data.id, (job) =>
        job.reported ? job : { ...job, reported: true },
      );
    case "job/cursor":
      return update(state, entry.data.id, (job) => advance(job, entry.data.offsets));
    case "job/removed": {
      const jobs = state.jobs.filter((job) => !entry.data.ids.includes(job.id));
      return jobs.length === state.jobs.length ? state : { ...state, jobs };
    }
    default:
      return state;
  }
}

/** The state once entries that were decided together are logged. */
export function foldEntries(
  state: JobsState,
  entries: readonly { readonly type: string }[],
  time = 0,
): JobsState {
  let next = state;
  for (const entry of entries) next = foldJobs(next, { ...(entry as JobEntry), seq: 0, time });
  return next;
}

export function isLive(job: JobRecord): boolean {
  return job.status === "running" || job.status === "stopping";
}

/** The last number of a kind, 0 before its first job. */
export function lastNumber(state: JobsState, kind: string): number {
  return Object.hasOwn(state.counters, kind) ? (state.counters[kind] ?? 0) : 0;
}

export function jobOf(state: JobsState, id: string): JobRecord | undefined {
  return state.jobs.find((job) => job.id === id);
}

/** The job a caller names, when it may be touched: own jobs and unowned ones (spec/jobs §6). No caller: unowned only. */
export function reach(
  state: JobsState,
  id: string,
  caller: string | undefined,
): { readonly ok: true; readonly job: JobRecord } | Refusal {
  const job = jobOf(state, id);
  if (job === undefined) return refuse("JOB_NOT_FOUND", `unknown job ${id}`);
  if (!mayTouch(job, caller)) return refuse("JOB_FOREIGN", `job ${id} belongs to another session`);
  return { ok: true, job };
}

export function mayTouch(job: JobRecord, caller: string | undefined): boolean {
  return job.owner === undefined || job.owner.session === caller;
}

function recordOf(data: JobEventData["job/start"]): JobRecord {
  const { id, kind, label, limit, owner, output, nonce, startedAt, opId } = data;
  return {
    id,
    kind,
    label: capLabel(label),
    ...(limit === undefined ? {} : { limit }),
    ...(owner === undefined ? {} : { owner }),
    form: output,
    nonce,
    ...(opId === undefined ? {} : { opId }),
    status: "running",
    reported: false,
    startedAt,
    offsets: {},
  };
}

function stopping(job: JobRecord, data: JobEventData["job/stopping"], time: number): JobRecord {
  if (!isLive(job)) return job;
  const { detail: _, ...rest } = job;
  return {
    ...rest,
    status: "stopping",
    ...(data.detail === undefined ? {} : { detail: data.detail }),
    reported: data.unreported === true ? false : job.reported,
    stoppingSince: job.stoppingSince ?? time,
  };
}

/** First outcome wins. A kill that ends in a lost worker is told to its owner after all (J8). */
function settled(job: JobRecord, data: JobEventData["job/settled"], seq: number): JobRecord {
  if (!isLive(job)) return job;
  const { detail: _, stoppingSince: __, ...rest } = job;
  return {
    ...rest,
    status: data.status,
    ...(data.detail === undefined ? {} : { detail: data.detail }),
    reported: staysReported(job, data.lost),
    finishedAt: data.finishedAt,
    ...(data.lost === undefined ? {} : { lost: data.lost }),
    output: placeOf(job.form, data, seq),
  };
}

/** Is the job still reported once it settles so? */
export function staysReported(job: JobRecord, lost: true | undefined): boolean {
  return job.reported && !(lost === true && job.status === "stopping");
}

function placeOf(
  form: JobOutputForm,
  { output, ref, tails }: JobEventData["job/settled"],
  seq: number,
): JobOutputPlace {
  if (form === "stream") {
    const bytes = (tails ?? []).reduce((sum, tail) => sum + utf8Bytes(tail.text), 0);
    return tails === undefined || bytes > maxBodyBytes
      ? { at: "streams" }
      : { at: "streams", tails };
  }
  if (ref !== undefined) return { at: "store", ref };
  if (output === undefined || output === "") return { at: "nowhere" };
  return utf8Bytes(output) > maxBodyBytes
    ? { at: "entry", seq }
    : { at: "here", text: output, seq };
}

function advance(job: JobRecord, to: JobOffsets): JobRecord {
  const moved = Object.entries(to).filter(([stream, offset]) => offset > offsetOf(job, stream));
  if (moved.length === 0) return job;
  const next = { ...job, offsets: { ...job.offsets, ...Object.fromEntries(moved) } };
  const { output } = next;
  if (output?.at !== "streams" || output.tails === undefined) return next;
  const unread = output.tails.some((tail) => offsetOf(next, tail.stream) < tail.to);
  return unread ? next : { ...next, output: { at: "streams", tails: output.tails.map(emptied) } };
}

/** Bytes of a stream the model has read. */
export function offsetOf(job: JobRecord, stream: string): number {
  return Object.hasOwn(job.offsets, stream) ? (job.offsets[stream] ?? 0) : 0;
}

/** A tail that was read: only where the stream ended is kept. */
function emptied(tail: JobTail): JobTail {
  return { stream: tail.stream, from: tail.to, to: tail.to, text: "" };
}

/** Keeps the bodies of the jobs that ended last, so that carried state stays small. */
function forgetBodies(state: JobsState): JobsState {
  const holders = state.jobs.filter(holdsBody);
  if (holders.length <= maxBodies) return state;
  const oldest = holders.reduce((first, job) =>
    (job.finishedAt ?? 0) < (first.finishedAt ?? 0) ? job : first,
  );
  return update(state, oldest.id, withoutBody);
}

function holdsBody({ output }: JobRecord): boolean {
  return (
    output?.at === "here" ||
    (output?.at === "streams" && (output.tails ?? []).some((tail) => tail.text !== ""))
  );
}

function withoutBody(job: JobRecord): JobRecord {
  const { output } = job;
  return {
    ...job,
    output: output?.at === "here" ? { at: "entry", seq: output.seq } : { at: "streams" },
  };
}

function update(state: JobsState, id: string, change: (job: JobRecord) => JobRecord): JobsState {
  const index = state.jobs.findIndex((job) => job.id === id);
  const job = state.jobs[index];
  if (job === undefined) return state;
  const changed = change(job);
  return changed === job ? state : { ...state, jobs: state.jobs.with(index, changed) };
}

function capLabel(label: string): string {
  if (utf8Bytes(label) <= maxLabelBytes) return label;
  return `${headBytes(label, maxLabelBytes - 3)}…`;
}

/** Has a settled job ended in this status? */
export function isEnd(status: JobStatus): status is JobEnd {
  return status !== "running" && status !== "stopping";
}
