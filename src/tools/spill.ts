import { createHash } from "node:crypto";

import { LonghaulError } from "../contracts/errors.js";
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
  const stream = await keep(bytes, place);
  if (stream === undefined) return outcome;
  const text = preview(bytes, place.store.locator(place.session, stream), place.maxInlineBytes);
  return { ...outcome, content: [{ type: "text", text }] };
}

/** The stream it went to. A second run of the call may have found something else: that gets a name by its content. */
async function keep(
  bytes: Buffer,
  { store, session, stream }: SpillPlace,
): Promise<string | undefined> {
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  for (const name of [stream, `${stream}.${digest}`]) {
    try {
      await store.append(session, name, 0, bytes);
      return name;
    } catch (error) {
      if (!(error instanceof LonghaulError && error.code === "STORE_CONFLICT")) return undefined;
    }
  }
  return undefined;
}

/** Whole lines where the text has them, and then the note says which ones are missing. */
function preview(bytes: Buffer, locator: string, limit: number): string {
  const place = `full text: ${locator}`;
  const note = `[${bytes.length} bytes, the middle is left out; ${place}]`;
  const lines = linesIn(bytes);
  // The longest that either note can become.
  const widest = `[${bytes.length} bytes, lines ${lines}-${lines} of ${lines} are left out; ${place}]`;
  const separate = (text: string): string => `\n\n${text}\n\n`;
  const room = limit - Buffer.byteLength(separate(note.length > widest.length ? note : widest));
  if (room < 2) return headBytes(Buffer.from(note), limit).toString("utf8");
  const head = headBytes(bytes, Math.ceil(room / 2));
  const tail = tailBytes(bytes, Math.floor(room / 2));
  const headEnd = head.lastIndexOf(10);
  const tailStart = tail.indexOf(10) + 1;
  // A line so long that it fills most of a half is shown in part rather than not at all.
  const aligned = headEnd > head.length / 2 && tailStart > 0 && tailStart < tail.length / 2;
  if (!aligned) return `${head.toString("utf8")}${separate(note)}${tail.toString("utf8")}`;
  const [above, below] = [head.subarray(0, headEnd), tail.subarray(tailStart)];
  const from = linesIn(above) + 1;
  const to = lines - linesIn(below);
  const missing = `[${bytes.length} bytes, lines ${from}-${to} of ${lines} are left out; ${place}]`;
  return `${above.toString("utf8")}${separate(missing)}${below.toString("utf8")}`;
}

function linesIn(bytes: Buffer): number {
  let lines = 1;
  for (let at = bytes.indexOf(10); at >= 0 && at + 1 < bytes.length; at = bytes.indexOf(10, at + 1))
    lines += 1;
  return lines;
}
