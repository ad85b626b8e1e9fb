import type {
  LanguageModelV2StreamPart,
  LanguageModelV3StreamPart,
  SharedV3ProviderMetadata,
} from "@ai-sdk/provider";
import type { FinishReason, ModelFailure, ModelPart, Usage } from "../contracts/model.js";
import type { ReplayState } from "./ai-sdk-prompt.js";
import { cutOff, failureOfEvent, type FailureContext } from "./provider-failure.js";
import { plainLine } from "./provider-text.js";

/** A part of a stream, of models of version 2 or 3 of the AI SDK's model interface. */
export type StreamPart = LanguageModelV3StreamPart | LanguageModelV2StreamPart;

/** Turns the parts of one AI SDK stream into those of a reply. */
export interface ReplyReader {
  /** What a part adds; a `finish` or `failure` is the last. */
  read(part: StreamPart): readonly ModelPart[];
  /** Has text, reasoning or a call come? */
  readonly begun: boolean;
}

export function createReplyReader(context: FailureContext): ReplyReader {
  const reasoning = new Map<string, SharedV3ProviderMetadata>();
  let raw: unknown;
  let begun = false;
  let answered = false;
  let calls = 0;

  const keep = (id: string, metadata: SharedV3ProviderMetadata | undefined): void => {
    if (metadata === undefined) return;
    const before = reasoning.get(id) ?? {};
    const merged = Object.entries(metadata).map(([name, own]) => [
      name,
      { ...before[name], ...own },
    ]);
    reasoning.set(id, { ...before, ...Object.fromEntries(merged) });
  };

  return {
    get begun() {
      return begun;
    },
    read(part) {
      switch (part.type) {
        case "raw":
          raw = part.rawValue;
          return [];
        case "text-delta":
          begun = true;
          if (part.delta !== "") answered = true;
          return [{ type: "text", text: part.delta }];
        case "reasoning-start":
          begun = true;
          keep(part.id, part.providerMetadata);
          return [];
        case "reasoning-delta":
          begun = true;
          keep(part.id, part.providerMetadata);
          return part.delta === "" ? [] : [{ type: "reasoning", text: part.delta }];
        case "reasoning-end": {
          keep(part.id, part.providerMetadata);
          const options = reasoning.get(part.id);
          reasoning.delete(part.id);
          return options === undefined ? [] : [state({ options })];
        }
        case "tool-input-start":
        case "tool-input-delta":
          begun = true;
          return [];
        case "tool-call": {
          // What the provider ran by itself is no call of ours.
          if (part.providerExecuted === true) return [];
          begun = true;
          answered = true;
          calls += 1;
          const { toolCallId: callId, toolName: name, input, providerMetadata } = part;
          const call: ModelPart = { type: "tool-call", callId, name, arguments: input };
          return hasSignature(providerMetadata)
            ? [state({ calls: { [callId]: providerMetadata } }), call]
            : [call];
        }
        case "error":
          return [{ type: "failure", failure: failureOfEvent(part.error, reportIn(raw), context) }];
        case "finish":
          return [lastPart(part, answered, calls, raw, context)];
        default:
          return [];
      }
    },
  };
}

function state(replay: ReplayState): ModelPart {
  return { type: "reasoning", text: "", replay };
}

/** Some models want a signature back with each call; other metadata of calls says nothing to them. */
function hasSignature(
  metadata: SharedV3ProviderMetadata | undefined,
): metadata is SharedV3ProviderMetadata {
  return Object.values(metadata ?? {}).some((own) =>
    Object.keys(own).some((name) => /signature/i.test(name)),
  );
}

/** An event that is itself a report; any other says nothing about an error beside it. */
function reportIn(raw: unknown): unknown {
  return typeof raw === "object" && raw !== null && "error" in raw ? raw : undefined;
}

type FinishPart = Extract<StreamPart, { type: "finish" }>;

function lastPart(
  part: FinishPart,
  answered: boolean,
  calls: number,
  raw: unknown,
  context: FailureContext,
): ModelPart {
  const usage = usageOf(part.usage);
  const { unified, word } = finishOf(part.finishReason);
  const reason = reasons[unified];
  if (reason === undefined)
    return { type: "failure", failure: unknownFinish(unified, word, raw, context) };
  if (!answered && (reason === "stop" || reason === "tool-calls")) {
    const message = `${context.provider} finished its reply (${word ?? unified}) without text or a tool call`;
    return { type: "failure", failure: { code: "EMPTY_RESPONSE", message } };
  }
  return {
    type: "finish",
    // Not every server says so when it calls.
    reason: reason === "stop" && calls > 0 ? "tool-calls" : reason,
    ...(usage !== undefined && { usage }),
  };
}

const reasons: Readonly<Record<string, FinishReason | undefined>> = {
  stop: "stop",
  length: "max-tokens",
  "content-filter": "content-filter",
  "tool-calls": "tool-calls",
};

function finishOf(reason: FinishPart["finishReason"]): { unified: string; word?: string } {
  if (typeof reason === "string") return { unified: reason };
  return { unified: reason.unified, ...(reason.raw !== undefined && { word: reason.raw }) };
}

function unknownFinish(
  unified: string,
  word: string | undefined,
  raw: unknown,
  context: FailureContext,
): ModelFailure {
  const { provider } = context;
  const report = reportIn(raw);
  if (report !== undefined) return failureOfEvent(undefined, report, context);
  if (word === undefined && unified !== "error") return cutOff(provider);
  const said = plainLine(word ?? unified);
  if (unified === "error" || word === "insufficient_system_resource")
    return { code: "SERVER", message: `${provider} gave its reply up: ${said}` };
  return {
    code: "MODEL_ERROR",
    message: `${provider} finished for a reason that is not known here: ${said}`,
  };
}

function usageOf(usage: FinishPart["usage"]): Usage | undefined {
  const { inputTokens: input, outputTokens: output } = usage;
  const counts = {
    inputTokens: typeof input === "object" ? input.total : input,
    outputTokens: typeof output === "object" ? output.total : output,
    cachedInputTokens:
      typeof input === "object"
        ? input.cacheRead
        : "cachedInputTokens" in usage
          ? usage.cachedInputTokens
          : undefined,
    reasoningTokens:
      typeof output === "object"
        ? output.reasoning
        : "reasoningTokens" in usage
          ? usage.reasoningTokens
          : undefined,
  };
  const known = Object.entries(counts).filter(([, count]) => Number.isFinite(count));
  return known.length === 0 ? undefined : Object.fromEntries(known);
}
