import type { Store } from "../contracts/store.js";

const pieceBytes = 256 * 1024;

/**
 * The bytes of a stream from `offset` to what is now its end, in pieces. To follow a growing stream, call again with
 * the offset reached. STREAM_NOT_FOUND when there is none.
 */
export async function* readStream(
  store: Pick<Store, "read">,
  session: string,
  stream: string,
  offset = 0,
): AsyncGenerator<Uint8Array, void, undefined> {
  let position = offset;
  while (true) {
    const piece = await store.read(session, stream, position, pieceBytes);
    if (piece.length === 0) return;
    position += piece.length;
    yield piece;
  }
}
