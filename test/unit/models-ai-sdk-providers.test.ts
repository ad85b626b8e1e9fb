import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV2, LanguageModelV2StreamPart } from "@ai-sdk/provider";
import { describe, expect, test, vi } from "vitest";
import type { ModelOutcome, ModelProvider } from "../../src/contracts/model.js";
import { createAiSdkProvider, fromAiSdk } from "../../src/models/ai-sdk.js";
import { collectReply } from "../../src/models/collect.js";
import {
  checkModel,
  providersFromEnv,
  type ProvidersSettings,
} from "../../src/models/providers.js";
import { createModels } from "../../src/models/registry.js";
import { modelRequest } from "../support/model-request.js";
import { eventStream, startProtocolServer } from "../support/protocol-server.js";
import { deepseekWire, key, openaiWire, wires } from "../support/protocol-wires.js";
import { openLine } from "../support/provider-line.js";

async function ask(
  providers: readonly ModelProvider[],
  provider: string,
  model: string,
): Promise<ModelOutcome> {
  const { signal } = new AbortController();
  const config = { provider, model };
  return collectReply(
    createModels(providers).find(config).model.stream(modelRequest({ config }), signal),
    signal,
  );
}

describe("the built-in providers", () => {
  test("are all there, whichever keys are set", () => {
    expect(providersFromEnv({}).map(({ provider }) => provider)).toEqual([
      "deepseek",
      "anthropic",
      "openai",
      "openai-compatible",
    ]);
  });

  test.each([
    ["deepseek", "DEEPSEEK_API_KEY"],
    ["anthropic", "ANTHROPIC_API_KEY"],
    ["openai", "OPENAI_API_KEY"],
  ])(
    "%s without a key names the variable, early and at the call, and calls nobody",
    async (provider, variable) => {
      const expected = {
        code: "AUTH",
        message: `${provider} needs a key: set ${variable} in the environment of the worker`,
      };
      for (const env of [{}, { [variable]: " \n" }]) {
        expect(await ask(providersFromEnv(env), provider, "m")).toEqual({
          kind: "failure",
          failure: expected,
        });
        expect(checkModel({ provider, model: "m" }, env)).toEqual({ ...expected, certain: true });
      }
    },
  );

  test("a server of one's own needs no key, but a base URL", async () => {
    const server = await startProtocolServer(eventStream(openaiWire.events({ text: "ok" })));
    try {
      const route = { provider: "openai-compatible", model: "any" };
      expect(checkModel(route, {})).toMatchObject({
        code: "INVALID_CONFIG",
        message: expect.stringMatching(/^LONGHAUL_BASE_URL is not set/) as unknown,
      });
      const settings = { providers: { "openai-compatible": { baseUrl: `${server.url}/v1/` } } };
      expect(checkModel(route, {}, settings)).toBeUndefined();
      expect(await ask(providersFromEnv({}, settings), route.provider, "any")).toMatchObject({
        kind: "reply",
      });
      expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
      expect(server.requests[0]?.path).toBe("/v1/chat/completions");
    } finally {
      await server.close();
    }
  });

  test("openai is asked by its own names", async () => {
    const wire = {
      ...openaiWire,
      provider: "openai",
      model: "gpt-5",
      keyVariable: "OPENAI_API_KEY",
      baseUrlVariable: "OPENAI_BASE_URL",
    };
    const line = await openLine(wire, eventStream(wire.events({ text: "ok" })));
    await line.ask({
      config: { provider: "openai", model: "gpt-5", maxTokens: 10, reasoningEffort: "low" },
    });
    expect(line.server.requests[0]?.body).toMatchObject({
      max_completion_tokens: 10,
      reasoning_effort: "low",
    });
    expect(line.server.requests[0]?.body).not.toHaveProperty("max_tokens");
  });

  test.each(["https://host", "https://host/", "https://host/v1"])(
    "anthropic's base URL may be written as %s",
    async (shape) => {
      const line = await openLine(wires[2], eventStream(wires[2].events({ text: "ok" })));
      const env = {
        ANTHROPIC_API_KEY: key,
        ANTHROPIC_BASE_URL: shape.replace("https://host", line.server.url),
      };
      expect(await ask(providersFromEnv(env), "anthropic", "m")).toMatchObject({ kind: "reply" });
      expect(line.server.requests[0]?.path).toBe("/v1/messages");
    },
  );

  test("the environment's base URL wins over the setting; a key may end with a line end", async () => {
    const line = await openLine(deepseekWire, eventStream(deepseekWire.events({ text: "ok" })));
    const env = { DEEPSEEK_API_KEY: `${key}\n`, DEEPSEEK_BASE_URL: line.server.url };
    const providers = providersFromEnv(env, {
      providers: { deepseek: { baseUrl: "http://127.0.0.1:1" } },
    });
    expect(await ask(providers, "deepseek", "m")).toMatchObject({ kind: "reply" });
    expect(line.server.requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
  });

  test.each([
    ["localhost:8000", /begins with https:\/\/ or http:\/\//],
    ["not a url", /expected a URL like/],
    ["https://me:pw@host/v1", /without user and password/],
    ["https://host/v1?a=1", /ends with its path/],
  ])("a base URL like %s is refused early and at the call", async (url, words) => {
    const env = { DEEPSEEK_API_KEY: key, DEEPSEEK_BASE_URL: url };
    const message = expect.stringMatching(words) as unknown;
    expect(checkModel({ provider: "deepseek", model: "deepseek-v4-pro" }, env)).toMatchObject({
      code: "INVALID_CONFIG",
      message,
      certain: true,
    });
    expect(await ask(providersFromEnv(env), "deepseek", "m")).toMatchObject({
      failure: { code: "INVALID_CONFIG", message },
    });
    expect(JSON.stringify(checkModel({ provider: "deepseek", model: "m" }, env))).not.toContain(
      "pw@",
    );
  });

  test("a key that cannot be one is refused without being shown", async () => {
    const env = { DEEPSEEK_API_KEY: "sk-with space-and-ü" };
    const outcome = await ask(providersFromEnv(env), "deepseek", "m");
    expect(outcome).toMatchObject({ failure: { code: "AUTH" } });
    expect(JSON.stringify(outcome)).not.toContain("with space");
  });

  test("keep their keys to themselves", () => {
    const env = Object.fromEntries(wires.map((wire) => [wire.keyVariable, key]));
    expect(JSON.stringify(providersFromEnv(env))).not.toContain(key);
  });
});

describe("the check of a route", () => {
  const env = { DEEPSEEK_API_KEY: key, ANTHROPIC_API_KEY: key };

  test("finds nothing wrong with a known model, dated or not", () => {
    for (const model of ["deepseek-v4-pro", "deepseek-chat"])
      expect(checkModel({ provider: "deepseek", model }, env)).toBeUndefined();
    for (const model of ["claude-opus-4-5-20251101", "claude-sonnet-5-5"])
      expect(checkModel({ provider: "anthropic", model }, env)).toBeUndefined();
  });

  test("names the providers there are, nearest first", () => {
    expect(checkModel({ provider: "depseek", model: "m" }, env)).toEqual({
      code: "MODEL_NOT_FOUND",
      message: expect.stringMatching(
        /^unknown provider "depseek": expected one of: deepseek, /,
      ) as unknown,
      certain: true,
    });
    expect(checkModel({ provider: "toString", model: "m" }, env)?.code).toBe("MODEL_NOT_FOUND");
  });

  test("names the models that are known, nearest first, without being certain", () => {
    expect(checkModel({ provider: "deepseek", model: "deepseek-chta" }, env)).toEqual({
      code: "MODEL_NOT_FOUND",
      message: expect.stringMatching(
        /^model "deepseek-chta" is not known .* known here: deepseek-chat, /,
      ) as unknown,
      certain: false,
    });
  });

  test("knows models out of the settings, and asks nothing about those of another server", () => {
    const route = { provider: "deepseek", model: "deepseek-v9" };
    expect(checkModel(route, env)?.certain).toBe(false);
    expect(checkModel(route, env, { models: { "deepseek/deepseek-v9": {} } })).toBeUndefined();
    expect(checkModel(route, { ...env, DEEPSEEK_BASE_URL: "http://127.0.0.1:1" })).toBeUndefined();
  });
});

describe("limits and defaults of a route", () => {
  const route = (provider: string, model: string, settings: ProvidersSettings = {}) =>
    createModels(providersFromEnv({}, settings)).route({ provider, model });

  test("are known for the models of the table and for no others", () => {
    expect(route("deepseek", "deepseek-chat")).toEqual({
      provider: "deepseek",
      model: "deepseek-chat",
      contextWindow: 131_072,
      defaults: { maxTokens: 8192 },
    });
    expect(route("anthropic", "claude-haiku-4-5-20251001")).toMatchObject({
      contextWindow: 200_000,
      defaults: { maxTokens: 32_000 },
    });
    expect(route("openai", "gpt-5")).toMatchObject({ contextWindow: 400_000, defaults: {} });
    expect(route("openai-compatible", "constructor")).toEqual({
      provider: "openai-compatible",
      model: "constructor",
      defaults: {},
    });
  });

  test("are overridden one by one", () => {
    const models = {
      "deepseek/deepseek-chat": { maxTokens: 1000 },
      "openai-compatible/mine/big": { contextWindow: 5, reasoningEffort: "low" },
    };
    expect(route("deepseek", "deepseek-chat", { models })).toMatchObject({
      contextWindow: 131_072,
      defaults: { maxTokens: 1000 },
    });
    expect(route("openai-compatible", "mine/big", { models })).toMatchObject({
      contextWindow: 5,
      defaults: { reasoningEffort: "low" },
    });
  });

  test("of a provider that does not exist are refused", () => {
    expect(() => providersFromEnv({}, { providers: { depseek: {} } })).toThrow(
      /providers: unknown provider "depseek", expected one of: deepseek,/,
    );
    expect(() => providersFromEnv({}, { models: { "gpt-5": {} } })).toThrow(
      /models: unknown provider "gpt-5"/,
    );
  });
});

describe("a model object of the AI SDK", () => {
  test("answers under a provider's name, with its own limits", async () => {
    const server = await startProtocolServer(eventStream(openaiWire.events({ text: "hello" })));
    try {
      const model = createOpenAICompatible({ name: "mine", baseURL: server.url, apiKey: key })(
        "m-1",
      );
      const provider = fromAiSdk("my", model, { contextWindow: 9, maxTokens: 7 });
      expect(await ask([provider], "my", "m-1")).toMatchObject({
        kind: "reply",
        content: [{ text: "hello" }],
      });
      expect(createModels([provider]).route({ provider: "my", model: "m-1" })).toMatchObject({
        contextWindow: 9,
        defaults: { maxTokens: 7 },
      });
      expect(await ask([provider], "my", "m-2")).toEqual({
        kind: "failure",
        failure: { code: "MODEL_NOT_FOUND", message: 'unknown model "m-2": expected one of: m-1' },
      });
      const config = { provider: "my", model: "m-1", reasoningEffort: "low" };
      const { signal } = new AbortController();
      await collectReply(provider.model("m-1").stream(modelRequest({ config }), signal), signal);
      expect(server.requests[1]?.body).toMatchObject({ reasoning_effort: "low" });
    } finally {
      await server.close();
    }
  });

  test("of the older interface answers as well", async () => {
    const parts: LanguageModelV2StreamPart[] = [
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "hi" },
      { type: "text-end", id: "1" },
      { type: "tool-call", toolCallId: "c1", toolName: "read", input: "{}" },
      {
        type: "finish",
        finishReason: "tool-calls",
        usage: {
          inputTokens: 3,
          outputTokens: 2,
          totalTokens: 5,
          cachedInputTokens: 1,
          reasoningTokens: 0,
        },
      },
    ];
    expect(await ask([fromAiSdk("old", older(parts))], "old", "m")).toEqual({
      kind: "reply",
      content: [
        { type: "text", text: "hi" },
        { type: "tool-call", callId: "c1", name: "read", arguments: "{}" },
      ],
      finish: "tool-calls",
      usage: { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1, reasoningTokens: 0 },
    });
  });

  test("of another interface, or a name instead of an object, is refused in words", async () => {
    for (const [model, words] of [
      [{ ...older([]), specificationVersion: "v9" }, /got one of version "v9"/],
      ["openai/gpt-5", /got string/],
    ] as const) {
      const provider = createAiSdkProvider({
        provider: "odd",
        languageModel: () => model as never,
      });
      expect(await ask([provider], "odd", "m")).toMatchObject({
        failure: { code: "INVALID_CONFIG", message: expect.stringMatching(words) as unknown },
      });
    }
  });

  test("that throws, rejects or ignores an abort ends in a failure, without the secrets it was given", async () => {
    const broken = { ...older([]), doStream: () => Promise.reject(new Error(`no ${key}\nat all`)) };
    expect(await ask([fromAiSdk("broken", broken, { secrets: [key] })], "broken", "m")).toEqual({
      kind: "failure",
      failure: { code: "MODEL_ERROR", message: "broken failed: no [key] at all" },
    });
    const deaf = { ...older([]), doStream: vi.fn(() => new Promise<never>(() => {})) };
    const abort = new AbortController();
    const { model } = createModels([fromAiSdk("deaf", deaf)]).find({
      provider: "deaf",
      model: "m",
    });
    const outcome = collectReply(model.stream(modelRequest(), abort.signal), abort.signal);
    await vi.waitFor(() => expect(deaf.doStream).toHaveBeenCalled(), { timeout: 10_000 });
    abort.abort();
    expect(await outcome).toMatchObject({ kind: "cancelled" });
  });

  test("keeps the signature of a call, and gives it back with the call", async () => {
    const signature = { google: { thoughtSignature: "s-1" } };
    const seen = vi.fn<(prompt: unknown) => void>();
    const parts: LanguageModelV2StreamPart[] = [
      {
        type: "tool-call",
        toolCallId: "c1",
        toolName: "read",
        input: "{}",
        providerMetadata: signature,
      },
      {
        type: "finish",
        finishReason: "tool-calls",
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      },
    ];
    const provider = fromAiSdk("signed", older(parts, seen));
    const outcome = await ask([provider], "signed", "m");
    const content = outcome.kind === "reply" ? outcome.content : [];
    const { signal } = new AbortController();
    const request = modelRequest({
      config: { provider: "signed", model: "m" },
      messages: [
        {
          id: "a",
          role: "assistant",
          content,
          source: { kind: "model", provider: "signed", model: "m" },
        },
      ],
    });
    await collectReply(provider.model("m").stream(request, signal), signal);
    expect(seen).toHaveBeenLastCalledWith([
      {
        role: "assistant",
        content: [
          {
            type: "tool-call",
            toolCallId: "c1",
            toolName: "read",
            input: {},
            providerOptions: signature,
          },
        ],
      },
    ]);
  });
});

function older(
  parts: readonly LanguageModelV2StreamPart[],
  seen: (prompt: unknown) => void = () => {},
): LanguageModelV2 {
  return {
    specificationVersion: "v2",
    provider: "older",
    modelId: "m",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not streamed")),
    doStream({ prompt }) {
      seen(prompt);
      return Promise.resolve({
        stream: new ReadableStream<LanguageModelV2StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      });
    },
  };
}
