import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Message } from "../contracts/content.js";
import type { EventType, LogEntry, NewEntry } from "../contracts/log.js";
import type { SurfaceNode } from "../contracts/session.js";
import { canonicalJson } from "./canonical.js";

/** Digest the chain starts from when there is no archived base segment. */
export const emptyBase = "";

/** `H(canonical node)`, hex (design D2). */
export function hashNode(node: SurfaceNode): string {
  return bytesToHex(sha256(utf8ToBytes(canonicalJson(node))));
}

/** `h(n) = H(h(n-1) ‖ H(node n))`, hex. */
export function chain(previous: string, nodeHash: string): string {
  return bytesToHex(sha256(concatBytes(utf8ToBytes(previous), utf8ToBytes(nodeHash))));
}

const producing = new Set<EventType>(["user/message", "assistant/message", "tool/result"]);

/** The message an entry shows the model, if it is one that can be on the surface (spec/harness §1). */
export function messageOf(entry: NewEntry): Message | undefined {
  switch (entry.type) {
    case "user/message":
    case "assistant/message":
    case "tool/result":
      return entry.data.message;
    default:
      return undefined;
  }
}

/** Drops what the model must not see: assistant messages without content (spec/harness §1). */
export function deriveMessages(nodes: readonly SurfaceNode[]): readonly Message[] {
  return nodes
    .map((node) => node.message)
    .filter((message) => message.role !== "assistant" || message.content.length > 0);
}

/** The ordered part of the log that the model sees, and the digest chain over it. */
export class Surface {
  readonly #nodes: SurfaceNode[] = [];
  readonly #hashes: string[] = [];
  /** Chain digest after the first `#chained` nodes. */
  #digest = emptyBase;
  #chained = 0;

  get nodes(): readonly SurfaceNode[] {
    return this.#nodes;
  }

  get length(): number {
    return this.#nodes.length;
  }

  /** Chain digest over all nodes. Each node is hashed once. */
  digest(): string {
    for (; this.#chained < this.#nodes.length; this.#chained++) {
      const node = this.#nodes[this.#chained];
      if (node === undefined) break;
      const hash = (this.#hashes[this.#chained] ??= hashNode(node));
      this.#digest = chain(this.#digest, hash);
    }
    return this.#digest;
  }

  /** Chain digest over the first `length` nodes. */
  digestAt(length: number): string {
    if (length >= this.#nodes.length) return this.digest();
    this.digest();
    return this.#hashes.slice(0, Math.max(0, length)).reduce(chain, emptyBase);
  }

  /** `seq` of each of the first `length` nodes, in surface order. */
  seqsTo(length: number): readonly number[] {
    return this.#nodes.slice(0, length).map(({ seq }) => seq);
  }

  /** Where the node of a `seq` stands; -1 when it is not on the surface. */
  positionOf(seq: number): number {
    return this.#nodes.findIndex((node) => node.seq === seq);
  }

  /** Why `entry` cannot be placed, or undefined: a replace cites every node it shadows. */
  check(entry: NewEntry): string | undefined {
    const op = entry.surfaceOp;
    if (!producing.has(entry.type)) {
      return op === undefined ? undefined : `a ${entry.type} entry cannot be on the surface`;
    }
    const message = messageOf(entry);
    if (!Array.isArray((message as Message | null | undefined)?.content) || message === undefined) {
      return `a ${entry.type} entry needs a message with content`;
    }
    if (op === undefined) return `a ${entry.type} entry needs a surfaceOp`;
    if (op === "append") return undefined;
    if (op?.op !== "replace") return `a surfaceOp is append or replace`;
    const { start, end } = op;
    if (
      !Number.isInteger(start) ||
      !Number.isInteger(end) ||
      start < 0 ||
      end <= start ||
      end > this.length
    ) {
      return `replace ${start}..${end} is not a range of the ${this.length} surface nodes`;
    }
    const shadowed = this.#nodes.slice(start, end);
    const cited = new Set(entry.sourceEventSeqs ?? []);
    const missing = shadowed.filter((node) => !cited.has(node.seq)).map((node) => node.seq);
    if (missing.length > 0)
      return `replace ${start}..${end} must cite every shadowed entry; missing ${missing.join(", ")}`;
    if (entry.type === "tool/result") return checkResultReplace(message, shadowed);
    return undefined;
  }

  /** Places a checked entry. */
  apply(entry: LogEntry): void {
    const message = messageOf(entry);
    if (message === undefined || entry.surfaceOp === undefined) return;
    const node: SurfaceNode = { seq: entry.seq, message };
    if (entry.surfaceOp === "append") {
      this.#nodes.push(node);
      return;
    }
    const { start, end } = entry.surfaceOp;
    this.digest();
    this.#nodes.splice(start, end - start, node);
    this.#hashes.splice(start, end - start, hashNode(node));
    this.#digest = emptyBase;
    this.#chained = 0;
  }
}

function checkResultReplace(
  message: Message,
  shadowed: readonly SurfaceNode[],
): string | undefined {
  const [node] = shadowed;
  if (node === undefined || shadowed.length !== 1) return "a tool/result replaces exactly one node";
  const before = withoutContent(node.message);
  return before !== undefined && before === withoutContent(message)
    ? undefined
    : "a tool/result replace may change only the content of the same result";
}

/** Everything of a tool result but its content, as one text. */
function withoutContent(message: Message): string | undefined {
  const [block] = message.content;
  if (message.content.length !== 1 || block?.type !== "tool-result") return undefined;
  const { content: _content, images: _images, ...rest } = block;
  return canonicalJson({ ...message, content: [rest] });
}
