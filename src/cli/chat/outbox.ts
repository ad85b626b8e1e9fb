import { setTimeout as delay } from "node:timers/promises";
import { freshId } from "../../client/update-id.js";
import { awayCodes } from "../../client/wait.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { SendMode } from "../../contracts/session.js";
import { machineZone } from "../../time/zones.js";
import type { Session } from "../backend.js";

/** Where the writer is: "tomorrow at nine" means it there. */
const timeZone = machineZone();
const zone = timeZone === undefined ? {} : { timeZone };

export interface Outgoing {
  /** Made once, so that sending it again cannot double it. */
  readonly id: string;
  readonly text: string;
  readonly mode: SendMode;
}

export interface OutboxEvents {
  /** What waits has changed. */
  changed(): void;
  /** The session has it, as this entry. */
  accepted?(message: Outgoing, seq: number): void;
  /** It will not be sent: the session does not take it. */
  refused(message: Outgoing, error: unknown): void;
}

/** Sends messages one after the other, each until the session has given its verdict. */
export class Outbox {
  readonly #session: Pick<Session, "send">;
  readonly #events: OutboxEvents;
  readonly #retryMs: number;
  readonly #stop = new AbortController();
  readonly #messages: Outgoing[] = [];
  #sending: Promise<void> | undefined;
  /** Why the last attempt failed, while it is tried again. */
  trouble: string | undefined;

  constructor(session: Pick<Session, "send">, events: OutboxEvents, retryMs = 1_000) {
    this.#session = session;
    this.#events = events;
    this.#retryMs = retryMs;
  }

  get waiting(): readonly Outgoing[] {
    return this.#messages;
  }

  add(text: string, mode: SendMode): void {
    this.#messages.push({ id: freshId("m", Date.now()), text, mode });
    this.#events.changed();
    this.#sending ??= this.#work();
  }

  /** Resolves when nothing waits any more. */
  async empty(): Promise<void> {
    await this.#sending;
  }

  /** No further attempt is made. */
  stop(): void {
    this.#stop.abort();
  }

  async #work(): Promise<void> {
    for (;;) {
      const [message] = this.#messages;
      if (message === undefined || this.#stop.signal.aborted) break;
      if (!(await this.#attempt(message))) {
        this.#events.changed();
        const { signal } = this.#stop;
        await delay(this.#retryMs, undefined, { signal }).catch(() => undefined);
        continue;
      }
      this.trouble = undefined;
      this.#messages.shift();
      this.#events.changed();
    }
    this.#sending = undefined;
  }

  /** False when it is to be tried again. */
  async #attempt(message: Outgoing): Promise<boolean> {
    const { id, text, mode } = message;
    try {
      const { seq } = await this.#session.send(text, { id, mode, ...zone });
      this.#events.accepted?.(message, seq);
    } catch (error) {
      if (error instanceof LonghaulError && awayCodes.has(error.code)) {
        this.trouble = error.message;
        return false;
      }
      this.#events.refused(message, error);
    }
    return true;
  }
}
