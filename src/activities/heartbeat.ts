import type { Context } from "@temporalio/activity";

const beatMs = 2_000;

/** Beats every 2 s while `work` runs (design D16), with the newest details. */
export async function whileBeating<T>(
  context: Context,
  details: () => unknown,
  work: () => Promise<T>,
): Promise<T> {
  context.heartbeat(details());
  const timer = setInterval(() => context.heartbeat(details()), beatMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
