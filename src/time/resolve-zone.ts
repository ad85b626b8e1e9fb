import { Temporal } from "temporal-polyfill/implementation";
import type { LocalTime, ZoneAnswer } from "../contracts/schedule.js";
import { formatInstant } from "../domain/schedule-instant.js";
import { checkRange, parseLocal, skippedTime, strangeZone } from "../domain/schedule-time.js";
import { knownZone } from "./zones.js";

/**
 * The instant a local time means, by the zone data of this host: of two the earlier, of none a refusal (spec/schedule §4).
 * Never in workflow code, for hosts differ and replay does not notice (design D11). Refusals: `invalid_rule`,
 * `invalid_time_zone`, `time_out_of_range`; whether it is in the future is for the session to say. Takes any shape. @public
 */
export function resolveLocalTime(input: LocalTime): ZoneAnswer {
  const parsed = parseLocal(input);
  if (!parsed.ok) return parsed;
  const { civil, local } = parsed;
  const zone = knownZone(local.time_zone);
  if (zone === undefined) return strangeZone(local.time_zone);
  const plain = Temporal.PlainDateTime.from(civil);
  // Within a gap it moves the clock, which shows; `reject` would refuse times that come twice as well.
  const zoned = plain.toZonedDateTime(zone, { disambiguation: "earlier" });
  const instant = checkRange(zoned.epochMilliseconds);
  if (!instant.ok) return instant;
  if (!zoned.toPlainDateTime().equals(plain)) return skippedTime(local);
  return {
    ok: true,
    scheduledAt: formatInstant(instant.ms),
    timeZone: zone,
    tz: process.versions["tz"] ?? "unknown",
  };
}
