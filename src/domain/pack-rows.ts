import {
  maxRows,
  packHex,
  packInts,
  packTexts,
  unpackHex,
  unpackInts,
  unpackTexts,
} from "./pack-column.js";
import { isFields, type Fields } from "./reference-entry.js";

/** Shorter lists are left as they are. */
const leastRows = 4;
/** The key of what stands for a list; other keys that begin so have it once more. */
const mark = "\u0000";

/** JSON whose long lists of like values are written as columns; `unpackRows` gives the same value. */
export function packRows(value: unknown): unknown {
  if (Array.isArray(value)) return packedList(value) ?? value.map(packRows);
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.startsWith(mark) ? mark + key : key,
      packRows(inner),
    ]),
  );
}

/** Total; undefined when it is damaged. */
export function unpackRows(packed: unknown): unknown {
  if (Array.isArray(packed)) return all(packed, unpackRows);
  if (!isFields(packed)) return packed;
  if (Object.hasOwn(packed, mark))
    return Object.keys(packed).length > 1 ? undefined : listOf(packed[mark]);
  const entries: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(packed)) {
    const value = unpackRows(inner);
    if (value === undefined) return undefined;
    entries.push([key.startsWith(mark) ? key.slice(mark.length) : key, value]);
  }
  return Object.fromEntries(entries);
}

/** Undefined where columns are no shorter. */
function packedList(items: readonly unknown[]): object | undefined {
  if (items.length < leastRows || items.length > maxRows) return undefined;
  const column = columnOf(items);
  const packed = { [mark]: column };
  return column[0] === "raw" || JSON.stringify(packed).length >= JSON.stringify(items).length
    ? undefined
    : packed;
}

type Column = readonly [
  as: "int" | "hex" | "text" | "few" | "rows" | "tuples" | "raw",
  ...parts: readonly unknown[],
];

/** The shortest there is for values as they are; of lists and objects the one that fits. */
function columnOf(values: readonly unknown[]): Column {
  const places = new Map<string, number>();
  const distinct: unknown[] = [];
  const ofPlaces = values.map((value) => {
    const key = JSON.stringify(value);
    const place = places.get(key) ?? distinct.push(value) - 1;
    places.set(key, place);
    return place;
  });
  const few = (): Column => ["few", distinct.map(packRows), packInts(ofPlaces)];
  if (!values.every((value) => typeof value === "object" && value !== null))
    return shortest([
      ...columns("int", packInts(values)),
      ...columns("hex", ...(packHex(values) ?? [])),
      ...columns("text", ...(packTexts(values) ?? [])),
      ...(distinct.length * 2 <= values.length ? [few()] : []),
      ["raw", values.map(packRows)],
    ]);
  if (distinct.length * 4 <= values.length) return few();
  return tuplesOf(values) ?? rowsOf(values) ?? ["raw", values.map(packRows)];
}

function columns(as: Column[0], ...parts: readonly unknown[]): readonly Column[] {
  return parts.length === 0 || parts.includes(undefined) ? [] : [[as, ...parts]];
}

function shortest(found: readonly Column[]): Column {
  const [first, ...others] = found.map((column) => ({
    column,
    length: JSON.stringify(column).length,
  }));
  if (first === undefined) return ["raw", []];
  return others.reduce((least, one) => (one.length < least.length ? one : least), first).column;
}

/** Lists of one length. */
function tuplesOf(values: readonly unknown[]): Column | undefined {
  const lists = values.filter((value): value is readonly unknown[] => Array.isArray(value));
  const width = lists[0]?.length ?? 0;
  if (width === 0 || lists.length < values.length || lists.some((one) => one.length !== width))
    return undefined;
  return [
    "tuples",
    Array.from({ length: width }, (_, at) => columnOf(lists.map((one) => one[at]))),
  ];
}

/** Objects of few shapes: a shape names the keys that a row has, in their order. */
function rowsOf(values: readonly unknown[]): Column | undefined {
  const rows = values.filter(isFields);
  if (rows.length < values.length) return undefined;
  const keys: string[] = [];
  const shapes: (readonly number[])[] = [];
  const known = new Map<string, number>();
  const ofShapes = rows.map((row) => {
    const shape = Object.keys(row).map((key) => {
      const at = keys.indexOf(key);
      return at === -1 ? keys.push(key) - 1 : at;
    });
    const name = shape.join(" ");
    const place = known.get(name) ?? shapes.push(shape) - 1;
    known.set(name, place);
    return place;
  });
  if (shapes.length * 2 > rows.length) return undefined;
  const found = keys.map((key) =>
    columnOf(rows.flatMap((row) => (Object.hasOwn(row, key) ? [row[key]] : []))),
  );
  return ["rows", keys, shapes, packInts(ofShapes), found];
}

function listOf(column: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(column)) return undefined;
  const [as, ...parts] = column as readonly unknown[];
  const [first, second, third, fourth] = parts;
  switch (as) {
    case "int":
      return unpackInts(first);
    case "hex":
      return unpackHex(first, second);
    case "text":
      return unpackTexts(first, second);
    case "raw":
      return Array.isArray(first) ? all(first, unpackRows) : undefined;
    case "few": {
      const distinct = Array.isArray(first) ? all(first, unpackRows) : undefined;
      return all(unpackInts(second), (place) => distinct?.[place]);
    }
    case "tuples":
      return tuplesFrom(first);
    case "rows":
      return rowsFrom(first, second, unpackInts(third), fourth);
    default:
      return undefined;
  }
}

function tuplesFrom(given: unknown): readonly unknown[] | undefined {
  const found = Array.isArray(given) ? all(given, listOf) : undefined;
  const length = found?.[0]?.length;
  if (found === undefined || length === undefined || found.some((one) => one.length !== length))
    return undefined;
  return Array.from({ length }, (_, index) => found.map((one) => one[index]));
}

function rowsFrom(
  keys: unknown,
  shapes: unknown,
  ofShapes: readonly number[] | undefined,
  given: unknown,
): readonly Fields[] | undefined {
  if (!Array.isArray(keys) || !Array.isArray(shapes) || !Array.isArray(given)) return undefined;
  // A column of no rows cannot be: each key is one of some row.
  const found = all(given, listOf);
  const next = keys.map(() => 0);
  const rows = all(ofShapes, (place) => {
    const shape: unknown = shapes[place];
    if (!Array.isArray(shape)) return undefined;
    const entries = all(shape as readonly unknown[], (at) => {
      const key: unknown = keys[at as number];
      const index = next[at as number];
      if (typeof key !== "string" || index === undefined) return undefined;
      next[at as number] = index + 1;
      const value = found?.[at as number]?.[index];
      return value === undefined ? undefined : ([key, value] as const);
    });
    return entries === undefined ? undefined : (Object.fromEntries(entries) as Fields);
  });
  const whole = next.every((used, at) => used === found?.[at]?.length);
  return whole && next.length === given.length ? rows : undefined;
}

/** Undefined when one of them is. */
function all<T, U>(
  items: readonly T[] | undefined,
  change: (item: T) => U | undefined,
): readonly U[] | undefined {
  if (items === undefined) return undefined;
  const changed: U[] = [];
  for (const item of items) {
    const next = change(item);
    if (next === undefined) return undefined;
    changed.push(next);
  }
  return changed;
}
