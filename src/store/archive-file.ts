import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import { readStream } from "./stream-reader.js";

/**
 * Writes all of a stream whose text never changes, and flushes it: what an interrupted write left is completed. LOG_CORRUPT when
 * other bytes are there.
 */
export async function writeWhole(
  store: Store,
  session: string,
  stream: string,
  text: string,
): Promise<void> {
  try {
    await store.append(session, stream, 0, Buffer.from(text));
  } catch (error) {
    if (!isStoreError(error, "STORE_CONFLICT")) throw error;
    throw damaged(store, session, stream, "it holds other bytes than are to be written", error);
  }
  await store.sync(session, stream);
}

/** All of a stream; ARCHIVE_UNAVAILABLE when there is none. */
export async function readWhole(store: Store, session: string, stream: string): Promise<Buffer> {
  try {
    const pieces: Uint8Array[] = [];
    for await (const piece of readStream(store, session, stream)) pieces.push(piece);
    return Buffer.concat(pieces);
  } catch (error) {
    throw missingOr(error, store, session, stream);
  }
}

/** First line of a stream, without its end; undefined when it has none. ARCHIVE_UNAVAILABLE when there is no such stream. */
export async function readFirstLine(
  store: Store,
  session: string,
  stream: string,
): Promise<string | undefined> {
  try {
    for (let limit = 2_048; limit <= maxLineBytes; limit *= 4) {
      const bytes = Buffer.from(await store.read(session, stream, 0, limit));
      const end = bytes.indexOf("\n");
      if (end !== -1) return bytes.toString("utf8", 0, end);
      if (bytes.length < limit) break;
    }
    return undefined;
  } catch (error) {
    throw missingOr(error, store, session, stream);
  }
}

/** LOG_CORRUPT: what is wrong with which file, and what to do. */
export function damaged(
  store: Store,
  session: string,
  stream: string,
  problem: string,
  cause?: unknown,
): LonghaulError {
  return new LonghaulError(
    "LOG_CORRUPT",
    `${stream} of session ${session} is damaged: ${problem}; bring ${store.locator(session, stream)} back from a backup`,
    { cause },
  );
}

/** More than a header with the longest ids has. */
const maxLineBytes = 2_048 * 4 ** 3;

function missingOr(error: unknown, store: Store, session: string, stream: string): unknown {
  if (!isStoreError(error, "STREAM_NOT_FOUND")) return error;
  return new LonghaulError(
    "ARCHIVE_UNAVAILABLE",
    `${stream} of session ${session} is not in this store (${store.locator(session, stream)}); use the store the workers use, or bring the file back from a backup`,
    { cause: error },
  );
}

function isStoreError(error: unknown, code: "STORE_CONFLICT" | "STREAM_NOT_FOUND"): boolean {
  return error instanceof LonghaulError && error.code === code;
}
