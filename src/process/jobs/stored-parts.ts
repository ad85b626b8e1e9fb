import { createHash } from "node:crypto";

import type { JobTail } from "../../contracts/jobs.js";
import type { Store } from "../../contracts/store.js";
import { type JobFd, type StoredPart, storedParts } from "../../store/job-output.js";
import { decodeText, tailBytes } from "../utf8.js";

/** How one output stream ended (design D7). */
export interface JobStreamEnd {
  readonly stream: string;
  /** Bytes the command printed. */
  readonly total: number;
  /** Bytes of them in the store; the others were dropped. */
  readonly stored: number;
  /** SHA-256, hex, of the stored bytes in the order of their offsets. */
  readonly digest: string;
  readonly parts: readonly StoredPart[];
}

/** Bytes of the end of a stream that can be read (spec/jobs §9). */
export const readableBytes = 64_000;

/** What a read from a cursor yields; `dropped` when unread bytes before `from` are not in the readable tail any more. */
export interface JobStreamRead {
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
  readonly dropped: boolean;
  /** Where the stream lies. */
  readonly parts: readonly StoredPart[];
}

/** The bytes from `offset` to what is now the end, at most the last 64,000, and never across a gap; from any host. */
export async function readJobStream(
  store: Pick<Store, "list" | "read">,
  session: string,
  start: string,
  fd: JobFd,
  offset: number,
): Promise<JobStreamRead> {
  const parts = await storedParts(store, session, start, fd);
  const end = Math.max(offset, ...parts.map(({ base, bytes }) => base + bytes));
  let from = Math.max(offset, end - readableBytes);
  let to = from;
  let pieces: Uint8Array[] = [];
  for (const { stream, base, bytes } of parts) {
    if (base + bytes <= to) continue;
    if (base > to) {
      from = to = base;
      pieces = [];
    }
    const piece = await store.read(session, stream, to - base, base + bytes - to);
    pieces.push(piece);
    to += piece.length;
  }
  return { from, to, bytes: Buffer.concat(pieces), dropped: from > offset, parts };
}

/** Counts and digest, read from the store itself. */
export async function describeStored(
  store: Pick<Store, "read">,
  session: string,
  stream: string,
  total: number,
  parts: readonly StoredPart[],
): Promise<JobStreamEnd> {
  const hash = createHash("sha256");
  let stored = 0;
  for (const part of parts) {
    for (let at = 0; at < part.bytes;) {
      const piece = await store.read(session, part.stream, at, 1024 * 1024);
      if (piece.length === 0) break;
      hash.update(piece);
      at += piece.length;
    }
    stored += part.bytes;
  }
  return { stream, total, stored, digest: hash.digest("hex"), parts };
}

/** Longest tails that travel with the report, both together, bytes (spec/jobs J14). */
const reportedBytes = 4_096;

/** The end of each stream, cut at a character; what one does not need the other may have. */
export async function readTails(
  store: Pick<Store, "read">,
  session: string,
  ends: readonly JobStreamEnd[],
): Promise<readonly JobTail[]> {
  const half = Math.floor(reportedBytes / Math.max(1, ends.length));
  const tails: JobTail[] = [];
  for (const end of ends) {
    const others = ends.filter((other) => other !== end);
    const spare = others.reduce((sum, { total }) => sum + Math.max(0, half - total), 0);
    tails.push(await readTail(store, session, end, half + spare));
  }
  return tails;
}

async function readTail(
  store: Pick<Store, "read">,
  session: string,
  { stream, total, parts }: JobStreamEnd,
  limit: number,
): Promise<JobTail> {
  const last = parts.at(-1);
  if (last === undefined || last.base + last.bytes !== total)
    return { stream, from: total, to: total, text: "" };
  const from = Math.max(0, last.bytes - limit);
  // Three bytes more tell whether the cut is inside a character.
  const bytes = Buffer.from(await store.read(session, last.stream, from, limit));
  const kept = from === 0 ? bytes : tailBytes(bytes, bytes.length - leading(bytes));
  return { stream, from: total - kept.length, to: total, text: decodeText(kept) };
}

/** Bytes at the start that belong to a character before it. */
function leading(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && ((bytes[count] ?? 0) & 0xc0) === 0x80) count += 1;
  return count;
}
