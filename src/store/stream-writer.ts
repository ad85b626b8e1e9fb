import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";

export interface StreamWriterOptions {
  /** Where the first byte goes, default 0. */
  readonly offset?: number;
  /** Longest time bytes wait for company, ms, default 50. */
  readonly intervalMs?: number;
  /** Bytes that are written without waiting, default 16 KB. */
  readonly batchBytes?: number;
  /** Most bytes kept while the store is unavailable, default 16 MB; with more the stream is given up. */
  readonly maxPendingBytes?: number;
}

/** Appends to one stream in few, larger writes, in the order given. */
export interface StreamWriter {
  /** Takes a copy of the bytes and returns at once; never throws, also not after a failure or `close`. */
  write(bytes: Uint8Array): void;
  /**
   * Writes what is left and returns the stream's length. Rejects with what kept the bytes from being written: an
   * unavailable store is tried again with every batch and once more here; after a STORE_CONFLICT nothing is written.
   */
  close(): Promise<number>;
}

export function createStreamWriter(
  store: Pick<Store, "append">,
  session: string,
  stream: string,
  options: StreamWriterOptions = {},
): StreamWriter {
  return new BatchingWriter(
    (offset, bytes) => store.append(session, stream, offset, bytes),
    options,
  );
}

class BatchingWriter implements StreamWriter {
  readonly #append: (offset: number, bytes: Uint8Array) => Promise<number>;
  readonly #intervalMs: number;
  readonly #batchBytes: number;
  readonly #maxPendingBytes: number;
  #offset: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** The reason why the last attempt failed; cleared by one that works. */
  #trouble: unknown;
  /** The reason why no attempt will be made again. */
  #givenUp: unknown;
  #closed: Promise<number> | undefined;

  constructor(
    append: (offset: number, bytes: Uint8Array) => Promise<number>,
    options: StreamWriterOptions,
  ) {
    this.#append = append;
    this.#offset = options.offset ?? 0;
    this.#intervalMs = options.intervalMs ?? 50;
    this.#batchBytes = options.batchBytes ?? 16 * 1024;
    this.#maxPendingBytes = options.maxPendingBytes ?? 16 * 1024 * 1024;
  }

  write(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#closed !== undefined || this.#givenUp !== undefined) return;
    this.#pending.push(Buffer.from(bytes));
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes > this.#maxPendingBytes) {
      this.#giveUp(this.#trouble ?? tooSlow(this.#pendingBytes));
    } else if (this.#pendingBytes >= this.#batchBytes && this.#trouble === undefined) {
      this.#flush();
    } else {
      this.#schedule();
    }
  }

  close(): Promise<number> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  async #finish(): Promise<number> {
    clearTimeout(this.#timer);
    await this.#running;
    await this.#drain();
    const reason = this.#givenUp ?? this.#trouble;
    if (reason !== undefined) throw reason;
    return this.#offset;
  }

  #schedule(): void {
    const delay = this.#trouble === undefined ? this.#intervalMs : this.#intervalMs * 20;
    this.#timer ??= setTimeout(() => this.#flush(), delay).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running ??= this.#drain().finally(() => {
      this.#running = undefined;
      if (this.#pending.length > 0 && this.#closed === undefined) this.#schedule();
    });
  }

  /** Writes batches until none is left or one fails; never rejects. */
  async #drain(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = Buffer.concat(this.#pending);
      this.#pending = [batch];
      try {
        await this.#append(this.#offset, batch);
      } catch (error) {
        this.#trouble = error;
        if (!isUnavailable(error)) this.#giveUp(error);
        return;
      }
      this.#trouble = undefined;
      this.#offset += batch.length;
      this.#pendingBytes -= batch.length;
      this.#pending = this.#pending.slice(1);
    }
  }

  #giveUp(reason: unknown): void {
    this.#givenUp ??= reason;
    this.#pending = [];
    this.#pendingBytes = 0;
    clearTimeout(this.#timer);
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof LonghaulError && error.code === "STORE_UNAVAILABLE";
}

function tooSlow(bytes: number): LonghaulError {
  return new LonghaulError(
    "STORE_UNAVAILABLE",
    `${bytes} bytes of a stream waited for the store and more came; the rest of the stream was given up`,
  );
}
