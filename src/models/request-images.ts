import { createHash } from "node:crypto";
import type { ImageRef } from "../contracts/content.js";
import type { ModelRequest } from "../contracts/model.js";
import type { Store } from "../contracts/store.js";

/** Pictures of a request that could be read, by digest. */
export type Images = ReadonlyMap<string, Uint8Array>;

/** Most bytes of pictures in one request: providers take about 30 MB, as base64. */
const mostBytes = 20_000_000;

/**
 * The pictures of a request's tool results, the newest within the limit. One that is gone, or is not what its reference
 * says, is left out: the text of the result names it.
 */
export async function imagesOf(request: ModelRequest, store: Pick<Store, "read">): Promise<Images> {
  const images = new Map<string, Uint8Array>();
  let total = 0;
  for (const image of imageRefs(request).toReversed()) {
    if (images.has(image.digest)) continue;
    total += image.bytes;
    if (total > mostBytes) break;
    const bytes = await readWhole(request.sessionId, image, store);
    if (bytes !== undefined) images.set(image.digest, bytes);
  }
  return images;
}

function imageRefs({ messages }: ModelRequest): ImageRef[] {
  return messages.flatMap((message) =>
    message.role === "user"
      ? message.content.flatMap((block) =>
          block.type === "tool-result" ? (block.images ?? []) : [],
        )
      : [],
  );
}

async function readWhole(
  sessionId: string,
  { stream, bytes: length, digest }: ImageRef,
  store: Pick<Store, "read">,
): Promise<Uint8Array | undefined> {
  const whole = new Uint8Array(length);
  try {
    for (let at = 0; at < length;) {
      const part = await store.read(sessionId, stream, at, length - at);
      if (part.length === 0) return undefined;
      whole.set(part, at);
      at += part.length;
    }
  } catch {
    return undefined;
  }
  return createHash("sha256").update(whole).digest("hex") === digest ? whole : undefined;
}
