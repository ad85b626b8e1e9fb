import { LonghaulError } from "../contracts/errors.js";

/** A glob ready to be asked about a path, given as its parts. */
export type PathTest = (parts: readonly string[]) => boolean;

const maxPatternLength = 1_000;
const maxAlternatives = 200;

type Token = { readonly kind: "one" } | { readonly kind: "any" } | CharTest;
interface CharTest {
  readonly kind: "char";
  readonly test: (char: string) => boolean;
}
interface Segment {
  readonly tokens: readonly Token[];
  /** A name without wildcards is compared as a whole. */
  readonly literal: string | undefined;
  readonly dot: boolean;
}
type Part = Segment | "**";

/**
 * Shell globs: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `**` as a whole part, `\` before a character. Wildcards do not
 * take a leading dot. Time is bounded by pattern times path, whatever they are. Throws INVALID_ARGS.
 */
export function compileGlob(pattern: string): PathTest {
  if (pattern.length > maxPatternLength)
    throw invalid(`a glob has at most ${maxPatternLength} characters, got ${pattern.length}`);
  const tests = expandBraces(pattern).map((one) => {
    const parts = one
      .split("/")
      .filter((part) => part !== "" && part !== ".")
      .map(compilePart);
    if (parts.length === 0) throw invalid(`glob ${JSON.stringify(pattern)} names nothing`);
    return (path: readonly string[]) => matchesParts(parts, path, false);
  });
  return (path) => tests.some((test) => test(path));
}

/** One pattern of a .gitignore file, whose wildcards take dots too and which knows no braces. */
export function compileIgnorePattern(parts: readonly string[]): PathTest {
  const compiled = parts.map(compilePart);
  return (path) => matchesParts(compiled, path, true);
}

function matchesParts(parts: readonly Part[], path: readonly string[], withDots: boolean): boolean {
  return walk(
    parts.length,
    path.length,
    (index) => parts[index] === "**",
    (index, at) => {
      const part = parts[index];
      const name = path[at] ?? "";
      if (part === undefined || part === "**") return false;
      return (withDots || part.dot || !name.startsWith(".")) && matchesName(part, name);
    },
    (at) => withDots || path[at]?.startsWith(".") !== true,
    parts.at(-1) === "**",
  );
}

function matchesName({ literal, tokens }: Segment, name: string): boolean {
  if (literal !== undefined) return literal === name;
  const chars = /[\uD800-\uDFFF]/.test(name) ? Array.from(name) : name;
  return walk(
    tokens.length,
    chars.length,
    (index) => tokens[index]?.kind === "any",
    (index, at) => {
      const token = tokens[index];
      if (token === undefined || token.kind === "any") return false;
      return token.kind === "one" || token.test(chars[at] ?? "");
    },
    () => true,
    false,
  );
}

/** Wildcard matching that goes back to the last wildcard only: no more than `items` times `length` steps. */
function walk(
  items: number,
  length: number,
  isAny: (item: number) => boolean,
  matches: (item: number, at: number) => boolean,
  anyTakes: (at: number) => boolean,
  lastAnyNeedsOne: boolean,
): boolean {
  let [item, at, anyItem, anyAt] = [0, 0, -1, 0];
  while (at < length) {
    if (item < items && isAny(item)) {
      anyItem = item;
      anyAt = at;
      item += 1;
      if (lastAnyNeedsOne && item === items) return allTaken(at, length, anyTakes);
    } else if (item < items && matches(item, at)) {
      item += 1;
      at += 1;
    } else if (anyItem >= 0 && anyTakes(anyAt)) {
      anyAt += 1;
      at = anyAt;
      item = anyItem + 1;
    } else return false;
  }
  if (lastAnyNeedsOne) return false;
  while (item < items && isAny(item)) item += 1;
  return item === items;
}

function allTaken(from: number, to: number, takes: (at: number) => boolean): boolean {
  for (let at = from; at < to; at += 1) if (!takes(at)) return false;
  return true;
}

function compilePart(text: string): Part {
  if (text === "**") return "**";
  const tokens: Token[] = [];
  let literal: string | undefined = "";
  const chars = Array.from(text);
  for (let at = 0; at < chars.length; at += 1) {
    const char = chars[at] ?? "";
    const set = char === "[" ? readSet(chars, at) : undefined;
    if (set !== undefined) {
      tokens.push({ kind: "char", test: set.test });
      at = set.end;
      literal = undefined;
    } else if (char === "*") {
      if (tokens.at(-1)?.kind !== "any") tokens.push({ kind: "any" });
      literal = undefined;
    } else if (char === "?") {
      tokens.push({ kind: "one" });
      literal = undefined;
    } else {
      const wanted = char === "\\" && at + 1 < chars.length ? (chars[(at += 1)] ?? "") : char;
      tokens.push({ kind: "char", test: (given) => given === wanted });
      if (literal !== undefined) literal += wanted;
    }
  }
  return { tokens, literal, dot: text.startsWith(".") || text.startsWith("\\.") };
}

/** `[…]` from its bracket on; undefined when it is not closed, and then is a plain character. */
function readSet(
  chars: readonly string[],
  start: number,
): { readonly test: (char: string) => boolean; readonly end: number } | undefined {
  let at = start + 1;
  const negated = chars[at] === "!" || chars[at] === "^";
  if (negated) at += 1;
  const ranges: (readonly [string, string])[] = [];
  for (let first = true; at < chars.length; first = false) {
    if (chars[at] === "]" && !first) {
      const has = (char: string): boolean =>
        ranges.some(([low, high]) => codeOf(low) <= codeOf(char) && codeOf(char) <= codeOf(high));
      return { test: (char) => has(char) !== negated, end: at };
    }
    const take = (): string => {
      if (chars[at] === "\\" && at + 1 < chars.length) at += 1;
      return chars[at++] ?? "";
    };
    const low = take();
    const isRange = chars[at] === "-" && chars[at + 1] !== "]" && at + 1 < chars.length;
    if (isRange) at += 1;
    ranges.push([low, isRange ? take() : low]);
  }
  return undefined;
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}

/** `a{b,c}d` as its alternatives; a brace without a comma or without its end is a plain character. */
function expandBraces(pattern: string): string[] {
  let open = [""];
  for (let at = 0; at < pattern.length;) {
    const group = pattern[at] === "{" ? braceGroup(pattern, at) : undefined;
    const step = pattern[at] === "\\" ? 2 : 1;
    const choices = group?.choices.flatMap(expandBraces) ?? [
      group === undefined && pattern[at] === "{" ? "\\{" : pattern.slice(at, at + step),
    ];
    open = open.flatMap((before) => choices.map((choice) => before + choice));
    if (open.length > maxAlternatives)
      throw invalid(`a glob has at most ${maxAlternatives} alternatives in braces`);
    at = group?.end ?? at + step;
  }
  return open;
}

function braceGroup(
  pattern: string,
  start: number,
): { readonly choices: readonly string[]; readonly end: number } | undefined {
  const choices: string[] = [];
  let [depth, from] = [0, start + 1];
  for (let at = start; at < pattern.length; at += 1) {
    const char = pattern[at];
    if (char === "\\") at += 1;
    else if (char === "{") depth += 1;
    else if (char === "," && depth === 1) {
      choices.push(pattern.slice(from, at));
      from = at + 1;
    } else if (char === "}" && (depth -= 1) === 0) {
      if (choices.length === 0) return undefined;
      return { choices: [...choices, pattern.slice(from, at)], end: at + 1 };
    }
  }
  return undefined;
}

function invalid(message: string): LonghaulError {
  return new LonghaulError("INVALID_ARGS", message);
}
