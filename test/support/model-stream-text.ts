import type { Store } from "../../src/contracts/store.js";
import { createStreamedPartDecoder } from "../../src/store/model-stream.js";

/** The text that went to a side stream. */
export async function textOfStream(store: Store, session: string, stream: string): Promise<string> {
  const size = (await store.size(session, stream)) ?? 0;
  const decoder = createStreamedPartDecoder();
  const parts = [];
  for (let offset = 0; offset < size;) {
    const bytes = await store.read(session, stream, offset, 65_536);
    parts.push(...decoder.push(bytes));
    offset += bytes.length;
  }
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
