import { createReadStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { createGunzip, createInflateRaw, crc32 } from "node:zlib";

/**
 * Writes one file out of a .tar.gz or .zip archive to `destination`. `wanted` gets each member's path,
 * without a leading `./`. Throws a plain Error when the archive is damaged or has no such file.
 */
export async function extractMember(
  archive: string,
  wanted: (path: string) => boolean,
  destination: string,
): Promise<void> {
  const kind = await archiveKind(archive);
  const output = await open(destination, "w");
  try {
    if (kind === "zip") await extractFromZip(archive, wanted, output);
    else await extractFromTar(archive, wanted, output);
    await output.sync();
  } finally {
    await output.close();
  }
}

async function archiveKind(archive: string): Promise<"zip" | "tar.gz"> {
  const file = await open(archive, "r");
  try {
    const magic = await readExactly(file, 0, 2);
    if (magic.toString("latin1") === "PK") return "zip";
    if (magic[0] === 0x1f && magic[1] === 0x8b) return "tar.gz";
    throw new Error("the archive is neither .tar.gz nor .zip");
  } finally {
    await file.close();
  }
}

/** Reads to the end even after the file was found, so that gzip's checksum is verified. */
async function extractFromTar(
  archive: string,
  wanted: (path: string) => boolean,
  output: FileHandle,
): Promise<void> {
  const source = createReadStream(archive);
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  let pending: Buffer = Buffer.alloc(0);
  let body = 0;
  let padding = 0;
  let writing = false;
  let found = false;
  for await (const chunk of gunzip as AsyncIterable<Buffer>) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    while (pending.length > 0) {
      if (body > 0) {
        const part = pending.subarray(0, body);
        if (writing) await output.write(part);
        body -= part.length;
        pending = pending.subarray(part.length);
      } else if (padding > 0) {
        const skipped = Math.min(padding, pending.length);
        padding -= skipped;
        pending = pending.subarray(skipped);
      } else if (pending.length < 512) {
        break;
      } else {
        const member = tarMember(pending.subarray(0, 512));
        pending = pending.subarray(512);
        body = member.size;
        padding = (512 - (member.size % 512)) % 512;
        writing = !found && member.isFile && wanted(member.path);
        found ||= writing;
      }
    }
  }
  if (!found) throw new Error("the archive does not hold the expected file");
  if (body > 0) throw new Error("the archive ends in the middle of a file");
}

function tarMember(header: Buffer): { path: string; size: number; isFile: boolean } {
  const text = (from: number, length: number) =>
    header
      .subarray(from, from + length)
      .toString("utf8")
      .split("\0", 1)[0] ?? "";
  const prefix = text(257, 5) === "ustar" ? text(345, 155) : "";
  const path = (prefix === "" ? "" : `${prefix}/`) + text(0, 100);
  const size = Number.parseInt(text(124, 12).trim() || "0", 8);
  if (!Number.isSafeInteger(size)) throw new Error("the archive has a damaged header");
  const type = header[156];
  return { path: path.replace(/^\.\//, ""), size, isFile: type === 0 || type === 0x30 };
}

async function extractFromZip(
  archive: string,
  wanted: (path: string) => boolean,
  output: FileHandle,
): Promise<void> {
  const file = await open(archive, "r");
  try {
    const entry = await findZipEntry(file, wanted);
    const local = await readExactly(file, entry.offset, 30);
    const start = entry.offset + 30 + local.readUInt16LE(26) + local.readUInt16LE(28);
    const raw = createReadStream(archive, { start, end: start + entry.packed - 1 });
    let stream: AsyncIterable<Buffer> = raw as AsyncIterable<Buffer>;
    if (entry.method === 8) {
      const inflate = createInflateRaw();
      raw.on("error", (error) => inflate.destroy(error));
      stream = raw.pipe(inflate) as AsyncIterable<Buffer>;
    } else if (entry.method !== 0) {
      throw new Error(`the archive uses compression method ${entry.method}`);
    }
    let checksum = 0;
    for await (const chunk of stream) {
      checksum = crc32(chunk, checksum);
      await output.write(chunk);
    }
    if (checksum !== entry.checksum) throw new Error("the archive's checksum does not match");
  } finally {
    await file.close();
  }
}

interface ZipEntry {
  readonly method: number;
  readonly checksum: number;
  readonly packed: number;
  readonly offset: number;
}

async function findZipEntry(
  file: FileHandle,
  wanted: (path: string) => boolean,
): Promise<ZipEntry> {
  const { size } = await file.stat();
  const tailLength = Math.min(size, 22 + 0xffff);
  const tail = await readExactly(file, size - tailLength, tailLength);
  const end = tail.lastIndexOf("PK\x05\x06", undefined, "latin1");
  if (end < 0 || end + 22 > tail.length) throw new Error("the archive ends before its directory");
  const directory = await readExactly(
    file,
    tail.readUInt32LE(end + 16),
    tail.readUInt32LE(end + 12),
  );
  for (let at = 0; at + 46 <= directory.length;) {
    const nameLength = directory.readUInt16LE(at + 28);
    const path = directory.toString("utf8", at + 46, at + 46 + nameLength).replace(/^\.\//, "");
    if (wanted(path)) {
      return {
        method: directory.readUInt16LE(at + 10),
        checksum: directory.readUInt32LE(at + 16),
        packed: directory.readUInt32LE(at + 20),
        offset: directory.readUInt32LE(at + 42),
      };
    }
    at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  throw new Error("the archive does not hold the expected file");
}

async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  if (bytesRead < length) throw new Error("the archive is shorter than it says");
  return buffer;
}
