import type { Message } from "../contracts/content.js";
import type { RequestHeader } from "../contracts/header.js";
import type { LogEntry } from "../contracts/log.js";
import type { HeaderState } from "./request.js";
import { checkpointName } from "./compaction-texts.js";
import { messageOf } from "./surface.js";

/** Roughly how many characters a token has, and what a message and a block cost beside their text (spec/harness §6). */
const charactersPerToken = 4;
const messageTokens = 4;
const blockTokens = 4;

/** Estimate of one message. Pictures are not counted: their bytes are no text. */
export function estimateMessage({ content }: Message): number {
  let characters = 0;
  for (const block of content) {
    if (block.type === "tool-call") characters += block.name.length + block.arguments.length;
    else if (block.type === "tool-result")
      for (const part of block.content) characters += part.text.length;
    else characters += block.text.length;
  }
  return messageTokens + blockTokens * content.length + tokensOf(characters);
}

/** Sizes of headers, which are asked for at every step and hold whole tool tables. */
const headerTokens = new WeakMap<RequestHeader, number>();

/** Estimate of what every request carries beside its messages. */
export function estimateHeader(state: HeaderState | undefined): number {
  if (state === undefined) return 0;
  const { header } = state;
  const known = headerTokens.get(header);
  if (known !== undefined) return known;
  const { system, tools } = header;
  const tokens = tokensOf(
    (system?.length ?? 0) + (tools === undefined ? 0 : JSON.stringify(tools).length),
  );
  headerTokens.set(header, tokens);
  return tokens;
}

function tokensOf(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}

/** What compaction goes by of one surface node. */
export interface NodeMeasure {
  readonly seq: number;
  readonly tokens: number;
  /** No call is unanswered after it: a cut behind it splits no pair. */
  readonly settled: boolean;
  /** It stands for a span that was summarised. */
  readonly checkpoint?: true;
}

/** The last reply that told its usage: tokens of everything up to and with it, under that header. */
export interface TokenAnchor {
  readonly seq: number;
  readonly headerSeq: number;
  readonly tokens: number;
}

/** What a meter carries over a roll-over. Plain JSON. */
export interface MeterState {
  /** Nodes that only their sum is known of, before all others. */
  readonly hidden: { readonly length: number; readonly tokens: number; readonly settled: boolean };
  readonly nodes: readonly NodeMeasure[];
  readonly anchor?: TokenAnchor;
  /** Calls without a result, at the end. */
  readonly pending: readonly string[];
  /** `seq` of the last entry taken. */
  readonly seq: number;
  /** `seq` of the header in force. */
  readonly headerSeq: number;
}

export const emptyMeter: MeterState = {
  hidden: { length: 0, tokens: 0, settled: true },
  nodes: [],
  pending: [],
  seq: -1,
  headerSeq: -1,
};

/** Sizes of the surface's nodes, kept while the log grows: an estimate, anchored on what the provider counted. */
export class TokenMeter {
  readonly #nodes: NodeMeasure[];
  #hidden: MeterState["hidden"];
  #anchor: TokenAnchor | undefined;
  #pending: readonly string[];
  #seq: number;
  #headerSeq: number;
  /** Tokens of all nodes that are here, and of those after the anchor. */
  #sum: number;
  #since: number;

  constructor(from: MeterState = emptyMeter) {
    this.#nodes = [...from.nodes];
    this.#hidden = from.hidden;
    this.#anchor = from.anchor;
    this.#pending = from.pending;
    this.#seq = from.seq;
    this.#headerSeq = from.headerSeq;
    this.#sum = sum(from.nodes);
    this.#since = sum(from.nodes.slice(this.#anchorAt() + 1));
  }

  get state(): MeterState {
    return {
      hidden: this.#hidden,
      nodes: [...this.#nodes],
      ...(this.#anchor === undefined ? {} : { anchor: this.#anchor }),
      pending: this.#pending,
      seq: this.#seq,
      headerSeq: this.#headerSeq,
    };
  }

  get nodes(): readonly NodeMeasure[] {
    return this.#nodes;
  }

  get hidden(): MeterState["hidden"] {
    return this.#hidden;
  }

  /** Takes what has come since; entries are those of one log, from any `seq` on that is not newer than what was taken. */
  follow(entries: readonly LogEntry[]): this {
    const first = entries[0]?.seq ?? 0;
    for (let at = Math.max(0, this.#seq + 1 - first); at < entries.length; at += 1) {
      const entry = entries[at];
      if (entry !== undefined) this.#take(entry);
    }
    return this;
  }

  /** Tokens of the next request: what the provider counted plus what came since, when the header is still that one; else all estimated. */
  total(header: HeaderState | undefined): number {
    const anchor = this.#anchor;
    if (anchor !== undefined && header !== undefined && header.seq === anchor.headerSeq) {
      return anchor.tokens + this.#since;
    }
    return estimateHeader(header) + this.#hidden.tokens + this.#sum;
  }

  /** What a run carries on that knows the first `count` nodes only together; the anchor must not be among them to be kept. */
  stateHiding(count: number): MeterState {
    const state = this.state;
    const gone = state.nodes.slice(0, Math.max(0, count - state.hidden.length));
    const last = gone.at(-1);
    if (last === undefined) return state;
    const { anchor, ...rest } = state;
    const lost = anchor === undefined || gone.some(({ seq }) => seq === anchor.seq);
    return {
      ...rest,
      ...(lost ? {} : { anchor }),
      hidden: {
        length: state.hidden.length + gone.length,
        tokens: state.hidden.tokens + sum(gone),
        settled: last.settled,
      },
      nodes: state.nodes.slice(gone.length),
    };
  }

  /** How much larger things are than estimated, as far as the provider told. */
  scale(header: HeaderState | undefined): number {
    const estimated = estimateHeader(header) + this.#hidden.tokens + this.#sum;
    return estimated === 0 ? 1 : this.total(header) / estimated;
  }

  #anchorAt(): number {
    const seq = this.#anchor?.seq;
    return seq === undefined ? -1 : this.#nodes.findLastIndex((one) => one.seq === seq);
  }

  #take(entry: LogEntry): void {
    this.#seq = entry.seq;
    if (entry.type === "request/header") this.#headerSeq = entry.seq;
    const message = messageOf(entry);
    if (message === undefined || entry.surfaceOp === undefined) return;
    const tokens = estimateMessage(message);
    if (entry.surfaceOp !== "append") {
      const checkpoint = message.source["name"] === checkpointName;
      const node = { seq: entry.seq, tokens, ...(checkpoint ? { checkpoint: true as const } : {}) };
      this.#replace(node, entry.surfaceOp);
      return;
    }
    for (const block of message.content) {
      if (block.type === "tool-call") this.#pending = [...this.#pending, block.callId];
      if (block.type === "tool-result") {
        const at = this.#pending.indexOf(block.callId);
        if (at !== -1) this.#pending = this.#pending.toSpliced(at, 1);
      }
    }
    this.#nodes.push({ seq: entry.seq, tokens, settled: this.#pending.length === 0 });
    this.#sum += tokens;
    this.#since += tokens;
    if (entry.type !== "assistant/message") return;
    const { inputTokens, outputTokens } = entry.data.usage ?? {};
    if (inputTokens === undefined) return;
    this.#anchor = {
      seq: entry.seq,
      headerSeq: this.#headerSeq,
      // Of a reply whose own size is not told the estimate stands in.
      tokens: inputTokens + (outputTokens ?? tokens),
    };
    this.#since = 0;
  }

  /** The anchor stays where it is and loses what is no longer sent; one that is itself replaced is given up. */
  #replace(
    node: Omit<NodeMeasure, "settled">,
    { start, end }: { readonly start: number; readonly end: number },
  ): void {
    const hidden = this.#hidden;
    const swallowed = start < hidden.length;
    const [from, to] = [Math.max(0, start - hidden.length), Math.max(0, end - hidden.length)];
    const gone = this.#nodes.slice(from, to);
    const settled = (gone.at(-1) ?? hidden).settled;
    const before = sum(gone) + (swallowed ? hidden.tokens : 0);
    const anchor = this.#anchor;
    const at = this.#anchorAt();
    this.#sum += node.tokens - sum(gone);
    if (at < from) this.#since += node.tokens - sum(gone);
    if (anchor === undefined || at === -1 || (at >= from && at < to)) this.#anchor = undefined;
    else if (at >= to)
      this.#anchor = { ...anchor, tokens: Math.max(0, anchor.tokens - before + node.tokens) };
    this.#nodes.splice(from, to - from, { ...node, settled });
    if (swallowed) this.#hidden = emptyMeter.hidden;
  }
}

export function sum(nodes: readonly { readonly tokens: number }[]): number {
  return nodes.reduce((total, { tokens }) => total + tokens, 0);
}
