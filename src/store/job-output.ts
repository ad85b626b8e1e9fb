import type { Store } from "../contracts/store.js";

/** A stretch of a job's output in the store: bytes `base` to `base + bytes` of what the command printed. */
export interface StoredPart {
  readonly stream: string;
  readonly base: number;
  readonly bytes: number;
}

/** `job/<id>/<fd>` from the first byte on; after a stretch that was dropped `job/<id>/<fd>@<first offset>`. */
export function jobStreamId(jobId: string, fd: number, base: number): string {
  return base === 0 ? `job/${jobId}/${fd}` : `job/${jobId}/${fd}@${base}`;
}

/** What the store has of one output stream (fd 1 or 2), by offset. */
export async function storedParts(
  store: Pick<Store, "list">,
  session: string,
  jobId: string,
  fd: number,
): Promise<readonly StoredPart[]> {
  const id = jobStreamId(jobId, fd, 0);
  const parts: StoredPart[] = [];
  for (const { stream, bytes } of await store.list(session, id)) {
    const rest = stream.slice(id.length);
    if (rest === "") parts.push({ stream, base: 0, bytes });
    else if (/^@\d{1,16}$/.test(rest)) parts.push({ stream, base: Number(rest.slice(1)), bytes });
  }
  return parts.toSorted((a, b) => a.base - b.base);
}
