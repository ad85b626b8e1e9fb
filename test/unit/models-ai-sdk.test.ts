import { describe, expect, test, vi } from "vitest";
import { collectReply } from "../../src/models/collect.js";
import { providersFromEnv } from "../../src/models/providers.js";
import { createModels } from "../../src/models/registry.js";
import { describeModel, type ModelCase } from "../support/model-conformance.js";
import { modelRequest } from "../support/model-request.js";
import { eventStream, startProtocolServer, type Answer } from "../support/protocol-server.js";
import { envOf, settingsOf, wires, type Wire } from "../support/protocol-wires.js";
import { openLine, type Line } from "../support/provider-line.js";
import { eventually } from "../support/until.js";

vi.setConfig({ testTimeout: 30_000 });

const open = (wire: Wire, answer: Answer, firstTokenMs = 60_000, idleMs = 60_000): Promise<Line> =>
  openLine(wire, answer, settingsOf(wire, firstTokenMs, idleMs));

for (const wire of wires) {
  describeModel(`${wire.provider} over HTTP`, async (wanted) => {
    const server = await startProtocolServer(answerTo(wire, wanted));
    const config = { provider: wire.provider, model: wire.model };
    const { model } = createModels(providersFromEnv(envOf(wire, server.url))).find(config);
    return { model, request: modelRequest({ config }), close: () => server.close() };
  });

  describe(`a reply of ${wire.provider}`, () => {
    const whole = {
      reasoning: "Zwei Dateien 😀 …",
      text: "日本語 ünïcödé 😀\nline",
      calls: [
        { callId: "call-a", name: "read", arguments: '{"path":"a 😀.txt","n": 1.50}' },
        { callId: "call-b", name: "bash", arguments: '{"command":"echo \\"ü\\""}' },
      ],
    };
    const content = [
      { type: "reasoning", text: whole.reasoning },
      { type: "text", text: whole.text },
      ...whole.calls.map((call) => ({ type: "tool-call", ...call })),
    ];

    test.each([1, 3, 50])(
      "is whole when its bytes come by %i, also in the middle of a character",
      async (chunk) => {
        const { ask } = await open(wire, eventStream(wire.events(whole), { chunk }));
        expect(await ask()).toMatchObject({ kind: "reply", finish: "tool-calls", content });
      },
    );

    test.each([
      ["CRLF line ends", (text: string) => text.replaceAll("\n", "\r\n")],
      [
        "keep-alive comments",
        (text: string) => `: keep-alive\n\n${text.replaceAll("\n\n", "\n\n: keep-alive\n\n")}`,
      ],
    ])("is the same with %s", async (_, change) => {
      const { ask } = await open(wire, eventStream(wire.events(whole).map(change), { chunk: 64 }));
      expect(await ask()).toMatchObject({ kind: "reply", finish: "tool-calls", content });
    });

    test("keeps arguments that are no JSON exactly as they came", async () => {
      const broken = ['{"path": "a', '{"path": "a"}}}', "{}garbage", '{"a":1.0, "a":2}'];
      const calls = broken.map((text, index) => ({
        callId: `c${index}`,
        name: "read",
        arguments: text,
      }));
      const { ask } = await open(wire, eventStream(wire.events({ calls, delta: 4 })));
      expect(await ask()).toMatchObject({
        kind: "reply",
        content: calls.map((call) => ({ type: "tool-call", ...call })),
      });
    });

    test("of a megabyte comes whole", async () => {
      const text = "0123456789abcdé\n".repeat(65_536);
      const { ask } = await open(
        wire,
        eventStream(wire.events({ text, delta: 500 }), { chunk: 16_384 }),
      );
      const outcome = await ask();
      expect(outcome.kind).toBe("reply");
      const [block] = outcome.kind === "reply" ? outcome.content : [];
      expect(block?.type === "text" && block.text === text).toBe(true);
    });

    test("that reaches its token limit finishes max-tokens, without its calls", async () => {
      const reply = { text: "so far", calls: whole.calls, finish: wire.words.length };
      const { ask } = await open(wire, eventStream(wire.events(reply)));
      expect(await ask()).toMatchObject({
        kind: "reply",
        finish: "max-tokens",
        content: [{ type: "text", text: "so far" }],
      });
    });

    test("with calls finishes tool-calls, also where the server says it stopped", async () => {
      const { ask } = await open(
        wire,
        eventStream(wire.events({ calls: whole.calls, finish: wire.words.stop })),
      );
      expect(await ask()).toMatchObject({ kind: "reply", finish: "tool-calls" });
    });

    test("that a content filter ends finishes content-filter", async () => {
      const { ask } = await open(
        wire,
        eventStream(wire.events({ text: "I", finish: wire.words.filter })),
      );
      expect(await ask()).toMatchObject({ kind: "reply", finish: "content-filter" });
    });

    test("with a finish reason that is not known is a failure that names it", async () => {
      const { ask } = await open(
        wire,
        eventStream(wire.events({ text: "I", finish: "moon_phase" })),
      );
      expect(await ask()).toMatchObject({
        kind: "failure",
        failure: { code: "MODEL_ERROR", message: expect.stringContaining("moon_phase") as unknown },
      });
    });

    test("without text or calls is EMPTY_RESPONSE, also when it reasoned", async () => {
      for (const reply of [{}, { reasoning: "Hm." }]) {
        const { ask } = await open(wire, eventStream(wire.events(reply)));
        expect(await ask()).toMatchObject({ kind: "failure", failure: { code: "EMPTY_RESPONSE" } });
      }
    });

    test("cut in half is TRANSPORT, whether the connection breaks or is closed in good order", async () => {
      for (const ending of ["cut", "end"] as const) {
        const half = wire.events({ text: "It is half", finish: null });
        const { ask } = await open(wire, eventStream(half, { ending }));
        const outcome = await ask();
        expect(outcome).toMatchObject({ kind: "failure", failure: { code: "TRANSPORT" } });
        expect(outcome).toMatchObject({
          failure: { message: expect.stringMatching(/broke off|ended before/) as unknown },
        });
      }
    });

    test("that stalls is TIMEOUT, and the connection is closed", async () => {
      const half = wire.events({ text: "It is half", finish: null });
      const { ask, server } = await open(wire, eventStream(half, { ending: "stall" }), 60_000, 200);
      expect(await ask()).toEqual({
        kind: "failure",
        failure: {
          code: "TIMEOUT",
          message: `${wire.provider} stopped in the middle of its reply and sent nothing for 0.2 s`,
        },
      });
      await eventually(() => expect(server.requests[0]?.closed()).toBe(true));
    });

    test("that never begins is TIMEOUT, before and after the headers", async () => {
      const silent: Answer = () => {};
      for (const answer of [silent, eventStream([], { ending: "stall" })]) {
        const { ask, server } = await open(wire, answer, 700);
        expect(await ask()).toMatchObject({
          failure: {
            code: "TIMEOUT",
            message: expect.stringContaining("had not begun") as unknown,
          },
        });
        await eventually(() => expect(server.requests[0]?.closed()).toBe(true));
      }
    });

    test("may begin late: as long as the first token may take, longer with signs of life", async () => {
      const events = wire.events({ text: "At last." });
      const late = await open(wire, eventStream(events, { delayMs: 1300 }), 60_000, 1000);
      const alive = await open(
        wire,
        eventStream(events, { delayMs: 1500, keepAlive: ": wait\n\n" }),
        1000,
      );
      for (const outcome of await Promise.all([late.ask(), alive.ask()]))
        expect(outcome).toMatchObject({ kind: "reply", content: [{ text: "At last." }] });
    });

    test.each(["before its first byte", "in the middle"])(
      "that is aborted %s closes the connection",
      async (when) => {
        const half = wire.events({ text: "It is half", finish: null });
        const answer: Answer =
          when === "in the middle" ? eventStream(half, { ending: "stall" }) : () => {};
        const { model, request, server } = await open(wire, answer);
        const abort = new AbortController();
        const outcome = collectReply(model.stream(request, abort.signal), abort.signal, () =>
          abort.abort(),
        );
        await eventually(() => expect(server.requests).toHaveLength(1));
        if (when !== "in the middle") abort.abort();
        expect(await outcome).toMatchObject({ kind: "cancelled" });
        await eventually(() => expect(server.requests[0]?.closed()).toBe(true));
      },
    );

    test("that is aborted while nobody reads on closes the connection all the same", async () => {
      const half = wire.events({ text: "It is half", finish: null });
      const { model, request, server } = await open(wire, eventStream(half, { ending: "stall" }));
      const abort = new AbortController();
      const parts = model.stream(request, abort.signal)[Symbol.asyncIterator]();
      expect(await parts.next()).toMatchObject({ value: { type: "text" } });
      abort.abort();
      await eventually(() => expect(server.requests[0]?.closed()).toBe(true));
      await parts.return?.();
    });

    test("that is left in the middle closes the connection", async () => {
      const half = wire.events({ text: "It is half", finish: null });
      const { model, request, server } = await open(wire, eventStream(half, { ending: "stall" }));
      for await (const part of model.stream(request, new AbortController().signal))
        if (part.type === "text") break;
      await eventually(() => expect(server.requests[0]?.closed()).toBe(true));
    });

    test("is asked for once: a failed request is not repeated here", async () => {
      const { ask, server } = await open(wire, (response) => void response.writeHead(500).end());
      expect(await ask()).toMatchObject({ failure: { code: "SERVER", status: 500 } });
      expect(server.requests).toHaveLength(1);
      expect(server.requests[0]?.path).toBe(wire.path);
    });
  });
}

function answerTo(wire: Wire, wanted: ModelCase): Answer {
  switch (wanted.kind) {
    case "reply": {
      const { reasoning, text, calls, usage } = wanted;
      return eventStream(wire.events({ reasoning, text, calls, usage }), { chunk: 40 });
    }
    case "stalling":
      return eventStream(wire.events({ text: wanted.text, finish: null }), { ending: "stall" });
    case "failing": {
      const { message, retryAfterMs = 0, status } = wanted.failure;
      const said = `${message}; please try again in ${retryAfterMs / 1000}s`;
      return eventStream([
        ...wire.events({ text: wanted.text, finish: null }),
        wire.errorEvent("rate_limit_error", said, status),
      ]);
    }
  }
}
