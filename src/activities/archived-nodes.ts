import type { Archive } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { SurfaceNode } from "../contracts/session.js";
import { messageOf } from "../domain/surface.js";

/**
 * The nodes of archived entries, by `seq`, out of the chain that ends with segment `base`: no further back than needed, each segment
 * once. Rejects as the archive does.
 */
export async function readArchivedNodes(
  archive: Archive,
  session: string,
  base: string,
  seqs: readonly number[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, SurfaceNode>> {
  const nodes = new Map<number, SurfaceNode>();
  if (seqs.length === 0) return nodes;
  const wanted = new Set(seqs);
  const first = seqs.reduce((least, seq) => Math.min(least, seq));
  let name = base;
  for (const { from, to, previous } of await archive.chain(session, base, first)) {
    if (seqs.some((seq) => seq >= from && seq <= to)) {
      signal.throwIfAborted();
      for (const entry of (await archive.segment(session, name)).entries) {
        const message = wanted.has(entry.seq) ? messageOf(entry) : undefined;
        if (message !== undefined) nodes.set(entry.seq, { seq: entry.seq, message });
      }
    }
    name = previous;
  }
  const lost = seqs.find((seq) => !nodes.has(seq));
  if (lost === undefined) return nodes;
  throw new LonghaulError(
    "SURFACE_MISMATCH",
    `archived entry ${lost} of session ${session} holds no message, or is not in segment ${base} and those before it; the model was not called`,
  );
}
