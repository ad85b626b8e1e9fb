import { open, type FileHandle } from "node:fs/promises";
import { LonghaulError } from "../contracts/errors.js";

/** Writes all of `bytes` at `position`; a short write goes on where it stopped. */
export async function writeFully(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Bytes from `position`, at most `length`: fewer only at the end of the file. */
export async function readFully(
  file: FileHandle,
  position: number,
  length: number,
): Promise<Uint8Array> {
  const { size } = await file.stat();
  const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - position)));
  let done = 0;
  while (done < bytes.length) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

/** Makes the names in a directory survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}

export function isSystemError(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** STORE_UNAVAILABLE in one line: what could not be done with which path, and the system's reason. */
export function unavailable(action: string, path: string, error: unknown): LonghaulError {
  const reason =
    error instanceof Error ? error.message.replace(/, \w+(?: '.*)?$/su, "") : String(error);
  return new LonghaulError(
    "STORE_UNAVAILABLE",
    `cannot ${action} ${path}: ${reason}; ${cureOf(error)}`,
    { cause: error },
  );
}

function cureOf(error: unknown): string {
  if (isSystemError(error, "ENOSPC") || isSystemError(error, "EDQUOT"))
    return "free some space on that disk";
  if (
    isSystemError(error, "EACCES") ||
    isSystemError(error, "EPERM") ||
    isSystemError(error, "EROFS")
  ) {
    return "let this user write there, or choose another data directory";
  }
  return "check the data directory";
}
