import type { ToolOutcome, ToolRow } from "../contracts/tools.js";
import { checkArguments, invalidArguments } from "./argument-schema.js";
import {
  runOne,
  runWhole,
  type JobAnswer,
  type JobWork,
  type Loop,
  type OutsideRead,
} from "./effects.js";
import { fieldsOf } from "./fields.js";
import { utf8Bytes } from "./guards.js";
import { joinStreams, type JobDelta, type ReadPlan } from "./job-output.js";
import { backgroundDisabled, startedText, statusLine } from "./job-texts.js";
import { jobToolNames } from "./job-tool-rows.js";
import {
  failJobOutput,
  finishJobKill,
  finishJobOutput,
  planAfterWait,
  planJobKill,
  planJobOutput,
  runJobList,
  type JobToolResult,
} from "./job-tools.js";
import { snapshotOf } from "./job-views.js";
import { beginWait, endWait, isCounted, resumeWait } from "./job-waits.js";
import { isLive, jobOf } from "./jobs.js";
import type { PolicyCall } from "./policy.js";
import type { Session } from "./session.js";
import { startJob, unheardJobs } from "./session-jobs.js";
import { errorOutcome } from "./tool-outcome.js";

/** Input of a job travels in the history of the session and of the job: a larger one belongs in a file. */
const maxInputBytes = 262_144;

/** Is this call to start a background job instead of running its body? */
export function asksForBackground(row: ToolRow, args: unknown): boolean {
  return row.jobKind !== undefined && fieldsOf(args)["run_in_background"] === true;
}

/** Starts the call as a background job (spec/jobs §9); its end no longer depends on the call or its turn. */
export function startInBackground(session: Session, { row, args }: PolicyCall): ToolOutcome {
  const kind = row?.jobKind ?? "";
  if (!session.jobsConfig.enableRunInBackground) {
    return errorOutcome("JOBS_UNAVAILABLE", backgroundDisabled);
  }
  const violations = checkArguments(row?.parameters ?? {}, args);
  if (violations.length > 0) return errorOutcome("INVALID_ARGS", invalidArguments(violations));
  const { run_in_background: _, ...input } = fieldsOf(args);
  const bytes = utf8Bytes(JSON.stringify(input));
  if (bytes > maxInputBytes) {
    return errorOutcome(
      "INVALID_ARGS",
      `the arguments of a background job hold at most ${maxInputBytes} bytes, these have ${bytes}; put the text in a file and name it`,
    );
  }
  const started = startJob(session, {
    kind,
    label: labelOf(input, row),
    // Arguments are parsed JSON.
    input: input as Parameters<typeof startJob>[1]["input"],
  });
  if (!started.ok) return errorOutcome(started.code, started.message);
  return {
    content: [{ type: "text", text: startedText(started.id, kind) }],
    isError: false,
    meta: { kind: "background", jobId: started.id },
  };
}

/** Runs `job_output`, `job_list` or `job_kill`; they wait outside, and decide in the block that ends them. */
export function* runJobTool(
  session: Session,
  key: string,
  { name, args }: PolicyCall,
): Loop<JobToolResult> {
  if (name === jobToolNames.kill) return yield* kill(session, key, args);
  yield* look(session, key);
  if (name === jobToolNames.list) return runJobList(session.folds.jobs, session.id);
  const plan = planJobOutput(
    session.folds.jobs,
    args,
    session.id,
    session.jobsConfig,
    session.aborting,
  );
  if (plan.kind === "done") return plan.result;
  let spared = false;
  if (plan.kind === "wait") {
    const { id, ms } = plan;
    const cause = yield* counted(session, key, id, { do: "wait", job: id, ms });
    const resumed = resumeWait(session.folds.jobs, id, cause.kind);
    if (!resumed.ok) return failJobOutput(resumed.code, resumed.message);
    session.record(...resumed.entries);
    spared = cause.kind === "settled";
  }
  return yield* read(session, key, plan.id, spared);
}

/**
 * Reads what is new. A job that ends during the read is read again, so that its end and its last output come together.
 * `spared`: its end was not announced because this call delivers it, so also a call that fails tells it.
 */
function* read(session: Session, key: string, id: string, spared: boolean): Loop<JobToolResult> {
  for (let delivers = spared; ;) {
    const planned = planAfterWait(session.folds.jobs, id);
    if (planned.kind !== "read") return failJobOutput("JOB_NOT_FOUND", `unknown job ${id}`);
    const plan = placed(session, planned.plan);
    if (!isOutside(plan)) {
      return finishJobOutput(session.folds.jobs, id, knownDelta(session, plan));
    }
    const cause = yield* counted(session, key, id, { do: "read", job: id, plan });
    const { answer } = cause;
    delivers ||= cause.kind === "settled";
    if (cause.kind === "settled" && !session.aborting) continue;
    if (answer?.kind === "read") {
      const { reads, locators } = answer;
      const delta =
        plan.from === "streams" ? joinStreams(reads, { locators }) : { text: reads[0]?.text ?? "" };
      return finishJobOutput(session.folds.jobs, id, delta);
    }
    const [code, message] =
      answer?.kind === "failed"
        ? ([answer.code, answer.message] as const)
        : (["ABORTED", "the turn was aborted while the output was read"] as const);
    return failJobOutput(code, delivers ? `${message}; ${endOf(session, id)}` : message);
  }
}

/** An output in an entry that is archived meanwhile is read there. */
function placed({ log, segment }: Session, plan: ReadPlan): ReadPlan | OutsideRead {
  if (plan.from !== "entry" || plan.seq >= log.firstSeq) return plan;
  return { from: "archive", seq: plan.seq, segment };
}

function isOutside(plan: ReadPlan | OutsideRead): plan is OutsideRead {
  return plan.from === "store" || plan.from === "streams" || plan.from === "archive";
}

function knownDelta(session: Session, plan: Exclude<ReadPlan, OutsideRead>): JobDelta {
  if (plan.from === "here") return plan.delta;
  const entry = session.log.at(plan.seq);
  return { text: entry?.type === "job/settled" ? (entry.data.output ?? "") : "" };
}

interface Cause {
  readonly kind: "settled" | "timeout" | "abort";
  readonly answer?: JobAnswer;
}

/** Does work for a job with a wait counted meanwhile: an end of the job that comes then is delivered by it (spec/jobs §4). */
function* counted(session: Session, key: string, id: string, work: JobWork): Loop<Cause> {
  const job = jobOf(session.folds.jobs, id);
  if (job !== undefined && isLive(job)) session.waits = beginWait(session.waits, key, id);
  const live = isCounted(session.waits, key);
  const settled = yield* runOne({ kind: "job", key, work }, () => session.aborting);
  const answer = settled.kind === "job" ? { answer: settled.answer } : {};
  if (session.released.delete(key)) return { kind: "settled", ...answer };
  const aborted = live ? !isCounted(session.waits, key) : session.aborting;
  session.waits = endWait(session.waits, key);
  return { kind: aborted ? "abort" : "timeout", ...answer };
}

function* kill(session: Session, key: string, args: unknown): Loop<JobToolResult> {
  const plan = planJobKill(session.folds.jobs, args, session.id);
  if (plan.kind === "done") return plan.result;
  const { effect } = plan;
  // Not given up by an abort: what was asked of the host may have happened.
  const settled = yield* runWhole({ kind: "job", key, work: { do: "cancel", effect } });
  const failure =
    settled.kind === "job" && settled.answer.kind === "failed" ? settled.answer : undefined;
  return finishJobKill(
    session.folds.jobs,
    effect,
    failure === undefined ? { accepted: true } : { accepted: false, message: failure.message },
  );
}

function* look(session: Session, key: string): Loop<void> {
  const jobs = unheardJobs(session);
  if (jobs.length === 0) return;
  yield* runOne({ kind: "job", key, work: { do: "look", jobs } }, () => session.aborting);
}

function endOf(session: Session, id: string): string {
  const job = jobOf(session.folds.jobs, id);
  return job === undefined
    ? `job ${id} is gone`
    : `job ${id} has ended ${statusLine(snapshotOf(job))}, its output is still unread`;
}

/** For the shell its whole command; else what the call says of itself. */
function labelOf(input: { readonly [key: string]: unknown }, row: ToolRow | undefined): string {
  const text = [input["command"], input["label"], input["description"]].find(
    (one) => typeof one === "string" && one.trim() !== "",
  );
  return typeof text === "string" ? text : (row?.name ?? "job");
}
