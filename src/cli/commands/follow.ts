import type { WatchEvent } from "../../client/types.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { Session } from "../backend.js";

export interface Following {
  /** Resolves when the entry with this `seq`, and all before it, were given; rejects when watching failed. */
  reached(seq: number): Promise<void>;
  /** Resolves when the watch ended by itself or by `stop`; rejects when it failed. */
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** Watches a session in the background. Begins after entry `after`. */
export function follow(
  session: Session,
  onEvent: (event: WatchEvent) => void,
  after = -1,
): Following {
  const controller = new AbortController();
  const waiters: {
    readonly seq: number;
    readonly resolve: () => void;
    readonly reject: (error: unknown) => void;
  }[] = [];
  let last = after;
  let ended: { readonly error: unknown } | undefined;
  const done = (async () => {
    try {
      for await (const event of session.watch({ after, signal: controller.signal })) {
        onEvent(event);
        if (event.type !== "entry") continue;
        last = event.entry.seq;
        for (const waiter of waiters) if (waiter.seq <= last) waiter.resolve();
      }
      ended = {
        error: new LonghaulError(
          "INVARIANT",
          `the log of session ${session.id} ended at entry ${last}`,
        ),
      };
    } catch (error) {
      ended = { error };
      throw error;
    } finally {
      for (const waiter of waiters) waiter.reject(ended?.error);
    }
  })();
  done.catch(() => undefined);
  return {
    done,
    reached(seq) {
      if (seq <= last) return Promise.resolve();
      return new Promise((resolve, reject) => {
        if (ended === undefined) waiters.push({ seq, resolve, reject });
        else reject(ended.error);
      });
    },
    async stop() {
      controller.abort();
      await done.catch(() => undefined);
    },
  };
}
