import { setTimeout as sleep } from "node:timers/promises";

import { type CallMarks, markVariables } from "./environment.js";
import { type ProcessTable, processTable } from "./process-table.js";

/** Time between TERM and KILL, ms (spec/harness §8). */
export const graceMs = 3_000;

/** How long a killed process may take to vanish before it is given up, ms: one in the kernel cannot be hurried. */
const vanishMs = 10_000;

/** Is a living process left in the group? */
export async function groupAlive(
  group: number,
  table: ProcessTable = processTable,
): Promise<boolean> {
  return signal(-group, 0) && (await table.members(group)).length > 0;
}

export interface EndTarget {
  /** Process group, when it is known to be ours. */
  readonly group?: number;
  /** Also ends processes that left the group but carry these marks. */
  readonly marks?: CallMarks;
}

/** TERM, the grace, KILL; waits until all is gone. False when something could not be ended. */
export async function endProcesses(
  target: EndTarget,
  grace = graceMs,
  table: ProcessTable = processTable,
): Promise<boolean> {
  const left = await signalAll(target, "SIGTERM", table);
  if (left === 0 || (await goneWithin(target, grace, table))) return true;
  const deadline = Date.now() + vanishMs;
  do {
    // A process may fork between the look and the signal, so look again.
    if ((await signalAll(target, "SIGKILL", table)) === 0) return true;
    await sleep(10);
  } while (Date.now() < deadline);
  return false;
}

async function goneWithin(target: EndTarget, ms: number, table: ProcessTable): Promise<boolean> {
  const deadline = Date.now() + ms;
  for (let pause = 5; Date.now() < deadline; pause = Math.min(pause * 2, 100)) {
    await sleep(pause);
    if ((await signalAll(target, 0, table)) === 0) return true;
  }
  return false;
}

/** Signals everything of the target; returns how many living processes there were. */
async function signalAll(
  target: EndTarget,
  name: NodeJS.Signals | 0,
  table: ProcessTable,
): Promise<number> {
  let count = 0;
  if (target.group !== undefined && (await groupAlive(target.group, table))) {
    signal(-target.group, name);
    count += 1;
  }
  if (target.marks !== undefined) {
    for (const pid of await table.carrying(markVariables(target.marks))) {
      if ((await table.startTime(pid)) === undefined) continue;
      signal(pid, name);
      count += 1;
    }
  }
  return count;
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
