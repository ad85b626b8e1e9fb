import { isInstant, maxInstant } from "./schedule-instant.js";

/** One delivery of a fixed-rate reminder: what it stands for, and what is owed next. Epoch ms. */
export interface GridStep {
  readonly ok: true;
  readonly occurrence: number;
  /** Absent: the rule ends, for no later time can be named. */
  readonly next?: number;
}

/**
 * The latest grid point up to `acceptedAt` and the one after it; missed ones are passed over and lateness never shifts the grid
 * (spec/schedule §5). A problem when the numbers make no sense.
 */
export function stepGrid(
  target: number,
  everySeconds: number,
  acceptedAt: number,
): GridStep | { readonly ok: false; readonly problem: string } {
  const interval = everySeconds * 1_000;
  if (!isInstant(target)) return { ok: false, problem: "its time is out of range" };
  if (!isInstant(acceptedAt)) return { ok: false, problem: "acceptedAt is out of range" };
  if (!Number.isSafeInteger(interval) || interval <= 0)
    return { ok: false, problem: "its interval is not a positive whole number" };
  if (acceptedAt < target) return { ok: false, problem: "acceptedAt is before it is due" };
  const occurrence = target + Math.floor((acceptedAt - target) / interval) * interval;
  const next = occurrence + interval;
  return { ok: true, occurrence, ...(next > maxInstant ? {} : { next }) };
}
