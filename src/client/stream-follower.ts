import type { Store } from "../contracts/store.js";
import { createStreamedPartDecoder, type StreamedPartDecoder } from "../store/model-stream.js";
import { readStream } from "../store/stream-reader.js";
import type { TextRun } from "./text-runs.js";

/** What one execution of a model call has streamed so far. `pieces` only grows while `stream` is the same. */
export interface StreamedText {
  readonly turn: number;
  readonly step: number;
  readonly stream: string;
  readonly pieces: readonly TextRun[];
}

/** Follows the newest side stream of a step, from where it last read (design D7). */
export class StreamFollower {
  readonly #store: Pick<Store, "list" | "read">;
  readonly #session: string;
  #current: Reading | undefined;

  constructor(store: Pick<Store, "list" | "read">, session: string) {
    this.#store = store;
    this.#session = session;
  }

  /**
   * What the step has streamed by now; undefined before its first byte. A store that cannot be read is no error: the
   * text then comes with the log.
   */
  async read(turn: number, step: number): Promise<StreamedText | undefined> {
    try {
      const streams = await this.#store.list(this.#session, `model/${turn}.${step}.`);
      const newest = streams.at(-1)?.stream;
      if (newest === undefined) return undefined;
      if (this.#current?.stream !== newest) {
        this.#current = {
          turn,
          step,
          stream: newest,
          pieces: [],
          offset: 0,
          decoder: createStreamedPartDecoder(),
        };
      }
      await this.#readOn(this.#current);
    } catch {
      // Kept: what was read before.
    }
    return this.#current?.turn === turn && this.#current.step === step ? this.#current : undefined;
  }

  async #readOn(reading: Reading): Promise<void> {
    for await (const bytes of readStream(
      this.#store,
      this.#session,
      reading.stream,
      reading.offset,
    )) {
      reading.offset += bytes.length;
      for (const part of reading.decoder.push(bytes)) {
        if (part.type !== "tool-call") reading.pieces.push({ kind: part.type, text: part.text });
      }
    }
  }
}

interface Reading {
  readonly turn: number;
  readonly step: number;
  readonly stream: string;
  readonly pieces: TextRun[];
  readonly decoder: StreamedPartDecoder;
  offset: number;
}
