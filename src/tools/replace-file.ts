import { randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { chmod, chown, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Puts `bytes` in the place of a file under its real path: readers see the old content or the new, never a part.
 * Mode and, where allowed, owner of `before` are kept; `settled` is asked last and may still refuse by a throw.
 */
export async function replaceFile(
  path: string,
  bytes: Buffer,
  before: Stats | undefined,
  signal: AbortSignal,
  settled?: () => Promise<void>,
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, "wx", before?.mode ?? 0o666);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    if (before !== undefined) {
      const own = await stat(temporary);
      // Only root may keep a foreign owner; anyone else becomes the owner of what they write.
      if (own.uid !== before.uid || own.gid !== before.gid)
        await chown(temporary, before.uid, before.gid).catch(absent);
      await chmod(temporary, before.mode & 0o7777);
    }
    await settled?.();
    signal.throwIfAborted();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** For `catch`: what is not there, or not ours to change, is undefined. */
export function absent(error: unknown): undefined {
  if (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOENT" || error.code === "EPERM")
  )
    return undefined;
  throw error;
}
