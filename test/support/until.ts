import { vi } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";

/** Waits until `check` passes; the last failure is the test's. Patient: a busy machine must not fail it. */
export function eventually<T>(check: () => T | Promise<T>, timeout = 120_000): Promise<T> {
  return vi.waitFor(check, { timeout, interval: 50 });
}

/** The model has been asked and its reply is under way. */
export async function untilStreaming(session: SessionClient): Promise<void> {
  for await (const event of session.watch()) if (event.type === "delta") return;
}
