import { randomUUID } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { access, chmod, chown, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import { defineTool } from "./define.js";
import { reasonOf, resolveInWorkspace } from "./workspace-path.js";

/** Writes a whole file; readers see the old content or the new, never a part. */
export const writeTool = defineTool({
  name: "write",
  description:
    "Write a whole text file, creating it and its directories or replacing what is there. Relative paths start at the workspace.",
  parameters: z.object({
    path: z.string().min(1).describe("File to write."),
    content: z.string().describe("The complete new content."),
  }),
  async execute({ path, content }, context) {
    const real = await resolveInWorkspace(context, path);
    const bytes = Buffer.from(content, "utf8");
    try {
      const before = await stat(real).catch(absent);
      if (before?.isDirectory() === true) throw failed(`${path} is a directory; name a file`);
      if (before !== undefined && !before.isFile()) throw failed(`${path} is not a regular file`);
      if (before !== undefined) await access(real, constants.W_OK);
      await mkdir(dirname(real), { recursive: true });
      await replaceFile(real, bytes, before, context.signal);
      const done = before === undefined ? "created" : "replaced";
      return {
        text: `${done} ${path} (${bytes.length} bytes)`,
        meta: { bytes: bytes.length, created: before === undefined },
      };
    } catch (error) {
      if (error instanceof LonghaulError || context.signal.aborted) throw error;
      throw new LonghaulError("TOOL_FAILED", `cannot write ${path}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  },
});

async function replaceFile(
  path: string,
  bytes: Buffer,
  before: Stats | undefined,
  signal: AbortSignal,
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
    signal.throwIfAborted();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function absent(error: unknown): undefined {
  if (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOENT" || error.code === "EPERM")
  )
    return undefined;
  throw error;
}

function failed(message: string): LonghaulError {
  return new LonghaulError("TOOL_FAILED", message);
}
