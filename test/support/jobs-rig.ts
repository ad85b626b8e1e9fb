import { expect } from "vitest";
import type { Refusal } from "../../src/contracts/errors.js";
import {
  defaultJobsConfig,
  type CancelJob,
  type JobEntry,
  type JobLogEntry,
  type JobNotice,
  type JobOutcome,
  type JobOwner,
  type JobsConfig,
  type JobSnapshot,
  type JobSpec,
} from "../../src/contracts/jobs.js";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import type { ToolOutcome } from "../../src/contracts/tools.js";
import { boundJobResult } from "../../src/domain/job-bound.js";
import {
  acceptKill,
  acceptTeardown,
  decideKill,
  decideRemoval,
  decideTeardown,
  everyJob,
  failKill,
  ownedBy,
  type Disposed,
} from "../../src/domain/job-kill.js";
import { decideOwedWake } from "../../src/domain/job-notices.js";
import {
  deltaText,
  joinStreams,
  planRead,
  readEntries,
  type JobDelta,
  type ReadPlan,
} from "../../src/domain/job-output.js";
import {
  decideReport,
  failTeardown,
  type IgnoredReport,
  type ReportAccepted,
  type Settlement,
} from "../../src/domain/job-settle.js";
import { decideStart } from "../../src/domain/job-start.js";
import { ownerDisposed, serviceDisposed } from "../../src/domain/job-texts.js";
import {
  failJobOutput,
  finishJobKill,
  finishJobOutput,
  limitOfCall,
  planAfterWait,
  planJobKill,
  planJobOutput,
  runJobList,
  type JobToolResult,
} from "../../src/domain/job-tools.js";
import { changedOwners, checkSnapshot, listJobs, snapshotOf } from "../../src/domain/job-views.js";
import {
  beginWait,
  decideWait,
  endWait,
  isCounted,
  noWaits,
  resumeWait,
  type JobWaits,
} from "../../src/domain/job-waits.js";
import {
  emptyJobs,
  foldJobs,
  jobOf,
  offsetOf,
  reach,
  type JobsState,
} from "../../src/domain/jobs.js";
import { checkLossless } from "../../src/domain/lossless.js";
import { RigOwner } from "./jobs-rig-owner.js";

export interface RigWait {
  readonly wait: string;
  readonly id: string;
  cause: "settled" | "timeout" | "abort";
}

interface StartOptions {
  readonly owner?: RigOwner;
  readonly output?: JobSpec["output"];
  readonly limit?: unknown;
}

/**
 * A registry of background jobs over the pure core: ports cancel, read and now are the test's, everything else is the
 * reducer. Every entry is checked to be JSON, every snapshot to hold the invariants, after each step.
 */
export class JobRig {
  state: JobsState = emptyJobs;
  waits: JobWaits = noWaits;
  config: JobsConfig = defaultJobsConfig;
  served = true;
  kinds: readonly string[] | undefined;
  /** Token of the live owner of each session; undefined: no registry of owners. */
  owners: Record<string, string> | undefined = {};
  now = 1_000;
  readonly log: (LogEntry | JobLogEntry)[] = [];
  readonly known = new Map<string, RigOwner>();
  readonly started: string[] = [];
  readonly cancels: { readonly id: string; readonly reason: string | undefined }[] = [];
  /** What the cancel port throws, by job. */
  readonly cancelErrors = new Map<string, string>();
  readonly streams = new Map<string, Buffer>();
  readonly settled: JobSnapshot[] = [];
  readonly changes: (JobOwner | undefined)[] = [];
  readonly notices: JobNotice[] = [];
  readonly warnings: string[] = [];
  /** Told of each settlement inside its span, after the waits were released. */
  onSettled: ((snapshot: JobSnapshot) => void) | undefined;
  #waits = 0;

  /** A live owner, registered under its session; a later one of the same session replaces it. */
  owner(session: string, token = `${session}#1`): RigOwner {
    const owner = new RigOwner(session, token);
    this.known.set(token, owner);
    if (this.owners !== undefined) this.owners[session] = token;
    return owner;
  }

  start(kind: unknown, label: unknown = "work", options: StartOptions = {}): string | Refusal {
    const { owner, output = "stream", limit } = options;
    const spec = {
      kind,
      label,
      output,
      ...("limit" in options ? { outputLimitBytes: limit } : {}),
    };
    const decision = decideStart(this.state, spec, owner?.id, {
      config: this.config,
      served: this.served,
      ...(this.kinds === undefined ? {} : { kinds: this.kinds }),
      ...(this.owners === undefined ? {} : { owners: this.owners }),
      now: (this.now += 1),
      nonce: `n${this.log.length}`,
    });
    if (!decision.ok) return decision;
    this.record(...decision.entries);
    for (const effect of decision.effects) this.started.push(effect.id);
    return decision.id;
  }

  /** The id of a job that must start. */
  begin(kind: string, label = "work", options: StartOptions = {}): string {
    const id = this.start(kind, label, options);
    if (typeof id !== "string") throw new Error(id.message);
    return id;
  }

  list(caller?: string): readonly JobSnapshot[] {
    return listJobs(this.state, caller);
  }

  get(id: string): JobSnapshot {
    const job = jobOf(this.state, id);
    if (job === undefined) throw new Error(`the rig has no job ${id}`);
    return snapshotOf(job);
  }

  /** More output of a streaming job. */
  push(id: string, text: string): void {
    const before = this.streams.get(id) ?? Buffer.alloc(0);
    this.streams.set(id, Buffer.concat([before, Buffer.from(text)]));
  }

  /** A report of its job workflow. */
  report(id: string, more: Record<string, unknown>): Settlement | ReportAccepted | IgnoredReport {
    const job = jobOf(this.state, id);
    const head = { id, nonce: job?.nonce ?? "none" };
    const owner = job?.owner === undefined ? {} : { owner: job.owner.token };
    return this.receive({ ...head, ...owner, ...more });
  }

  receive(payload: unknown): Settlement | ReportAccepted | IgnoredReport {
    const id = (payload as { id?: string } | undefined)?.id ?? "";
    const decision = decideReport(this.state, payload, this.#context(id));
    if (decision.ok && "snapshot" in decision) this.#carryOut(decision);
    else if (decision.ok) this.record(...decision.entries);
    return decision;
  }

  settle(id: string, outcome: JobOutcome = { status: "completed" }): Settlement {
    const decision = this.report(id, { report: "settled", outcome });
    if (!decision.ok || !("snapshot" in decision)) throw new Error(JSON.stringify(decision));
    return decision;
  }

  kill(id: string, caller?: string, reason?: string): "requested" | "already-finished" | Refusal {
    const decision = decideKill(this.state, id, caller, reason);
    if (!decision.ok) return decision;
    if (decision.result === "already-finished") {
      this.record(...decision.entries);
      return decision.result;
    }
    const error = this.#cancel(decision.effect);
    const answer =
      error === undefined
        ? acceptKill(this.state, decision.effect)
        : failKill(this.state, decision.effect, error);
    if (!answer.ok) return answer;
    this.record(...answer.entries);
    return answer.result;
  }

  read(id: string, caller?: string): { text: string; snapshot: JobSnapshot } | Refusal {
    const reached = reach(this.state, id, caller);
    if (!reached.ok) return reached;
    const delta = this.fetch(id, planRead(reached.job));
    this.record(...readEntries(reached.job, delta));
    return { text: deltaText(reached.job, delta), snapshot: this.get(id) };
  }

  /** The read port: what an activity brings back. */
  fetch(id: string, plan: ReadPlan): JobDelta {
    switch (plan.from) {
      case "here":
        return plan.delta;
      case "entry": {
        const entry = this.log[plan.seq];
        return { text: entry?.type === "job/settled" ? (entry.data.output ?? "") : "" };
      }
      case "store":
        return { text: `<${plan.ref.ref}>` };
      case "streams": {
        const job = jobOf(this.state, id);
        const all = this.streams.get(id) ?? Buffer.alloc(0);
        const from = job === undefined ? 0 : offsetOf(job, "stdout");
        const text = all.subarray(from).toString();
        return joinStreams([{ stream: "stdout", text, to: all.length }]);
      }
    }
  }

  /** Begins a wait; the value is what it returned at once, or the handle of a counted one. */
  wait(
    id: string,
    timeoutMs: unknown,
    caller?: string,
    aborted = false,
  ): JobSnapshot | RigWait | Refusal {
    const decision = decideWait(this.state, id, caller, timeoutMs, aborted);
    if (!decision.ok) return decision;
    if (decision.kind === "ended") {
      this.record(...decision.entries);
      return decision.snapshot;
    }
    const wait = `w${(this.#waits += 1)}`;
    this.waits = beginWait(this.waits, wait, id);
    return { wait, id, cause: "timeout" };
  }

  /** A wait that must be counted. */
  waiting(id: string, timeoutMs = 5_000, caller?: string): RigWait {
    const wait = this.wait(id, timeoutMs, caller);
    if (!("cause" in wait)) throw new Error(JSON.stringify(wait));
    return wait;
  }

  /** Its signal is aborted: un-counted at once, unless a settlement has released it. */
  abort(wait: RigWait): void {
    if (!isCounted(this.waits, wait.wait)) return;
    this.waits = endWait(this.waits, wait.wait);
    wait.cause = "abort";
  }

  /** The waiter runs again: its timer fired, it was released, or its abort came. */
  resume(wait: RigWait): JobSnapshot | Refusal {
    this.waits = endWait(this.waits, wait.wait);
    const result = resumeWait(this.state, wait.id, wait.cause);
    if (!result.ok) return result;
    this.record(...result.entries);
    return result.snapshot;
  }

  /** Runs a model tool to its end, with what a policy makes of its outcome. */
  tool(
    name: string,
    args: unknown,
    options: {
      readonly caller?: string;
      readonly policy?: (outcome: ToolOutcome) => ToolOutcome;
      /** While a wait is counted; it ends by time-out unless this settles the job. */
      readonly during?: () => void;
      readonly readError?: string;
    } = {},
  ): JobToolResult & { readonly shown: string } {
    const { caller, policy = (outcome: ToolOutcome) => outcome } = options;
    const limit = limitOfCall(this.state, args, caller);
    const result = this.#runTool(name, args, options);
    this.record(...result.atOnce);
    const judged = policy(result.outcome);
    const bounded =
      name === "job_list"
        ? judged
        : boundJobResult(judged, limit ?? limitOfCall(this.state, args, caller), result.text);
    if (!bounded.isError) this.record(...result.entries);
    const shown = bounded.content.map((block) => block.text).join("|");
    return { ...result, outcome: bounded, shown };
  }

  /** An owner's end: cancel its jobs, await them (`settle` is asked for each accepted one), drop the records. */
  disposeOwner(owner: RigOwner, settle: (id: string) => void): void {
    this.#dispose(ownedBy(owner.token), ownerDisposed, settle);
    if (this.owners?.[owner.session] === owner.token) delete this.owners[owner.session];
  }

  disposeService(settle: (id: string) => void): void {
    for (const owner of this.known.values()) owner.closing = true;
    this.#dispose(everyJob, serviceDisposed, settle);
  }

  /** The owner becomes live, or its turn has ended. */
  payOwed(owner: RigOwner): boolean {
    const entries = decideOwedWake(owner.view, this.config);
    owner.record(...entries);
    return entries.length > 0;
  }

  record(...entries: readonly (JobEntry | NewEntry)[]): void {
    for (const entry of entries) {
      expect(checkLossless(entry), "an entry is JSON").toBeUndefined();
      const stored = { ...entry, seq: this.log.length, time: this.now } as LogEntry | JobLogEntry;
      this.changes.push(...changedOwners(this.state, stored));
      this.log.push(stored);
      this.state = foldJobs(this.state, stored);
      if (stored.type === "job/settled") {
        this.known.get(jobOf(this.state, stored.data.id)?.owner?.token ?? "")?.record(stored);
      }
    }
    this.#checkState();
  }

  /** Of many jobs only those that were started last. */
  #checkState(): void {
    const { counters } = this.state;
    const jobs = this.state.jobs.slice(-12);
    const flaws = [
      checkLossless({ counters, jobs }),
      ...jobs.map((job) => checkSnapshot(snapshotOf(job), job.owner?.session)),
    ];
    expect(flaws.filter((flaw) => flaw !== undefined)).toEqual([]);
  }

  #dispose(disposed: Disposed, reason: string, settle: (id: string) => void): void {
    const { entries, effects } = decideTeardown(this.state, disposed, reason);
    this.record(...entries);
    const awaited: string[] = [];
    for (const effect of effects) {
      const error = this.#cancel(effect);
      if (error === undefined) {
        this.record(...acceptTeardown(this.state, effect));
        awaited.push(effect.id);
        continue;
      }
      const given = failTeardown(this.state, effect, error, this.#context(effect.id));
      if (given.ok) this.#carryOut(given);
    }
    for (const id of awaited) settle(id);
    this.record(...decideRemoval(this.state, disposed));
  }

  #runTool(
    name: string,
    args: unknown,
    options: {
      readonly caller?: string;
      readonly during?: () => void;
      readonly readError?: string;
    },
  ): JobToolResult {
    const { caller, during, readError } = options;
    if (name === "job_list") return runJobList(this.state, caller);
    if (name === "job_kill") {
      const plan = planJobKill(this.state, args, caller);
      if (plan.kind === "done") return plan.result;
      const message = this.#cancel(plan.effect);
      const answer =
        message === undefined
          ? ({ accepted: true } as const)
          : ({ accepted: false, message } as const);
      return finishJobKill(this.state, plan.effect, answer);
    }
    let plan = planJobOutput(this.state, args, caller, this.config);
    if (plan.kind === "wait") {
      const { id } = plan;
      const wait = this.waiting(id, plan.ms, caller);
      during?.();
      const resumed = this.resume(wait);
      if ("ok" in resumed) return failJobOutput(resumed.code, resumed.message);
      plan = planAfterWait(this.state, id);
    }
    if (plan.kind !== "read")
      return plan.kind === "done" ? plan.result : failJobOutput("INVARIANT", "");
    if (readError !== undefined) return failJobOutput("TOOL_FAILED", readError);
    return finishJobOutput(this.state, plan.id, this.fetch(plan.id, plan.plan));
  }

  #cancel(effect: CancelJob): string | undefined {
    this.cancels.push({ id: effect.id, reason: effect.reason });
    return this.cancelErrors.get(effect.id);
  }

  #context(id: string): Parameters<typeof decideReport>[2] {
    const owner = this.known.get(jobOf(this.state, id)?.owner?.token ?? "");
    return {
      now: (this.now += 1),
      waits: this.waits,
      config: this.config,
      ...(owner === undefined ? {} : { owner: owner.view }),
    };
  }

  #carryOut(settlement: Settlement): void {
    const { entries, snapshot, waits, released, notice, warnings } = settlement;
    const own = entries.filter((entry) => entry.type !== "agent/inbox/spliced");
    this.record(...own);
    this.waits = waits;
    expect(released.every((wait) => !isCounted(waits, wait))).toBe(true);
    this.warnings.push(...warnings);
    this.settled.push(snapshot);
    if (notice !== undefined) {
      this.notices.push(notice);
      const owner = this.known.get(notice.owner.token);
      owner?.record(...entries.filter((entry) => entry.type === "agent/inbox/spliced"));
    }
    this.onSettled?.(snapshot);
  }
}

/** The message of a refusal, or the value as it is. */
export function messageOf(result: unknown): unknown {
  return typeof result === "object" && result !== null && "ok" in result && result.ok === false
    ? (result as Refusal).message
    : result;
}

/** The only text of a notice. */
export function noticeOf(rig: JobRig, at = -1): string {
  const block = rig.notices.at(at)?.message.content[0];
  return block?.type === "text" ? block.text : "";
}
