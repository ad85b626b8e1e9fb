import { isFields } from "./reference-entry.js";

/** Shorter values are written again, JSON characters. */
const least = 40;
/** Begins what stands for a value that is told once; a text that itself begins so has one more of its last character. */
const mark = "\u0000=";

export interface Repeats {
  readonly value: unknown;
  /** Values that come more than once; each may hold those before it. */
  readonly repeats: readonly unknown[];
}

/** JSON in which a longer value that comes again is told once; `readRepeats` and `unpackRepeats` give the same value. */
export function packRepeats(value: unknown): Repeats {
  const names = new Map<object, string>();
  const nameOf = (one: unknown): string => {
    const known = isObject(one) ? names.get(one) : undefined;
    if (known !== undefined) return known;
    const name = JSON.stringify(one);
    if (isObject(one)) names.set(one, name);
    return name;
  };
  const seen = new Set<string>();
  const repeated = new Set<string>();
  const count = (one: unknown): void => {
    if (!isObject(one) && typeof one !== "string") return;
    const name = nameOf(one);
    if (name.length >= least) {
      if (seen.has(name)) {
        // What is in it comes no more often for this.
        repeated.add(name);
        return;
      }
      seen.add(name);
    }
    if (isObject(one)) for (const inner of Object.values(one)) count(inner);
  };
  count(value);
  const repeats: unknown[] = [];
  const places = new Map<string, number>();
  const write = (one: unknown): unknown => {
    if (!isObject(one) && typeof one !== "string") return one;
    const name = nameOf(one);
    if (!repeated.has(name)) return written(one);
    const place = places.get(name) ?? repeats.push(written(one)) - 1;
    places.set(name, place);
    return mark + place;
  };
  const written = (one: object | string): unknown => {
    if (typeof one === "string")
      return one.startsWith(mark) ? `${mark}=${one.slice(mark.length)}` : one;
    if (Array.isArray(one)) return one.map(write);
    // As JSON leaves it out; in a column it would be a null.
    const there = Object.entries(one).filter(([, inner]) => inner !== undefined);
    return Object.fromEntries(there.map(([key, inner]) => [key, write(inner)]));
  };
  return { value: write(value), repeats };
}

/** What the places stand for; undefined when one is damaged. */
export function readRepeats(repeats: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(repeats)) return undefined;
  const known: unknown[] = [];
  for (const one of repeats) {
    const read = unpackRepeats(one, known);
    if (read === undefined) return undefined;
    known.push(read);
  }
  return known;
}

/** Total; undefined when it is damaged. */
export function unpackRepeats(value: unknown, known: readonly unknown[]): unknown {
  if (typeof value === "string") {
    if (!value.startsWith(mark)) return value;
    const rest = value.slice(mark.length);
    if (rest.startsWith("=")) return mark + rest.slice(1);
    return /^(?:0|[1-9]\d*)$/u.test(rest) ? known[Number(rest)] : undefined;
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => unpackRepeats(item, known));
    return items.includes(undefined) ? undefined : items;
  }
  if (!isFields(value)) return value;
  const entries = Object.entries(value).map(
    ([key, inner]) => [key, unpackRepeats(inner, known)] as const,
  );
  return entries.some(([, inner]) => inner === undefined) ? undefined : Object.fromEntries(entries);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
