/** What is known of a model; each may be overridden in the settings. */
export interface ModelFacts {
  /** Tokens that request and reply may have together. */
  readonly contextWindow?: number;
  /** Longest reply asked for where the session asks for none, tokens. */
  readonly maxTokens?: number;
  /** Effort asked for where the session asks for none. */
  readonly reasoningEffort?: string;
  /** Can it see pictures? */
  readonly images?: boolean;
}

const million = 1_000_000;
const claude = { contextWindow: million, maxTokens: 32_000, images: true };
const olderClaude = { contextWindow: 200_000, maxTokens: 32_000, images: true };
const deepseekV4 = { contextWindow: million, maxTokens: 65_536 };
const gpt5 = { contextWindow: 400_000, images: true };

/**
 * The models of the providers that are built in, as their makers describe them. A model that is missing here works
 * all the same; only its limits are not known.
 */
const tables: Readonly<Record<string, Readonly<Record<string, ModelFacts>>>> = {
  deepseek: {
    "deepseek-flash": { ...deepseekV4, images: true },
    "deepseek-v4-pro": deepseekV4,
    "deepseek-v4-flash": { ...deepseekV4, images: true },
    "deepseek-chat": { contextWindow: 131_072, maxTokens: 8_192 },
    "deepseek-reasoner": { contextWindow: 131_072, maxTokens: 32_768 },
  },
  anthropic: {
    "claude-fable-5-1": claude,
    "claude-opus-5-5": claude,
    "claude-sonnet-5-5": claude,
    "claude-haiku-5-5": claude,
    "claude-fable-5": claude,
    "claude-opus-5": claude,
    "claude-sonnet-5": claude,
    "claude-opus-4-8": claude,
    "claude-opus-4-7": claude,
    "claude-opus-4-6": claude,
    "claude-sonnet-4-6": claude,
    "claude-opus-4-5": olderClaude,
    "claude-sonnet-4-5": olderClaude,
    "claude-haiku-4-5": olderClaude,
    "claude-opus-4-1": olderClaude,
  },
  openai: {
    "gpt-5.5": { contextWindow: 1_050_000, images: true },
    "gpt-5.4": { contextWindow: 1_050_000, images: true },
    "gpt-5.2": gpt5,
    "gpt-5.1": gpt5,
    "gpt-5": gpt5,
    "gpt-5-mini": gpt5,
    "gpt-5-nano": gpt5,
    "gpt-4.1": { contextWindow: 1_047_576, images: true },
    "gpt-4.1-mini": { contextWindow: 1_047_576, images: true },
    "gpt-4o": { contextWindow: 128_000, images: true },
    "gpt-4o-mini": { contextWindow: 128_000, images: true },
  },
};

export function knownModels(provider: string): readonly string[] {
  return Object.keys(tables[provider] ?? {});
}

/** Facts of a model by its name, or by its name without a date or `-latest` behind it. */
export function modelFacts(provider: string, model: string): ModelFacts | undefined {
  const table = tables[provider];
  if (table === undefined) return undefined;
  const plain = model.replace(/-(?:\d{8}|\d{4}-\d\d-\d\d|latest)$/, "");
  return Object.hasOwn(table, model)
    ? table[model]
    : Object.hasOwn(table, plain)
      ? table[plain]
      : undefined;
}
