import type {
  AssistantBlock,
  ReasoningBlock,
  TextBlock,
  ToolCallBlock,
} from "../contracts/content.js";
import type { ModelPart } from "../contracts/model.js";

/** A part that carries content. */
export type ContentPart = Extract<ModelPart, { readonly type: "text" | "reasoning" | "tool-call" }>;

/** The reply as far as it has come (spec/harness §1-2). */
export interface Reply {
  /** Adds a part; the part as it counts (a call with its final id), undefined when it adds nothing. */
  add(part: ContentPart): ContentPart | undefined;
  /** All blocks in order. */
  content(): readonly AssistantBlock[];
  /** Text and reasoning alone: what is kept of a reply that was cut. */
  contentWithoutCalls(): readonly AssistantBlock[];
}

export function createReply(): Reply {
  const blocks: OpenBlock[] = [];
  const callIds = new Set<string>();
  return {
    add(part) {
      if (part.type === "tool-call") {
        const callId = uniqueId(part.callId, callIds);
        callIds.add(callId);
        const { name, arguments: args } = part;
        blocks.push({ type: "tool-call", callId, name, arguments: args });
        return { ...part, callId };
      }
      if (part.text === "" && (part.type === "text" || part.replay === undefined)) return undefined;
      const last = blocks.at(-1);
      if (last !== undefined && continues(last, part)) extend(last, part);
      else blocks.push(blockOf(part));
      return part;
    },
    content: () => blocks.map((block) => closed(block)),
    contentWithoutCalls: () =>
      blocks.filter(({ type }) => type !== "tool-call").map((block) => closed(block)),
  };
}

type TextPart = Extract<ContentPart, { readonly type: "text" | "reasoning" }>;
/** Deltas are joined once, when the block is read. */
type OpenText = {
  readonly type: "text" | "reasoning";
  readonly deltas: string[];
  replay?: unknown;
};
type OpenBlock = OpenText | ToolCallBlock;

/** Provider state ends a reasoning block: what follows it belongs to the next one. */
function continues(block: OpenBlock, part: TextPart): block is OpenText {
  return block.type === part.type && (block.type === "text" || block.replay === undefined);
}

function extend(block: OpenText, part: TextPart): void {
  block.deltas.push(part.text);
  if (part.type === "reasoning" && part.replay !== undefined) block.replay = part.replay;
}

function blockOf(part: TextPart): OpenText {
  const block: OpenText = { type: part.type, deltas: [] };
  extend(block, part);
  return block;
}

function closed(block: OpenBlock): AssistantBlock {
  if (block.type === "tool-call") return block;
  const text = block.deltas.join("");
  if (block.type === "text") return { type: "text", text } satisfies TextBlock;
  const { replay } = block;
  return {
    type: "reasoning",
    text,
    ...(replay !== undefined && { replay }),
  } satisfies ReasoningBlock;
}

/** An id no other call of the message has: a repeated one gets `-2`, `-3`, …; an empty one is named `call`. */
function uniqueId(id: string, taken: ReadonlySet<string>): string {
  const base = id === "" ? "call" : id;
  let candidate = base;
  for (let count = 2; taken.has(candidate); count += 1) candidate = `${base}-${count}`;
  return candidate;
}
