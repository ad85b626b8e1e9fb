import { CancellationScope, isCancellation, sleep } from "@temporalio/workflow";
import type { NewEntry } from "../contracts/log.js";
import { driveReminders } from "../domain/place.js";
import type { Drive } from "../domain/schedule-drive.js";
import type { Session } from "../domain/session.js";

/** Drives that are not its business: nothing to do, or the host is to be asked first. */
const idle: ReadonlySet<Drive["kind"]> = new Set(["keep", "probe"]);

/** Delivers what is due and keeps the one timer of the next reminder (spec/schedule C3, workflow shape). */
export class ReminderTimer {
  readonly #session: Session;
  readonly #scope: CancellationScope;
  #timer: CancellationScope | undefined;
  #armedFor: number | undefined;

  constructor(session: Session, scope: CancellationScope) {
    this.#session = session;
    this.#scope = scope;
  }

  /** When the timer fires, epoch ms; undefined: none is armed. */
  get armedFor(): number | undefined {
    return this.#armedFor;
  }

  get due(): boolean {
    return !idle.has(this.#drive().kind);
  }

  run(): void {
    const drive = this.#drive();
    if (drive.kind === "deliver") this.#session.record(...(drive.entries as readonly NewEntry[]));
    else if (drive.kind === "disarm") this.disarm();
    else if (drive.kind === "arm") this.#arm(drive);
  }

  disarm(): void {
    const timer = this.#timer;
    this.#timer = undefined;
    this.#armedFor = undefined;
    timer?.cancel();
  }

  #drive(): Drive {
    return driveReminders(this.#session, this.#armedFor);
  }

  /** Its firing only leads to another drive. */
  #arm({ ms, at, summary }: Extract<Drive, { readonly kind: "arm" }>): void {
    this.disarm();
    const timer = new CancellationScope({ cancellable: true, parent: this.#scope });
    this.#timer = timer;
    this.#armedFor = at;
    void timer
      .run(() => sleep(Math.max(1, ms), { summary }))
      // A scope that is cancelled is let go of by its parent.
      .then(() => this.disarm())
      .catch((error: unknown) => {
        if (!isCancellation(error)) throw error;
      });
  }
}
