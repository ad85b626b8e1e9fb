import { setTimeout as delay } from "node:timers/promises";
import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { replayProblems } from "./checks.js";
import { readLog } from "./evidence.js";
import type { Random } from "./random.js";
import type { Site } from "./site.js";
import type { TrialResult } from "./trial.js";

/**
 * Many watched sessions on a worker that is frozen in the middle of their turns, while messages come in and all are
 * asked for their state. Queries that waited for the worker meet results that no workflow task has seen: they must not
 * move a session, or its history would not replay.
 */
export async function askFrozenCrowd(
  site: Site,
  random: Random,
  say: (line: string) => void,
  { sessions, rounds }: { readonly sessions: number; readonly rounds: number },
): Promise<TrialResult> {
  // Short commands: the worker that wakes finds them ended, and reports while queries still wait for it.
  const args = { command: "sleep 0.4; echo slept", description: "Sleep" };
  const working = { calls: Array.from({ length: 6 }, () => ({ tool: "bash", args })) };
  const steps = [working, { text: "Done." }];
  const scenario = { turns: [{ repeat: 2 * rounds, steps }] };
  const all: SessionClient[] = [];
  for (let i = 0; i < sessions; i++) all.push((await site.session({ scenario })).session);
  let open = true;
  let asked = 0;
  const askers = all.map(async (session) => {
    for (; open; asked++) {
      await session.view().catch(() => {});
      await delay(20);
    }
  });
  const problems: string[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      const sends = all.map((session) => session.followup(`Round ${round}.`));
      await delay(random.between(500, 2_500));
      await site.worker.freeze();
      await delay(random.between(1_000, 2_500));
      sends.push(...all.map((session) => session.followup(`Round ${round}, once more.`)));
      await delay(random.between(0, 1_000));
      site.worker.thaw();
      await Promise.all(sends);
      await Promise.all(
        all.map((session) => session.waitIdle({ signal: AbortSignal.timeout(90_000) })),
      );
    }
  } catch (error) {
    problems.push(`a session does not go on: ${String(error)}`);
  } finally {
    open = false;
    await Promise.all(askers);
  }
  say(`${sessions} sessions, ${rounds} freezes, asked ${asked} times`);
  const logs = new Map<string, readonly LogEntry[]>();
  for (const { id } of all) logs.set(id, await readLog(site.client.session(id)).catch(() => []));
  await site.worker.kill();
  await site.startWorker();
  for (const session of all) {
    const found = await replayProblems(site, session.id);
    problems.push(...found.map((line) => `${session.id}: ${line}`));
    if (found.length > 0) continue;
    const again = JSON.stringify(await readLog(session));
    if (again !== JSON.stringify(logs.get(session.id)))
      problems.push(`${session.id}: after a replay its log is another one`);
    const turns = logs.get(session.id)?.filter((entry) => entry.type === "turn/end").length;
    if (turns !== 2 * rounds)
      problems.push(`${session.id}: ${turns} turns for ${2 * rounds} messages`);
  }
  await Promise.all(all.map((session) => session.close().catch(() => {})));
  const summary = `${sessions} sessions, ${2 * rounds} turns each, asked ${asked} times`;
  return { blows: [], problems, summary };
}
