import { readdir, readFile, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { setImmediate as turn } from "node:timers/promises";

import { type IgnoreRules, parseIgnoreFile } from "./ignore-rules.js";

export interface WalkInput {
  /** Real path of the directory to walk. */
  readonly root: string;
  /** Real path of `root` or a directory above it, from which on .gitignore files count. */
  readonly rulesFrom: string;
  /** Walk names that begin with a dot too; `.git` is never entered. */
  readonly hidden: boolean;
  /** Ends the walk without an error. */
  readonly stop: AbortSignal;
}

export interface WalkReport {
  unreadable: number;
  files: number;
}

/** The .gitignore of one directory: its rules, and how many leading parts of a path they do not see. */
interface Level {
  readonly rules: IgnoreRules;
  readonly depth: number;
}

interface Pending {
  readonly parts: readonly string[];
  readonly isDirectory: boolean;
  readonly levels: readonly Level[];
}

const batchSize = 256;
const maxIgnoreBytes = 1024 * 1024;

/**
 * Regular files below a directory in the order of their names, part by part, as lists of parts relative to `root`.
 * Symbolic links are not followed and not given; what .gitignore files name is left out.
 */
export async function* walkFiles(
  input: WalkInput,
  report: WalkReport,
): AsyncGenerator<readonly (readonly string[])[]> {
  const above = partsBetween(input.rulesFrom, input.root);
  const levels = await levelsAbove(input, above);
  const pending: Pending[] = [{ parts: [], isDirectory: true, levels }];
  let batch: (readonly string[])[] = [];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (input.stop.aborted) break;
    if (next.isDirectory) {
      pending.push(...(await childrenOf(next, input, above, report)).toReversed());
      continue;
    }
    report.files += 1;
    batch.push(next.parts);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function childrenOf(
  { parts, levels: inherited }: Pending,
  { root, hidden, stop }: WalkInput,
  above: readonly string[],
  report: WalkReport,
): Promise<Pending[]> {
  const directory = join(root, ...parts);
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) {
    report.unreadable += 1;
    return [];
  }
  const own = entries.some((entry) => entry.name === ".gitignore" && entry.isFile())
    ? await levelOf(directory, above.length + parts.length)
    : undefined;
  const levels = own === undefined ? inherited : [...inherited, own];
  const children: Pending[] = [];
  let seen = 0;
  for (const entry of entries) {
    // A directory may have a hundred thousand names and its rules be many.
    if ((seen += 1) % 500 === 0) await turn();
    if (stop.aborted) break;
    const { name } = entry;
    const isDirectory = entry.isDirectory();
    if (!isDirectory && !entry.isFile()) continue;
    if (name === ".git" || (!hidden && name.startsWith("."))) continue;
    const path = [...parts, name];
    if (isIgnored([...above, ...path], isDirectory, levels)) continue;
    children.push({ parts: path, isDirectory, levels });
  }
  return children.toSorted((a, b) => compareNames(a.parts.at(-1) ?? "", b.parts.at(-1) ?? ""));
}

/** Rules of the directories between; none when the root itself lies in what they ignore, for it was asked for by name. */
async function levelsAbove(
  { rulesFrom }: WalkInput,
  above: readonly string[],
): Promise<readonly Level[]> {
  const levels: Level[] = [];
  for (let depth = 0; depth < above.length; depth += 1) {
    const level = await levelOf(join(rulesFrom, ...above.slice(0, depth)), depth);
    if (level !== undefined) levels.push(level);
    if (isIgnored(above.slice(0, depth + 1), true, levels)) return [];
  }
  return levels;
}

async function levelOf(directory: string, depth: number): Promise<Level | undefined> {
  const path = join(directory, ".gitignore");
  try {
    const facts = await stat(path);
    if (!facts.isFile() || facts.size > maxIgnoreBytes) return undefined;
    return { rules: parseIgnoreFile(await readFile(path, "utf8")), depth };
  } catch {
    return undefined;
  }
}

function isIgnored(
  path: readonly string[],
  isDirectory: boolean,
  levels: readonly Level[],
): boolean {
  for (let index = levels.length - 1; index >= 0; index -= 1) {
    const level = levels[index];
    const decided = level?.rules.decide(path.slice(level.depth), isDirectory);
    if (decided !== undefined) return decided;
  }
  return false;
}

function partsBetween(from: string, to: string): readonly string[] {
  const way = relative(from, to);
  return way === "" ? [] : way.split(sep);
}

function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
