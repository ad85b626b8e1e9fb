import type {
  JSONObject,
  LanguageModelV3CallOptions,
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type {
  AssistantMessage,
  ToolCallBlock,
  ToolResultBlock,
  UserBlock,
  UserMessage,
} from "../contracts/content.js";
import type { ModelRequest } from "../contracts/model.js";
import type { Images } from "./request-images.js";

/** In what a provider differs from the others. */
export interface Dialect {
  /** A tool call's raw arguments in the form they are sent back in; default `argumentsAsObject`. */
  readonly sentArguments?: (raw: string) => unknown;
  /** Options in the provider's own name space; default `effortOption` for the name space of the model object. */
  readonly options?: (request: ModelRequest) => SharedV3ProviderOptions | undefined;
  /** Text of white space alone is refused by this provider, and left out. */
  readonly dropsBlankText?: boolean;
  /** Ids this provider takes; others are written anew. */
  readonly callIds?: RegExp;
  /** Takes pictures inside a tool's result; else they follow the results in a message of their own. */
  readonly imagesInResults?: boolean;
}

type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];

/**
 * What a reasoning block keeps for the provider: `options` of the block itself (a signature), `calls` of tool calls
 * that follow it, by call id.
 */
export interface ReplayState {
  readonly options?: SharedV3ProviderOptions;
  readonly calls?: Readonly<Record<string, SharedV3ProviderOptions>>;
}

/** A request in the AI SDK's terms: nothing added, nothing left out but reasoning that is another provider's. */
export function callOptions(
  request: ModelRequest,
  dialect: Dialect,
  images: Images,
  signal: AbortSignal,
): LanguageModelV3CallOptions {
  const { temperature, maxTokens, stop } = request.config;
  const providerOptions = dialect.options?.(request);
  return {
    prompt: promptOf(request, dialect, images),
    ...(request.tools.length > 0 && {
      tools: request.tools.map(({ name, description, parameters }) => ({
        type: "function" as const,
        name,
        description,
        inputSchema: { ...parameters },
      })),
    }),
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(stop !== undefined && { stopSequences: [...stop] }),
    ...(providerOptions !== undefined && { providerOptions }),
    // Shows an error inside a stream as the provider sent it; the libraries pass on less.
    includeRawChunks: true,
    abortSignal: signal,
  };
}

/** Arguments as the object they stand for; what is no JSON object goes back under one key that says so. */
export function argumentsAsObject(raw: string): JSONObject {
  const value = parsedOr(raw, undefined);
  return isObject(value) ? value : { unparsed_arguments: raw };
}

/** Arguments as the text they came as; what is no JSON is sent as a JSON string, since servers parse it. */
export function argumentsAsText(raw: string): string {
  if (raw.trim() === "") return "{}";
  return parsedOr(raw, undefined) === undefined ? JSON.stringify(raw) : raw;
}

function promptOf(
  request: ModelRequest,
  dialect: Dialect,
  images: Images,
): LanguageModelV3Message[] {
  const calls = new CallNames(dialect.callIds);
  const prompt: LanguageModelV3Message[] = [];
  let seen: LanguageModelV3FilePart[] = [];
  const push = (...messages: readonly LanguageModelV3Message[]): void => {
    for (const message of messages) {
      // All results of a step come first: providers want nothing between them.
      if (message.role !== "tool" && seen.length > 0) {
        prompt.push({ role: "user", content: seen });
        seen = [];
      }
      prompt.push(message);
    }
  };
  if (request.system !== undefined) push({ role: "system", content: request.system });
  for (const message of request.messages) {
    if (message.role === "user") {
      const inResults = dialect.imagesInResults === true;
      push(...userMessages(message, calls, inResults ? images : noImages));
      if (!inResults) seen.push(...message.content.flatMap((block) => filesOf(block, images)));
    } else {
      const own = message.source["provider"] ?? request.config.provider;
      const content = assistantParts(message, own === request.config.provider, calls, dialect);
      if (content.length > 0) push({ role: "assistant", content });
    }
  }
  if (seen.length > 0) prompt.push({ role: "user", content: seen });
  return prompt;
}

const noImages: Images = new Map();

/** Text and tool results of one message, in their order: they are of different roles in the AI SDK. */
function userMessages(
  { content }: UserMessage,
  calls: CallNames,
  images: Images,
): LanguageModelV3Message[] {
  const messages: LanguageModelV3Message[] = [];
  for (const block of content) {
    const last = messages.at(-1);
    if (block.type === "text") {
      const part = { type: "text" as const, text: block.text };
      if (last?.role === "user") last.content.push(part);
      else messages.push({ role: "user", content: [part] });
    } else {
      const part = toolResult(block, calls, images);
      if (last?.role === "tool") last.content.push(part);
      else messages.push({ role: "tool", content: [part] });
    }
  }
  return messages;
}

function toolResult(
  block: ToolResultBlock,
  calls: CallNames,
  images: Images,
): LanguageModelV3ToolResultPart {
  const text = block.content.map((one) => one.text).join("\n");
  const { id, name } = calls.of(block.callId);
  const pictures = filesOf(block, images).map(({ mediaType, data }) => ({
    type: "image-data" as const,
    mediaType,
    data: Buffer.from(data).toString("base64"),
  }));
  return {
    type: "tool-result",
    toolCallId: id,
    toolName: name,
    output:
      pictures.length > 0 && !block.isError
        ? { type: "content", value: [{ type: "text", text }, ...pictures] }
        : { type: block.isError ? "error-text" : "text", value: text },
  };
}

function filesOf(
  block: UserBlock,
  images: Images,
): (LanguageModelV3FilePart & { data: Uint8Array })[] {
  if (block.type === "text") return [];
  return (block.images ?? []).flatMap(({ mediaType, digest }) => {
    const data = images.get(digest);
    return data === undefined ? [] : [{ type: "file" as const, mediaType, data }];
  });
}

function assistantParts(
  { content }: AssistantMessage,
  own: boolean,
  calls: CallNames,
  { sentArguments = argumentsAsObject, dropsBlankText = false }: Dialect,
): AssistantPart[] {
  const states: Record<string, SharedV3ProviderOptions> = {};
  const parts: AssistantPart[] = [];
  for (const block of content) {
    switch (block.type) {
      case "text":
        if (!dropsBlankText || block.text.trim() !== "")
          parts.push({ type: "text", text: block.text });
        break;
      case "reasoning": {
        if (!own) break;
        const replay: ReplayState = isObject(block.replay) ? block.replay : {};
        Object.assign(states, replay.calls);
        if (block.text === "" && replay.options === undefined) break;
        parts.push({
          type: "reasoning",
          text: block.text,
          ...(replay.options !== undefined && { providerOptions: replay.options }),
        });
        break;
      }
      case "tool-call": {
        const state = states[block.callId];
        parts.push({
          type: "tool-call",
          toolCallId: calls.add(block),
          toolName: block.name,
          input: sentArguments(block.arguments),
          ...(state !== undefined && { providerOptions: state }),
        });
        break;
      }
    }
  }
  return parts;
}

/** The ids and names of the calls of a transcript, as they are sent. A later call of the same id takes its place. */
class CallNames {
  readonly #accepted: RegExp | undefined;
  readonly #calls = new Map<string, { readonly id: string; readonly name: string }>();
  readonly #sent = new Set<string>();

  constructor(accepted: RegExp | undefined) {
    this.#accepted = accepted;
  }

  add({ callId, name }: ToolCallBlock): string {
    const id = this.#sentId(callId);
    this.#sent.add(id);
    this.#calls.set(callId, { id, name });
    return id;
  }

  of(callId: string): { readonly id: string; readonly name: string } {
    return this.#calls.get(callId) ?? { id: callId, name: "unknown" };
  }

  #sentId(callId: string): string {
    if (this.#accepted === undefined) return callId;
    const base = this.#accepted.test(callId)
      ? callId
      : callId.replaceAll(/[^\w-]/g, "_").slice(0, 60) || "call";
    let id = base;
    for (let count = 2; this.#sent.has(id); count += 1) id = `${base}-${count}`;
    return id;
  }
}

function parsedOr(text: string, otherwise: undefined): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

function isObject(value: unknown): value is JSONObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
