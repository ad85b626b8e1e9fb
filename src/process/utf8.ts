/** The first `limit` bytes at most, never ending inside a code point. */
export function headBytes(bytes: Buffer, limit: number): Buffer {
  if (bytes.length <= limit) return bytes;
  let end = Math.max(0, limit);
  for (let back = 0; back < 3 && end > 0 && isContinuation(bytes[end]); back += 1) end -= 1;
  return bytes.subarray(0, end);
}

/** The last `limit` bytes at most, never starting inside a code point. */
export function tailBytes(bytes: Buffer, limit: number): Buffer {
  if (bytes.length <= limit) return bytes;
  let start = bytes.length - Math.max(0, limit);
  for (let ahead = 0; ahead < 3 && isContinuation(bytes[start]); ahead += 1) start += 1;
  return bytes.subarray(start);
}

/** Decodes with U+FFFD for what is not UTF-8 and for NUL, which some stores and providers refuse. */
export function decodeText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    .toString("utf8")
    .replaceAll("\0", "\uFFFD");
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
