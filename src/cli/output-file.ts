import { randomBytes } from "node:crypto";
import { link, lstat, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { LonghaulError } from "../contracts/errors.js";
import { usage } from "./parse.js";

/**
 * Writes a file whole or not at all: beside it first, and in its place when all is written. USAGE when it is there already and
 * `force` is not given; INVALID_INPUT when it cannot be written.
 */
export async function writeOutputFile(
  path: string,
  force: boolean,
  pieces: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  if (!force && (await isThere(path))) throw taken(path);
  const draft = join(dirname(path), `.longhaul-${randomBytes(6).toString("hex")}.tmp`);
  const file = await open(draft, "wx").catch((error: unknown) => {
    throw unwritable(path, error);
  });
  try {
    try {
      for await (const piece of pieces)
        await file.writeFile(piece).catch((error: unknown) => {
          throw unwritable(path, error);
        });
      await file.sync();
    } finally {
      await file.close();
    }
    await place(draft, path, force);
  } finally {
    await rm(draft, { force: true });
  }
}

/** A link never replaces what came there meanwhile; where there are none it is looked for once more. */
async function place(draft: string, path: string, force: boolean): Promise<void> {
  if (!force) {
    try {
      await link(draft, path);
      return;
    } catch (error) {
      if (codeOf(error) === "EEXIST") throw taken(path);
    }
    if (await isThere(path)) throw taken(path);
  }
  await rename(draft, path).catch((error: unknown) => {
    throw unwritable(path, error);
  });
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}

function taken(path: string): LonghaulError {
  return usage(`${path} is there already; give --force to replace it, or another name`);
}

function unwritable(path: string, error: unknown): LonghaulError {
  const reason = error instanceof Error ? error.message : String(error);
  return new LonghaulError("INVALID_INPUT", `cannot write ${path}: ${reason}`, { cause: error });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
