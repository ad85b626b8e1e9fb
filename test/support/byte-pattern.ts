/** Bytes that depend on their position alone, so that any part of a stream can be checked without the rest. */
export function patternBytes(offset: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let index = 0; index < length; index += 1) {
    bytes[index] = Math.imul(offset + index + 1, 2_654_435_761) >>> 24;
  }
  return bytes;
}
