import type { SessionRecord } from "../../client/types.js";
import { oneLine } from "../render/clean.js";

/** Commands that only read wait no longer for a worker, ms: one that was killed costs 2 s (docs/facts.md §0.8). */
export const readTimeoutMs = 5_000;

/** How, when and why a session ended otherwise than by being closed; undefined when it did not. */
export function endText({ status, closedAt, failure }: SessionRecord): string | undefined {
  if (status === "open" || status === "closed") return undefined;
  const how = status === "timed-out" ? "timed out" : status;
  const when = closedAt === undefined ? "" : ` at ${secondOf(closedAt)}`;
  const why = [failure?.code, failure?.message].filter((part) => part !== undefined).join(": ");
  return `${how}${when}${why === "" ? "" : ` (${oneLine(why)})`}`;
}

/** A time as the lists show it, to the second. */
export function secondOf(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** A time as the lists show it, to the minute. */
export function minuteOf(time: number): string {
  return `${new Date(time).toISOString().slice(0, 16).replace("T", " ")}Z`;
}
