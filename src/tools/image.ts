import { createHash } from "node:crypto";

import type { ImageRef } from "../contracts/content.js";
import type { ToolContext, ToolReturn } from "./define.js";
import { failed } from "./file-bytes.js";

/** What providers take: 5 MB as base64 is about 3.75 MB of file. */
export const maxImageBytes = 3_750_000;

export interface ImageFacts {
  readonly mediaType: ImageRef["mediaType"];
  readonly width: number;
  readonly height: number;
}

/** Kind and size of a picture by its content; undefined for anything else. */
export function imageFacts(bytes: Buffer): ImageFacts | undefined {
  const ascii = (from: number, to: number): string => bytes.toString("latin1", from, to);
  if (ascii(0, 8) === "\x89PNG\r\n\x1a\n" && bytes.length >= 24 && ascii(12, 16) === "IHDR") {
    const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    return { mediaType: "image/png", width, height };
  }
  if (/^GIF8[79]a$/.test(ascii(0, 6)) && bytes.length >= 10) {
    const [width, height] = [bytes.readUInt16LE(6), bytes.readUInt16LE(8)];
    return { mediaType: "image/gif", width, height };
  }
  if (ascii(0, 3) === "\xff\xd8\xff") return jpegFacts(bytes);
  if (ascii(0, 4) === "RIFF" && ascii(8, 12) === "WEBP") return webpFacts(bytes);
  return undefined;
}

/** Puts the picture into the store under a name made of its content, so that a second run finds its own bytes. */
export async function keepImage(
  path: string,
  bytes: Buffer,
  facts: ImageFacts,
  context: ToolContext,
): Promise<ToolReturn> {
  const { mediaType, width, height } = facts;
  if (bytes.length > maxImageBytes) {
    throw failed(
      `${path} is an image of ${bytes.length} bytes, more than ${maxImageBytes}; make a smaller one with bash and read that`,
    );
  }
  const digest = createHash("sha256").update(bytes).digest("hex");
  const stream = `spill/${context.claim}.image.${digest.slice(0, 12)}`;
  const text = `[image ${path}: ${mediaType}, ${width}x${height}, ${bytes.length} bytes; a model that cannot see gets only this line]`;
  const meta = { mediaType, width, height, bytes: bytes.length };
  try {
    await context.store.append(context.sessionId, stream, 0, bytes);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw failed(`cannot show the image ${path}: the store did not take it: ${reason}`);
  }
  return { text, meta, images: [{ mediaType, stream, bytes: bytes.length, digest }] };
}

/** Width and height stand in the first frame header. */
function jpegFacts(bytes: Buffer): ImageFacts | undefined {
  for (let at = 2; at + 9 <= bytes.length;) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const frame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (frame) {
      const [height, width] = [bytes.readUInt16BE(at + 5), bytes.readUInt16BE(at + 7)];
      return { mediaType: "image/jpeg", width, height };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}

function webpFacts(bytes: Buffer): ImageFacts | undefined {
  if (bytes.length < 30) return undefined;
  const kind = bytes.toString("latin1", 12, 16);
  const mediaType = "image/webp";
  if (kind === "VP8X")
    return { mediaType, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind === "VP8L") {
    const packed = bytes.readUInt32LE(21);
    return { mediaType, width: (packed & 0x3fff) + 1, height: ((packed >> 14) & 0x3fff) + 1 };
  }
  if (kind === "VP8 ") {
    const [width, height] = [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff];
    return { mediaType, width, height };
  }
  return undefined;
}
