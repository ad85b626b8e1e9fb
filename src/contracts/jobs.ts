import type { UserMessage } from "./content.js";
import type { JsonObject } from "./header.js";

/** `running` → optional `stopping` → exactly one end (spec/jobs §3). */
export const jobStatuses = ["running", "stopping", "completed", "killed", "failed"] as const;
export type JobStatus = (typeof jobStatuses)[number];

export const jobEnds = ["completed", "killed", "failed"] as const;
export type JobEnd = (typeof jobEnds)[number];

/** Who a job belongs to: the session authorizes, the token selects cleanup and notices (spec/jobs §6, J3). */
export interface JobOwner {
  readonly session: string;
  /** One incarnation of the session; a worker's report that carries another one is dropped. */
  readonly token: string;
}

/** A streaming job is read piece by piece; a final-output job has one result, after its end. */
export type JobOutputForm = "stream" | "final";

/** Bytes consumed of each output stream, e.g. `{stdout: 120}`. */
export interface JobOffsets {
  readonly [stream: string]: number;
}

/** A final output that is too large to travel inline. */
export interface StoredOutput {
  readonly ref: string;
  readonly bytes: number;
  readonly digest: string;
}

/** The last bytes of a stream, sent with the settlement so that a short job is read without an activity (J14). */
export interface JobTail {
  readonly stream: string;
  /** Offset of the first byte of `text`. */
  readonly from: number;
  /** Offset after its last byte: where the stream ended. */
  readonly to: number;
  readonly text: string;
}

/** How an outcome was announced when it settled: a turn of its own, the next step, or a wake owed until the session is live. */
export type JobLane = "wake" | "inject" | "owed";

export type JobReporter = "kill" | "read" | "wait" | "teardown";

/** Data of the `job/*` entries, for `EventData`. */
export interface JobEventData {
  "job/start": {
    readonly id: string;
    readonly kind: string;
    /** Whole; snapshots hold at most 1 KiB of it. */
    readonly label: string;
    /** `outputLimitBytes` */
    readonly limit?: number;
    readonly startedAt: number;
    readonly output: JobOutputForm;
    /** Names the job workflow and fences its reports: `<session>/job/<id>/<nonce>` (J2). */
    readonly nonce: string;
    readonly owner?: JobOwner;
    /** Of the `job.start` command that asked for it; a repeat answers this job (design D9). */
    readonly opId?: string;
  };
  /** Also a change while it stops: `detail` says what, `unreported` that the owner is to be told after all (J11, J12). */
  "job/stopping": {
    readonly id: string;
    readonly reason?: string;
    readonly detail?: string;
    readonly unreported?: true;
  };
  "job/settled": {
    readonly id: string;
    readonly status: JobEnd;
    readonly detail?: string;
    readonly finishedAt: number;
    /** Final output, inline. */
    readonly output?: string;
    /** Final output, in the store. */
    readonly ref?: StoredOutput;
    readonly tails?: readonly JobTail[];
    /** Its worker is gone (J8): output may be incomplete, and a kill that ended so is told to the owner. */
    readonly lost?: true;
    /** Absent: not announced, because it was reported or nobody is there to be told. */
    readonly lane?: JobLane;
  };
  "job/reported": { readonly id: string; readonly by: JobReporter };
  "job/cursor": { readonly id: string; readonly offsets: JobOffsets };
  "job/removed": { readonly ids: readonly string[] };
  /** The wake owed for these message ids is paid: one turn opens. */
  "job/woken": { readonly ids: readonly string[] };
}

export type JobEventType = keyof JobEventData;

/** A `job/*` entry before it has a place in the log. */
export type JobEntry = {
  [T in JobEventType]: { readonly type: T; readonly data: JobEventData[T] };
}[JobEventType];

/** A `job/*` entry of the log. */
export type JobLogEntry = {
  [T in JobEventType]: {
    readonly type: T;
    readonly seq: number;
    readonly time: number;
    readonly data: JobEventData[T];
  };
}[JobEventType];

/** One job as it is now, a fresh object each time; times are epoch ms (spec/jobs §2). */
export interface JobSnapshot {
  readonly id: string;
  readonly kind: string;
  readonly label: string;
  readonly outputLimitBytes?: number;
  readonly ownerSession?: string;
  readonly status: JobStatus;
  readonly detail?: string;
  readonly startedAt: number;
  /** Present exactly when the job has ended. */
  readonly finishedAt?: number;
  readonly reported: boolean;
}

/** What the model and user interfaces are shown of a job. */
export type PublicJob = Omit<JobSnapshot, "ownerSession" | "reported" | "outputLimitBytes">;

/** Whole set of a session's visible jobs (spec/jobs §15). */
export interface JobsFrame {
  readonly type: "session/jobs";
  readonly sessionId: string;
  readonly jobs: readonly PublicJob[];
}

/** Limits and delivery, captured in the session (spec/jobs §13, J27). */
export interface JobsConfig {
  readonly maxConcurrentJobsPerOwner: number;
  readonly waitTimeoutMs: number;
  readonly maxWaitTimeoutMs: number;
  readonly completionDelivery: "quiet" | "wakeup";
  readonly maxConsecutiveWakes: number;
  /** Off: no tool takes `run_in_background`. */
  readonly enableRunInBackground: boolean;
  /** How often a followed job's worker beats, ms: on a paid cluster each beat that is sent costs an action. */
  readonly heartbeatMs: number;
  /** A lost worker is noticed after this long without a beat, ms. */
  readonly heartbeatTimeoutMs: number;
  /** How long a job lives without a worker process on its host, ms (J9). */
  readonly orphanGraceMs: number;
  /** Bytes of each output stream that the store takes; beyond them only the readable tail is kept (J14). */
  readonly outputBytes: number;
}

export const defaultJobsConfig: JobsConfig = {
  maxConcurrentJobsPerOwner: 10,
  waitTimeoutMs: 30_000,
  maxWaitTimeoutMs: 600_000,
  completionDelivery: "wakeup",
  maxConsecutiveWakes: 3,
  enableRunInBackground: true,
  heartbeatMs: 2_000,
  heartbeatTimeoutMs: 15_000,
  orphanGraceMs: 300_000,
  outputBytes: 67_108_864,
};

/** A kind of job a host can run, as the logged tool table knows it (J26). */
export interface JobKindRow {
  readonly kind: string;
  readonly output: JobOutputForm;
  /** Results of the job tools are cut to so many bytes; absent: not cut (spec/jobs §11). */
  readonly outputLimitBytes?: number;
}

/** What a producer asks to be started. */
export interface JobSpec {
  readonly kind: string;
  readonly label: string;
  readonly output: JobOutputForm;
  readonly outputLimitBytes?: number;
}

/** Payload of the `job.report` signal. */
export type JobReport = {
  readonly id: string;
  readonly nonce: string;
  /** Token of the owner it was started for; absent for an unowned job. */
  readonly owner?: string;
} & (
  | {
      readonly report: "settled";
      readonly outcome: JobOutcome;
      /** The host it ran on. */
      readonly host?: string;
      /** No worker of the host answered for it: its session may be cold (design D5). */
      readonly silent?: true;
    }
  /** The worker could not end it, e.g. `EPERM`: it stays `stopping` (J12). */
  | { readonly report: "cancel-failed"; readonly message: string }
);

export interface JobOutcome {
  readonly status: JobEnd;
  readonly detail?: string;
  readonly output?: string;
  readonly ref?: StoredOutput;
  readonly tails?: readonly JobTail[];
  readonly lost?: true;
}

/** What deciding asks the workflow to do outside; it performs it at once and reports back (design D10). */
export type JobEffect =
  | {
      readonly kind: "start-job";
      readonly id: string;
      readonly nonce: string;
      readonly spec: JobSpec;
      readonly owner?: JobOwner;
    }
  | CancelJob;

/** Answered by `acceptKill`/`failKill`, or for a teardown by `acceptTeardown`/`failTeardown`. */
export interface CancelJob {
  readonly kind: "cancel-job";
  readonly id: string;
  readonly nonce: string;
  readonly by: "kill" | "teardown";
  readonly reason?: string;
}

/** A completion on its way to its owner. */
export interface JobNotice {
  readonly lane: JobLane;
  readonly owner: JobOwner;
  readonly message: UserMessage;
}

/** Start input of the `job` workflow, whose id is `<session>/job/<jobId>/<nonce>` (J1, J2). */
export interface JobWorkflowInput {
  readonly v: 1;
  readonly session: string;
  readonly token: string;
  readonly jobId: string;
  readonly nonce: string;
  readonly host: string;
  readonly kind: string;
  readonly label: string;
  /** What the kind is to do; checked by the host. */
  readonly input: JsonObject;
  /** Absolute workspace of the session. */
  readonly cwd?: string;
  readonly outsideWorkspace: boolean;
  readonly heartbeatMs: number;
  readonly heartbeatTimeoutMs: number;
  readonly orphanGraceMs: number;
  readonly outputBytes: number;
}

/** What a job workflow returns; the session was told by signal. */
export interface JobWorkflowResult {
  readonly status: JobEnd;
  readonly detail?: string;
}

/** Payload of the signal `job.kill` to a job workflow: the reason travels with the request, for cancellation has none (J13). */
export interface JobKillRequest {
  readonly reason?: string;
}

/** Bytes of one stream that were read for a delta. */
export interface JobStreamRead {
  readonly stream: string;
  readonly text: string;
  /** Offset after them. */
  readonly to: number;
  /** Unread bytes before them are no longer in the readable tail. */
  readonly dropped?: boolean;
}

/** Payload of the signal `job.progress` from a job's follower to its workflow: for people, at growing distances. */
export interface JobProgress {
  /** Of all streams together. */
  readonly bytes: number;
  /** The newest output, at most 4 KB. */
  readonly tail: string;
}
