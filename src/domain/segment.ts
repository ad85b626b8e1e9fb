import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { SegmentHeader } from "../contracts/archive.js";
import type { LogEntry } from "../contracts/log.js";

/** Text of a segment: its header and its entries, a line each. The same wherever it is made of the same entries. */
/** @public */
export function segmentText(header: SegmentHeader, entries: readonly LogEntry[]): string {
  const { v, session, run, from, to, previous } = header;
  const lines = [{ v, session, run, from, to, previous }, ...entries].map(
    (line) => `${JSON.stringify(line)}\n`,
  );
  return lines.join("");
}

/** Name of a segment: the SHA-256 of its text, hex. */
export function segmentName(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}
