import type { Context } from "@temporalio/activity";

const defaultBeatMs = 2_000;

/** Beats while `work` runs, every 2 s unless told otherwise (design D16), with the newest details. */
export async function whileBeating<T>(
  context: Context,
  details: () => unknown,
  work: () => Promise<T>,
  beatMs: number = defaultBeatMs,
): Promise<T> {
  context.heartbeat(details());
  const timer = setInterval(() => context.heartbeat(details()), beatMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
