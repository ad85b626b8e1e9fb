import { getEventListeners } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import type {
  FinishReason,
  Model,
  ModelFailure,
  ModelPart,
  ModelRequest,
  Usage,
} from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";

/** What the model under test is to answer; each provider brings it about in its own way. */
export type ModelCase =
  | {
      readonly kind: "reply";
      readonly reasoning: string;
      readonly text: string;
      readonly calls: readonly {
        readonly callId: string;
        readonly name: string;
        readonly arguments: string;
      }[];
      readonly finish: FinishReason;
      readonly usage: Usage;
    }
  /** `text` at once, then nothing for at least a minute. */
  | { readonly kind: "stalling"; readonly text: string }
  /** `text`, then this failure. */
  | { readonly kind: "failing"; readonly text: string; readonly failure: ModelFailure };

export interface ModelFixture {
  readonly model: Model;
  readonly request: ModelRequest;
  close(): Promise<void>;
}

/** What every model must do (src/contracts/model.ts). */
export function describeModel(
  name: string,
  open: (wanted: ModelCase) => Promise<ModelFixture>,
): void {
  describe(`${name}, as a model`, () => {
    const fixtures: ModelFixture[] = [];
    const use = async (wanted: ModelCase): Promise<ModelFixture> => {
      const fixture = await open(wanted);
      fixtures.push(fixture);
      return fixture;
    };
    afterEach(async () => {
      await Promise.all(fixtures.splice(0).map((fixture) => fixture.close()));
    });

    test("gives reasoning, text and calls in order, then one finish", async () => {
      const { model, request } = await use(fullReply);
      const parts = await partsOf(model, request, new AbortController().signal);
      const kinds = parts
        .map(({ type }) => type)
        .filter((type, index, all) => type !== all[index - 1]);
      expect(kinds).toEqual(["reasoning", "text", "tool-call", "finish"]);
      expect(parts.filter(({ type }) => type === "tool-call")).toEqual(
        fullReply.calls.map((call) => ({ type: "tool-call", ...call })),
      );
      expect(parts.at(-1)).toEqual({
        type: "finish",
        reason: "tool-calls",
        usage: fullReply.usage,
      });
    });

    test("gives a reply that folds into its content, whatever its deltas are", async () => {
      const { model, request } = await use(fullReply);
      const { signal } = new AbortController();
      const outcome = await collectReply(model.stream(request, signal), signal);
      expect(outcome).toMatchObject({
        kind: "reply",
        finish: "tool-calls",
        usage: fullReply.usage,
      });
      expect("content" in outcome && outcome.content).toMatchObject([
        { type: "reasoning", text: fullReply.reasoning },
        { type: "text", text: fullReply.text },
        ...fullReply.calls.map((call) => ({ type: "tool-call", ...call })),
      ]);
    });

    test("answers a repeated request", async () => {
      const { model, request } = await use(fullReply);
      const { signal } = new AbortController();
      const first = await collectReply(model.stream(request, signal), signal);
      expect(await collectReply(model.stream(request, signal), signal)).toEqual(first);
    });

    test("gives a failure as its last part, after what had come, and does not throw", async () => {
      const failure: ModelFailure = {
        code: "RATE_LIMIT",
        message: "slow down",
        status: 429,
        retryAfterMs: 1500,
      };
      const { model, request } = await use({ kind: "failing", text: "Let me", failure });
      const parts = await partsOf(model, request, new AbortController().signal);
      const last = parts.pop();
      expect(parts.map((part) => (part.type === "text" ? part.text : part.type)).join("")).toBe(
        "Let me",
      );
      expect(last).toMatchObject({
        type: "failure",
        failure: { code: "RATE_LIMIT", status: 429, retryAfterMs: 1500 },
      });
    });

    test("stops when it is aborted in the middle, with one failure ABORTED", async () => {
      const { model, request } = await use({ kind: "stalling", text: "Let me" });
      const abort = new AbortController();
      const parts: ModelPart[] = [];
      for await (const part of model.stream(request, abort.signal)) {
        parts.push(part);
        if (textOf(parts) === "Let me") abort.abort();
      }
      const last = parts.pop();
      expect(last).toMatchObject({ type: "failure", failure: { code: "ABORTED" } });
      expect(parts.every(({ type }) => type === "text")).toBe(true);
    });

    test("an abort leaves the text that had come, and the outcome is cancelled", async () => {
      const { model, request } = await use({ kind: "stalling", text: "Let me" });
      const abort = new AbortController();
      const outcome = await collectReply(model.stream(request, abort.signal), abort.signal, () =>
        abort.abort(),
      );
      expect(outcome.kind).toBe("cancelled");
      const [block] = outcome.kind === "cancelled" ? outcome.content : [];
      expect(block?.type === "text" && "Let me".startsWith(block.text)).toBe(true);
    });

    test("asked with an aborted signal gives ABORTED alone", async () => {
      const { model, request } = await use(fullReply);
      const parts = await partsOf(model, request, AbortSignal.abort());
      expect(parts).toMatchObject([{ type: "failure", failure: { code: "ABORTED" } }]);
    });

    test("may be left in the middle, and leaves no listener on the signal", async () => {
      const { model, request } = await use(fullReply);
      const { signal } = new AbortController();
      for await (const part of model.stream(request, signal)) {
        if (part.type === "text") break;
      }
      expect(getEventListeners(signal, "abort")).toEqual([]);
    });
  });
}

const fullReply = {
  kind: "reply",
  reasoning: "Two files are wanted; 日本語 😀 stays whole.",
  text: "I read both files now: ünïcödé 😀, and a line\nbreak.",
  calls: [
    { callId: "call-a", name: "read", arguments: '{"path":"a.txt"}' },
    { callId: "call-b", name: "read", arguments: '{"path":"b \\"quoted\\".txt"}' },
  ],
  finish: "tool-calls",
  usage: { inputTokens: 120, outputTokens: 30, cachedInputTokens: 100, reasoningTokens: 12 },
} as const satisfies ModelCase;

async function partsOf(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of model.stream(request, signal)) parts.push(part);
  const last = parts.filter(({ type }) => type === "finish" || type === "failure");
  expect(last).toHaveLength(1);
  expect(parts.at(-1)).toBe(last[0]);
  return parts;
}

function textOf(parts: readonly ModelPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
