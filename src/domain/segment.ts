import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

export { segmentText } from "../contracts/archive.js";

/** Name of a segment: the SHA-256 of its text, hex. */
export function segmentName(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}
