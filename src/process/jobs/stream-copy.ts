import { existsSync, statSync } from "node:fs";
import { open, rm } from "node:fs/promises";

import type { Store } from "../../contracts/store.js";
import { jobStart, type StoredPart, jobStreamId, storedParts } from "../../store/job-output.js";
import { type JobStreamName, jobStreams, type Spool, segmentPath, segmentStarts } from "./spool.js";

/** Most bytes that are read and appended at once. */
const pieceBytes = 256 * 1024;
/** Stored segments are removed in batches of about this size, because the store is flushed before. */
const releaseBytes = 4 * 1024 * 1024;
/** Bytes of the end that stay readable when the store's limit was passed (spec/jobs J14). */
const tailKept = 64_000;
const relistMs = 1_000;
/** Bytes from which the line of progress is taken. */
const recentBytes = 400;

/**
 * Carries one output stream of a job from its spool to the store and goes on from what is there, so a copy that died is
 * taken up without a byte lost or doubled. Offsets are the command's own: a part that follows bytes which were dropped is a
 * stream of its own that names its first offset.
 */
export class StreamCopy {
  readonly name: JobStreamName;
  readonly #store: Store;
  readonly #spool: Spool;
  readonly #fd: number;
  readonly #limit: number;
  #parts: StoredPart[] = [];
  /** Offset of the next byte to carry. */
  #position = 0;
  #segment: number | undefined;
  /** Sizes by path of segments that are stored and still here. */
  readonly #consumed = new Map<string, number>();
  #listedAt = 0;
  /** The last bytes that went by, for a line of progress. */
  recent: Buffer = Buffer.alloc(0);

  constructor(store: Store, spool: Spool, name: JobStreamName, limit: number) {
    this.#store = store;
    this.#spool = spool;
    this.name = name;
    this.#fd = jobStreams.indexOf(name) + 1;
    this.#limit = limit;
  }

  /** Bytes the command has printed, as far as they were seen. */
  get total(): number {
    return this.#position;
  }

  get parts(): readonly StoredPart[] {
    return this.#parts;
  }

  /** Finds out how far the store is; makes the stream, so that readers find it empty and not missing. */
  async open(): Promise<void> {
    const { sessionId } = this.#spool.job;
    await this.#store.append(
      sessionId,
      jobStreamId(jobStart(this.#spool.job), this.#fd, 0),
      0,
      new Uint8Array(),
    );
    this.#segment = undefined;
    await this.#refresh();
  }

  /** Carries what is there now; returns how many bytes went by. Rejects with the store's error and can be called again. */
  async copy(): Promise<number> {
    const from = this.#position;
    while (this.#position - from < 8 * pieceBytes) {
      if (this.#storedBytes() >= this.#limit) {
        await this.#skip();
        break;
      }
      if (!this.#locate()) break;
      if (await this.#crossGap()) await this.#carry();
    }
    await this.#release();
    return this.#position - from;
  }

  /** After the last byte: what the limit kept out of the store but for the tail, which is stored now. */
  async finish(): Promise<void> {
    const total = this.#position;
    const stored = this.#storedEnd();
    if (stored < total) {
      this.#position = Math.max(stored, total - tailKept);
      this.#segment = undefined;
      while (this.#position < total && this.#locate()) {
        if (await this.#crossGap()) await this.#carry(true);
      }
    }
    await this.#store.sync(
      this.#spool.job.sessionId,
      this.#parts.at(-1)?.stream ?? jobStreamId(jobStart(this.#spool.job), this.#fd, 0),
    );
  }

  /** Empties the spool of this stream, once its end is recorded. */
  async clear(): Promise<void> {
    for (const start of segmentStarts(this.#spool.directory, this.#fd))
      await rm(this.#path(start), { force: true });
  }

  /** Moves to the segment that holds the position, or the first one after it; false when it has nothing yet. */
  #locate(): boolean {
    if (this.#segment !== undefined) {
      const size = this.#sizeOf(this.#segment);
      if (size !== undefined && this.#position < this.#segment + size) return true;
      // Named by its exact offset, it is there only when the one before is whole.
      if (size !== undefined && size > 0 && existsSync(this.#path(this.#segment + size))) {
        this.#leave(this.#segment, size);
        this.#segment += size;
        return this.#locate();
      }
      if (size !== undefined && Date.now() - this.#listedAt < relistMs) return false;
    }
    this.#listedAt = Date.now();
    const starts = segmentStarts(this.#spool.directory, this.#fd);
    for (const [index, start] of starts.entries()) {
      const size = this.#sizeOf(start);
      if (size === undefined) continue;
      const holds = this.#position < start + size;
      if (holds || index === starts.length - 1) {
        this.#segment = start;
        return holds;
      }
      this.#leave(start, size);
    }
    return false;
  }

  /**
   * Over what was dropped, by the cap or a full disk. False when nothing was: a follower that was frozen finds here that
   * another one has stored and removed it.
   */
  async #crossGap(): Promise<boolean> {
    const start = this.#segment;
    if (start === undefined || start <= this.#position) return true;
    await this.#refresh();
    if (start > this.#position) {
      this.#position = start;
      return true;
    }
    this.#segment = undefined;
    return false;
  }

  async #refresh(): Promise<void> {
    const { sessionId } = this.#spool.job;
    this.#parts = [
      ...(await storedParts(this.#store, sessionId, jobStart(this.#spool.job), this.#fd)),
    ];
    this.#position = Math.max(this.#position, this.#storedEnd());
  }

  async #carry(beyondLimit = false): Promise<void> {
    const start = this.#segment;
    if (start === undefined) return;
    const from = this.#position - start;
    // No more than there is: buffers of whole pieces would be most of what a worker with many quiet jobs collects.
    const there = (this.#sizeOf(start) ?? from) - from;
    const bytes = await readPiece(this.#path(start), from, Math.min(there, pieceBytes));
    if (bytes === undefined || bytes.length === 0) {
      this.#segment = undefined;
      return;
    }
    const room = beyondLimit ? bytes.length : this.#limit - this.#storedBytes();
    await this.#append(bytes.subarray(0, room));
    this.recent = Buffer.from(bytes.subarray(Math.max(0, bytes.length - recentBytes)));
  }

  /** Counts what the store does not take, without reading it. */
  async #skip(): Promise<void> {
    const start = segmentStarts(this.#spool.directory, this.#fd).at(-1);
    const size = start === undefined ? undefined : this.#sizeOf(start);
    if (start === undefined || size === undefined || start + size <= this.#position) return;
    this.#segment = start;
    this.#position = start + size;
    const from = Math.max(0, size - recentBytes);
    this.recent = (await readPiece(this.#path(start), from, size - from)) ?? this.recent;
  }

  async #append(bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0) return;
    const { sessionId } = this.#spool.job;
    let part = this.#parts.at(-1);
    if (part === undefined || part.base + part.bytes !== this.#position) {
      const stream = jobStreamId(jobStart(this.#spool.job), this.#fd, this.#position);
      part = { stream, base: this.#position, bytes: 0 };
      this.#parts.push(part);
    }
    await this.#store.append(sessionId, part.stream, this.#position - part.base, bytes);
    this.#parts[this.#parts.length - 1] = { ...part, bytes: part.bytes + bytes.length };
    this.#position += bytes.length;
  }

  /** A segment that is whole and stored may go; one that the limit kept out stays for the supervisor to drop. */
  #leave(start: number, size: number): void {
    if (this.#storedEnd() >= start + size) this.#consumed.set(this.#path(start), size);
  }

  async #release(): Promise<void> {
    const part = this.#parts.at(-1);
    const bytes = [...this.#consumed.values()].reduce((sum, size) => sum + size, 0);
    if (bytes < releaseBytes || part === undefined) return;
    await this.#store.sync(this.#spool.job.sessionId, part.stream);
    for (const path of this.#consumed.keys()) await rm(path, { force: true });
    this.#consumed.clear();
  }

  #storedBytes(): number {
    return this.#parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #storedEnd(): number {
    const last = this.#parts.at(-1);
    return last === undefined ? 0 : last.base + last.bytes;
  }

  #path(start: number): string {
    return segmentPath(this.#spool.directory, this.#fd, start);
  }

  #sizeOf(start: number): number | undefined {
    return statSync(this.#path(start), { throwIfNoEntry: false })?.size;
  }
}

async function readPiece(path: string, from: number, length: number): Promise<Buffer | undefined> {
  let file;
  try {
    file = await open(path, "r");
  } catch {
    return undefined;
  }
  try {
    const buffer = Buffer.allocUnsafe(length);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
