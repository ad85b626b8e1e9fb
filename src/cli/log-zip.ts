import { PassThrough, Readable } from "node:stream";
import { openPromise, type Entry, type ZipFile as OpenZip } from "yauzl";
import { ZipFile } from "yazl";
import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import { readStream } from "../store/stream-reader.js";

const logName = "log.jsonl";
const streamFolder = "streams/";
/** What the archive itself keeps: the log has it all. */
const archiveStreams = /^(?:segment|body|archived)\//u;

/**
 * A zip of a log and of all that its session has put into the store: texts of replies, outputs of tools and jobs, as long as they
 * are now. Nothing is held as a whole: each entry is read when the one before it is written.
 */
export async function* zipOf(
  lines: AsyncIterable<string>,
  store: Pick<Store, "list" | "read">,
  session: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const zip = new ZipFile();
  const output = zip.outputStream.pipe(new PassThrough());
  zip.on("error", (error: Error) => output.destroy(error));
  const add = (name: string, pieces: () => AsyncIterable<string | Uint8Array>): void => {
    zip.addReadStreamLazy(name, (give) => {
      const stream = Readable.from(pieces(), { objectMode: false });
      stream.on("error", (error) => output.destroy(error));
      give(null, stream);
    });
  };
  add(logName, () => lines);
  for (const { stream, bytes } of await store.list(session, ""))
    if (!archiveStreams.test(stream))
      add(entryName(stream), () => firstBytes(readStream(store, session, stream), bytes));
  zip.end();
  for await (const piece of output) yield piece;
}

/** An exported zip that is read. INVALID_INPUT when it is none. */
export interface LogZip {
  readonly text: string;
  /** What its session had in the store; each to be read before the next is asked for. */
  streams(): AsyncIterable<{ readonly stream: string; readonly pieces: AsyncIterable<Buffer> }>;
  close(): void;
}

export async function openLogZip(path: string): Promise<LogZip> {
  const zip = await openPromise(path, { autoClose: false, lazyEntries: true }).catch(
    (error: unknown) => {
      throw notOurs(path, error instanceof Error ? error.message : String(error));
    },
  );
  try {
    const entries: Entry[] = [];
    for await (const entry of zip.eachEntry()) entries.push(entry);
    const log = entries.find(({ fileName }) => fileName === logName);
    if (log === undefined) throw notOurs(path, `it has no ${logName}`);
    const pieces: Buffer[] = [];
    for await (const piece of await piecesOf(zip, log)) pieces.push(piece);
    return {
      text: Buffer.concat(pieces).toString("utf8"),
      async *streams() {
        for (const entry of entries) {
          const stream = streamOf(entry.fileName);
          if (stream !== undefined) yield { stream, pieces: await piecesOf(zip, entry) };
        }
      },
      close: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error instanceof LonghaulError ? error : notOurs(path, String(error));
  }
}

async function piecesOf(zip: OpenZip, entry: Entry): Promise<AsyncIterable<Buffer>> {
  return zip.openReadStreamPromise(entry);
}

/** A name that is safe as a file's wherever it is unpacked. */
function entryName(stream: string): string {
  return `${streamFolder}${stream.split("/").map(encodeURIComponent).join("/")}`;
}

function streamOf(name: string): string | undefined {
  if (!name.startsWith(streamFolder) || name.endsWith("/")) return undefined;
  try {
    const stream = name.slice(streamFolder.length).split("/").map(decodeURIComponent).join("/");
    return archiveStreams.test(stream) ? undefined : stream;
  } catch {
    return undefined;
  }
}

async function* firstBytes(
  pieces: AsyncIterable<Uint8Array>,
  limit: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = limit;
  for await (const piece of pieces) {
    yield piece.subarray(0, left);
    left -= piece.length;
    if (left <= 0) return;
  }
}

function notOurs(path: string, problem: string): LonghaulError {
  return new LonghaulError(
    "INVALID_INPUT",
    `expected a zip of longhaul export at ${path}: ${problem}`,
  );
}
