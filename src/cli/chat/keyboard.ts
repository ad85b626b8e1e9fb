import { StringDecoder } from "node:string_decoder";
import type { Input } from "../io.js";
import { KeyReader, type Key } from "./keys.js";

/** After this much silence a begun escape sequence was the Escape key alone. */
const escapeMs = 50;

/** Gives every key that is pressed; resolves when the input ends. */
export async function readKeys(
  stdin: Input,
  onKeys: (keys: readonly Key[]) => void,
): Promise<void> {
  const reader = new KeyReader();
  const decoder = new StringDecoder("utf8");
  let escape: NodeJS.Timeout | undefined;
  try {
    for await (const piece of stdin) {
      clearTimeout(escape);
      onKeys(reader.push(typeof piece === "string" ? piece : decoder.write(piece)));
      if (reader.waiting) escape = setTimeout(() => onKeys(reader.flush()), escapeMs);
    }
  } finally {
    clearTimeout(escape);
  }
}
