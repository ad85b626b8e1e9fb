import { Temporal } from "temporal-polyfill/implementation";
import { isZoneName } from "../domain/schedule-time.js";

/**
 * A zone as the zone data of this host spells it, e.g. `America/New_York` of `america/new_york`. Undefined for a name it does
 * not know, and for one that reminders do not take: only `UTC` and names with a slash (spec/schedule §4).
 */
export function canonicalZone(name: string): string | undefined {
  return isZoneName(name) ? knownZone(name) : undefined;
}

/** The zone data's own spelling of any name it knows; undefined when it knows none. */
export function knownZone(name: string): string | undefined {
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Read when this is loaded: a worker that starts later in the process sets it to UTC. */
const zoneAtStart: string | undefined = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone this machine is set to; undefined when it names none that reminders take. */
export function machineZone(): string | undefined {
  return canonicalZone(zoneAtStart ?? "");
}
