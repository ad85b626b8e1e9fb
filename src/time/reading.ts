import { Temporal } from "temporal-polyfill/implementation";
import type { ReadTimeInput } from "../contracts/activities.js";
import { knownZone } from "./zones.js";

/**
 * What the model is told of the time (spec/schedule §8): where the turn is, the time where the user is, how to read times
 * that name no zone, and how long it is since the last message or reading. Never in workflow code (design D11).
 */
export function timeReading({ now, turn, step, zones, sinceMs }: ReadTimeInput): string {
  const known = zones.map((zone) => ({ zone, id: knownZone(zone) }));
  const [only] = known;
  const zone = known.length === 1 ? (only?.id ?? "UTC") : "UTC";
  const since = step === 1 ? "since the previous message" : "since the previous reading";
  return [
    `turn ${turn}, step ${step}`,
    `time: ${timestamp(now, zone)}`,
    policyOf(known.map((one) => one.id ?? one.zone)),
    `${since}: ${sinceMs === undefined ? "unavailable" : duration(sinceMs)}`,
  ].join("\n");
}

/** `2026-07-15T09:01:01+08:00[Asia/Shanghai]` */
function timestamp(now: number, zone: string): string {
  return Temporal.Instant.fromEpochMilliseconds(now)
    .toZonedDateTimeISO(zone)
    .toString({ fractionalSecondDigits: 0 });
}

function policyOf(zones: readonly string[]): string {
  const [only] = zones;
  if (only === undefined)
    return "time zone: the user's is not known; ask for it before you use a time that names none";
  if (zones.length === 1) return `time zone: times that name none are in ${only}`;
  return `time zone: the messages name several (${zones.toSorted().join(", ")}); ask which is meant before you use a time that names none`;
}

/** `1d 1h 1m 1s`, from the first unit that is there. */
function duration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first === -1 ? 3 : first)
    .map(([count, unit]) => `${count}${unit}`)
    .join(" ");
}
