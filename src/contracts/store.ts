/**
 * Bulk and copies outside history (design D7): streams of bytes addressed by (session, stream).
 * Never authority: nothing that happened is decided from it.
 */
export interface Store {
  /**
   * Writes `bytes` at `offset` of a stream, creating it. Idempotent by offset: bytes already there must be equal
   * (STORE_CONFLICT otherwise); an offset beyond the end is STORE_CONFLICT too. Returns the stream's length.
   * When it returns, the bytes survive a kill of this process; after `sync` they survive a power cut.
   */
  append(session: string, stream: string, offset: number, bytes: Uint8Array): Promise<number>;
  /** Bytes from `offset`, at most `limit`; empty at the end. STREAM_NOT_FOUND when there is none. */
  read(session: string, stream: string, offset: number, limit: number): Promise<Uint8Array>;
  /** Length in bytes, or undefined when there is no such stream. */
  size(session: string, stream: string): Promise<number | undefined>;
  /** Flushes a stream to stable storage. */
  sync(session: string, stream: string): Promise<void>;
  /** Streams of a session whose id starts with `prefix`, in the order of their names. */
  list(
    session: string,
    prefix: string,
  ): Promise<readonly { readonly stream: string; readonly bytes: number }[]>;
  /** Sessions that have streams, in the order of their names. */
  sessions(): AsyncGenerator<string, void, undefined>;
  /** Removes everything of a session. */
  remove(session: string): Promise<void>;
  /** A address a person can use to read a stream, e.g. a path. */
  locator(session: string, stream: string): string;
  /** Throws STORE_UNAVAILABLE with the reason when it cannot be written. */
  check(): Promise<void>;
}
