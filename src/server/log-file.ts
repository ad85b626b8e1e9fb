import { copyFile, open, stat, truncate } from "node:fs/promises";

/** Above this the log is moved aside before it is written on. */
const logLimit = 10 * 1024 * 1024;

/**
 * Empties a log that has grown too large, keeping the old text in `<file>.1`. The server may be writing: it
 * appends, so it goes on at the new end.
 */
export async function boundLog(file: string, limit: number = logLimit): Promise<void> {
  const entry = await stat(file).catch(() => undefined);
  if (entry === undefined || entry.size <= limit) return;
  await copyFile(file, `${file}.1`);
  await truncate(file, 0);
}

/** The last lines of the file that say something, oldest first. */
export async function lastLines(file: string, count: number): Promise<string[]> {
  const handle = await open(file, "r").catch(() => undefined);
  if (handle === undefined) return [];
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, 16_384);
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    const lines = buffer.toString("utf8").split("\n");
    return lines.filter((line) => line.trim() !== "").slice(-count);
  } finally {
    await handle.close();
  }
}
