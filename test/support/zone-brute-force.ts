/** What zones do, found by asking the platform for one instant after another; shares nothing with src/time. */
export interface Transition {
  /** First instant with the new offset, epoch ms. */
  readonly time: number;
  /** Offsets, ms. */
  readonly before: number;
  readonly after: number;
}

const hour = 3_600_000;
const formats = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, Map<number, number>>();

/** Every change of the offset of a zone, by steps of five days and halving. */
export function transitionsOf(zone: string, from: number, to: number): readonly Transition[] {
  const found: Transition[] = [];
  const step = 120 * hour;
  for (let start = from; start < to; start += step) {
    let [low, high] = [start, Math.min(start + step, to)];
    const [before, after] = [offsetAt(low, zone), offsetAt(high, zone)];
    if (before === after) continue;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (offsetAt(middle, zone) === before) low = middle;
      else high = middle;
    }
    found.push({ time: high, before, after });
  }
  return found;
}

/** The earliest instant at which clocks of the zone show this wall time; undefined: they never do. */
export function resolveByForce(wall: number, zone: string): number | undefined {
  const candidates = [-48, -24, 0, 24, 48]
    .map((hours) => wall - offsetAt(wall + hours * hour, zone))
    .filter((instant) => instant + offsetAt(instant, zone) === wall);
  return candidates.length === 0 ? undefined : Math.min(...candidates);
}

/** ms of wall time as `date` and `time`. */
export function wallTime(wall: number): { readonly date: string; readonly time: string } {
  const [date = "", time = ""] = new Date(wall).toISOString().slice(0, -1).split("T");
  return { date, time };
}

function offsetAt(instant: number, zone: string): number {
  const known = offsets.get(zone) ?? new Map<number, number>();
  offsets.set(zone, known);
  const seen = known.get(instant);
  if (seen !== undefined) return seen;
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(instant)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 0, day = 0, hour: hours = 0, minute = 0, second = 0 } = parts;
  const wall = Date.UTC(year, month - 1, day, hours, minute, second);
  const offset = wall - Math.floor(instant / 1_000) * 1_000;
  known.set(instant, offset);
  return offset;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  formats.set(zone, made);
  return made;
}
