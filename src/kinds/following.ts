import type { BeginJobInput } from "../contracts/activities.js";
import type { JobOutcome } from "../contracts/jobs.js";
import type { FollowRank } from "../process/jobs/follower-lock.js";
import type { JobKey } from "../process/jobs/spool.js";

/** A job to be begun; its directory on disk lets one caller begin it. */
export type BeginJob = Omit<BeginJobInput, "v">;

export type BegunJob =
  /** By this call or an earlier one. */
  | { readonly kind: "begun" }
  | { readonly kind: "full"; readonly jobs: number }
  /** Nothing ran and nothing will. */
  | { readonly kind: "refused"; readonly reason: string };

export interface FollowKind extends Omit<JobKey, "home"> {
  readonly kind: string;
  readonly rank: FollowRank;
  readonly outputBytes: number;
  /** Bytes of each stream and the last line, for Temporal UI. */
  readonly onProgress?: (progress: JobProgressDetails) => void;
  /** A kill could not end everything (spec/jobs J12); the job is followed on. */
  readonly onKillFailed?: (message: string) => void;
}

export interface JobProgressDetails {
  readonly [stream: string]: number | string;
}

export type FollowedEnd =
  | { readonly kind: "ended"; readonly outcome: JobOutcome }
  /** The job was left alone: on request, or because a follower of a higher rank has it. */
  | { readonly kind: "detached"; readonly why: "asked" | "displaced" };

export interface FollowedJob {
  readonly done: Promise<FollowedEnd>;
  /** Ends the job; it is at its end when `done` says so. The first reason counts. */
  kill(reason?: string): void;
  /** Stops following; the job goes on. */
  detach(): void;
  /** Its worker process is about to end: leaves the job alone if it outlives it, else ends it `failed` (spec/jobs J21). */
  shutDown(): void;
  readonly outlivesWorker: boolean;
  /** Is told why it is killed. */
  readonly takesReason: boolean;
}

export interface SweepQuestions {
  /** Is the job's workflow closed for certain? `open` and `unknown`, also by rejecting, leave the job alone. */
  readonly isOwnerClosed: (job: JobKey) => Promise<"closed" | "open" | "unknown">;
  readonly onTrouble: (job: JobKey, error: unknown) => void;
}

/** A job that was ended because its workflow was closed. */
export interface EndedJob {
  readonly job: JobKey;
  readonly token: string;
  readonly outcome: JobOutcome;
}
