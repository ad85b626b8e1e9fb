import { setTimeout as delay } from "node:timers/promises";
import { startCounters } from "../support/counting-jobs.js";
import { replayProblems } from "./checks.js";
import { readLog } from "./evidence.js";
import type { Random } from "./random.js";
import type { Site } from "./site.js";
import type { Blow, TrialResult } from "./trial.js";

export interface Storm {
  readonly jobs: number;
  readonly blows: readonly Blow["kind"][];
  /** Longest freeze, ms: above the heartbeat time-out the server gives the jobs to another attempt. */
  readonly frozenMs: number;
}

/**
 * Background jobs that print a counter while their worker and their server are killed and frozen; some end meanwhile. Each
 * must have run once, under one pid, with every number stored once, the right exit code, and its end told once.
 */
export async function stormJobs(
  site: Site,
  random: Random,
  say: (line: string) => void,
  { jobs, blows: plan, frozenMs }: Storm,
): Promise<TrialResult> {
  const scenario = { turns: [{ repeat: 100, steps: [{ text: "Noted.", repeat: 20 }] }] };
  const { session, workspace } = await site.session({ scenario });
  const counters = await startCounters({
    session,
    workspace,
    home: site.home,
    count: jobs,
    read: readLog,
  });
  const left = random.shuffle(counters.ids).slice(1);
  const blows: Blow[] = [];
  for (const kind of plan) {
    await counters.advance(random.between(1, 60));
    const moment = {
      window: "other",
      detail: `${left.length + 1} jobs count`,
      claims: [],
    } as const;
    const blow: Blow = { kind, moment, from: Date.now(), to: Infinity };
    blows.push(blow);
    if (kind === "server killed") await site.server.kill();
    else if (kind === "worker killed") await site.worker.kill();
    else await site.worker.freeze();
    await counters.advance(random.between(1, 100));
    const ending = left.splice(0, random.between(0, 2));
    await counters.stop(...ending);
    if (kind === "server killed") await site.startServer();
    else if (kind === "worker killed") await site.startWorker();
    else {
      await delay(random.between(0, frozenMs));
      site.worker.thaw();
    }
    blow.to = Date.now();
    say(`${kind} for ${blow.to - blow.from} ms; ${ending.length} jobs ended meanwhile`);
  }
  const problems: string[] = [];
  try {
    await counters.advance(20);
    const ended = await counters.finish();
    for (const { id, status, detail } of ended)
      if (status !== "completed") problems.push(`${id}: ${status}, ${detail}`);
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  problems.push(...(await replayProblems(site, session.id)));
  await session.close();
  return { blows, problems, summary: `${jobs} jobs, ${plan.length} blows` };
}
