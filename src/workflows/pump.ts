import { CancellationScope } from "@temporalio/workflow";
import type { Session } from "../domain/session.js";
import type { Console } from "./console.js";
import { HostWatch } from "./host-watch.js";
import { JobWorkflows } from "./job-workflows.js";
import { ReminderTimer } from "./reminder-timer.js";

/** Begins work that is tracked and shown when it has ended. */
export type Begin = (work: () => Promise<void>) => void;

/**
 * What a session does outside besides its turns (design D10): the workflows of its jobs, the presence of its host, the timer
 * of its next reminder. The loops call `run` after each of their waits, so it is at once also in a turn; it never waits
 * itself, and all it begins is tracked.
 */
export class EffectPump {
  readonly jobs: JobWorkflows;
  readonly #session: Session;
  readonly #console: Pick<Console, "show" | "count">;
  readonly #host: HostWatch;
  readonly #reminders: ReminderTimer;
  /** What a turn gave rise to does not belong to its scope. */
  readonly #scope = CancellationScope.current();
  readonly #running = new Set<Promise<void>>();

  constructor(session: Session, console: Pick<Console, "show" | "count">) {
    const begin: Begin = (work) => this.#begin(work);
    this.#session = session;
    this.#console = console;
    this.jobs = new JobWorkflows(session, begin, console.show);
    this.#reminders = new ReminderTimer(session, this.#scope);
    this.#host = new HostWatch(session, this.#scope, begin, () => this.#reminders.armedFor);
  }

  /** Is there something to begin? */
  get due(): boolean {
    if (this.#session.frozen) return false;
    return (
      this.#session.effects.length > 0 || this.jobs.due || this.#reminders.due || this.#host.due
    );
  }

  /** Begins what is due. To be called when all handlers have finished (facts §0.11). */
  run(): void {
    if (this.#session.frozen) return;
    this.#runEffects();
    this.jobs.run();
    this.#reminders.run();
    this.#host.run();
    this.#console.count();
  }

  /** Is something under way or to be begun? */
  get isBusy(): boolean {
    return this.#running.size > 0 || this.#session.effects.length > 0;
  }

  /** Lets go of what a new run takes up by itself, and sees the rest to its end. */
  async rest(): Promise<void> {
    this.#reminders.disarm();
    this.#host.rest();
    this.jobs.rest();
    this.#runEffects();
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Ends what waits without end, and lets the rest come to its end. */
  async stop(): Promise<void> {
    this.#reminders.disarm();
    this.#host.stop();
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #runEffects(): void {
    const { effects } = this.#session;
    for (let effect = effects.shift(); effect !== undefined; effect = effects.shift()) {
      if (effect.kind === "start-job") this.jobs.start(effect);
      else if (effect.kind === "cancel-job") this.jobs.cancel(effect);
      else this.#host.bind(effect.epoch);
    }
  }

  #begin(work: () => Promise<void>): void {
    const running = this.#scope
      .run(work)
      .finally(() => this.#running.delete(running))
      .finally(() => this.#console.show());
    this.#running.add(running);
  }
}
