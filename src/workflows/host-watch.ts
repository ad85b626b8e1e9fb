import { CancellationScope, isCancellation } from "@temporalio/workflow";
import { livenessEntries, mustAskHost } from "../domain/place.js";
import type { Session } from "../domain/session.js";
import { payOwedWake } from "../domain/session-jobs.js";
import type { Begin } from "./pump.js";
import { awaitHost, isPresent, rebindTable } from "./tool-table.js";

/**
 * The presence of a session's host (design D5). Nothing stands while it idles: the host is asked when something would open a
 * turn, and only one that did not answer is waited for.
 */
export class HostWatch {
  readonly #session: Session;
  readonly #scope: CancellationScope;
  readonly #begin: Begin;
  readonly #armedFor: () => number | undefined;
  /** The question under way: once, of a new host, or the standing one. Only one at a time. */
  #question: CancellationScope | undefined;
  /** The question is for the table of a new host, which a suspended session needs as well. */
  #binding = false;

  constructor(
    session: Session,
    scope: CancellationScope,
    begin: Begin,
    armedFor: () => number | undefined,
  ) {
    this.#session = session;
    this.#scope = scope;
    this.#begin = begin;
    this.#armedFor = armedFor;
  }

  get due(): boolean {
    return this.#mustLetGo || this.#mustAwait || this.#mustAsk;
  }

  run(): void {
    if (this.#mustLetGo) this.stop();
    if (this.#mustAwait) this.#ask(() => this.#awaitReturn());
    if (this.#mustAsk) this.#ask(() => this.#askOnce());
  }

  /** The session was bound to another host: its table is asked for. */
  bind(epoch: number): void {
    this.stop();
    this.#ask(() => rebindTable(this.#session, epoch), true);
  }

  /** Gives up the question that is under way. */
  stop(): void {
    const question = this.#question;
    this.#question = undefined;
    question?.cancel();
  }

  /** Gives it up where another run will ask by itself: the table of a new host is waited for. */
  rest(): void {
    if (!this.#binding) this.stop();
  }

  /** A suspended session waits for nobody. */
  get #mustLetGo(): boolean {
    return this.#question !== undefined && !this.#binding && this.#session.folds.place.suspended;
  }

  get #mustAwait(): boolean {
    const { place } = this.#session.folds;
    return (
      this.#question === undefined &&
      place.cold &&
      place.host !== undefined &&
      !place.suspended &&
      this.#session.closing === undefined
    );
  }

  get #mustAsk(): boolean {
    return this.#question === undefined && mustAskHost(this.#session, this.#armedFor());
  }

  #ask(work: () => Promise<void>, binding = false): void {
    const question = new CancellationScope({ cancellable: true, parent: this.#scope });
    this.#binding = binding;
    this.#question = question;
    this.#begin(async () => {
      try {
        await question.run(work);
      } catch (error) {
        if (!isCancellation(error)) throw error;
      }
      if (this.#question === question) {
        this.#question = undefined;
        this.#binding = false;
      }
      // A scope that is cancelled is let go of by its parent.
      question.cancel();
    });
  }

  async #awaitReturn(): Promise<void> {
    await awaitHost(this.#session);
    payOwedWake(this.#session);
  }

  /** An answer counts when the session is still bound to that host. */
  async #askOnce(): Promise<void> {
    const session = this.#session;
    const { host = "", epoch } = session.folds.place;
    const answered = await isPresent(host);
    if (session.folds.place.epoch !== epoch) return;
    if (answered) {
      session.answeredAt = session.now;
      payOwedWake(session);
    } else {
      const why = `host ${host} did not answer within 60 s`;
      session.record(...livenessEntries(session.folds.place, { cold: true }, why));
    }
  }
}
