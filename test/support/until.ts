import { setTimeout as delay } from "node:timers/promises";
import type { SessionClient } from "../../src/client/session-client.js";

/**
 * Waits until `check` passes; the last failure is the test's. The longer it has waited the less often it looks, since many
 * checks cost a worker and a server more than what they wait for.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  timeout = 40_000,
): Promise<Awaited<T>> {
  const began = Date.now();
  let last: unknown = new Error(`no answer within ${timeout} ms`);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(last), timeout);
  });
  const look = async (): Promise<Awaited<T>> => await check();
  try {
    for (;;) {
      try {
        return await Promise.race([look(), late]);
      } catch (error) {
        const waited = Date.now() - began;
        if (waited >= timeout) throw error;
        last = error;
        await Promise.race([delay(Math.min(Math.max(25, waited / 20), 250)), late]);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** The model has been asked and its reply is under way. */
export async function untilStreaming(session: SessionClient): Promise<void> {
  for await (const event of session.watch()) if (event.type === "delta") return;
}
