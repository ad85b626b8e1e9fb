import { constants } from "node:fs";
import { access, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod";

import { LonghaulError } from "../contracts/errors.js";
import { defineTool } from "./define.js";
import { absent, replaceFile } from "./replace-file.js";
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

function failed(message: string): LonghaulError {
  return new LonghaulError("TOOL_FAILED", message);
}
