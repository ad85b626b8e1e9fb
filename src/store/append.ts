import type { FileHandle } from "node:fs/promises";
import { LonghaulError } from "../contracts/errors.js";
import { readFully, writeFully } from "./file-io.js";

/** The rule of `Store.append` on an open file; `what` names the stream in a refusal. */
export async function appendTo(
  file: FileHandle,
  what: string,
  offset: number,
  bytes: Uint8Array,
): Promise<number> {
  const { size } = await file.stat();
  if (offset > size)
    throw conflict(what, `expected an offset of at most ${size}, its length, got ${offset}`);
  const known = bytes.subarray(0, size - offset);
  await verify(file, what, offset, known);
  const fresh = bytes.subarray(known.length);
  if (fresh.length > 0) {
    await writeFully(file, fresh, size);
    await verify(file, what, size, fresh);
  }
  return Math.max(size, offset + bytes.length);
}

async function verify(
  file: FileHandle,
  what: string,
  offset: number,
  bytes: Uint8Array,
): Promise<void> {
  if (bytes.length === 0) return;
  const there = await readFully(file, offset, bytes.length);
  if (Buffer.compare(there, bytes) === 0) return;
  const at = bytes.findIndex((byte, index) => byte !== there[index]);
  throw conflict(
    what,
    `expected the bytes already there, got other ones from offset ${offset + at}`,
  );
}

function conflict(what: string, detail: string): LonghaulError {
  return new LonghaulError(
    "STORE_CONFLICT",
    `${what}: ${detail}; go on from its length, or use a new stream`,
  );
}
