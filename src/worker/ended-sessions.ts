import { setTimeout as delay } from "node:timers/promises";
import type { EndedSweep } from "../activities/sweep-ended.js";

export interface EndedSessionsOptions {
  readonly sweep: EndedSweep;
  readonly intervalMs: number;
  readonly warn: (message: string) => void;
}

export interface EndedSessions {
  /** Sweeps soon, and then again and again. */
  begin(): void;
  stop(): Promise<void>;
}

/** A worker has more urgent things to do when it starts. */
const firstMs = 2_000;
const stopPatienceMs = 2_000;

/** What a session worker's process does for sessions that have ended (design D8). */
export function watchEndedSessions(options: EndedSessionsOptions): EndedSessions {
  const { sweep, intervalMs, warn } = options;
  const stopping = new AbortController();
  let looping: Promise<void> | undefined;
  let told = "";
  const wait = (ms: number): Promise<void> =>
    delay(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);

  async function loop(): Promise<void> {
    await wait(Math.min(firstMs, intervalMs));
    while (!stopping.signal.aborted) {
      try {
        await sweep(stopping.signal);
        told = "";
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        // As long as it goes on failing the same way it is said once.
        if (!stopping.signal.aborted && message !== told)
          warn(`ended sessions were not archived: ${message}`);
        told = message;
      }
      await wait(intervalMs);
    }
  }

  return {
    begin() {
      looping ??= loop();
    },
    async stop() {
      stopping.abort();
      // What it has begun to write, another sweep completes.
      await Promise.race([looping, delay(stopPatienceMs, undefined, { ref: false })]);
    },
  };
}
