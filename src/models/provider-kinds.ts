import { createAnthropic } from "@ai-sdk/anthropic";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import * as z from "zod";
import type { ModelRequest } from "../contracts/model.js";
import type { AiSdkModel } from "./ai-sdk.js";
import { argumentsAsText, type Dialect } from "./ai-sdk-prompt.js";
import type { Fetch } from "./provider-fetch.js";

export interface ProviderKind {
  readonly keyVariable: string;
  readonly baseUrlVariable: string;
  /** The provider's own address; without one it must be set. */
  readonly baseUrl?: string;
  readonly keyOptional?: boolean;
  readonly dialect: Dialect;
  readonly open: (call: ProviderCall) => AiSdkModel;
}

export interface ProviderCall {
  readonly model: string;
  readonly baseUrl: string;
  readonly key?: string;
  /** `fetch` for this call; `rewriteBody` changes the JSON text that is sent. */
  readonly fetch: (rewriteBody?: (body: string) => string) => Fetch;
}

/** The providers that are built in, by the name a session's request gives. */
export const providerKinds: Readonly<Record<string, ProviderKind>> = {
  deepseek: {
    keyVariable: "DEEPSEEK_API_KEY",
    baseUrlVariable: "DEEPSEEK_BASE_URL",
    baseUrl: "https://api.deepseek.com",
    dialect: { sentArguments: argumentsAsText, options: deepseekOptions },
    open: ({ model, baseUrl, key = "", fetch }) =>
      createDeepSeek({ baseURL: baseUrl, apiKey: key, fetch: fetch(rawArguments) })(model),
  },
  anthropic: {
    keyVariable: "ANTHROPIC_API_KEY",
    baseUrlVariable: "ANTHROPIC_BASE_URL",
    baseUrl: "https://api.anthropic.com",
    dialect: {
      options: anthropicOptions,
      dropsBlankText: true,
      callIds: /^[\w-]{1,64}$/,
      imagesInResults: true,
    },
    open: ({ model, baseUrl, key = "", fetch }) =>
      createAnthropic({ baseURL: withVersion(baseUrl), apiKey: key, fetch: fetch() })(model),
  },
  openai: {
    keyVariable: "OPENAI_API_KEY",
    baseUrlVariable: "OPENAI_BASE_URL",
    baseUrl: "https://api.openai.com/v1",
    dialect: { sentArguments: argumentsAsText, options: effort("openai") },
    open: ({ model, baseUrl, key = "", fetch }) =>
      createOpenAICompatible({
        name: "openai",
        baseURL: baseUrl,
        apiKey: key,
        includeUsage: true,
        fetch: fetch(),
        transformRequestBody: completionTokens,
      })(model),
  },
  "openai-compatible": {
    keyVariable: "LONGHAUL_API_KEY",
    baseUrlVariable: "LONGHAUL_BASE_URL",
    keyOptional: true,
    dialect: { sentArguments: argumentsAsText, options: effort("openaiCompatible") },
    open: ({ model, baseUrl, key, fetch }) =>
      createOpenAICompatible({
        name: "openaiCompatible",
        baseURL: baseUrl,
        ...(key !== undefined && { apiKey: key }),
        includeUsage: true,
        fetch: fetch(),
      })(model),
  },
};

function effort(namespace: string): NonNullable<Dialect["options"]> {
  return ({ config: { reasoningEffort } }) =>
    reasoningEffort === undefined ? undefined : { [namespace]: { reasoningEffort } };
}

const off = new Set(["none", "off"]);

function deepseekOptions({ config }: ModelRequest): SharedV3ProviderOptions | undefined {
  const { reasoningEffort } = config;
  if (reasoningEffort === undefined) return undefined;
  return {
    deepseek: off.has(reasoningEffort)
      ? { thinking: { type: "disabled" } }
      : { thinking: { type: "enabled" }, reasoningEffort },
  };
}

/** Tokens of thought by effort, for models from before there was an effort to ask for. */
const thinkingTokens: Readonly<Record<string, number>> = {
  low: 4_096,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 31_999,
};

function anthropicOptions({ config }: ModelRequest): SharedV3ProviderOptions {
  const { model, reasoningEffort } = config;
  return {
    anthropic: {
      // A transcript is sent anew with each step: without this nothing of it is cached.
      cacheControl: { type: "ephemeral" },
      // Arguments come checked as JSON, and servers that only resemble this one do not know the other way.
      toolStreaming: false,
      ...(reasoningEffort !== undefined && thinking(model, reasoningEffort)),
    },
  };
}

function thinking(model: string, effort_: string): SharedV3ProviderOptions[string] {
  if (off.has(effort_)) return { thinking: { type: "disabled" } };
  const budgetTokens = thinkingTokens[effort_];
  if (/claude-(?:3|\w+-4-[015]\b|\w+-4-2025)/.test(model) && budgetTokens !== undefined)
    return { thinking: { type: "enabled", budgetTokens } };
  return { thinking: { type: "adaptive" }, effort: effort_ };
}

/** The official client adds `/v1` itself, so base URLs are written without it. */
function withVersion(baseUrl: string): string {
  const plain = baseUrl.replace(/\/+$/, "");
  return /\/v\d+$/.test(plain) ? plain : `${plain}/v1`;
}

/** OpenAI's newer models refuse the name that everybody else has kept. */
function completionTokens(body: Record<string, unknown>): Record<string, unknown> {
  const { max_tokens: limit, ...rest } = body;
  return limit === undefined ? rest : { ...rest, max_completion_tokens: limit };
}

/** Arguments are text already and go back as they came: the provider package encodes them once more. */
const Arguments = z.string().transform((text) => z.string().parse(JSON.parse(text)));
const Call = z.looseObject({ function: z.looseObject({ arguments: Arguments }) });
const Body = z.looseObject({
  messages: z.array(z.looseObject({ tool_calls: z.array(Call).optional() })),
});

function rawArguments(body: string): string {
  return JSON.stringify(Body.parse(JSON.parse(body)));
}
