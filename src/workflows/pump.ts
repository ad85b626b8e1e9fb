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
  sleep,
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
import type { NewEntry } from "../contracts/log.js";
import { commands, jobWorkflowId, workflowTypes } from "../contracts/names.js";
import { rejection } from "../domain/commands.js";
import { oneLine } from "../domain/details.js";
import type { JobAnswer, SessionEffect } from "../domain/effects.js";
import { decideOverdue, nextOverdueAt } from "../domain/job-kill.js";
import { jobDetails } from "../domain/job-texts.js";
import { isLive, jobOf } from "../domain/jobs.js";
import { driveReminders, livenessEntries, mustAskHost } from "../domain/place.js";
import type { Drive } from "../domain/schedule-drive.js";
import type { Session } from "../domain/session.js";
import { cancelAnswered, payOwedWake, settleJob } from "../domain/session-jobs.js";
import { lookCalls } from "./activity-calls.js";
import type { Console } from "./console.js";
import { awaitHost, isPresent, rebindTable } from "./tool-table.js";

/** A probe is begun on its own. */
const idleDrives: ReadonlySet<Drive["kind"]> = new Set(["keep", "probe"]);

type StartJob = Extract<SessionEffect, { readonly kind: "start-job" }>;

/**
 * What a session does outside besides its turns (design D10): starts the workflows of jobs, asks for their end, watches
 * overdue ones, and waits for a host that does not answer. The loops call `run` after each of their waits, so it is at
 * once also in a turn; it never waits itself, and all it begins is tracked.
 */
export class EffectPump {
  readonly #session: Session;
  readonly #console: Pick<Console, "show" | "count">;
  /** Effects begun by a turn do not belong to its scope. */
  readonly #scope = CancellationScope.current();
  readonly #running = new Set<Promise<void>>();
  readonly #starts = new Map<string, Promise<void>>();
  /** Waits for a host that does not answer, and for the next reminder. */
  #standing: CancellationScope | undefined;
  #awaiting: Promise<void> | undefined;
  #timer: CancellationScope | undefined;
  #armedFor: number | undefined;
  #asking = false;
  #timing = false;

  constructor(session: Session, console: Pick<Console, "show" | "count">) {
    this.#session = session;
    this.#console = console;
  }

  /** Is there something to begin? */
  get due(): boolean {
    const { effects } = this.#session;
    return (
      effects.length > 0 ||
      this.#mustAwait ||
      this.#mustAsk ||
      this.#mustTime ||
      this.#mustLetGo ||
      !idleDrives.has(this.#drive().kind)
    );
  }

  /** Begins what is due. To be called when all handlers have finished (facts §0.11). */
  run(): void {
    const { effects } = this.#session;
    while (effects.length > 0) {
      const effect = effects.shift();
      if (effect === undefined) break;
      if (effect.kind === "start-job") this.#begin(() => this.#startJob(effect));
      else if (effect.kind === "cancel-job") this.#begin(() => this.#cancelQueued(effect));
      else this.#bind(effect.epoch);
    }
    if (this.#mustTime) this.#begin(() => this.#timeOverdue());
    if (this.#mustLetGo) this.#letGo();
    if (this.#mustAwait) this.#awaitHost();
    this.#remind();
    if (this.#mustAsk) this.#begin(() => this.#askHost());
    this.#console.count();
  }

  /** Asks a job's workflow for its end; `done` when the server has accepted the request (spec/jobs J12). */
  async cancelJob(effect: CancelJob): Promise<JobAnswer> {
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

  /** Ends what waits without end, and lets the rest come to its end. */
  async stop(): Promise<void> {
    this.#disarm();
    this.#letGo();
    await this.#awaiting;
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** A host that does not answer is waited for with one question in its queue. */
  get #mustAwait(): boolean {
    const { place } = this.#session.folds;
    return (
      place.cold &&
      place.host !== undefined &&
      !place.suspended &&
      this.#session.closing === undefined &&
      this.#awaiting === undefined
    );
  }

  get #mustAsk(): boolean {
    return !this.#asking && mustAskHost(this.#session, this.#armedFor);
  }

  #drive(): Drive {
    return driveReminders(this.#session, this.#armedFor);
  }

  /** Delivers what is due and keeps the one timer of the next reminder (spec/schedule C3). */
  #remind(): void {
    const drive = this.#drive();
    switch (drive.kind) {
      case "deliver":
        this.#session.record(...(drive.entries as readonly NewEntry[]));
        return;
      case "disarm":
        return this.#disarm();
      case "arm": {
        this.#disarm();
        const { ms, at, summary } = drive;
        const timer = new CancellationScope({ cancellable: true, parent: this.#scope });
        this.#timer = timer;
        this.#armedFor = at;
        const fired = timer
          .run(() => sleep(Math.max(1, ms), { summary }))
          .then(() => {
            this.#timer = undefined;
            this.#armedFor = undefined;
            // Its parent lets go of it.
            timer.cancel();
          })
          .catch(ignoreCancellation);
        void fired;
        return;
      }
      case "keep":
      case "probe":
    }
  }

  #disarm(): void {
    const timer = this.#timer;
    this.#timer = undefined;
    this.#armedFor = undefined;
    timer?.cancel();
  }

  /** Asks once; an answer counts when the session is still bound to that host. */
  async #askHost(): Promise<void> {
    const session = this.#session;
    const { host, epoch } = session.folds.place;
    if (host === undefined) return;
    this.#asking = true;
    const answered = await isPresent(host);
    this.#asking = false;
    if (session.folds.place.epoch !== epoch) return;
    if (answered) {
      session.answeredAt = session.now;
      payOwedWake(session);
    } else {
      const why = `host ${host} did not answer within 60 s`;
      session.record(...livenessEntries(session.folds.place, { cold: true }, why));
    }
  }

  #awaitHost(): void {
    const standing = new CancellationScope({ cancellable: true, parent: this.#scope });
    this.#standing = standing;
    this.#awaiting = standing
      .run(() => awaitHost(this.#session))
      .then(() => payOwedWake(this.#session))
      .catch(ignoreCancellation)
      .finally(() => {
        if (this.#standing === standing) this.#standing = undefined;
        this.#awaiting = undefined;
        standing.cancel();
        this.#console.show();
      });
  }

  get #mustLetGo(): boolean {
    return this.#standing !== undefined && this.#session.folds.place.suspended;
  }

  #letGo(): void {
    const standing = this.#standing;
    this.#standing = undefined;
    standing?.cancel();
  }

  #bind(epoch: number): void {
    this.#letGo();
    this.#begin(() => rebindTable(this.#session, epoch));
  }

  get #mustTime(): boolean {
    return !this.#timing && nextOverdueAt(this.#session.folds.jobs) !== undefined;
  }

  #begin(work: () => Promise<void>): void {
    const running = this.#scope
      .run(work)
      .finally(() => this.#running.delete(running))
      .finally(() => this.#console.show());
    this.#running.add(running);
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
        .then(() => this.#console.show());
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
    const answer = await this.cancelJob(effect);
    const refusal = cancelAnswered(session, effect, answer);
    if (refusal !== undefined) session.record(rejection(commands.jobKill, effect, refusal));
  }

  /** One timer for all: it shows which jobs have not confirmed their end within 30 s (spec/jobs J11). */
  async #timeOverdue(): Promise<void> {
    const session = this.#session;
    this.#timing = true;
    try {
      for (;;) {
        const at = nextOverdueAt(session.folds.jobs);
        if (at === undefined) return;
        const due = (): boolean => nextOverdueAt(session.folds.jobs) !== at;
        if (await condition(due, Math.max(1, at - session.now))) continue;
        await condition(allHandlersFinished);
        session.record(...decideOverdue(session.folds.jobs, session.now));
      }
    } finally {
      this.#timing = false;
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

function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
