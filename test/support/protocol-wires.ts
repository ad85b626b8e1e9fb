import type { Usage } from "../../src/contracts/model.js";
import type { ProvidersSettings } from "../../src/models/providers.js";

/** What a wire is asked to say; each protocol puts it in its own events. */
export interface WireReply {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly {
    readonly callId: string;
    readonly name: string;
    readonly arguments: string;
  }[];
  /** In the protocol's own words; default by the calls. Null: none is sent. */
  readonly finish?: string | null;
  readonly usage?: Usage;
  /** Characters a delta; default 7. */
  readonly delta?: number;
}

/** A protocol, and how it is configured here. */
export interface Wire {
  readonly provider: string;
  readonly model: string;
  readonly keyVariable: string;
  readonly baseUrlVariable: string;
  /** Path of the requests, below the server's address. */
  readonly path: string;
  readonly words: { readonly stop: string; readonly length: string; readonly filter: string };
  /** The reply's events, in order. */
  events(reply: WireReply): string[];
  /** Body of an HTTP error. */
  error(type: string, message: string): object;
  /** An error inside a stream. */
  errorEvent(type: string, message: string, code?: number): string;
}

const noUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };

export const key = "sk-local-2f9c1d7e5b";

export function envOf(wire: Wire, url: string): Record<string, string> {
  return { [wire.keyVariable]: key, [wire.baseUrlVariable]: url };
}

export function settingsOf(wire: Wire, firstTokenMs: number, idleMs: number): ProvidersSettings {
  return { providers: { [wire.provider]: { firstTokenMs, idleMs } } };
}

export function event(data: unknown, name?: string): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`;
}

export function slices(text: string, length: number): string[] {
  const characters = Array.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < characters.length; at += length)
    pieces.push(characters.slice(at, at + length).join(""));
  return pieces;
}

function completions(
  usage: (wanted: Required<Usage>) => object,
): Pick<Wire, "words" | "events" | "error" | "errorEvent"> {
  const chunk = (delta: object, finish: string | null = null) =>
    event({
      id: "c-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  return {
    words: { stop: "stop", length: "length", filter: "content_filter" },
    events({ reasoning = "", text = "", calls = [], finish, usage: wanted, delta = 7 }) {
      const pieces = calls.map((call) => slices(call.arguments, delta));
      const rounds = Math.max(0, ...pieces.map((piece) => piece.length));
      const word = finish === undefined ? (calls.length > 0 ? "tool_calls" : "stop") : finish;
      return [
        chunk({ role: "assistant", content: "" }),
        ...slices(reasoning, delta).map((piece) => chunk({ reasoning_content: piece })),
        ...slices(text, delta).map((piece) => chunk({ content: piece })),
        ...calls.map((call, index) =>
          chunk({
            tool_calls: [
              {
                index,
                id: call.callId,
                type: "function",
                function: { name: call.name, arguments: "" },
              },
            ],
          }),
        ),
        // Interleaved: a piece of each call in turn.
        ...Array.from({ length: rounds }, (_, round) =>
          pieces.flatMap((piece, index) => {
            const args = piece[round];
            return args === undefined
              ? []
              : [chunk({ tool_calls: [{ index, function: { arguments: args } }] })];
          }),
        ).flat(),
        ...(word === null ? [] : [chunk({}, word)]),
        ...(wanted === undefined
          ? []
          : [
              event({
                id: "c-1",
                object: "chat.completion.chunk",
                created: 1,
                model: "m",
                choices: [],
                usage: usage({ ...noUsage, ...wanted }),
              }),
            ]),
        ...(word === null ? [] : [event("[DONE]")]),
      ];
    },
    error: (type, message) => ({ error: { message, type, param: null, code: type } }),
    errorEvent: (type, message, code) => event({ error: { message, type, code: code ?? type } }),
  };
}

export const openaiWire: Wire = {
  provider: "openai-compatible",
  model: "any-model",
  keyVariable: "LONGHAUL_API_KEY",
  baseUrlVariable: "LONGHAUL_BASE_URL",
  path: "/chat/completions",
  ...completions(({ inputTokens, outputTokens, cachedInputTokens, reasoningTokens }) => ({
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  })),
};

export const deepseekWire: Wire = {
  provider: "deepseek",
  model: "deepseek-v4-pro",
  keyVariable: "DEEPSEEK_API_KEY",
  baseUrlVariable: "DEEPSEEK_BASE_URL",
  path: "/chat/completions",
  ...completions(({ inputTokens, outputTokens, cachedInputTokens, reasoningTokens }) => ({
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_cache_hit_tokens: cachedInputTokens,
    prompt_cache_miss_tokens: inputTokens - cachedInputTokens,
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  })),
};

export const anthropicWire: Wire = {
  provider: "anthropic",
  model: "claude-opus-4-6",
  keyVariable: "ANTHROPIC_API_KEY",
  baseUrlVariable: "ANTHROPIC_BASE_URL",
  path: "/v1/messages",
  words: { stop: "end_turn", length: "max_tokens", filter: "refusal" },
  events({ reasoning = "", text = "", calls = [], finish, usage, delta = 7 }) {
    const {
      inputTokens = 1,
      outputTokens = 1,
      cachedInputTokens = 0,
      reasoningTokens,
    } = usage ?? {};
    const send = (type: string, rest: object) => event({ type, ...rest }, type);
    let index = -1;
    const block = (content: object, deltas: readonly object[]): string[] => {
      index += 1;
      return [
        send("content_block_start", { index, content_block: content }),
        ...deltas.map((piece) => send("content_block_delta", { index, delta: piece })),
        send("content_block_stop", { index }),
      ];
    };
    const word = finish === undefined ? (calls.length > 0 ? "tool_use" : "end_turn") : finish;
    return [
      send("message_start", {
        message: {
          id: "msg-1",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: {
            input_tokens: inputTokens - cachedInputTokens,
            cache_read_input_tokens: cachedInputTokens,
            cache_creation_input_tokens: 0,
            output_tokens: 1,
          },
        },
      }),
      send("ping", {}),
      ...(reasoning === ""
        ? []
        : block({ type: "thinking", thinking: "", signature: "" }, [
            ...slices(reasoning, delta).map((thinking) => ({ type: "thinking_delta", thinking })),
            { type: "signature_delta", signature: `signed:${reasoning.length}` },
          ])),
      ...(text === ""
        ? []
        : block(
            { type: "text", text: "" },
            slices(text, delta).map((piece) => ({ type: "text_delta", text: piece })),
          )),
      ...calls.flatMap((call) =>
        block(
          { type: "tool_use", id: call.callId, name: call.name, input: {} },
          slices(call.arguments, delta).map((partial_json) => ({
            type: "input_json_delta",
            partial_json,
          })),
        ),
      ),
      ...(word === null
        ? []
        : [
            send("message_delta", {
              delta: { stop_reason: word, stop_sequence: null },
              usage: {
                output_tokens: outputTokens,
                ...(reasoningTokens !== undefined && {
                  output_tokens_details: { thinking_tokens: reasoningTokens },
                }),
              },
            }),
            send("message_stop", {}),
          ]),
    ];
  },
  error: (type, message) => ({ type: "error", error: { type, message } }),
  errorEvent: (type, message) => event({ type: "error", error: { type, message } }, "error"),
};

export const wires = [openaiWire, deepseekWire, anthropicWire] as const;
