import type { ReadTimeInput } from "../contracts/activities.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { JsonObject, RequestConfig } from "../contracts/header.js";
import type { CancelJob, JobEffect, JobStreamRead } from "../contracts/jobs.js";
import type { ModelOutcome, ModelRoute } from "../contracts/model.js";
import type { LocalTime, ZoneAnswer } from "../contracts/schedule.js";
import type { ArgumentsRef, ToolOutcome, ToolRow } from "../contracts/tools.js";
import type { ReadPlan } from "./job-output.js";

/** A piece of outside work the loop begins. `key` names it among the work under way. */
export type Op =
  | {
      readonly kind: "model";
      readonly key: string;
      readonly turn: number;
      readonly step: number;
      readonly retry: number;
      readonly headerSeq: number;
      readonly length: number;
      readonly digest: string;
      readonly timeoutMs: number;
      /** `provider/model`, for people. */
      readonly route: string;
    }
  | {
      /** A summary of the first `length` nodes of the surface (spec/harness §6). */
      readonly kind: "summary";
      /** Id of its compaction. */
      readonly key: string;
      /** The turn and step that are open, or were last. */
      readonly turn: number;
      readonly step: number;
      readonly headerSeq: number;
      readonly length: number;
      readonly digest: string;
      /** Stands after those messages as a user's. */
      readonly instruction: string;
      readonly maxTokens: number;
      readonly timeoutMs: number;
      readonly route: string;
    }
  | {
      readonly kind: "tool";
      readonly key: string;
      readonly row: ToolRow;
      readonly callId: string;
      /** `<turn>.<step>.<callId>` */
      readonly claim: string;
      readonly args: ArgumentsRef;
      readonly deadlineMs?: number;
    }
  | { readonly kind: "sleep"; readonly key: string; readonly ms: number; readonly summary: string }
  | { readonly kind: "route"; readonly key: string; readonly request: RequestConfig }
  | { readonly kind: "tools"; readonly key: string }
  | { readonly kind: "job"; readonly key: string; readonly work: JobWork }
  | { readonly kind: "zone"; readonly key: string; readonly local: LocalTime }
  | { readonly kind: "time"; readonly key: string; readonly input: ReadTimeInput };

/** What a job tool waits for. */
export type JobWork =
  /** Until no wait of this key is counted any more, at most `ms`. */
  | { readonly do: "wait"; readonly job: string; readonly ms: number }
  | { readonly do: "read"; readonly job: string; readonly plan: OutsideRead }
  | { readonly do: "cancel"; readonly effect: CancelJob }
  /** Are the workflows of these jobs still open? Those that are not are settled by it. */
  | { readonly do: "look"; readonly jobs: readonly string[] };

/** A read that workflow code cannot answer by itself. */
export type OutsideRead =
  | Extract<ReadPlan, { readonly from: "store" | "streams" }>
  /** The `output` of an entry `job/settled` that is archived, in the chain that ends with `segment`. */
  | { readonly from: "archive"; readonly seq: number; readonly segment: string };

export type JobAnswer =
  | { readonly kind: "done" }
  | {
      readonly kind: "read";
      readonly reads: readonly JobStreamRead[];
      readonly locators: readonly string[];
    }
  | { readonly kind: "failed"; readonly code: ErrorCode; readonly message: string };

/** Outside work that nobody in a turn waits for: done beside the loop, at once (design D10). */
export type SessionEffect =
  | (Extract<JobEffect, { readonly kind: "start-job" }> & { readonly input: JsonObject })
  | CancelJob
  /** Asks the host of this binding epoch for its table. */
  | { readonly kind: "bind"; readonly epoch: number };

/** What the loop asks its driver for. Only `wait` and `settle` take time. */
export type Effect =
  | { readonly kind: "start"; readonly op: Op }
  | { readonly kind: "cancel"; readonly key: string }
  /** Until some op has settled, or, when `abortable`, until an abort was requested. */
  | { readonly kind: "wait"; readonly abortable: boolean }
  /** Until every message handler has finished (facts §0.11). */
  | { readonly kind: "settle" };

export type Settled =
  | { readonly kind: "model"; readonly key: string; readonly outcome: ModelOutcome }
  | { readonly kind: "summary"; readonly key: string; readonly outcome: ModelOutcome }
  | { readonly kind: "tool"; readonly key: string; readonly result: ToolSettled }
  | { readonly kind: "sleep"; readonly key: string }
  | { readonly kind: "route"; readonly key: string; readonly route: ModelRoute | undefined }
  | { readonly kind: "tools"; readonly key: string }
  | { readonly kind: "job"; readonly key: string; readonly answer: JobAnswer }
  /** Absent: nobody could say. */
  | { readonly kind: "zone"; readonly key: string; readonly zone: ZoneAnswer | undefined }
  | { readonly kind: "time"; readonly key: string; readonly text: string | undefined }
  | { readonly kind: "abort" };

/** `unstarted`: no body ran, because the call was cancelled first. */
export type ToolSettled =
  | { readonly kind: "outcome"; readonly outcome: ToolOutcome }
  | { readonly kind: "unstarted" };

/** The agent loop: yields what it wants done, is resumed with what happened. Pure; no clock, no I/O. */
export type Loop<T> = Generator<Effect, T, Settled | undefined>;

/** Begins work without waiting for it. */
export function* start(op: Op): Loop<void> {
  yield { kind: "start", op };
}

/** Asks for the end of work that was begun; its result still comes. */
export function* cancel(key: string): Loop<void> {
  yield { kind: "cancel", key };
}

/** The next thing that happened. */
export function* wait(abortable: boolean): Loop<Settled> {
  const settled = yield { kind: "wait", abortable };
  return settled ?? { kind: "abort" };
}

/** Runs one op to its end. When an abort is requested it is cancelled, and what it has is returned. */
export function* runOne(op: Op, aborting: () => boolean): Loop<Settled> {
  yield { kind: "start", op };
  let cancelled = false;
  for (;;) {
    if (aborting() && !cancelled) {
      cancelled = true;
      yield { kind: "cancel", key: op.key };
    }
    const settled = yield* wait(!cancelled);
    if (settled.kind !== "abort" && settled.key === op.key) return settled;
  }
}

/** Runs one op to its end, whatever is asked meanwhile. */
export function* runWhole(op: Op): Loop<Settled> {
  yield { kind: "start", op };
  for (;;) {
    const settled = yield* wait(false);
    if (settled.kind !== "abort" && settled.key === op.key) return settled;
  }
}
