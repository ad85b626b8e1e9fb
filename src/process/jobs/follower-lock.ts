import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { processTable } from "../process-table.js";

/** Orders the followers of one job (spec/jobs J24): first by when the server scheduled the attempt, then by its number. */
export interface FollowRank {
  /** Epoch ms; it grows also over an operator's Reset, which makes the attempt 1 again. */
  readonly scheduledAt: number;
  readonly attempt: number;
}

export interface FollowerLock {
  /** Is there a living follower of a higher rank? Then this one lets go. */
  isDisplaced(): Promise<boolean>;
  release(): Promise<void>;
}

const prefix = "follower.";

/**
 * Announces a follower in the spool. The highest living rank has the job; the others see it and detach. One that is frozen
 * cannot, and does no harm: what it still writes to the store is what is there already.
 */
export async function takeFollowerLock(directory: string, rank: FollowRank): Promise<FollowerLock> {
  const at = String(Math.max(0, Math.floor(rank.scheduledAt))).padStart(16, "0");
  const name = `${prefix}${at}.${String(rank.attempt).padStart(10, "0")}.${randomUUID()}`;
  const path = join(directory, name);
  const startTime = (await processTable.startTime(process.pid)) ?? "";
  await writeFile(path, JSON.stringify({ pid: process.pid, startTime }), { mode: 0o600 });
  await removeDead(directory, name);
  return {
    async isDisplaced() {
      for (const other of followers(directory)) {
        if (other > name && (await isAlive(join(directory, other)))) return true;
      }
      return false;
    },
    release: async () => await rm(path, { force: true }),
  };
}

/** Does a living process follow the job? */
export async function isFollowed(directory: string): Promise<boolean> {
  for (const name of followers(directory)) {
    if (await isAlive(join(directory, name))) return true;
  }
  return false;
}

async function removeDead(directory: string, mine: string): Promise<void> {
  for (const name of followers(directory)) {
    const path = join(directory, name);
    if (name !== mine && !(await isAlive(path))) await rm(path, { force: true });
  }
}

function followers(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((name) => name.startsWith(prefix));
  } catch {
    return [];
  }
}

async function isAlive(path: string): Promise<boolean> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return false;
  }
  try {
    const { pid, startTime } = JSON.parse(text);
    return startTime === (await processTable.startTime(Number(pid)));
  } catch {
    // It is being written right now.
    return true;
  }
}
