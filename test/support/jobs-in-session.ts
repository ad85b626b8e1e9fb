import { defaultJobsConfig, type JobEntry, type JobsConfig } from "../../src/contracts/jobs.js";
import type { NewEntry } from "../../src/contracts/log.js";
import type { ToolOutcome } from "../../src/contracts/tools.js";
import { emptyInbox, foldInbox } from "../../src/domain/inbox.js";
import {
  decideOwedWake,
  foldWakes,
  freshWakes,
  isBusy,
  noticeId,
  type OwnerView,
} from "../../src/domain/job-notices.js";
import { decideSettle, type Settlement } from "../../src/domain/job-settle.js";
import { decideStart } from "../../src/domain/job-start.js";
import { failJobOutput, finishJobOutput } from "../../src/domain/job-tools.js";
import { beginWait, endWait, isCounted, noWaits, resumeWait } from "../../src/domain/job-waits.js";
import { emptyJobs, foldJobs } from "../../src/domain/jobs.js";
import type { Session } from "../../src/domain/session.js";
import { entriesOf } from "./session-script.js";

const owner = { session: "s1", token: "s1/run" };

/** Background jobs of one session, folded from its log, as the session workflow carries them out. */
export class JobsInSession {
  readonly session: Session;
  config: JobsConfig = { ...defaultJobsConfig, maxConsecutiveWakes: 1_000 };
  live = true;
  jobs = emptyJobs;
  wakes = freshWakes;
  waits = noWaits;
  readonly settlements: Settlement[] = [];
  readonly #aborted = new Set<string>();
  #inbox = emptyInbox;
  #next = 0;

  constructor(session: Session) {
    this.session = session;
  }

  get owner(): OwnerView {
    const { inbox, turn } = this.session.folds;
    return {
      token: owner.token,
      inbox,
      wakes: this.wakes,
      busy: isBusy(turn.open, inbox),
      live: this.live,
      closing: false,
    };
  }

  record(...entries: readonly (JobEntry | NewEntry)[]): void {
    this.session.record(...(entries as readonly NewEntry[]));
    this.fold();
  }

  /** Folds what the loop has logged since. */
  fold(): void {
    for (const entry of this.session.log.entries.slice(this.#next)) {
      this.jobs = foldJobs(this.jobs, entry);
      this.wakes = foldWakes(this.wakes, entry, this.#inbox);
      this.#inbox = foldInbox(this.#inbox, entry);
    }
    this.#next = this.session.log.entries.length;
  }

  start(): string {
    this.fold();
    const decision = decideStart(this.jobs, { kind: "bash", label: "x" }, owner, {
      config: { maxConcurrentJobsPerOwner: 1_000 },
      served: true,
      owners: { [owner.session]: owner.token },
      now: this.#next,
      nonce: "n",
    });
    if (!decision.ok) throw new Error(decision.message);
    this.record(...decision.entries);
    return decision.id;
  }

  /** Decides by `seen`, the session as it is now unless a test says otherwise. */
  settle(id: string, seen: OwnerView = this.#folded()): void {
    this.fold();
    const settlement = decideSettle(
      this.jobs,
      id,
      { status: "completed" },
      { now: this.#next, waits: this.waits, owner: seen, config: this.config },
    );
    if (!settlement.ok) throw new Error(settlement.message);
    this.settlements.push(settlement);
    this.waits = settlement.waits;
    this.record(...settlement.entries);
  }

  payOwed(): void {
    this.fold();
    this.record(...decideOwedWake(this.owner, this.config));
  }

  beginWait(wait: string, job: string): void {
    this.waits = beginWait(this.waits, wait, job);
  }

  abortWait(wait: string): void {
    if (!isCounted(this.waits, wait)) return;
    this.waits = endWait(this.waits, wait);
    this.#aborted.add(wait);
  }

  /** `job_output` of a waiting call, once its waiter runs again. */
  collect(wait: string, job: string): ToolOutcome {
    this.fold();
    this.waits = endWait(this.waits, wait);
    const resumed = resumeWait(this.jobs, job, this.#aborted.has(wait) ? "abort" : "timeout");
    if (!resumed.ok) return failJobOutput(resumed.code, resumed.message).outcome;
    const result = finishJobOutput(this.jobs, job, { text: "" });
    this.record(...result.entries);
    return result.outcome;
  }

  /** How often the model is shown the notice of a job, and how often it still waits in the inbox. */
  told(id: string): { readonly shown: number; readonly pending: number } {
    const { nextTurn, nextStep } = this.session.folds.inbox;
    const isNotice = (message: { readonly id: string }) => message.id === noticeId(id);
    return {
      shown: entriesOf(this.session, "user/message").filter(({ data }) => isNotice(data.message))
        .length,
      pending: [...nextTurn, ...nextStep].filter(isNotice).length,
    };
  }

  #folded(): OwnerView {
    this.fold();
    return this.owner;
  }
}
