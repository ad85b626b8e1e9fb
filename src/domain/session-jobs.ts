import { refuse, type Refusal } from "../contracts/errors.js";
import type { JsonObject } from "../contracts/header.js";
import type { CancelJob, JobOutcome } from "../contracts/jobs.js";
import type { JobKillResult, JobStartResult } from "../contracts/session.js";
import type { JobAnswer } from "./effects.js";
import {
  acceptKill,
  acceptTeardown,
  decideKill,
  decideRemoval,
  decideTeardown,
  failKill,
  ownedBy,
} from "./job-kill.js";
import { decideOwedWake } from "./job-notices.js";
import { answerIn } from "./job-report.js";
import { decideReport, decideSettle, failTeardown, type Settlement } from "./job-settle.js";
import { decideStart } from "./job-start.js";
import { jobDetails, ownerDisposed } from "./job-texts.js";
import { servesJobs } from "./job-tool-rows.js";
import { isLive } from "./jobs.js";
import { livenessEntries } from "./place.js";
import type { Session } from "./session.js";

/** What a session does with its background jobs: the decisions of the registry, logged, and their effects queued. */

export interface JobRequest {
  readonly kind: string;
  readonly label: string;
  readonly input: JsonObject;
  /** A repeat under the same one answers the job of the first. */
  readonly opId?: string;
}

/** Allocates an id and queues the start of the job's workflow (spec/jobs §4, J5). */
export function startJob(session: Session, request: JobRequest): JobStartResult {
  const { kind, label, input, opId } = request;
  const { place, jobs } = session.folds;
  const earlier = opId === undefined ? undefined : jobs.jobs.find((job) => job.opId === opId);
  if (earlier !== undefined) {
    if (earlier.kind === kind) return { ok: true, id: earlier.id };
    return refuse(
      "DUPLICATE_ID",
      `operation id ${JSON.stringify(opId)} has already started job ${earlier.id}; start this one under a new id`,
    );
  }
  const row = place.jobKinds.find((one) => one.kind === kind);
  const { token } = session.names;
  const decision = decideStart(
    jobs,
    { kind, label, output: row?.output, outputLimitBytes: row?.outputLimitBytes },
    { session: session.id, token },
    {
      config: session.jobsConfig,
      served: servesJobs(place.tools),
      kinds: place.jobKinds.map((one) => one.kind),
      owners: { [session.id]: token },
      now: session.now,
      nonce: session.names.nonce(),
      ...(opId === undefined ? {} : { opId }),
    },
  );
  if (!decision.ok) return decision;
  session.record(...decision.entries);
  session.heard.set(decision.id, session.now);
  for (const effect of decision.effects) {
    if (effect.kind === "start-job") session.effects.push({ ...effect, input });
  }
  return { ok: true, id: decision.id };
}

/** Queues the request to end a job; what became of it is logged when it is known (design D10). */
export function killJob(session: Session, id: string, reason?: string): JobKillResult {
  const decision = decideKill(session.folds.jobs, id, session.id, reason);
  if (!decision.ok) return decision;
  if (decision.result === "cancel") {
    session.effects.push(decision.effect);
    return { ok: true, result: "requested" };
  }
  session.record(...decision.entries);
  return { ok: true, result: "already-finished" };
}

/** The answer to a queued cancel: state follows the request (spec/jobs J12). Returns the refusal of a kill that failed. */
export function cancelAnswered(
  session: Session,
  effect: CancelJob,
  answer: JobAnswer,
): Refusal | undefined {
  const { jobs } = session.folds;
  if (effect.by === "teardown") {
    if (answer.kind !== "failed") session.record(...acceptTeardown(jobs, effect));
    else apply(session, failTeardown(jobs, effect, answer.message, settleContext(session)));
    return undefined;
  }
  const result =
    answer.kind === "failed" ? failKill(jobs, effect, answer.message) : acceptKill(jobs, effect);
  if (!result.ok) return result;
  session.record(...result.entries);
  return undefined;
}

/** Handles `job.report`, of any shape. Returns lines for operators; nothing is changed by a report that is late or foreign. */
export function reportJob(session: Session, input: unknown): readonly string[] {
  const told = answerIn(input);
  const here = told !== undefined && told.host === session.folds.place.host ? told : undefined;
  const before = session.answeredAt;
  // What the host answered for a job counts as its presence, what nobody answered does not (design D5).
  if (here !== undefined) session.answeredAt = here.answered ? session.now : undefined;
  const silent = here?.answered === false;
  const decision = decideReport(session.folds.jobs, input, settleContext(session, silent));
  if (!decision.ok) {
    session.answeredAt = before;
    return [decision.message];
  }
  if (!("snapshot" in decision)) {
    session.record(...decision.entries);
    return [];
  }
  apply(session, decision);
  if (silent) {
    const why = decision.snapshot.detail ?? "no worker of the host answered";
    session.record(...livenessEntries(session.folds.place, { cold: true }, why));
  }
  return decision.warnings;
}

/** Settles a job with what the session knows itself, such as the end of its workflow. Nothing when it has ended. */
export function settleJob(session: Session, id: string, outcome: JobOutcome): void {
  apply(session, decideSettle(session.folds.jobs, id, outcome, settleContext(session)));
}

/** Owner disposal, first part (spec/jobs §8). */
export function disposeJobs(session: Session): void {
  const mine = ownedBy(session.names.token);
  const { entries, effects } = decideTeardown(session.folds.jobs, mine, ownerDisposed);
  session.record(...entries);
  session.effects.push(...effects);
}

/** Owner disposal, last part: what has not confirmed its end is given up, and all records go. */
export function removeJobs(session: Session): void {
  for (const job of session.folds.jobs.jobs.filter(isLive)) {
    settleJob(session, job.id, { status: "failed", detail: jobDetails.unconfirmedAtClose });
  }
  session.record(...decideRemoval(session.folds.jobs, ownedBy(session.names.token)));
}

/** Opens the turn that is owed for completions of a time when none could open. */
export function payOwedWake(session: Session): void {
  session.record(...decideOwedWake(session.owner, session.jobsConfig));
}

/** Live jobs whose workflow was not heard of for this long are looked at before the model is told of them, ms. */
const silenceMs = 60_000;

/** Live jobs to look at now. The report of a job comes by itself; this is the backstop, e.g. after a reset. */
export function unheardJobs(session: Session): readonly string[] {
  const since = session.now - silenceMs;
  return session.folds.jobs.jobs
    .filter((job) => isLive(job) && (session.heard.get(job.id) ?? -Infinity) <= since)
    .map((job) => job.id);
}

function apply(session: Session, settlement: Settlement | { readonly ok: false }): void {
  if (!settlement.ok) return;
  session.record(...settlement.entries);
  session.waits = settlement.waits;
  for (const wait of settlement.released) session.released.add(wait);
  session.heard.delete(settlement.snapshot.id);
}

/** `silent`: the host did not answer for the job, so no turn is opened on its word (design D5). */
function settleContext(session: Session, silent = false): Parameters<typeof decideSettle>[3] {
  const { owner, waits, now, jobsConfig } = session;
  return { now, waits, owner: silent ? { ...owner, live: false } : owner, config: jobsConfig };
}
