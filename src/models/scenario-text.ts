/** What placeholders in a scenario stand for. */
export interface Place {
  readonly turn: number;
  readonly step: number;
  /** Which repetition this is, from 1: of the step when it repeats, else of its turn. */
  readonly n: number;
}

/**
 * Replaces `${turn}`, `${step}` and `${n}` by their numbers and `{{bytes:N}}` by N characters of ASCII.
 * `$${n}` stays as `${n}`, for shell commands that have such a variable.
 */
export function expand(text: string, place: Place): string {
  return text
    .replaceAll(/(\$?)\$\{(turn|step|n)\}/g, (_, escape: string, name: "turn" | "step" | "n") =>
      escape === "" ? String(place[name]) : `\${${name}}`,
    )
    .replaceAll(/\{\{bytes:(\d{1,8})\}\}/g, (_, length: string) => filler(Number(length)));
}

/** The same in every string of a JSON value, keys left alone. */
export function expandJson(value: unknown, place: Place): unknown {
  if (typeof value === "string") return expand(value, place);
  if (Array.isArray(value)) return value.map((item) => expandJson(item, place));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, expandJson(item, place)]),
  );
}

/** Cuts a text into deltas of at most `length` UTF-16 units, never inside a surrogate pair. */
export function* deltasOf(text: string, length: number): Generator<string, void, undefined> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + length, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    yield text.slice(start, end);
    start = end;
  }
}

function filler(length: number): string {
  return "0123456789".repeat(Math.ceil(length / 10)).slice(0, length);
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
