import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";

const renewEveryMs = 1_000;

/** Supervisors look only for a change of its content, so that no clock matters and several workers may renew it. */
export function leaseFile(home: string): string {
  return join(home, "host", "lease");
}

/** Tells the supervisors of this host that a worker process lives (spec/jobs J9). Rejects when it cannot be written. */
export async function renewLease(home: string): Promise<void> {
  const path = leaseFile(home);
  const flags = constants.O_WRONLY | constants.O_CREAT;
  const file = await open(path, flags, 0o600).catch(async () => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return await open(path, flags, 0o600);
  });
  try {
    // In place and of one length: a reader never meets an empty file.
    await file.write(`${randomUUID()}\n`, 0);
  } finally {
    await file.close();
  }
}

export interface LeaseRenewal {
  /** When it was last renewed, epoch ms. */
  renewedAt(): number;
  stop(): void;
}

/**
 * Renews the lease now and every second as long as this process runs its event loop. What keeps it from being written is told
 * to `onTrouble`, and tried again.
 */
export async function keepLease(
  home: string,
  onTrouble: (error: unknown) => void,
): Promise<LeaseRenewal> {
  await renewLease(home);
  let renewedAt = Date.now();
  let writing = false;
  const timer = setInterval(() => {
    if (writing) return;
    writing = true;
    void renewLease(home)
      .then(() => {
        renewedAt = Date.now();
      }, onTrouble)
      .finally(() => {
        writing = false;
      });
  }, renewEveryMs);
  timer.unref();
  return { renewedAt: () => renewedAt, stop: () => clearInterval(timer) };
}
