import { createHash } from "node:crypto";
import { segmentText, type Segment, type SegmentHeader } from "../contracts/archive.js";
import { segmentHeaderSchema } from "../contracts/schemas/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { Store } from "../contracts/store.js";
import { damaged, readFirstLine, readWhole, writeWhole } from "./archive-file.js";
import { createRecent, type Sized } from "./recent.js";

const maxHeaders = 20_000;
/** Bytes of text, twice as many in memory: some twenty segments of common size, for what is read again soon. */
const maxSegmentBytes = 8 * 1024 * 1024;

/** Segments in a store. A header that was read alone only points; the name proves it when its segment is read. */
export interface Segments {
  write(header: SegmentHeader, entries: readonly LogEntry[]): Promise<string>;
  header(session: string, name: string): Promise<SegmentHeader>;
  read(session: string, name: string): Promise<Segment>;
  /** Drops what is in memory of a session. */
  forget(session: string): void;
}

export function openSegments(store: Store): Segments {
  const headers = createRecent<SegmentHeader>(maxHeaders);
  const segments = createRecent<Segment>(maxSegmentBytes);

  async function readNow(session: string, name: string): Promise<Sized<Segment>> {
    const stream = streamOf(name);
    const bytes = await readWhole(store, session, stream);
    if (nameOf(bytes) !== name)
      throw damaged(store, session, stream, `its ${bytes.length} bytes are not what its name says`);
    const [first = "", ...lines] = bytes.toString("utf8").trimEnd().split("\n");
    const header = readHeader(first, session, name);
    const entries = lines.map((line): LogEntry => JSON.parse(line));
    const problem = problemOf(header, entries);
    if (problem !== undefined) throw damaged(store, session, stream, problem);
    headers.put(keyOf(session, name), { value: header, size: 1 });
    return { value: { name, header, entries }, size: bytes.length };
  }

  function readHeader(line: string, session: string, name: string): SegmentHeader {
    const { data } = segmentHeaderSchema.safeParse(parsed(line));
    if (data === undefined) {
      throw damaged(store, session, streamOf(name), "it does not begin with a header of version 1");
    }
    const problem = data.session === session ? linkProblem(data) : `it is one of ${data.session}`;
    if (problem !== undefined) throw damaged(store, session, streamOf(name), problem);
    return data;
  }

  return {
    async write(header, entries) {
      const problem = linkProblem(header) ?? problemOf(header, entries);
      if (problem !== undefined) {
        throw new LonghaulError(
          "LOG_CORRUPT",
          `a segment of session ${header.session} cannot be written: ${problem}; read the entries again`,
        );
      }
      const text = segmentText(header, entries);
      const name = nameOf(text);
      await writeWhole(store, header.session, streamOf(name), text);
      return name;
    },
    header: (session, name) =>
      headers.get(keyOf(session, name), async () => {
        const line = await readFirstLine(store, session, streamOf(name));
        return { value: readHeader(line ?? "", session, name), size: 1 };
      }),
    read: (session, name) => segments.get(keyOf(session, name), () => readNow(session, name)),
    forget(session) {
      headers.drop(keyOf(session, ""));
      segments.drop(keyOf(session, ""));
    },
  };
}

export function streamOf(name: string): string {
  return `segment/${name}`;
}

function keyOf(session: string, name: string): string {
  return `${session}\n${name}`;
}

function nameOf(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The first segment begins the log, and no other. */
function linkProblem({ from, to, previous }: SegmentHeader): string | undefined {
  if (to < from) return `it is to hold entries ${from} to ${to}`;
  return (from === 0) === (previous === "")
    ? undefined
    : `it begins with entry ${from} and follows ${previous === "" ? "no segment" : `segment ${previous}`}`;
}

function problemOf({ from, to }: SegmentHeader, entries: readonly LogEntry[]): string | undefined {
  if (entries.length !== to - from + 1)
    return `it has ${entries.length} entries, not ${from} to ${to}`;
  const wrong = entries.findIndex(({ seq }, index) => seq !== from + index);
  return wrong === -1
    ? undefined
    : `expected entry ${from + wrong}, came ${String(entries[wrong]?.seq)}`;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
