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

/** Does an entry take the place of what the model saw (spec/harness §6)? To a person it tells nothing new. */
export function isReplacement({ surfaceOp }: Pick<LogEntry, "surfaceOp">): boolean {
  return surfaceOp !== undefined && surfaceOp !== "append";
}

/** Drops what the model must not see: assistant messages without content (spec/harness §1). */
export function deriveMessages(nodes: readonly SurfaceNode[]): readonly Message[] {
  return nodes
    .map((node) => node.message)
    .filter((message) => message.role !== "assistant" || message.content.length > 0);
}

/** A node whose message is archived: what the digest needs of it. */
export interface SurfaceStub {
  readonly seq: number;
  /** `hashNode` of it. */
  readonly hash: string;
}

/** What a surface starts from after a roll-over: archived nodes, the oldest known only by their `seq` and one digest. */
export interface SurfaceBase {
  readonly hidden: { readonly seqs: readonly number[]; readonly digest: string };
  /** The nodes after them. */
  readonly stubs: readonly SurfaceStub[];
}

export const emptySurface: SurfaceBase = { hidden: { seqs: [], digest: emptyBase }, stubs: [] };

/** The ordered part of the log that the model sees, and the digest chain over it. */
export class Surface {
  #hidden: SurfaceBase["hidden"];
  readonly #slots: (SurfaceNode | SurfaceStub)[];
  readonly #hashes: string[];
  /** Chain digest after the hidden nodes and the first `#chained` slots. */
  #digest: string;
  #chained = 0;
  /** No message is archived. */
  #whole: boolean;

  constructor({ hidden, stubs }: SurfaceBase = emptySurface) {
    this.#hidden = hidden;
    this.#digest = hidden.digest;
    this.#slots = [...stubs];
    this.#hashes = stubs.map(({ hash }) => hash);
    this.#whole = stubs.length === 0;
  }

  /** Nodes whose message is here: all of them, unless the surface started from a base. */
  get nodes(): readonly SurfaceNode[] {
    const slots: readonly (SurfaceNode | SurfaceStub)[] = this.#slots;
    return this.#whole ? (slots as readonly SurfaceNode[]) : slots.filter(isNode);
  }

  /** Of all nodes, also of archived ones. */
  get length(): number {
    return this.#hidden.seqs.length + this.#slots.length;
  }

  /** Nodes and stubs in surface order, after the hidden ones. @public */
  get slots(): readonly (SurfaceNode | SurfaceStub)[] {
    return this.#slots;
  }

  /** Chain digest over all nodes. Each node is hashed once. */
  digest(): string {
    for (; this.#chained < this.#slots.length; this.#chained++) {
      this.#digest = chain(this.#digest, this.#hashAt(this.#chained));
    }
    return this.#digest;
  }

  /** Chain digest over the first `length` nodes, of which the hidden ones are never left out. */
  digestAt(length: number): string {
    if (length >= this.length) return this.digest();
    this.digest();
    return this.#hashes
      .slice(0, Math.max(0, length - this.#hidden.seqs.length))
      .reduce(chain, this.#hidden.digest);
  }

  /** The base of a run that knows the first `length` nodes by reference, the newest `stubs` of them one by one. */
  baseAt(length: number, stubs: number): SurfaceBase {
    const { seqs } = this.#hidden;
    const hidden = Math.min(length, Math.max(seqs.length, length - stubs));
    this.digest();
    return {
      hidden: { seqs: this.seqsTo(hidden), digest: this.digestAt(hidden) },
      stubs: this.#slots
        .slice(hidden - seqs.length, length - seqs.length)
        .map(({ seq }, index) => ({ seq, hash: this.#hashAt(hidden - seqs.length + index) })),
    };
  }

  /** `seq` of each of the first `length` nodes, in surface order. */
  seqsTo(length: number): readonly number[] {
    const { seqs } = this.#hidden;
    const slots = this.#slots.slice(0, Math.max(0, length - seqs.length)).map(({ seq }) => seq);
    return [...seqs.slice(0, length), ...slots];
  }

  /** Where the node of a `seq` stands; -1 when it is not on the surface, or hidden. */
  positionOf(seq: number): number {
    const index = this.#slots.findIndex((slot) => slot.seq === seq);
    return index === -1 ? -1 : this.#hidden.seqs.length + index;
  }

  /** Is the node of a `seq` on the surface? */
  has(seq: number): boolean {
    return this.positionOf(seq) !== -1 || this.#hidden.seqs.includes(seq);
  }

  /** `seq` of the node at a position, also of an archived one. */
  seqAt(position: number): number | undefined {
    const { seqs } = this.#hidden;
    return seqs[position] ?? this.#slots[position - seqs.length]?.seq;
  }

  /** The node at a position; undefined when its message is archived, or there is none. */
  nodeAt(position: number): SurfaceNode | undefined {
    const slot = this.#slots[position - this.#hidden.seqs.length];
    return slot !== undefined && isNode(slot) ? slot : undefined;
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
    const hidden = this.#hidden.seqs.length;
    if (start < hidden && (start > 0 || end < hidden))
      return `replace ${start}..${end} cuts through the ${hidden} oldest nodes, which are archived; it must hold all of them or none`;
    const shadowed = this.seqsTo(end).slice(start);
    const cited = new Set(entry.sourceEventSeqs ?? []);
    const missing = shadowed.filter((seq) => !cited.has(seq));
    if (missing.length > 0)
      return `replace ${start}..${end} must cite every shadowed entry; missing ${missing.join(", ")}`;
    if (entry.type !== "tool/result") return undefined;
    if (end - start !== 1) return "a tool/result replaces exactly one node";
    return checkResultReplace(message, this.#slots[start - hidden]);
  }

  /** Places a checked entry. */
  apply(entry: LogEntry): void {
    const message = messageOf(entry);
    if (message === undefined || entry.surfaceOp === undefined) return;
    const node: SurfaceNode = { seq: entry.seq, message };
    if (entry.surfaceOp === "append") {
      this.#slots.push(node);
      return;
    }
    const hidden = this.#hidden.seqs.length;
    const [start, end] = [entry.surfaceOp.start - hidden, entry.surfaceOp.end - hidden];
    // The kept hashes are to stand where their nodes do; the chain is made anew when it is asked for.
    for (let at = this.#hashes.length; at < this.#slots.length; at += 1) this.#hashAt(at);
    if (start < 0) this.#hidden = emptySurface.hidden;
    const from = Math.max(0, start);
    this.#slots.splice(from, end - from, node);
    this.#hashes.splice(from, end - from, hashNode(node));
    this.#whole = this.#slots.every(isNode);
    this.#digest = this.#hidden.digest;
    this.#chained = 0;
  }

  #hashAt(index: number): string {
    const slot = this.#slots[index];
    if (slot === undefined) throw new Error(`the surface has no slot ${index}`);
    return (this.#hashes[index] ??= isNode(slot) ? hashNode(slot) : slot.hash);
  }
}

function isNode(slot: SurfaceNode | SurfaceStub): slot is SurfaceNode {
  return "message" in slot;
}

function checkResultReplace(
  message: Message,
  shadowed: SurfaceNode | SurfaceStub | undefined,
): string | undefined {
  const before =
    shadowed !== undefined && isNode(shadowed) ? withoutContent(shadowed.message) : undefined;
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
