import { describe, expect, test } from "vitest";
import type { AssistantBlock, AssistantMessage } from "../../src/contracts/content.js";
import type { ModelRequest } from "../../src/contracts/model.js";
import { modelRequest, toolResult, userMessage } from "../support/model-request.js";
import { eventStream } from "../support/protocol-server.js";
import {
  anthropicWire,
  deepseekWire,
  key,
  openaiWire,
  wires,
  type Wire,
} from "../support/protocol-wires.js";
import { openLine } from "../support/provider-line.js";

const schema = {
  type: "object",
  properties: { path: { type: "string" }, arguments: { const: "{}" } },
  required: ["path"],
  additionalProperties: false,
  $defs: { odd: { enum: [1.5, null, "ü"] } },
};
const tools = [{ name: "read", description: "Reads a file.", parameters: schema }];

function assistant(
  wire: Wire,
  content: readonly AssistantBlock[],
  provider = wire.provider,
): AssistantMessage {
  return {
    id: "a",
    role: "assistant",
    content,
    source: { kind: "model", provider, model: wire.model },
  };
}

function call(callId: string, args: string): AssistantBlock {
  return { type: "tool-call", callId, name: "read", arguments: args };
}

/** What a server of this wire is sent for a request. */
async function sent(wire: Wire, changes: Partial<ModelRequest>): Promise<Record<string, unknown>> {
  const { ask, server, request } = await openLine(wire, eventStream(wire.events({ text: "ok" })));
  const config = { ...request.config, ...changes.config };
  expect(await ask({ ...changes, config })).toMatchObject({ kind: "reply" });
  const [received] = server.requests;
  if (received === undefined) throw new Error("nothing was sent");
  return received.body;
}

const argumentsSent = (body: Record<string, unknown>): unknown[] =>
  (body["messages"] as { tool_calls?: { function: { arguments: string } }[] }[])
    .flatMap((message) => message.tool_calls ?? [])
    .map((one) => one.function.arguments);

describe.each([openaiWire, deepseekWire])("a request to $provider", (wire) => {
  test("carries system, texts, calls, results, tools and sampling as they are", async () => {
    const body = await sent(wire, {
      system: "Be brief.",
      tools,
      config: { provider: wire.provider, model: wire.model, maxTokens: 99, stop: ["END"] },
      messages: [
        userMessage("hello"),
        assistant(wire, [
          { type: "text", text: "I look." },
          call("c1", '{"path": "a"}'),
          call("c2", "{}"),
        ]),
        toolResult("c1", "text of a"),
        toolResult("c2", "no path", true),
        {
          ...userMessage("first"),
          content: [
            { type: "text", text: "first" },
            { type: "text", text: " second" },
          ],
        },
      ],
    });
    const { messages, ...rest } = body;
    expect(rest).toEqual({
      model: wire.model,
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 99,
      stop: ["END"],
      tools: [
        {
          type: "function",
          function: { name: "read", description: "Reads a file.", parameters: schema },
        },
      ],
    });
    expect(messages).toMatchObject([
      { role: "system", content: "Be brief." },
      { role: "user", content: "hello" },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "read", arguments: '{"path": "a"}' } },
          { id: "c2", type: "function", function: { name: "read", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "text of a" },
      { role: "tool", tool_call_id: "c2", content: "no path" },
      { role: "user" },
    ]);
  });

  test("sends arguments back byte by byte, those that are no JSON as a JSON string, none as {}", async () => {
    const raw = [
      '{"a" : 1.0,\n"b":12345678901234567890}',
      '{"a":1,"a":2}',
      '{"path": "a',
      "",
      "[1]",
    ];
    const body = await sent(wire, {
      messages: [
        userMessage("x"),
        assistant(
          wire,
          raw.map((text, index) => call(`c${index}`, text)),
        ),
      ],
    });
    expect(argumentsSent(body)).toEqual([raw[0], raw[1], JSON.stringify(raw[2]), "{}", raw[4]]);
  });

  test("sends reasoning back to the provider it came from and to no other", async () => {
    const reasoned = (provider: string) =>
      assistant(wire, [{ type: "reasoning", text: "Hm." }, call("c1", "{}")], provider);
    const messages = (provider: string) => [
      userMessage("x"),
      reasoned(provider),
      toolResult("c1", "y"),
    ];
    const own = await sent(wire, { messages: messages(wire.provider) });
    expect(own["messages"]).toMatchObject([
      {},
      { role: "assistant", reasoning_content: "Hm." },
      {},
    ]);
    const other = await sent(wire, { messages: messages("elsewhere") });
    expect(JSON.stringify(other)).not.toContain("Hm.");
  });

  test("sends the key as a bearer token and nowhere else", async () => {
    const { ask, server } = await openLine(wire, eventStream(wire.events({ text: "ok" })));
    await ask();
    const [received] = server.requests;
    expect(received?.headers.authorization).toBe(`Bearer ${key}`);
    expect(received?.text).not.toContain(key);
  });
});

describe("a request to anthropic", () => {
  const wire = anthropicWire;

  test("carries system, texts, calls, results, tools and sampling as they are", async () => {
    const body = await sent(wire, {
      system: "Be brief.",
      tools,
      config: {
        provider: "anthropic",
        model: wire.model,
        maxTokens: 99,
        stop: ["END"],
        temperature: 0.25,
      },
      messages: [
        userMessage("hello"),
        assistant(wire, [
          { type: "text", text: "I look." },
          { type: "text", text: " \n" },
          call("c1", '{"path": "a"}'),
        ]),
        toolResult("c1", "no such file", true),
        userMessage("and now?"),
      ],
    });
    expect(body).toEqual({
      model: wire.model,
      max_tokens: 99,
      temperature: 0.25,
      stop_sequences: ["END"],
      stream: true,
      cache_control: { type: "ephemeral" },
      system: [{ type: "text", text: "Be brief." }],
      tools: [{ name: "read", description: "Reads a file.", input_schema: schema }],
      messages: [
        { role: "user", content: [{ type: "text", text: "hello" }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            { type: "tool_use", id: "c1", name: "read", input: { path: "a" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: "no such file", is_error: true },
            { type: "text", text: "and now?" },
          ],
        },
      ],
    });
  });

  test("sends thinking back with its signature, and what was redacted, before the call they belong to", async () => {
    const events = wire.events({
      reasoning: "Hm, hm.",
      calls: [{ callId: "c1", name: "read", arguments: "{}" }],
    });
    const redacted = eventStream([
      ...events.slice(0, 2),
      ...thinkingEvents({ type: "redacted_thinking", data: "cipher" }, 7),
      ...events.slice(2),
    ]);
    const { ask, server } = await openLine(wire, redacted);
    const outcome = await ask();
    const content = outcome.kind === "reply" ? outcome.content : [];
    expect(content.map(({ type }) => type)).toEqual(["reasoning", "reasoning", "tool-call"]);
    const logged = JSON.parse(JSON.stringify(content)) as AssistantBlock[];
    await ask({ messages: [userMessage("x"), assistant(wire, logged), toolResult("c1", "y")] });
    expect(server.requests[1]?.body["messages"]).toMatchObject([
      {},
      {
        role: "assistant",
        content: [
          { type: "redacted_thinking", data: "cipher" },
          { type: "thinking", thinking: "Hm, hm.", signature: "signed:7" },
          { type: "tool_use", id: "c1" },
        ],
      },
      {},
    ]);
  });

  test("sends arguments that are no JSON object under a key that says so, and ids in letters it takes, once each", async () => {
    const body = await sent(wire, {
      messages: [
        userMessage("x"),
        assistant(wire, [
          call("functions.read:0", '{"path": "a'),
          call("c2", "[1]"),
          call("c3", ""),
        ]),
        toolResult("functions.read:0", "bad"),
        toolResult("c2", "bad"),
        toolResult("c3", "bad"),
        assistant(wire, [call("functions.read:0", "{}")]),
        toolResult("functions.read:0", "good"),
      ],
    });
    const blocks = (body["messages"] as { content: Record<string, unknown>[] }[]).flatMap(
      ({ content }) => content,
    );
    expect(blocks.slice(1)).toMatchObject([
      { id: "functions_read_0", input: { unparsed_arguments: '{"path": "a' } },
      { id: "c2", input: { unparsed_arguments: "[1]" } },
      { id: "c3", input: {} },
      { tool_use_id: "functions_read_0", content: "bad" },
      { tool_use_id: "c2" },
      { tool_use_id: "c3" },
      { id: "functions_read_0-2", input: {} },
      { tool_use_id: "functions_read_0-2", content: "good" },
    ]);
  });

  test("sends the key in its own header and nowhere else", async () => {
    const { ask, server } = await openLine(wire, eventStream(wire.events({ text: "ok" })));
    await ask();
    const [received] = server.requests;
    expect(received?.headers["x-api-key"]).toBe(key);
    expect(received?.text).not.toContain(key);
  });
});

describe("an effort", () => {
  test.each<[Wire, string, string, object]>([
    [openaiWire, "any-model", "high", { reasoning_effort: "high" }],
    [
      deepseekWire,
      "deepseek-v4-pro",
      "max",
      { thinking: { type: "enabled" }, reasoning_effort: "max" },
    ],
    [deepseekWire, "deepseek-v4-pro", "none", { thinking: { type: "disabled" } }],
    [
      anthropicWire,
      "claude-opus-4-6",
      "low",
      { thinking: { type: "adaptive" }, output_config: { effort: "low" } },
    ],
    [
      anthropicWire,
      "claude-sonnet-4-5",
      "low",
      { thinking: { type: "enabled", budget_tokens: 4096 }, max_tokens: 5096 },
    ],
    [anthropicWire, "claude-opus-4-6", "off", { thinking: { type: "disabled" } }],
  ])(
    "is sent to $provider as it knows it: %s %s",
    async (wire, model, reasoningEffort, expected) => {
      const config = { provider: wire.provider, model, reasoningEffort, maxTokens: 1000 };
      expect(await sent(wire, { config })).toMatchObject(expected);
    },
  );

  test("that a provider does not know is BAD_REQUEST, and nothing is sent", async () => {
    for (const wire of [deepseekWire, anthropicWire]) {
      const { ask, server, request } = await openLine(wire, eventStream([]));
      const config = { ...request.config, reasoningEffort: "tremendous" };
      expect(await ask({ config })).toMatchObject({ failure: { code: "BAD_REQUEST" } });
      expect(server.requests).toEqual([]);
    }
  });
});

test("the same request is sent the same each time", async () => {
  for (const wire of wires) {
    const { ask, server } = await openLine(wire, eventStream(wire.events({ text: "ok" })));
    const request = modelRequest({ tools, config: { provider: wire.provider, model: wire.model } });
    await ask(request);
    await ask(request);
    expect(server.requests[1]?.text).toBe(server.requests[0]?.text);
  }
});

function thinkingEvents(block: object, index: number): string[] {
  return [
    { type: "content_block_start", index, content_block: block },
    { type: "content_block_stop", index },
  ].map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
}
