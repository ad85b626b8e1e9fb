const units: readonly (readonly [names: string, seconds: number])[] = [
  ["w week weeks", 604_800],
  ["d day days", 86_400],
  ["h hr hrs hour hours", 3_600],
  ["m min mins minute minutes", 60],
  ["s sec secs second seconds", 1],
];

/** For messages: what `parseDuration` reads. */
export const durationForms = "a time such as 10m, 1h30m, 2 days or 45s";

/**
 * Whole seconds of a duration as people type it: numbers with their units, from the largest unit down, each once, with or
 * without spaces, `and` and commas. A day is 24 hours. Undefined for anything else.
 */
export function parseDuration(text: string): number | undefined {
  let rest = text.trim().toLowerCase();
  let total = 0;
  let largest = Infinity;
  while (rest !== "") {
    const part =
      /^(?<count>\d{1,15}(?:\.\d{1,6})?) ?(?<unit>[a-z]+)(?:(?:,? and |, ?| )?(?=\d)|$)/.exec(rest);
    const { count, unit } = part?.groups ?? {};
    const seconds = units.find(
      ([names]) => unit !== undefined && names.split(" ").includes(unit),
    )?.[1];
    if (part === null || count === undefined || seconds === undefined || seconds >= largest)
      return undefined;
    total += Number(count) * seconds;
    largest = seconds;
    rest = rest.slice(part[0].length);
  }
  // A fraction such as 0.1h is not exact in binary.
  const whole = Math.round(total);
  return largest < Infinity && Math.abs(total - whole) < 1e-6 * Math.max(1, total)
    ? whole
    : undefined;
}

/** Whole seconds as `parseDuration` reads them back: `15m`, `1h30m`, `2d`. */
export function formatDuration(seconds: number): string {
  let rest = seconds;
  let text = "";
  for (const [names, size] of units.slice(1)) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${names.charAt(0)}`;
    rest -= count * size;
  }
  return text === "" ? "0s" : text;
}
