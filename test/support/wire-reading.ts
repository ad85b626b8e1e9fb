/**
 * Reads a request as a provider's server got it, and one as the witness rebuilt it from a log, into the same plain
 * items, so that the two can be compared. Knows the protocols and nothing of how requests are made here.
 */
export interface WireReading {
  readonly model: unknown;
  readonly maxTokens: unknown;
  readonly effort: unknown;
  readonly tools: readonly {
    readonly name: unknown;
    readonly description: unknown;
    readonly schema: unknown;
  }[];
  /** System text, then the transcript. */
  readonly items: readonly Item[];
}

type Item = readonly [
  kind: "system" | "user" | "text" | "reasoning" | "call" | "result",
  ...rest: unknown[],
];
type Fields = { readonly [name: string]: unknown };

/** A body of OpenAI's chat completions, or of DeepSeek's. */
export function readCompletions(body: Fields): WireReading {
  const items = list(body["messages"]).flatMap((message): Item[] => {
    const { role, content, reasoning_content: reasoning, tool_calls: calls } = message;
    switch (role) {
      case "system":
        return [["system", content]];
      case "user":
        return [["user", textOf(content)]];
      case "tool":
        return [["result", message["tool_call_id"], content]];
      case "assistant":
        return [
          ...(reasoning === undefined || reasoning === ""
            ? []
            : [["reasoning", reasoning] as const]),
          ...(content === null || content === "" ? [] : [["text", content] as const]),
          ...list(calls).map(({ id, function: call }) => {
            const { name, arguments: args } = call as Fields;
            return ["call", id, name, args] as const;
          }),
        ];
      default:
        throw new Error(`a message of role ${String(role)}`);
    }
  });
  return {
    model: body["model"],
    maxTokens: body["max_tokens"] ?? body["max_completion_tokens"],
    effort: body["reasoning_effort"],
    tools: list(body["tools"]).map(({ function: tool }) => {
      const { name, description, parameters } = tool as Fields;
      return { name, description, schema: parameters };
    }),
    items,
  };
}

/** A body of Anthropic's messages. */
export function readMessages(body: Fields): WireReading {
  const items = list(body["messages"]).flatMap(({ role, content }) =>
    list(content).map((block): Item => {
      switch (block["type"]) {
        case "text":
          return [role === "user" ? "user" : "text", block["text"]];
        case "thinking":
          return ["reasoning", block["thinking"]];
        case "tool_use":
          return ["call", block["id"], block["name"], JSON.stringify(block["input"])];
        case "tool_result":
          return ["result", block["tool_use_id"], textOf(block["content"])];
        default:
          throw new Error(`a block of type ${String(block["type"])}`);
      }
    }),
  );
  const output = body["output_config"] as Fields | undefined;
  return {
    model: body["model"],
    maxTokens: body["max_tokens"],
    effort: output?.["effort"],
    tools: list(body["tools"]).map(({ name, description, input_schema: schema }) => ({
      name,
      description,
      schema,
    })),
    items: [...list(body["system"]).map(({ text }): Item => ["system", text]), ...items],
  };
}

/** A request the witness rebuilt; `args` says how arguments stand on the wire, `provider` whose reasoning goes back. */
export function readWitnessed(
  request: {
    readonly config: unknown;
    readonly system?: string;
    readonly tools: readonly unknown[];
    readonly messages: readonly unknown[];
  },
  args: (raw: string) => string,
): WireReading {
  const { provider, model, maxTokens, reasoningEffort } = request.config as Fields;
  const items = (request.messages as readonly Fields[]).flatMap(({ role, content, source }) =>
    list(content).flatMap((block): Item[] => {
      switch (block["type"]) {
        case "text":
          return [[role === "user" ? "user" : "text", block["text"]]];
        case "reasoning":
          return (source as Fields)["provider"] === provider ? [["reasoning", block["text"]]] : [];
        case "tool-call":
          return [["call", block["callId"], block["name"], args(String(block["arguments"]))]];
        case "tool-result":
          return [["result", block["callId"], textOf(block["content"])]];
        default:
          throw new Error(`a block of type ${String(block["type"])}`);
      }
    }),
  );
  return {
    model,
    maxTokens,
    effort: reasoningEffort,
    tools: (request.tools as readonly Fields[]).map(({ name, description, parameters }) => ({
      name,
      description,
      schema: parameters,
    })),
    items: [
      ...(request.system === undefined ? [] : [["system", request.system] as const]),
      ...items,
    ],
  };
}

function list(value: unknown): readonly Fields[] {
  return (value ?? []) as readonly Fields[];
}

function textOf(content: unknown): unknown {
  return typeof content === "string"
    ? content
    : list(content)
        .map(({ text }) => text)
        .join("\n");
}
