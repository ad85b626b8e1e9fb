import type { Readable } from "node:stream";

import type { Store } from "../contracts/store.js";
import { tailBytes } from "./utf8.js";

/** Bytes of one stream kept in memory (spec/harness §8). */
export const tailLimit = 64_000;
/** Bytes of one stream kept in the store; what comes later is dropped there, the tail goes on. */
const spillLimit = 64 * 1024 * 1024;

/** Above this many bytes waiting for the store the reader pauses … */
const pauseAbove = 8 * 1024 * 1024;
/** … but no command waits for a stuck store longer than this, ms: then the copy is given up. */
const storePatienceMs = 10_000;

export interface SpillTarget {
  readonly store: Store;
  readonly session: string;
  readonly stream: string;
}

export interface CapturedOutput {
  /** The last bytes, at most `tailLimit`, cut at a code point. */
  readonly tail: Buffer;
  /** All bytes that came. */
  readonly total: number;
  /** Where the whole output is; absent when the tail is all of it, or the store failed. */
  readonly locator?: string;
  /** Bytes in the store, less than `total` when its limit was passed. */
  readonly stored: number;
}

/** Reads a stream into a tail, and into the store once the tail overflows. */
export function captureOutput(source: Readable, target: SpillTarget): OutputCapture {
  let tail: Buffer[] = [];
  let tailLength = 0;
  let total = 0;
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let stored = 0;
  let spilling = false;
  let failed = false;
  let writing: Promise<void> | undefined;

  const ended = new Promise<void>((resolve) => {
    source.once("close", resolve);
    source.once("end", resolve);
    source.on("error", () => {});
  });
  source.on("data", (chunk: Buffer) => {
    total += chunk.length;
    tail.push(chunk);
    tailLength += chunk.length;
    if (!spilling && tailLength > tailLimit) {
      spilling = true;
      enqueue(Buffer.concat(tail));
    } else if (spilling) {
      enqueue(chunk);
    }
    // Twice the limit, so that small chunks do not copy the tail each time.
    if (tailLength > 2 * tailLimit) compact();
  });

  function compact(): void {
    const kept = Buffer.from(tailBytes(Buffer.concat(tail), tailLimit));
    tail = [kept];
    tailLength = kept.length;
  }

  function enqueue(bytes: Buffer): void {
    if (failed) return;
    const room = spillLimit - stored - waitingBytes;
    const part = bytes.subarray(0, Math.max(0, room));
    if (part.length === 0) return;
    waiting.push(part);
    waitingBytes += part.length;
    if (waitingBytes > pauseAbove) source.pause();
    writing ??= drain();
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0 && !failed) {
      const bytes = Buffer.concat(waiting.splice(0));
      try {
        await within(
          storePatienceMs,
          target.store.append(target.session, target.stream, stored, bytes),
        );
        stored += bytes.length;
      } catch {
        failed = true;
        waiting = [];
      }
      waitingBytes = failed ? 0 : waitingBytes - bytes.length;
      if (source.isPaused()) source.resume();
    }
    writing = undefined;
  }

  return {
    ended,
    isStalled: () => source.isPaused(),
    async finish() {
      await writing;
      const bytes = tailBytes(Buffer.concat(tail), tailLimit);
      const kept = spilling && !failed;
      return {
        tail: bytes,
        total,
        stored: kept ? stored : 0,
        ...(kept ? { locator: target.store.locator(target.session, target.stream) } : {}),
      };
    },
  };
}

export interface OutputCapture {
  /** Settles when the stream is at its end or destroyed. */
  readonly ended: Promise<void>;
  /** Is the reader held back by the store? */
  isStalled(): boolean;
  /** Waits for the store; call after the end. */
  finish(): Promise<CapturedOutput>;
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the store did not answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
