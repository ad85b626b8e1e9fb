import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { FinishReason, ModelOutcome, ModelPart } from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";
import type { ContentPart } from "../../src/models/reply.js";

const stop: ModelPart = { type: "finish", reason: "stop" };

function text(value: string): ModelPart {
  return { type: "text", text: value };
}

function reasoning(value: string, replay?: unknown): ModelPart {
  return { type: "reasoning", text: value, ...(replay !== undefined && { replay }) };
}

function call(callId: string, args = "{}"): ModelPart {
  return { type: "tool-call", callId, name: "bash", arguments: args };
}

function finish(reason: FinishReason): ModelPart {
  return { type: "finish", reason };
}

async function* streamOf(
  ...parts: readonly ModelPart[]
): AsyncGenerator<ModelPart, void, undefined> {
  yield* parts;
}

function collect(...parts: readonly ModelPart[]): Promise<ModelOutcome> {
  return collectReply(streamOf(...parts), new AbortController().signal);
}

describe("collecting a reply", () => {
  test("joins deltas of one kind into one block", async () => {
    const usage = { inputTokens: 5, outputTokens: 7 };
    const parts = [
      reasoning("I "),
      reasoning("think"),
      text("so "),
      text("it is"),
      call("a", '{"x":1}'),
      text("."),
      text("!"),
    ];
    expect(await collect(...parts, { type: "finish", reason: "tool-calls", usage })).toEqual({
      kind: "reply",
      content: [
        { type: "reasoning", text: "I think" },
        { type: "text", text: "so it is" },
        { type: "tool-call", callId: "a", name: "bash", arguments: '{"x":1}' },
        { type: "text", text: ".!" },
      ],
      finish: "tool-calls",
      usage,
    });
  });

  test("keeps provider state with its reasoning block, which it ends", async () => {
    const parts = [
      reasoning("one"),
      reasoning("", { sig: 1 }),
      reasoning("two"),
      reasoning("", { sig: 2 }),
      text("so"),
      stop,
    ];
    expect(await collect(...parts)).toMatchObject({
      content: [
        { type: "reasoning", text: "one", replay: { sig: 1 } },
        { type: "reasoning", text: "two", replay: { sig: 2 } },
        { type: "text", text: "so" },
      ],
    });
  });

  test("makes repeated and empty call ids unique within the message", async () => {
    const outcome = await collect(
      call("a"),
      call("a"),
      call(""),
      call("a-2"),
      call("a"),
      call(""),
      finish("tool-calls"),
    );
    expect(
      outcome.kind === "reply" && outcome.content.map((block) => "callId" in block && block.callId),
    ).toEqual(["a", "a-2", "call", "a-2-2", "a-3", "call-2"]);
  });

  test("call ids are unique whatever the model gives", async () => {
    const ids = fc.constantFrom("", "a", "a-2", "a-3", "call", "call-2", "a-2-2");
    await fc.assert(
      fc.asyncProperty(fc.array(ids, { minLength: 1, maxLength: 12 }), async (given) => {
        const outcome = await collect(...given.map((id) => call(id)), finish("tool-calls"));
        const got =
          outcome.kind === "reply"
            ? outcome.content.map((block) => "callId" in block && block.callId)
            : [];
        expect(new Set(got).size).toBe(given.length);
      }),
    );
  });

  test("tells each part that counts, with its final call id", async () => {
    const told: ContentPart[] = [];
    const parts = streamOf(
      text(""),
      text("a"),
      call("x"),
      call("x"),
      reasoning(""),
      finish("tool-calls"),
    );
    await collectReply(parts, new AbortController().signal, (part) => told.push(part));
    expect(told).toEqual([text("a"), call("x"), call("x-2")]);
  });

  test("drops all calls of a reply cut by max-tokens, also when nothing else is left", async () => {
    expect(await collect(text("so"), call("a"), call("b", '{"x'), finish("max-tokens"))).toEqual({
      kind: "reply",
      content: [{ type: "text", text: "so" }],
      finish: "max-tokens",
    });
    expect(await collect(call("a"), finish("max-tokens"))).toEqual({
      kind: "reply",
      content: [],
      finish: "max-tokens",
    });
  });

  test.each(["stop", "tool-calls"] as const)(
    "a %s finish without content is EMPTY_RESPONSE",
    async (reason) => {
      const failure = { code: "EMPTY_RESPONSE", message: expect.stringContaining(reason) };
      expect(await collect(text(""), reasoning(""), finish(reason))).toEqual({
        kind: "failure",
        failure,
      });
    },
  );

  test("a stream without a last part is a TRANSPORT failure", async () => {
    expect(await collect(text("so"))).toMatchObject({
      kind: "failure",
      failure: { code: "TRANSPORT" },
    });
    expect(await collect()).toMatchObject({ kind: "failure", failure: { code: "TRANSPORT" } });
  });

  test("gives a failure as it came, and what a stream throws as one", async () => {
    const failure = {
      code: "RATE_LIMIT",
      message: "slow down",
      status: 429,
      retryAfterMs: 100,
    } as const;
    expect(await collect(text("so"), { type: "failure", failure })).toEqual({
      kind: "failure",
      failure,
    });
    const thrown = async (error: unknown): Promise<ModelOutcome> =>
      collectReply(
        // oxlint-disable-next-line require-yield -- it throws first
        (async function* () {
          throw error;
        })(),
        new AbortController().signal,
      );
    expect(await thrown(new Error("broken\n  pipe"))).toEqual({
      kind: "failure",
      failure: { code: "MODEL_ERROR", message: "broken pipe" },
    });
    expect(await thrown(new LonghaulError("AUTH", "no key"))).toMatchObject({
      failure: { code: "AUTH" },
    });
  });

  test("reads nothing after the last part and ends the stream", async () => {
    const ended = vi.fn<() => void>();
    const stream = (async function* (): AsyncGenerator<ModelPart, void, undefined> {
      try {
        yield text("so");
        yield stop;
        yield text("more");
      } finally {
        ended();
      }
    })();
    expect(await collectReply(stream, new AbortController().signal)).toMatchObject({
      content: [text("so")],
    });
    await vi.waitFor(() => expect(ended).toHaveBeenCalledTimes(1), { timeout: 10_000 });
  });

  describe("that is aborted", () => {
    test.each<readonly [string, readonly ModelPart[]]>([
      ["ends", []],
      ["fails", [{ type: "failure", failure: { code: "ABORTED", message: "aborted" } }]],
    ])("keeps text and reasoning alone when the stream %s", async (_, rest) => {
      const abort = new AbortController();
      const stream = streamOf(reasoning("I think"), text("so"), call("a"), text(" it"), ...rest);
      const outcome = await collectReply(
        stream,
        abort.signal,
        (part) => part.type === "tool-call" && abort.abort(),
      );
      expect(outcome).toEqual({
        kind: "cancelled",
        content: [
          { type: "reasoning", text: "I think" },
          { type: "text", text: "so" },
          { type: "text", text: " it" },
        ],
      });
    });

    test("is cancelled when the stream throws because of it", async () => {
      const abort = new AbortController();
      const stream = (async function* (): AsyncGenerator<ModelPart, void, undefined> {
        yield text("so");
        abort.abort();
        abort.signal.throwIfAborted();
      })();
      expect(await collectReply(stream, abort.signal)).toEqual({
        kind: "cancelled",
        content: [text("so")],
      });
    });

    test("does not wait for a stream that never ends", async () => {
      const abort = new AbortController();
      const stream = (async function* (): AsyncGenerator<ModelPart, void, undefined> {
        yield text("so");
        await new Promise(() => {});
      })();
      const outcome = collectReply(stream, abort.signal, () => abort.abort());
      expect(await outcome).toEqual({ kind: "cancelled", content: [text("so")] });
      const before = new AbortController();
      before.abort();
      const silent: AsyncIterable<ModelPart> = {
        [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
      };
      expect(await collectReply(silent, before.signal)).toEqual({ kind: "cancelled", content: [] });
    });

    test("does not follow a stream that goes on", async () => {
      const abort = new AbortController();
      const ended = vi.fn<() => void>();
      const stream = (async function* (): AsyncGenerator<ModelPart, void, undefined> {
        try {
          while (true) {
            yield text("so");
            await new Promise(setImmediate);
          }
        } finally {
          ended();
        }
      })();
      const outcome = await collectReply(stream, abort.signal, () => abort.abort());
      expect(outcome.kind).toBe("cancelled");
      await vi.waitFor(() => expect(ended).toHaveBeenCalledTimes(1), { timeout: 10_000 });
    });

    test("is a reply all the same when the finish had come", async () => {
      const abort = new AbortController();
      const stream = streamOf(text("so"), stop);
      const outcome = await collectReply(stream, abort.signal, () => abort.abort());
      expect(outcome).toMatchObject({ kind: "reply", content: [text("so")] });
    });
  });

  test("leaves no listener on the signal", async () => {
    const { signal } = new AbortController();
    await collectReply(streamOf(text("so"), stop), signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
