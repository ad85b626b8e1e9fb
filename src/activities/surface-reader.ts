import type { SessionRef } from "../contracts/activities.js";
import type { Archive } from "../contracts/archive.js";
import type { Message } from "../contracts/content.js";
import { LonghaulError } from "../contracts/errors.js";
import type { RequestHeader } from "../contracts/header.js";
import type { SurfaceNode, SurfacePage } from "../contracts/session.js";
import { isArchived } from "../domain/archived-nodes.js";
import { chain, deriveMessages, hashNode } from "../domain/surface.js";
import { readArchivedNodes } from "./archived-nodes.js";
import { liveEntry, type SessionSource } from "./session-source.js";

/** What the model is to be shown: the surface a request names, proved by its digest. */
export interface SurfaceRequest extends SessionRef {
  readonly base: string;
  readonly length: number;
  readonly digest: string;
}

interface Cached {
  readonly nodes: SurfaceNode[];
  /** Chain digest after each node. */
  readonly chain: string[];
  bytes: number;
  /** It is in the cache, and its bytes count. */
  kept: boolean;
}

/** As many as calls run at a time; a header holds the whole tool table, and idle sessions need none. */
const maxHeaders = 100;

/**
 * Reads a session's surface: live pages from the workflow, of which only what its process has not cached for the session is fetched,
 * and out of the archive the messages that those name only (design D2). Refuses what does not match the digest: SURFACE_MISMATCH,
 * after one full read without the cache. The cache outlives the run, for the digest proves whatever it holds.
 */
export class SurfaceReader {
  readonly #source: Pick<SessionSource, "nodes" | "log">;
  readonly #archive: Archive;
  readonly #maxBytes: number;
  /** In the order of use, the oldest first. */
  readonly #cache = new Map<string, Cached>();
  /** In the order of use, the oldest first. */
  readonly #headers = new Map<string, RequestHeader>();
  #bytes = 0;

  /** @param maxBytes how much of all surfaces together is kept, approximately */
  constructor(
    source: Pick<SessionSource, "nodes" | "log">,
    archive: Archive,
    maxBytes = 128 * 1024 * 1024,
  ) {
    this.#source = source;
    this.#archive = archive;
    this.#maxBytes = maxBytes;
  }

  async messages(request: SurfaceRequest, signal: AbortSignal): Promise<readonly Message[]> {
    const { sessionId, length, digest } = request;
    for (const attempt of ["cached", "full"] as const) {
      if (attempt === "full") this.#drop(sessionId);
      const cached = this.#cache.get(sessionId) ?? nothing();
      // What a full read finds is its own until it is proved: another run of the session may be read meanwhile.
      if (attempt === "cached") this.#keep(sessionId, cached);
      await this.#fill(cached, request, signal);
      if ((length === 0 ? "" : cached.chain[length - 1]) === digest) {
        this.#keep(sessionId, cached);
        this.#trim(sessionId);
        return deriveMessages(cached.nodes.slice(0, length));
      }
    }
    throw new LonghaulError(
      "SURFACE_MISMATCH",
      `the ${length} messages read from session ${sessionId} do not match digest ${digest.slice(0, 12)} of its log; the model was not called`,
    );
  }

  /**
   * Nodes that the workflow hands over itself; proved by the digest like those that are asked for. What does not go on where
   * the cache ends is left: it is asked for when it is needed.
   */
  offer(
    { sessionId }: Pick<SessionRef, "sessionId">,
    from: number,
    nodes: readonly SurfaceNode[],
  ): void {
    const cached = this.#cache.get(sessionId) ?? nothing();
    const known = cached.nodes.length - from;
    if (known < 0 || nodes.length <= known) return;
    // The first nodes of a run may be the last of the run before.
    if (known > 0 && cached.nodes.at(-1)?.seq !== nodes[known - 1]?.seq) return;
    this.#keep(sessionId, cached);
    this.#append(cached, nodes.slice(known));
    this.#trim(sessionId);
  }

  /** The header in force: entry `seq`, which must be a `request/header`. */
  async header(
    ref: SessionRef & Pick<SurfaceRequest, "base">,
    seq: number,
    signal: AbortSignal,
  ): Promise<RequestHeader> {
    const { sessionId, runId, base } = ref;
    const key = `${sessionId}\n${runId}/${seq}`;
    const known = this.#headers.get(key);
    if (known !== undefined) {
      this.#headers.delete(key);
      this.#headers.set(key, known);
      return known;
    }
    const live = await liveEntry(this.#source, ref, seq, signal);
    const entry =
      live ?? (base === "" ? undefined : await this.#archive.entry(sessionId, base, seq));
    if (entry?.type !== "request/header") {
      throw new LonghaulError(
        "SURFACE_MISMATCH",
        `log entry ${seq} of session ${sessionId} is ${entry?.type ?? "not there"}, not a request header`,
      );
    }
    this.#headers.set(key, entry.data.header);
    // Nobody asks for those of its earlier runs again.
    for (const other of this.#headers.keys())
      if (other.startsWith(`${sessionId}\n`) && !other.startsWith(`${sessionId}\n${runId}/`))
        this.#headers.delete(other);
    for (const oldest of this.#headers.keys()) {
      if (this.#headers.size <= maxHeaders) break;
      this.#headers.delete(oldest);
    }
    return entry.data.header;
  }

  async #fill(cached: Cached, request: SurfaceRequest, signal: AbortSignal): Promise<void> {
    while (cached.nodes.length < request.length) {
      const from = cached.nodes.length;
      const page = await this.#source.nodes(request, { from, to: request.length }, signal);
      if (page.nodes.length === 0) break;
      const nodes = await this.#present(page, request, signal);
      // Another call of this process may have filled the same place meanwhile.
      if (cached.nodes.length === from) this.#append(cached, nodes);
    }
  }

  /** The nodes of a page, those in the archive with their messages. */
  async #present(
    page: SurfacePage,
    { sessionId, base }: SurfaceRequest,
    signal: AbortSignal,
  ): Promise<readonly SurfaceNode[]> {
    const seqs = page.nodes.filter(isArchived).map(({ seq }) => seq);
    const archived = await readArchivedNodes(this.#archive, sessionId, base, seqs, signal);
    return page.nodes.flatMap((node) =>
      isArchived(node) ? (archived.get(node.seq) ?? []) : [node],
    );
  }

  #append(cached: Cached, nodes: readonly SurfaceNode[]): void {
    let bytes = 0;
    for (const node of nodes) {
      bytes += JSON.stringify(node).length;
      cached.chain.push(chain(cached.chain.at(-1) ?? "", hashNode(node)));
      cached.nodes.push(node);
    }
    cached.bytes += bytes;
    if (cached.kept) this.#bytes += bytes;
  }

  /** As the one used last. */
  #keep(session: string, cached: Cached): void {
    this.#drop(session);
    cached.kept = true;
    this.#bytes += cached.bytes;
    this.#cache.set(session, cached);
  }

  #drop(session: string): void {
    const cached = this.#cache.get(session);
    if (cached === undefined) return;
    // Who still fills it does so for itself.
    cached.kept = false;
    this.#bytes -= cached.bytes;
    this.#cache.delete(session);
  }

  #trim(keep: string): void {
    for (const session of this.#cache.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      if (session !== keep) this.#drop(session);
    }
  }
}

function nothing(): Cached {
  return { nodes: [], chain: [], bytes: 0, kept: false };
}
