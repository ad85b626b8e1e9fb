import { LLMock } from "@copilotkit/aimock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ModelOutcome, ModelRequest } from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";
import { providersFromEnv } from "../../src/models/providers.js";
import { createModels } from "../../src/models/registry.js";
import { modelRequest, toolResult, userMessage } from "../support/model-request.js";

/** A server that is not ours, so that a mistake in our idea of a protocol shows. */
let mock: LLMock;

beforeEach(async () => {
  mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent", chunkSize: 5 });
  await mock.start();
});

afterEach(async () => {
  await mock.stop();
});

describe.each([
  {
    provider: "openai-compatible",
    model: "gpt-4o",
    env: () => ({ LONGHAUL_API_KEY: "k-foreign", LONGHAUL_BASE_URL: `${mock.url}/v1` }),
  },
  {
    provider: "openai",
    model: "gpt-4o",
    env: () => ({ OPENAI_API_KEY: "k-foreign", OPENAI_BASE_URL: `${mock.url}/v1` }),
  },
  {
    provider: "deepseek",
    model: "deepseek-chat",
    env: () => ({ DEEPSEEK_API_KEY: "k-foreign", DEEPSEEK_BASE_URL: `${mock.url}/v1` }),
  },
  {
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    env: () => ({ ANTHROPIC_API_KEY: "k-foreign", ANTHROPIC_BASE_URL: mock.url }),
  },
])("$provider against a server of somebody else", ({ provider, model, env }) => {
  async function ask(changes: Partial<ModelRequest>): Promise<ModelOutcome> {
    const config = { provider, model, maxTokens: 100 };
    const { signal } = new AbortController();
    const found = createModels(providersFromEnv(env())).find(config);
    return collectReply(found.model.stream(modelRequest({ config, ...changes }), signal), signal);
  }

  test("reads text, reasoning and calls, and is understood when it sends them back", async () => {
    const args = '{"path":"a b.txt"}';
    mock.on(
      { userMessage: "look", hasToolResult: false },
      {
        content: "I look 日本語 😀.",
        reasoning: "Which file?",
        toolCalls: [
          { name: "read", arguments: args },
          { name: "read", arguments: '{"path":"c"}' },
        ],
      },
    );
    mock.on({ hasToolResult: true }, { content: "It says: fine." });
    const tools = [
      {
        name: "read",
        description: "Reads.",
        parameters: { type: "object", properties: { path: { type: "string" } } },
      },
    ];
    const messages = [userMessage("look")];
    const first = await ask({ tools, messages });
    expect(first).toMatchObject({ kind: "reply", finish: "tool-calls" });
    const content = first.kind === "reply" ? first.content : [];
    expect(content).toMatchObject([
      { type: "reasoning", text: "Which file?" },
      { type: "text", text: "I look 日本語 😀." },
      { type: "tool-call", name: "read", arguments: args },
      { type: "tool-call", name: "read", arguments: '{"path":"c"}' },
    ]);
    const results = content.flatMap((block) =>
      block.type === "tool-call" ? [toolResult(block.callId, "fine")] : [],
    );
    const reply = {
      id: "a",
      role: "assistant" as const,
      content,
      source: { kind: "model", provider, model },
    };
    expect(
      await ask({ tools, system: "Be brief.", messages: [...messages, reply, ...results] }),
    ).toMatchObject({
      kind: "reply",
      finish: "stop",
      content: [{ type: "text", text: "It says: fine." }],
    });
    // Its journal holds requests in the terms of OpenAI, whichever protocol they came in.
    const journal = mock.getRequests().at(-1)?.body as {
      readonly messages: readonly { readonly role: string }[];
    };
    expect(journal.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "tool",
    ]);
  });

  test.each([
    [401, "authentication_error", "AUTH"],
    [404, "not_found_error", "MODEL_NOT_FOUND"],
    [429, "rate_limit_error", "RATE_LIMIT"],
    [500, "api_error", "SERVER"],
  ])("reads its HTTP %i", async (status, type, code) => {
    mock.nextRequestError(status, { message: "Not now.", type });
    const outcome = await ask({});
    expect(outcome).toMatchObject({ kind: "failure", failure: { code, status } });
    expect(outcome.kind === "failure" && outcome.failure.message).toContain("Not now.");
  });

  test("sees its stream cut in half as TRANSPORT", async () => {
    mock.on(
      { userMessage: "hello" },
      { content: "A long answer that is cut somewhere." },
      { truncateAfterChunks: 3 },
    );
    expect(await ask({})).toMatchObject({ kind: "failure", failure: { code: "TRANSPORT" } });
  });
});
