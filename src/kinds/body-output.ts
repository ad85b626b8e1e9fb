import { setTimeout as sleep } from "node:timers/promises";

import { LonghaulError } from "../contracts/errors.js";
import type { JobTail } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { lastLineOf } from "../process/jobs/last-line.js";
import {
  describeStored,
  type JobStreamEnd,
  readableBytes,
  readTails,
} from "../process/jobs/stored-parts.js";
import {
  jobStreamId,
  jobStreamsOf,
  outputStream,
  type StoredPart,
  storedParts,
} from "../store/job-output.js";
import type { JobProgressDetails } from "./following.js";

/** Most bytes that wait in memory while the store is away; beyond them the oldest are dropped. */
const waitingBytes = 16 * 1024 * 1024;
const recentBytes = 400;
const storeRetryMs = 1_000;

/**
 * The streams of a body: `job/<id>/<nonce>/<name>` in the store, appended in order behind what is there already. Each takes `limit`
 * bytes; of what comes after them the last 64,000 are stored at the end (spec/jobs J14).
 */
export class BodyOutput {
  readonly #store: Store;
  readonly #session: string;
  readonly #start: string;
  readonly #limit: number;
  readonly #streams = new Map<string, BodyStream>();
  #recent: Buffer = Buffer.alloc(0);

  constructor(store: Store, session: string, start: string, limit: number) {
    this.#store = store;
    this.#session = session;
    this.#start = start;
    this.#limit = limit;
  }

  /** Finds out what is there; makes the stream `output`, so that readers find it empty and not missing. */
  async open(): Promise<void> {
    const there = await whileAway(() => jobStreamsOf(this.#store, this.#session, this.#start));
    for (const name of new Set([outputStream, ...there.map((stream) => stream.name)])) {
      const parts = await whileAway(() =>
        storedParts(this.#store, this.#session, this.#start, name),
      );
      this.#streams.set(name, this.#newStream(name, parts));
    }
    const first = jobStreamId(this.#start, outputStream, 0);
    await whileAway(() => this.#store.append(this.#session, first, 0, new Uint8Array()));
  }

  write(output: string | Uint8Array, name: string = outputStream): void {
    if (!/^[a-z][a-z0-9_-]{0,31}$/.test(name))
      throw new LonghaulError(
        "INVALID_INPUT",
        `a stream of a job has 1 to 32 of a-z 0-9 _ - and begins with a letter, got ${JSON.stringify(name)}`,
      );
    const bytes = Buffer.from(output);
    if (bytes.length === 0) return;
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = this.#newStream(name, []);
      this.#streams.set(name, stream);
    }
    stream.write(bytes);
    this.#recent = Buffer.concat([this.#recent, bytes.subarray(-recentBytes)]).subarray(
      -recentBytes,
    );
  }

  written(name: string = outputStream): number {
    return this.#streams.get(name)?.total ?? 0;
  }

  progress(): JobProgressDetails {
    const counts = this.#ordered().map(([name, { total }]) => [name, total] as const);
    return { ...Object.fromEntries(counts), lastLine: lastLineOf(this.#recent) };
  }

  /** Stores what is left, however long the store is away, and gives the tails for the report. */
  async finish(): Promise<readonly JobTail[]> {
    const ends: JobStreamEnd[] = [];
    for (const [name, stream] of this.#ordered()) {
      await stream.finish();
      ends.push(
        await whileAway(async () => {
          const parts = await storedParts(this.#store, this.#session, this.#start, name);
          return await describeStored(this.#store, this.#session, name, stream.total, parts);
        }),
      );
    }
    return await whileAway(() => readTails(this.#store, this.#session, ends));
  }

  #newStream(name: string, parts: readonly StoredPart[]): BodyStream {
    return new BodyStream(this.#store, this.#session, this.#start, name, this.#limit, parts);
  }

  #ordered(): readonly (readonly [string, BodyStream])[] {
    const place = (name: string): number => (name === outputStream ? 0 : 1);
    return [...this.#streams].toSorted(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1));
  }
}

class BodyStream {
  readonly #store: Store;
  readonly #session: string;
  readonly #start: string;
  readonly #name: string;
  #part: StoredPart | undefined;
  /** Bytes that the store still takes. */
  #room: number;
  #queue: Buffer[] = [];
  #queued = 0;
  /** Offset of the first byte of the queue. */
  #at: number;
  /** The end of what the store does not take, at least the readable bytes of it. */
  #tail: Buffer[] = [];
  #tailBytes = 0;
  total: number;
  #pumping: Promise<void> | undefined;
  /** The store refuses its bytes for good; what it has stays. */
  #broken = false;

  constructor(
    store: Store,
    session: string,
    start: string,
    name: string,
    limit: number,
    parts: readonly StoredPart[],
  ) {
    this.#store = store;
    this.#session = session;
    this.#start = start;
    this.#name = name;
    this.#part = parts.at(-1);
    this.total = this.#part === undefined ? 0 : this.#part.base + this.#part.bytes;
    this.#at = this.total;
    this.#room = Math.max(0, limit - parts.reduce((sum, { bytes }) => sum + bytes, 0));
  }

  write(bytes: Buffer): void {
    this.total += bytes.length;
    if (this.#broken) return;
    const kept = bytes.subarray(0, this.#room);
    this.#room -= kept.length;
    if (kept.length > 0) {
      this.#queue.push(kept);
      this.#queued += kept.length;
      this.#trim();
      this.#pumping ??= this.#pump();
    }
    const rest = bytes.subarray(kept.length);
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    for (let first = this.#tail[0]; first !== undefined; first = this.#tail[0]) {
      if (this.#tailBytes - first.length < readableBytes) break;
      this.#tail.shift();
      this.#tailBytes -= first.length;
    }
  }

  async finish(): Promise<void> {
    await this.#pumping;
    if (this.#tailBytes > 0 && !this.#broken) {
      const tail = Buffer.concat(this.#tail).subarray(-readableBytes);
      this.#at = this.total - tail.length;
      this.#queue = [tail];
      this.#queued = tail.length;
      await this.#pump();
    }
    const part = this.#part;
    if (part !== undefined) await whileAway(() => this.#store.sync(this.#session, part.stream));
  }

  /** Stores the queue until it is empty. Never rejects. */
  async #pump(): Promise<void> {
    // Writes of one turn of the event loop go together.
    await sleep(0);
    while (this.#queued > 0 && !this.#broken) {
      const batch = Buffer.concat(this.#queue);
      const at = this.#at;
      const end = at + batch.length;
      this.#queue = [];
      this.#queued = 0;
      this.#at = end;
      let part = this.#part;
      if (part === undefined || part.base + part.bytes !== at)
        part = { stream: jobStreamId(this.#start, this.#name, at), base: at, bytes: 0 };
      try {
        await this.#store.append(this.#session, part.stream, at - part.base, batch);
        this.#part = { ...part, bytes: part.bytes + batch.length };
      } catch (error) {
        this.#broken = !isAway(error);
        // What followed it was dropped meanwhile: then it is older still.
        if (this.#at === end) {
          this.#queue.unshift(batch);
          this.#queued += batch.length;
          this.#at = at;
          this.#trim();
        }
        if (!this.#broken) await sleep(storeRetryMs);
      }
    }
    this.#pumping = undefined;
  }

  #trim(): void {
    while (this.#queued > waitingBytes) {
      const oldest = this.#queue.shift();
      if (oldest === undefined) return;
      this.#queued -= oldest.length;
      this.#at += oldest.length;
    }
  }
}

/** Waits for a store that is away. */
export async function whileAway<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isAway(error)) throw error;
      await sleep(storeRetryMs);
    }
  }
}

function isAway(error: unknown): boolean {
  return error instanceof LonghaulError && error.code === "STORE_UNAVAILABLE";
}
