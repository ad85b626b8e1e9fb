import { randomUUID } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { isAlive, ownIdentity, type ProcessIdentity } from "./process-identity.js";

interface LockOptions {
  /** How long a living holder is waited for. */
  readonly waitMs: number;
  /** Called once, when there is somebody to wait for. */
  readonly onWait?: (holder: ProcessIdentity) => void;
  /** The error when waiting took too long. */
  readonly onTimeout: (holder: ProcessIdentity) => Error;
}

/**
 * Runs one piece of work at a time among all processes that name this directory. A holder that died is
 * noticed by pid and start time.
 *
 * The lock is a chain of numbered files of which only the highest counts: it says who holds it, or that it
 * is free. To take the lock is to create the next number, which one process alone can do; a dead
 * holder's file is thus passed, never removed under somebody. A number once reached is never the highest
 * again, so who finds a higher one after creating his own was too late.
 */
export async function withLock<T>(
  directory: string,
  options: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(directory, { recursive: true });
  const held = await take(directory, options);
  try {
    return await work();
  } finally {
    await writeWhole(held, JSON.stringify({ free: true }));
  }
}

const pollMs = 50;

const lockFile = z.union([
  z.strictObject({ free: z.literal(true) }),
  z.strictObject({ pid: z.int(), started: z.string() }),
]);

async function take(directory: string, options: LockOptions): Promise<string> {
  const me = await ownIdentity();
  const deadline = Date.now() + options.waitMs;
  let told = false;
  for (;;) {
    const top = await highest(directory);
    const holder = top === 0 ? undefined : await holderOf(join(directory, String(top)));
    if (holder === "gone") continue;
    if (holder === undefined || !(await isAlive(holder))) {
      const mine = join(directory, String(top + 1));
      if (await create(mine, me)) {
        if ((await highest(directory)) === top + 1) {
          await sweep(directory, top + 1);
          return mine;
        }
        await rm(mine, { force: true });
      }
      continue;
    }
    if (!told) options.onWait?.(holder);
    told = true;
    if (Date.now() > deadline) throw options.onTimeout(holder);
    await delay(pollMs);
  }
}

async function highest(directory: string): Promise<number> {
  const names = await readdir(directory);
  return Math.max(0, ...names.filter((name) => /^\d+$/.test(name)).map(Number));
}

/** Undefined when the file says free; "gone" when a later holder removed it meanwhile. */
async function holderOf(file: string): Promise<ProcessIdentity | undefined | "gone"> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "gone";
    throw error;
  }
  try {
    const said = lockFile.parse(JSON.parse(text));
    return "free" in said ? undefined : said;
  } catch {
    // Files appear whole, so this one was cut short by the machine going down, and its holder with it.
    return undefined;
  }
}

/** The file appears with its content or not at all, and only if there was none. */
async function create(file: string, me: ProcessIdentity): Promise<boolean> {
  const draft = `${file}.${randomUUID()}.tmp`;
  await writeFile(draft, JSON.stringify(me));
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Only the holder removes files: passed numbers, and drafts of processes that died. */
async function sweep(directory: string, held: number): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    if (/^\d+$/.test(name) && Number(name) < held) await rm(path, { force: true });
    if (!name.endsWith(".tmp")) continue;
    const entry = await stat(path).catch(() => undefined);
    if (entry !== undefined && Date.now() - entry.mtimeMs > 3_600_000)
      await rm(path, { force: true });
  }
}

async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`;
  await writeFile(draft, text);
  await rename(draft, file);
}
