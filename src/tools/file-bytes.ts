import { constants, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

import { LonghaulError } from "../contracts/errors.js";
import { reasonOf } from "./workspace-path.js";

export interface FileBytes {
  readonly bytes: Buffer;
  readonly facts: Stats;
}

/**
 * A whole regular file; `path` is what the model called it, `real` where it is. `cure` ends the message about one of
 * more than `maxBytes`. Refuses with TOOL_FAILED.
 */
export async function readRegularFile(
  path: string,
  real: string,
  maxBytes: number,
  cure: string,
): Promise<FileBytes> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK opening a FIFO would wait for its writer.
    file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const facts = await file.stat();
    if (facts.isDirectory()) throw failed(`${path} is a directory; list it with glob or bash`);
    if (!facts.isFile()) throw failed(`${path} is not a regular file`);
    if (facts.size > maxBytes)
      throw failed(`${path} has ${facts.size} bytes, more than ${maxBytes}; ${cure}`);
    return { bytes: await file.readFile(), facts };
  } catch (error) {
    if (error instanceof LonghaulError) throw error;
    throw new LonghaulError("TOOL_FAILED", `cannot read ${path}: ${reasonOf(error)}`, {
      cause: error,
    });
  } finally {
    await file?.close();
  }
}

export function failed(message: string): LonghaulError {
  return new LonghaulError("TOOL_FAILED", message);
}
