import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inject } from "vitest";

/**
 * For files whose worker serves the queue `longhaul` of the project's server: one at a time, or one would do the work of the
 * other. Resolves with what gives it up. A holder that was killed holds it no more.
 */
export async function takeSharedQueue(): Promise<() => Promise<void>> {
  const lock = join(
    tmpdir(),
    `longhaul-shared-queue-${inject("temporalAddress").split(":").at(-1)}`,
  );
  const holder = join(lock, "pid");
  for (;;) {
    try {
      await mkdir(lock);
      await writeFile(holder, String(process.pid));
      return () => rm(lock, { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const pid = Number(await readFile(holder, "utf8").catch(() => "0"));
    if (pid > 0 && !isAlive(pid)) await rm(lock, { recursive: true, force: true });
    else await delay(100);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
