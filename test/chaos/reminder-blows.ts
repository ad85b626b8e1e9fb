import { setTimeout as delay } from "node:timers/promises";
import { createStorm, deliveredIn, stormProblems } from "../support/reminder-storm.js";
import { replayProblems } from "./checks.js";
import { readLog } from "./evidence.js";
import type { Random } from "./random.js";
import { until, type Site } from "./site.js";
import type { Blow, TrialResult } from "./trial.js";

export interface ReminderBlows {
  readonly sessions: number;
  /** Of each session, due while the blows fall. */
  readonly reminders: number;
  readonly blows: readonly Blow["kind"][];
}

/** What a blow takes on average, ms. */
const blowMs = 8_000;
/** Time for a turn of each, for the server's probe of the host and for its retries, ms. */
const patienceMs = 300_000;

/**
 * Sessions bound to a host, with reminders that fall due while worker and server are killed and frozen at random moments. Each
 * reminder must have come once, as its log says and as its history replays.
 */
export async function remindUnderBlows(
  site: Site,
  random: Random,
  say: (line: string) => void,
  { sessions, reminders, blows: plan }: ReminderBlows,
): Promise<TrialResult> {
  const scenario = { turns: [{ repeat: 200, steps: [{ text: "Told.", repeat: 5 }] }] };
  const all = await Promise.all(
    Array.from({ length: sessions }, async () => {
      const { session } = await site.session({ scenario }, {}, { schedule: true });
      return session;
    }),
  );
  await Promise.all(
    all.map(({ id }) =>
      createStorm(
        site.temporal.workflow.getHandle(id),
        reminders,
        (low, high) => random.between(low, high),
        plan.length * blowMs,
      ),
    ),
  );
  const blows: Blow[] = [];
  for (const kind of plan) {
    await delay(random.between(500, 5_000));
    const detail = `${sessions} sessions are reminded`;
    const blow: Blow = {
      kind,
      moment: { window: "other", detail, claims: [] },
      from: Date.now(),
      to: Infinity,
    };
    blows.push(blow);
    if (kind === "server killed") await site.server.kill();
    else if (kind === "worker killed") await site.worker.kill();
    else await site.worker.freeze();
    await delay(random.between(0, 4_000));
    if (kind === "server killed") await site.startServer();
    else if (kind === "worker killed") await site.startWorker();
    else site.worker.thaw();
    blow.to = Date.now();
    say(`${kind} for ${blow.to - blow.from} ms`);
  }
  const problems: string[] = [];
  for (const session of all) {
    try {
      await until(`${reminders} turns of ${session.id}`, patienceMs, async () => {
        const view = await session.view().catch(() => undefined);
        return view !== undefined && view.turn.number >= reminders && !view.turn.open;
      });
    } catch (error) {
      problems.push(String(error));
    }
    const log = await readLog(session);
    say(`${session.id}: ${deliveredIn(log)} of ${reminders} delivered`);
    problems.push(
      ...stormProblems(log, reminders).map((line) => `${session.id}: ${line}`),
      ...(await replayProblems(site, session.id)),
    );
    await session.close();
  }
  return {
    blows,
    problems,
    summary: `${sessions} sessions with ${reminders} reminders each, ${plan.length} blows`,
  };
}
