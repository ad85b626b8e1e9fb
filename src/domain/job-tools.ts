import type { ErrorCode } from "../contracts/errors.js";
import type { JsonObject } from "../contracts/header.js";
import type { CancelJob, JobEntry, JobsConfig, PublicJob } from "../contracts/jobs.js";
import type { ToolOutcome } from "../contracts/tools.js";
import { checkArguments, invalidArguments } from "./argument-schema.js";
import { acceptKill, decideKill, failKill, type KillResult } from "./job-kill.js";
import { deltaText, planRead, readEntries, type JobDelta, type ReadPlan } from "./job-output.js";
import type { BoundedText } from "./job-bound.js";
import { killParameters, outputParameters } from "./job-tool-rows.js";
import { killRequested, killTooLate, listLine, noJobs, noOutput, statusLine } from "./job-texts.js";
import { listJobs, publicJob, snapshotOf } from "./job-views.js";
import { decideWait } from "./job-waits.js";
import { foldEntries, jobOf, reach, type JobRecord, type JobsState } from "./jobs.js";
import { errorOutcome } from "./tool-outcome.js";
import { fieldsOf } from "./fields.js";

/**
 * The model's tools over background jobs (spec/jobs §10). Each is planned from its arguments, waits outside if it must, and
 * is finished in one block whose entries are logged with the result.
 */
export interface JobToolResult {
  readonly outcome: ToolOutcome;
  /** Logged right before the result, and only with it: what a read consumed. */
  readonly entries: readonly JobEntry[];
  /** Logged at once, whatever becomes of the result: what a kill changed. */
  readonly atOnce: readonly JobEntry[];
  /** The canonical value. */
  readonly value?: unknown;
  /** How the text may be cut, for `boundJobResult`. */
  readonly text?: BoundedText;
}

export type OutputPlan =
  | { readonly kind: "done"; readonly result: JobToolResult }
  /** Wait this long for the job's end, then read. */
  | { readonly kind: "wait"; readonly id: string; readonly ms: number }
  | { readonly kind: "read"; readonly id: string; readonly plan: ReadPlan };

export type KillPlan =
  | { readonly kind: "done"; readonly result: JobToolResult }
  /** Ask for the cancel, then finish with its answer. */
  | { readonly kind: "cancel"; readonly id: string; readonly effect: CancelJob };

/** First part of `job_output`: what it has to wait for. `args` may have any shape. */
export function planJobOutput(
  state: JobsState,
  args: unknown,
  caller: string | undefined,
  config: Pick<JobsConfig, "waitTimeoutMs" | "maxWaitTimeoutMs">,
  aborted = false,
): OutputPlan {
  const parsed = parseJobId(outputParameters, args);
  if (!parsed.ok) return parsed;
  const { id, fields } = parsed;
  const reached = reach(state, id, caller);
  if (!reached.ok) return failed(reached.code, reached.message);
  if (fields["wait"] === true) {
    const asked = fields["timeout_ms"] ?? config.waitTimeoutMs;
    const ms = typeof asked === "number" ? Math.min(asked, config.maxWaitTimeoutMs) : asked;
    const wait = decideWait(state, id, caller, ms, aborted);
    if (!wait.ok) return failed(wait.code, wait.message);
    if (wait.kind === "wait") return { kind: "wait", id, ms: wait.ms };
  }
  return { kind: "read", id, plan: planRead(reached.job) };
}

/** What is to be read after a wait, by the state as it is then. */
export function planAfterWait(state: JobsState, id: string): OutputPlan {
  const job = jobOf(state, id);
  if (job === undefined) return failed("JOB_NOT_FOUND", `unknown job ${id}`);
  return { kind: "read", id, plan: planRead(job) };
}

/** Last part of `job_output`: the text that was read and the job as it is now, in one block with the result. */
export function finishJobOutput(state: JobsState, id: string, delta: JobDelta): JobToolResult {
  const job = jobOf(state, id);
  if (job === undefined) return failed("JOB_NOT_FOUND", `unknown job ${id}`).result;
  const snapshot = snapshotOf(job);
  const text = deltaText(job, delta);
  const body = text === "" ? noOutput : text;
  const status = statusLine(snapshot);
  const shown = `${body}${body.endsWith("\n") ? "" : "\n"}${status}`;
  return {
    outcome: outcomeOf(shown, snapshot),
    entries: readEntries(job, delta),
    atOnce: [],
    value: { text, job: publicJob(snapshot) },
    text: {
      shown,
      content: body.endsWith("\n") ? body.slice(0, -1) : body,
      suffix: `\n${status}`,
    },
  };
}

/** `job_output` that failed on the way, such as an aborted wait or a read that threw: nothing is consumed or reported. */
export function failJobOutput(code: ErrorCode, message: string): JobToolResult {
  return failed(code, message).result;
}

export function runJobList(state: JobsState, caller: string | undefined): JobToolResult {
  const jobs = listJobs(state, caller);
  const text = jobs.length === 0 ? noJobs : jobs.map(listLine).join("\n");
  return {
    outcome: { content: [{ type: "text", text }], isError: false, meta: { jobs: jobs.length } },
    entries: [],
    atOnce: [],
    value: jobs.map(publicJob),
  };
}

/** First part of `job_kill`. */
export function planJobKill(state: JobsState, args: unknown, caller: string | undefined): KillPlan {
  const parsed = parseJobId(killParameters, args);
  if (!parsed.ok) return parsed;
  const { id, fields } = parsed;
  const { reason } = fields;
  const decision = decideKill(state, id, caller, typeof reason === "string" ? reason : undefined);
  if (!decision.ok) return failed(decision.code, decision.message);
  if (decision.result === "cancel") return { kind: "cancel", id, effect: decision.effect };
  return { kind: "done", result: killResult(state, id, decision) };
}

/** Last part of `job_kill`: the server accepted the cancel, or the error it refused it with. */
export function finishJobKill(
  state: JobsState,
  effect: CancelJob,
  answer: { readonly accepted: true } | { readonly accepted: false; readonly message: string },
): JobToolResult {
  const result = answer.accepted
    ? acceptKill(state, effect)
    : failKill(state, effect, answer.message);
  return killResult(state, effect.id, result);
}

/** The output limit of the job a call names, among those the caller can see; absent: the result is not bounded (§11). */
export function limitOfCall(
  state: JobsState,
  args: unknown,
  caller: string | undefined,
): number | undefined {
  const id = fieldsOf(args)["job_id"];
  if (typeof id !== "string") return undefined;
  const reached = reach(state, id, caller);
  return reached.ok ? reached.job.limit : undefined;
}

function killResult(state: JobsState, id: string, result: KillResult): JobToolResult {
  if (!result.ok) return failed(result.code, result.message).result;
  const after = foldEntries(state, result.entries);
  const job = snapshotOf(jobOf(after, id) as JobRecord);
  const requested = result.result === "requested";
  return {
    outcome: outcomeOf(requested ? killRequested(id) : killTooLate(job), job),
    entries: [],
    atOnce: result.entries,
    value: {
      outcome: requested ? "cancellation-requested" : "already-finished",
      job: publicJob(job),
    },
  };
}

function outcomeOf(text: string, { id, status }: Pick<PublicJob, "id" | "status">): ToolOutcome {
  return { content: [{ type: "text", text }], isError: false, meta: { jobId: id, status } };
}

function failed(
  code: ErrorCode,
  message: string,
): { readonly ok: false; readonly kind: "done"; readonly result: JobToolResult } {
  return {
    ok: false,
    kind: "done",
    result: { outcome: errorOutcome(code, message), entries: [], atOnce: [] },
  };
}

function parseJobId(
  schema: JsonObject,
  args: unknown,
):
  | { readonly ok: true; readonly id: string; readonly fields: { readonly [key: string]: unknown } }
  | ReturnType<typeof failed> {
  const violations = checkArguments(schema, args);
  if (violations.length > 0) return failed("INVALID_ARGS", invalidArguments(violations));
  const fields = fieldsOf(args);
  const id = fields["job_id"];
  if (typeof id !== "string" || id === "") {
    return failed("INVALID_ARGS", 'invalid job_id: expected a non-empty string, got ""');
  }
  return { ok: true, id, fields };
}
