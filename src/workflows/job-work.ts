import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  isCancellation,
} from "@temporalio/workflow";
import type { ReadJobInput } from "../contracts/activities.js";
import { isErrorCode } from "../contracts/errors.js";
import type { JobAnswer, JobWork, Op, OutsideRead } from "../domain/effects.js";
import { isCounted } from "../domain/job-waits.js";
import { isLive, jobOf } from "../domain/jobs.js";
import type { Session } from "../domain/session.js";
import { readCalls, sessionRef } from "./activity-calls.js";
import type { JobWorkflows } from "./job-workflows.js";

/** What the job tools wait for (spec/jobs §10). Never rejects. */
export async function performJobWork(
  session: Session,
  jobs: JobWorkflows,
  { key, work }: Extract<Op, { readonly kind: "job" }>,
): Promise<JobAnswer> {
  try {
    switch (work.do) {
      case "wait":
        if (isCounted(session.waits, key))
          await condition(() => !isCounted(session.waits, key), work.ms);
        return { kind: "done" };
      case "read":
        return await readOutput(session, work.job, work.plan);
      case "cancel":
        return await CancellationScope.nonCancellable(() => jobs.ask(work.effect));
      case "look":
        await CancellationScope.nonCancellable(() => jobs.look(work.jobs));
        return { kind: "done" };
    }
  } catch (error) {
    return failed(error);
  }
}

export function describeJobWork(work: JobWork): string {
  switch (work.do) {
    case "wait":
      return `waiting for ${work.job}`;
    case "read":
      return `reading ${work.job}`;
    case "cancel":
      return `ending ${work.effect.id}`;
    case "look":
      return `looking for ${work.jobs.join(", ")}`;
  }
}

async function readOutput(session: Session, id: string, plan: OutsideRead): Promise<JobAnswer> {
  const job = jobOf(session.folds.jobs, id);
  if (job === undefined)
    return { kind: "failed", code: "JOB_NOT_FOUND", message: `unknown job ${id}` };
  const { reads, locators } = await readCalls(`read ${id}`)["job.read"]({
    ...sessionRef(),
    jobId: id,
    nonce: job.nonce,
    from: placeOf(plan, !isLive(job)),
  });
  return { kind: "read", reads, locators };
}

function placeOf(plan: OutsideRead, ended: boolean): ReadJobInput["from"] {
  switch (plan.from) {
    case "store":
      return { ref: plan.ref };
    case "archive":
      return { archived: plan.seq, segment: plan.segment };
    case "streams":
      return { streams: plan.offsets, ended };
  }
}

function failed(error: unknown): JobAnswer {
  if (isCancellation(error)) {
    return {
      kind: "failed",
      code: "ABORTED",
      message: "the turn was aborted while this call waited",
    };
  }
  const cause = error instanceof ActivityFailure ? error.cause : error;
  const known = cause instanceof ApplicationFailure && isErrorCode(cause.type);
  return {
    kind: "failed",
    code: known && isErrorCode(cause.type) ? cause.type : "TOOL_FAILED",
    message: cause instanceof Error ? cause.message : String(cause),
  };
}
