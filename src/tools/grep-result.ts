import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import { headBytes } from "../process/utf8.js";
import type { LineSearch } from "./grep-engine.js";
import type { SearchPlace } from "./search-place.js";

/** Larger files are not searched. */
export const maxFileBytes = 10 * 1024 * 1024;

/** A line beyond this many bytes is cut. */
const maxLineBytes = 400;
const maxBatchFiles = 4_096;
const maxBatchBytes = 256 * 1024;

export interface GrepInput {
  readonly batches: AsyncIterable<readonly (readonly string[])[]>;
  readonly search: LineSearch;
  readonly place: SearchPlace;
  readonly maxResults: number;
  /** Context lines before and after a match. */
  readonly around: number;
}

export interface GrepFound {
  readonly lines: readonly string[];
  readonly matches: number;
  /** Files with a match. */
  readonly files: number;
  readonly searched: number;
  /** There are matches beyond `maxResults`. */
  readonly more: boolean;
}

/** Searches file after file until `maxResults` lines are found; what is shown is read here, whatever the engine. */
export async function collectMatches(input: GrepInput): Promise<GrepFound> {
  const { search, place, maxResults, around } = input;
  const lines: string[] = [];
  let [matches, files, searched, more] = [0, 0, 0, false];
  for await (const batch of growing(input.batches, place.root)) {
    const paths = batch.map((parts) => join(place.root, ...parts));
    const found = await search.lines(paths, maxResults - matches + 1);
    if (found === undefined) break;
    searched += batch.length;
    for (const [index, numbers] of found.entries()) {
      if (numbers.length === 0) continue;
      const text = await linesOfText(paths[index] ?? "");
      if (text === undefined) continue;
      const room = maxResults - matches;
      if (numbers.length > room) more = true;
      const shown = numbers.slice(0, room);
      if (shown.length > 0) {
        if (around > 0 && lines.length > 0) lines.push("--");
        lines.push(...render(place.show(batch[index] ?? []), text, shown, around));
        files += 1;
        matches += shown.length;
      }
      if (more) return { lines, matches, files, searched, more };
    }
  }
  return { lines, matches, files, searched, more };
}

/** Few files first, so that a common word is found at once; then many, for few starts of the engine. */
async function* growing(
  batches: GrepInput["batches"],
  root: string,
): AsyncGenerator<readonly (readonly string[])[]> {
  let held: (readonly string[])[] = [];
  let [bytes, size] = [0, 64];
  for await (const batch of batches) {
    for (const parts of batch) {
      held.push(parts);
      bytes += Buffer.byteLength(root) + Buffer.byteLength(parts.join("/")) + 2;
      if (held.length < size && bytes < maxBatchBytes) continue;
      yield held;
      held = [];
      bytes = 0;
      size = Math.min(size * 4, maxBatchFiles);
    }
  }
  if (held.length > 0) yield held;
}

/** Undefined for a binary file, which has NUL somewhere, and for one that has gone. */
async function linesOfText(path: string): Promise<readonly Buffer[] | undefined> {
  try {
    if ((await stat(path)).size > maxFileBytes) return undefined;
    const bytes = await readFile(path);
    if (bytes.includes(0)) return undefined;
    const lines: Buffer[] = [];
    for (let from = 0; from < bytes.length;) {
      const end = bytes.indexOf(10, from);
      const to = end < 0 ? bytes.length : end;
      lines.push(bytes.subarray(from, bytes[to - 1] === 13 && to > from ? to - 1 : to));
      from = to + 1;
    }
    return lines;
  } catch {
    return undefined;
  }
}

function render(
  path: string,
  text: readonly Buffer[],
  numbers: readonly number[],
  around: number,
): string[] {
  const matching = new Set(numbers);
  const out: string[] = [];
  let last = 0;
  for (const number of numbers) {
    const from = Math.max(1, number - around, last + 1);
    if (around > 0 && last > 0 && from > last + 1) out.push("--");
    const to = Math.min(text.length, number + around);
    for (let at = from; at <= to; at += 1) {
      const mark = matching.has(at) ? ":" : "-";
      out.push(`${path}${mark}${at}${mark}${clip(text[at - 1])}`);
      last = at;
    }
  }
  return out;
}

function clip(line: Buffer = Buffer.alloc(0)): string {
  if (line.length <= maxLineBytes) return line.toString("utf8");
  const head = headBytes(line, maxLineBytes);
  return `${head.toString("utf8")} [+${line.length - head.length} bytes]`;
}
