import { LonghaulError } from "../contracts/errors.js";
import { eachOf } from "./each-of.js";
import type { RemindersResult } from "./session-reminders.js";
import type { SessionSummary } from "./types.js";

/** How long one session is waited for, ms: a worker that was killed costs 2 s (docs/facts.md §0.8). */
const askMs = 5_000;
/** How many are asked at once. */
const atOnce = 20;

/** Those of open sessions that have a reminder that is due, by asking each; one that does not answer is not among them. */
export async function overdueAmong(
  sessions: readonly SessionSummary[],
  sessionOf: (id: string) => {
    reminders(options: { readonly timeoutMs: number }): Promise<RemindersResult>;
  },
  limit = 1_000,
): Promise<readonly SessionSummary[]> {
  const asked = await eachOf(sessions, atOnce, async (summary) => {
    const due = await earliestOf(sessionOf(summary.id));
    return due === undefined || due > Date.now() ? [] : [{ ...summary, nextReminder: due }];
  });
  return asked.flat().slice(0, limit);
}

async function earliestOf(session: {
  reminders(options: { readonly timeoutMs: number }): Promise<RemindersResult>;
}): Promise<number | undefined> {
  try {
    const answer = await session.reminders({ timeoutMs: askMs });
    if (!answer.ok || answer.reminders.length === 0) return undefined;
    return Math.min(...answer.reminders.map(({ scheduledAt }) => Date.parse(scheduledAt)));
  } catch (error) {
    if (error instanceof LonghaulError) return undefined;
    throw error;
  }
}
