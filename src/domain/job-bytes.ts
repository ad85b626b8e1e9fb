import { utf8Bytes } from "./guards.js";

/** The first bytes of a text, at most `limit`; no code point is split. */
export function headBytes(text: string, limit: number): string {
  let bytes = 0;
  let end = 0;
  for (const point of text) {
    bytes += utf8Bytes(point);
    if (bytes > limit) break;
    end += point.length;
  }
  return text.slice(0, end);
}

/** The last bytes of a text, at most `limit`; no code point is split. */
export function tailBytes(text: string, limit: number): string {
  let bytes = 0;
  let start = text.length;
  while (start > 0) {
    const width = endsInPair(text, start) ? 2 : 1;
    bytes += utf8Bytes(text.slice(start - width, start));
    if (bytes > limit) break;
    start -= width;
  }
  return text.slice(start);
}

/**
 * Content and suffix within `limit` bytes (spec/jobs §11): the end of the content is kept, then `mark` unless the content
 * ends with it already, then the suffix. `mark` begins with a newline.
 */
export function fit(content: string, suffix: string, limit: number, mark: string): string {
  if (utf8Bytes(content) + utf8Bytes(suffix) <= limit) return content + suffix;
  const fixed = (content.endsWith(mark.slice(1)) ? "" : mark) + suffix;
  const left = limit - utf8Bytes(fixed);
  return left <= 0 ? tailBytes(fixed, limit) : tailBytes(content, left) + fixed;
}

/**
 * UTF-8 bytes as text, up to the last complete character: `consumed` bytes were used, the rest waits for more unless the
 * stream has `ended`. What is no UTF-8 becomes U+FFFD, as a decoder of the platform does it.
 */
export function decodeChunk(
  bytes: Uint8Array,
  ended: boolean,
): { readonly text: string; readonly consumed: number } {
  const consumed = ended ? bytes.length : bytes.length - unfinished(bytes);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, consumed));
  return { text, consumed };
}

/** How many bytes at the end begin a character whose rest is still to come. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte >= 0x80 && byte < 0xc0) continue;
    const width = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte < 0xf5 && width > back ? back : 0;
  }
  return 0;
}

function endsInPair(text: string, end: number): boolean {
  return (
    end > 1 &&
    (text.charCodeAt(end - 1) & 0xfc00) === 0xdc00 &&
    (text.charCodeAt(end - 2) & 0xfc00) === 0xd800
  );
}
