import type { SessionRef } from "../contracts/activities.js";
import type { Message } from "../contracts/content.js";
import { LonghaulError } from "../contracts/errors.js";
import type { RequestHeader } from "../contracts/header.js";
import type { SurfaceNode } from "../contracts/session.js";
import { presentNodes } from "../domain/archived-nodes.js";
import { chain, deriveMessages, hashNode } from "../domain/surface.js";
import type { SessionSource } from "./session-source.js";

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
}

/** As many as calls run at a time; a header holds the whole tool table, and idle sessions need none. */
const maxHeaders = 100;

/**
 * Reads a session's surface: an archived base segment (none yet) and live pages from the workflow, of which only those
 * its process has not cached under (session, run) are fetched (design D2). Refuses what does not match the digest:
 * SURFACE_MISMATCH, after one full read without the cache.
 */
export class SurfaceReader {
  readonly #source: SessionSource;
  readonly #maxBytes: number;
  /** In the order of use, the oldest first. */
  readonly #cache = new Map<string, Cached>();
  /** In the order of use, the oldest first. */
  readonly #headers = new Map<string, RequestHeader>();
  #bytes = 0;

  /** @param maxBytes how much of all surfaces together is kept, approximately */
  constructor(source: SessionSource, maxBytes = 128 * 1024 * 1024) {
    this.#source = source;
    this.#maxBytes = maxBytes;
  }

  async messages(request: SurfaceRequest, signal: AbortSignal): Promise<readonly Message[]> {
    if (request.base !== "") {
      throw new LonghaulError(
        "SURFACE_MISMATCH",
        `this build cannot read the archived base segment ${request.base}`,
      );
    }
    const key = keyOf(request);
    for (const attempt of ["cached", "full"] as const) {
      if (attempt === "full") this.#drop(key);
      const cached = await this.#fill(key, request, signal);
      const digest = request.length === 0 ? "" : cached.chain[request.length - 1];
      if (digest === request.digest) {
        this.#trim(key);
        return deriveMessages(cached.nodes.slice(0, request.length));
      }
    }
    this.#drop(key);
    throw new LonghaulError(
      "SURFACE_MISMATCH",
      `the ${request.length} messages read from session ${request.sessionId} do not match digest ${request.digest.slice(0, 12)} of its log; the model was not called`,
    );
  }

  /**
   * Nodes that the workflow hands over itself; proved by the digest like those that are asked for. What does not go on where
   * the cache ends is left: it is asked for when it is needed.
   */
  offer(
    ref: Pick<SessionRef, "sessionId" | "runId">,
    from: number,
    nodes: readonly SurfaceNode[],
  ): void {
    const key = keyOf(ref);
    const cached = this.#cache.get(key) ?? { nodes: [], chain: [], bytes: 0 };
    if (cached.nodes.length !== from || nodes.length === 0) return;
    this.#cache.delete(key);
    this.#cache.set(key, cached);
    this.#append(key, cached, nodes);
    this.#trim(key);
  }

  /** The header in force: entry `seq`, which must be a `request/header`. */
  async header(ref: SessionRef, seq: number, signal: AbortSignal): Promise<RequestHeader> {
    const key = `${keyOf(ref)}/${seq}`;
    const known = this.#headers.get(key);
    if (known !== undefined) {
      this.#headers.delete(key);
      this.#headers.set(key, known);
      return known;
    }
    const entry = await this.#source.entry(ref, seq, signal);
    if (entry.type !== "request/header") {
      throw new LonghaulError(
        "SURFACE_MISMATCH",
        `log entry ${seq} of session ${ref.sessionId} is ${entry.type}, not a request header`,
      );
    }
    this.#headers.set(key, entry.data.header);
    for (const oldest of this.#headers.keys()) {
      if (this.#headers.size <= maxHeaders) break;
      this.#headers.delete(oldest);
    }
    return entry.data.header;
  }

  async #fill(key: string, request: SurfaceRequest, signal: AbortSignal): Promise<Cached> {
    const cached = this.#cache.get(key) ?? { nodes: [], chain: [], bytes: 0 };
    // Used last: at the end of the order.
    this.#cache.delete(key);
    this.#cache.set(key, cached);
    while (cached.nodes.length < request.length) {
      const from = cached.nodes.length;
      const page = await this.#source.nodes(request, { from, to: request.length }, signal);
      if (page.nodes.length === 0) break;
      // Another call of this process may have filled the same place meanwhile.
      if (cached.nodes.length !== from) continue;
      this.#append(key, cached, presentNodes(page));
    }
    return cached;
  }

  #append(key: string, cached: Cached, nodes: readonly SurfaceNode[]): void {
    for (const node of nodes) {
      const size = JSON.stringify(node).length;
      cached.chain.push(chain(cached.chain.at(-1) ?? "", hashNode(node)));
      cached.nodes.push(node);
      cached.bytes += size;
      // One that was dropped meanwhile is no longer counted.
      if (this.#cache.get(key) === cached) this.#bytes += size;
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#cache.get(key)?.bytes ?? 0;
    this.#cache.delete(key);
  }

  #trim(keep: string): void {
    for (const key of this.#cache.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      if (key !== keep) this.#drop(key);
    }
  }
}

function keyOf(ref: Pick<SessionRef, "sessionId" | "runId">): string {
  return `${ref.sessionId}\n${ref.runId}`;
}
