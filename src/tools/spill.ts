import type { Store } from "../contracts/store.js";
import type { ToolOutcome } from "../contracts/tools.js";
import { headBytes, tailBytes } from "../process/utf8.js";

export interface SpillPlace {
  readonly store: Store;
  readonly session: string;
  readonly stream: string;
  /** Limit of the text that stays, UTF-8 bytes. */
  readonly maxInlineBytes: number;
}

/**
 * Size control (spec/harness §3): text above the limit goes to the store in full, and its head, tail and locator stay,
 * together within the limit. When the store fails the text stays as it is.
 */
export async function spillLongText(outcome: ToolOutcome, place: SpillPlace): Promise<ToolOutcome> {
  const bytes = Buffer.from(outcome.content.map((block) => block.text).join(""), "utf8");
  if (bytes.length <= place.maxInlineBytes) return outcome;
  try {
    await place.store.append(place.session, place.stream, 0, bytes);
  } catch {
    return outcome;
  }
  const text = preview(
    bytes,
    place.store.locator(place.session, place.stream),
    place.maxInlineBytes,
  );
  return { ...outcome, content: [{ type: "text", text }] };
}

function preview(bytes: Buffer, locator: string, limit: number): string {
  const note = `[${bytes.length} bytes, the middle is left out; full text: ${locator}]`;
  const separated = `\n\n${note}\n\n`;
  const room = limit - Buffer.byteLength(separated);
  if (room < 2) return headBytes(Buffer.from(note), limit).toString("utf8");
  const head = headBytes(bytes, Math.ceil(room / 2)).toString("utf8");
  return `${head}${separated}${tailBytes(bytes, Math.floor(room / 2)).toString("utf8")}`;
}
