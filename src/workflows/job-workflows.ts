import {
  allHandlersFinished,
  CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  condition,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  startChild,
  TerminatedFailure,
  TimeoutFailure,
  WorkflowIdReusePolicy,
  workflowInfo,
  type ChildWorkflowHandle,
} from "@temporalio/workflow";
import type {
  CancelJob,
  JobKillRequest,
  JobWorkflowInput,
  JobWorkflowResult,
} from "../contracts/jobs.js";
import { commands, jobWorkflowId, workflowTypes } from "../contracts/names.js";
import { rejection } from "../domain/commands.js";
import { oneLine } from "../domain/details.js";
import type { JobAnswer, SessionEffect } from "../domain/effects.js";
import { decideOverdue, nextOverdueAt } from "../domain/job-kill.js";
import { jobDetails } from "../domain/job-texts.js";
import { isLive, jobOf } from "../domain/jobs.js";
import type { Session } from "../domain/session.js";
import { cancelAnswered, settleJob } from "../domain/session-jobs.js";
import { lookCalls } from "./activity-calls.js";
import type { Begin } from "./pump.js";

type StartJob = Extract<SessionEffect, { readonly kind: "start-job" }>;

/** The workflows of a session's jobs (spec/jobs J1): started, asked for their end, watched when they do not come to it. */
export class JobWorkflows {
  readonly #session: Session;
  readonly #begin: Begin;
  readonly #show: () => void;
  readonly #starts = new Map<string, Promise<void>>();
  #timing: CancellationScope | undefined;

  constructor(session: Session, begin: Begin, show: () => void) {
    this.#session = session;
    this.#begin = begin;
    this.#show = show;
  }

  /** Is a job about to be overdue that nobody times? */
  get due(): boolean {
    return this.#timing === undefined && nextOverdueAt(this.#session.folds.jobs) !== undefined;
  }

  run(): void {
    if (this.due) this.#begin(() => this.#timeOverdue());
  }

  /** Gives up the timer; another run arms its own. */
  rest(): void {
    this.#timing?.cancel();
  }

  start(effect: StartJob): void {
    this.#begin(() => this.#startJob(effect));
  }

  /** For whoever does not wait for the answer: it is logged. */
  cancel(effect: CancelJob): void {
    this.#begin(() => this.#cancelQueued(effect));
  }

  /** Asks a job's workflow for its end; `done` when the server has accepted the request (spec/jobs J12). */
  async ask(effect: CancelJob): Promise<JobAnswer> {
    await this.#starts.get(effect.id);
    await condition(allHandlersFinished);
    const { id, nonce, reason } = effect;
    const handle = getExternalWorkflowHandle(jobWorkflowId(this.#session.id, id, nonce));
    const request: JobKillRequest = reason === undefined ? {} : { reason };
    try {
      await handle.signal(defineSignal<[JobKillRequest]>(commands.jobKill), request);
      return { kind: "done" };
    } catch (error) {
      // Its workflow is gone without a word: what became of it is the answer.
      await this.look([id]);
      return { kind: "failed", code: "JOB_NOT_FOUND", message: messageOf(error) };
    }
  }

  /** Settles those of the jobs whose workflows are closed. What nobody can say stays. */
  async look(ids: readonly string[]): Promise<void> {
    const session = this.#session;
    const jobs = ids.flatMap((id) => jobOf(session.folds.jobs, id) ?? []);
    const workflowIds = jobs.map(({ id, nonce }) => jobWorkflowId(session.id, id, nonce));
    await condition(allHandlersFinished);
    try {
      const { statuses } = await lookCalls(oneLine(`look for ${ids.join(", ")}`))["job.look"]({
        v: 1,
        workflowIds,
      });
      for (const [index, { id }] of jobs.entries()) {
        const status = statuses[index] ?? "running";
        if (status === "running") session.heard.set(id, session.now);
        else settleJob(session, id, { status: "failed", detail: jobDetails.hostEnded(status) });
      }
    } catch {
      // The next call asks again.
    }
  }

  async #startJob(effect: StartJob): Promise<void> {
    const session = this.#session;
    const starting = this.#startChild(effect);
    this.#starts.set(
      effect.id,
      starting.then(() => {}),
    );
    const child = await starting;
    this.#starts.delete(effect.id);
    // Beside the loop for as long as the job lives; it holds no command, and a new run does without it.
    if (child !== undefined) {
      void child
        .result()
        .then(
          (result) => ended(session, effect.id, result),
          (error: unknown) => settleJob(session, effect.id, endedBy(error)),
        )
        .then(() => this.#show());
    }
  }

  async #startChild(
    effect: StartJob,
  ): Promise<
    ChildWorkflowHandle<(input: JobWorkflowInput) => Promise<JobWorkflowResult>> | undefined
  > {
    const session = this.#session;
    const { id, nonce, spec } = effect;
    try {
      return await startChild<(input: JobWorkflowInput) => Promise<JobWorkflowResult>>(
        workflowTypes.job,
        {
          workflowId: jobWorkflowId(session.id, id, nonce),
          taskQueue: workflowInfo().taskQueue,
          args: [inputOf(session, effect)],
          staticSummary: oneLine(spec.label, 200),
          workflowTaskTimeout: workflowInfo().taskTimeoutMs,
          parentClosePolicy: ParentClosePolicy.ABANDON,
          cancellationType: ChildWorkflowCancellationType.ABANDON,
          workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        },
      );
    } catch (error) {
      const detail = jobDetails.spawnFailed(messageOf(error));
      settleJob(session, id, { status: "failed", detail });
      return undefined;
    }
  }

  async #cancelQueued(effect: CancelJob): Promise<void> {
    const session = this.#session;
    const answer = await this.ask(effect);
    const refusal = cancelAnswered(session, effect, answer);
    if (refusal !== undefined) session.record(rejection(commands.jobKill, effect, refusal));
  }

  /** One timer for all: it shows which jobs have not confirmed their end within 30 s (spec/jobs J11). */
  async #timeOverdue(): Promise<void> {
    const session = this.#session;
    const scope = new CancellationScope();
    this.#timing = scope;
    try {
      await scope.run(async () => {
        for (;;) {
          const at = nextOverdueAt(session.folds.jobs);
          if (at === undefined) return;
          const due = (): boolean => nextOverdueAt(session.folds.jobs) !== at;
          const moved = await condition(due, Math.max(1, at - session.now));
          // Also before the next timer, which is a command (facts §0.11).
          await condition(allHandlersFinished);
          if (!moved) session.record(...decideOverdue(session.folds.jobs, session.now));
        }
      });
    } catch (error) {
      if (!isCancellation(error)) throw error;
    } finally {
      this.#timing = undefined;
      // A scope that is cancelled is let go of by its parent.
      scope.cancel();
    }
  }
}

function inputOf(session: Session, { id, nonce, spec, input }: StartJob): JobWorkflowInput {
  const { config, jobsConfig, folds } = session;
  const { heartbeatMs, heartbeatTimeoutMs, orphanGraceMs, outputBytes } = jobsConfig;
  return {
    v: 1,
    session: session.id,
    token: session.names.token,
    jobId: id,
    nonce,
    host: folds.place.host ?? "",
    kind: spec.kind,
    label: spec.label,
    input,
    ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
    outsideWorkspace: config.outsideWorkspace,
    heartbeatMs,
    heartbeatTimeoutMs,
    orphanGraceMs,
    outputBytes,
  };
}

/** The report came before; this is for one that was lost. */
function ended(session: Session, id: string, { status, detail }: JobWorkflowResult): void {
  const job = jobOf(session.folds.jobs, id);
  if (job === undefined || !isLive(job)) return;
  settleJob(session, id, { status, ...(detail === undefined ? {} : { detail }) });
}

function endedBy(error: unknown): Parameters<typeof settleJob>[2] {
  const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
  const why =
    cause instanceof TerminatedFailure
      ? "terminated"
      : cause instanceof TimeoutFailure
        ? "timed out"
        : isCancellation(error)
          ? "cancelled"
          : `failed: ${messageOf(cause)}`;
  return { status: "failed", detail: jobDetails.hostEnded(why) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
