import { Buffer } from "node:buffer";
import type { JobOffsets } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { type JobFd, jobStreamsOf, storedParts } from "../store/job-output.js";

/** A stretch of a job's output. Never cut inside a character, unless the output itself ends or was dropped there. */
export interface JobOutputPiece {
  /** `stdout`, `stderr`, or a name that its kind gives; `output` of a job whose output is one final result. */
  readonly stream: string;
  /** Of its first byte, counted from the beginning of the stream; a jump says that bytes between were dropped. */
  readonly offset: number;
  readonly text: string;
  /** The same as it was printed: `text` has U+FFFD for what is not UTF-8. */
  readonly bytes: Uint8Array;
}

/** Reads what a job has printed from the store, each stream from where it last stopped. */
export class JobOutputReader {
  readonly #store: Pick<Store, "list" | "read">;
  readonly #session: string;
  readonly #start: string;
  readonly #from: JobOffsets;
  readonly #streams = new Map<string, StreamReading>();

  /** `from`: first byte wanted of each stream, default 0. */
  constructor(
    store: Pick<Store, "list" | "read">,
    session: string,
    start: string,
    from: JobOffsets,
  ) {
    this.#store = store;
    this.#session = session;
    this.#start = start;
    this.#from = from;
  }

  /** What is new. `last`: nothing more is to come, so a character that was begun is given as it is. */
  async *read(last: boolean): AsyncGenerator<JobOutputPiece, void, undefined> {
    for (const { name, id } of await jobStreamsOf(this.#store, this.#session, this.#start)) {
      const [store, session, job] = [this.#store, this.#session, this.#start];
      const known = this.#streams.get(name);
      const stream =
        known ?? new StreamReading(store, session, job, name, id, this.#from[name] ?? 0);
      if (known === undefined) this.#streams.set(name, stream);
      yield* stream.read(last);
    }
  }
}

const pieceBytes = 256 * 1024;

class StreamReading {
  readonly #store: Pick<Store, "list" | "read">;
  readonly #session: string;
  readonly #start: string;
  readonly #stream: string;
  readonly #fd: JobFd;
  /** Of the first byte that was not given. */
  #offset: number;
  /** Read and not given: the beginning of a character. */
  #held: Buffer = Buffer.alloc(0);

  constructor(
    store: Pick<Store, "list" | "read">,
    session: string,
    start: string,
    stream: string,
    fd: JobFd,
    offset: number,
  ) {
    this.#store = store;
    this.#session = session;
    this.#start = start;
    this.#stream = stream;
    this.#fd = fd;
    this.#offset = offset;
  }

  async *read(last: boolean): AsyncGenerator<JobOutputPiece, void, undefined> {
    const parts = await storedParts(this.#store, this.#session, this.#start, this.#fd);
    for (const { stream, base, bytes } of parts) {
      const end = base + bytes;
      if (end <= this.#next) continue;
      if (base > this.#next) {
        yield* this.#give(this.#held.length);
        this.#offset = base;
      }
      while (this.#next < end) {
        const limit = Math.min(pieceBytes, end - this.#next);
        const piece = await this.#store.read(this.#session, stream, this.#next - base, limit);
        if (piece.length === 0) break;
        this.#held = Buffer.concat([this.#held, piece]);
        yield* this.#give(this.#held.length - begunBytes(this.#held));
      }
    }
    if (last) yield* this.#give(this.#held.length);
  }

  /** Offset of the next byte to read. */
  get #next(): number {
    return this.#offset + this.#held.length;
  }

  *#give(count: number): Generator<JobOutputPiece, void, undefined> {
    if (count === 0) return;
    const bytes = this.#held.subarray(0, count);
    const offset = this.#offset;
    this.#held = this.#held.subarray(count);
    this.#offset += count;
    yield { stream: this.#stream, offset, text: bytes.toString("utf8"), bytes };
  }
}

/** Bytes at the end that begin a character of UTF-8 and do not finish it. */
function begunBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte <= 0xf4 && length > back ? back : 0;
  }
  return 0;
}
