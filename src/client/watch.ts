import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import { SessionPoller, type Feed, type PollSource } from "./session-poller.js";
import { StreamFollower } from "./stream-follower.js";
import type { WatchEvent, WatchOptions } from "./types.js";
import { WatchCursor } from "./watch-cursor.js";

/** All watchers of a client: those of one session share its poller. */
export class Watchers {
  readonly #source: (session: string) => PollSource;
  readonly #store: Pick<Store, "list" | "read"> | undefined;
  readonly #pollers = new Map<string, SessionPoller>();
  readonly #open = new Set<Watch>();
  #closed = false;

  constructor(source: (session: string) => PollSource, store?: Pick<Store, "list" | "read">) {
    this.#source = source;
    this.#store = store;
  }

  /** Sessions that are polled now. */
  get polled(): number {
    return this.#pollers.size;
  }

  /** Nothing is read before the first `next`; `return`, the signal or `close` ends it. */
  watch(session: string, options: WatchOptions = {}): AsyncIterableIterator<WatchEvent> {
    const watch: Watch = new Watch(options, {
      attach: () => {
        if (this.#closed) watch.finish();
        else {
          this.#open.add(watch);
          this.#pollerOf(session).attach(watch);
        }
      },
      detach: () => {
        this.#open.delete(watch);
        const poller = this.#pollers.get(session);
        poller?.detach(watch);
        if (poller?.size === 0) this.#pollers.delete(session);
      },
      nudge: () => {
        this.nudge(session);
      },
    });
    return watch;
  }

  /** A write was made: watchers of the session look at once. */
  nudge(session: string): void {
    this.#pollers.get(session)?.nudge();
  }

  /** Ends all watchers cleanly. */
  close(): void {
    this.#closed = true;
    for (const watch of this.#open) watch.finish();
  }

  #pollerOf(session: string): SessionPoller {
    const existing = this.#pollers.get(session);
    if (existing !== undefined) return existing;
    const follower =
      this.#store === undefined ? undefined : new StreamFollower(this.#store, session);
    const poller = new SessionPoller(this.#source(session), follower);
    this.#pollers.set(session, poller);
    return poller;
  }
}

interface Ties {
  attach(): void;
  detach(): void;
  nudge(): void;
}

/** Events that may wait for their watcher; beyond it the poller leaves the watcher behind until it has taken some. */
const waitingLimit = 500;

class Watch implements AsyncIterableIterator<WatchEvent>, Feed {
  readonly cursor: WatchCursor;
  readonly intervalMs: number;
  readonly #ties: Ties;
  readonly #signal: AbortSignal | undefined;
  readonly #waiting: WatchEvent[] = [];
  readonly #takers: Taker[] = [];
  #phase: "new" | "attached" | "ended" = "new";
  #error: { readonly cause: unknown } | undefined;

  constructor(options: WatchOptions, ties: Ties) {
    const { after = -1, intervalMs = 100, signal } = options;
    if (!Number.isInteger(after) || after < -1) {
      throw new LonghaulError(
        "INVALID_INPUT",
        `watch: expected \`after\` to be an integer of at least -1, got ${String(after)}`,
      );
    }
    if (!(intervalMs >= 1)) {
      throw new LonghaulError(
        "INVALID_INPUT",
        `watch: expected \`intervalMs\` of at least 1, got ${String(intervalMs)}`,
      );
    }
    this.cursor = new WatchCursor(after);
    this.intervalMs = intervalMs;
    this.#signal = signal;
    this.#ties = ties;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<WatchEvent, undefined>> {
    if (this.#phase === "new") this.#begin();
    const wasFull = this.full;
    const event = this.#waiting.shift();
    if (event !== undefined) {
      if (wasFull && !this.full && this.#phase === "attached") this.#ties.nudge();
      return Promise.resolve({ done: false, value: event });
    }
    if (this.#error !== undefined) {
      const { cause } = this.#error;
      this.#error = undefined;
      return Promise.reject(cause);
    }
    if (this.#phase === "ended") return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#takers.push({ resolve, reject });
    });
  }

  return(): Promise<IteratorResult<WatchEvent, undefined>> {
    this.#drop();
    return Promise.resolve({ done: true, value: undefined });
  }

  get full(): boolean {
    return this.#waiting.length >= waitingLimit;
  }

  push(events: readonly WatchEvent[]): void {
    if (this.#phase === "ended") return;
    for (const event of events) {
      const taker = this.#takers.shift();
      if (taker === undefined) this.#waiting.push(event);
      else taker.resolve({ done: false, value: event });
    }
  }

  fail(error: unknown): void {
    if (!this.#end()) return;
    const [first, ...others] = this.#takers.splice(0);
    if (first === undefined) this.#error = { cause: error };
    else first.reject(error);
    for (const taker of others) taker.resolve({ done: true, value: undefined });
  }

  finish(): void {
    if (!this.#end()) return;
    for (const taker of this.#takers.splice(0)) taker.resolve({ done: true, value: undefined });
  }

  #begin(): void {
    if (this.#signal?.aborted === true) {
      this.#phase = "ended";
      return;
    }
    this.#phase = "attached";
    this.#signal?.addEventListener("abort", this.#drop, { once: true });
    this.#ties.attach();
  }

  /** Ends at once; what waits is not given any more. */
  readonly #drop = (): void => {
    this.#waiting.length = 0;
    this.#error = undefined;
    this.finish();
  };

  #end(): boolean {
    if (this.#phase === "ended") return false;
    const attached = this.#phase === "attached";
    this.#phase = "ended";
    this.#signal?.removeEventListener("abort", this.#drop);
    if (attached) this.#ties.detach();
    return true;
  }
}

interface Taker {
  resolve(result: IteratorResult<WatchEvent, undefined>): void;
  reject(error: unknown): void;
}
