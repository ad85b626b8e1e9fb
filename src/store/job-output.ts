import type { Store } from "../contracts/store.js";

/** A stretch of a job's output in the store: bytes `base` to `base + bytes` of what the command printed. */
export interface StoredPart {
  readonly stream: string;
  readonly base: number;
  readonly bytes: number;
}

/** One start of a job, under which its output lies: the same id again, e.g. after a reset of its session, is another start. */
export function jobStart({
  jobId,
  nonce,
}: {
  readonly jobId: string;
  readonly nonce: string;
}): string {
  return `${jobId}/${nonce}`;
}

/** How a stream is called in the store: a shell job's by its descriptor, 1 or 2, any other by its name. */
export type JobFd = number | string;

/** Where the body of a streaming job writes that names no stream. */
export const outputStream = "output";

/** Holds a final output that is too long to travel. No stream that is read piece by piece has a colon in its name. */
export function resultStream(start: string, digest: string): string {
  return `job/${start}/result:${digest.slice(0, 16)}`;
}

/** `job/<id>/<nonce>/<fd>` from the first byte on; behind a stretch that was dropped it ends in `@<first offset>`. */
export function jobStreamId(start: string, fd: JobFd, base: number): string {
  return base === 0 ? `job/${start}/${fd}` : `job/${start}/${fd}@${base}`;
}

/** What the store has of one output stream (fd 1 or 2), by offset. */
export async function storedParts(
  store: Pick<Store, "list">,
  session: string,
  start: string,
  fd: JobFd,
): Promise<readonly StoredPart[]> {
  const id = jobStreamId(start, fd, 0);
  const parts: StoredPart[] = [];
  for (const { stream, bytes } of await store.list(session, id)) {
    const rest = stream.slice(id.length);
    if (rest === "") parts.push({ stream, base: 0, bytes });
    else if (/^@\d{1,16}$/.test(rest)) parts.push({ stream, base: Number(rest.slice(1)), bytes });
  }
  return parts.toSorted((a, b) => a.base - b.base);
}

/** The streams of a job that the store has, in the order of reading: stdout before stderr, `output` before others by name. */
export async function jobStreamsOf(
  store: Pick<Store, "list">,
  session: string,
  start: string,
): Promise<readonly { readonly name: string; readonly id: JobFd }[]> {
  const prefix = jobStreamId(start, "", 0);
  const ids = new Set<string>();
  for (const { stream } of await store.list(session, prefix)) {
    const id = stream.slice(prefix.length).replace(/@\d{1,16}$/, "");
    if (!id.includes(":")) ids.add(id);
  }
  const shell = ["stdout", "stderr"].flatMap((name, index) =>
    ids.has(String(index + 1)) ? [{ name, id: index + 1 }] : [],
  );
  if (shell.length > 0) return shell;
  const place = (name: string): number => (name === outputStream ? 0 : 1);
  return [...ids]
    .toSorted((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
    .map((name) => ({ name, id: name }));
}
