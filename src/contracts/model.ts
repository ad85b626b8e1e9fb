import type { AssistantBlock, Message } from "./content.js";
import type { ErrorCode } from "./errors.js";
import type { RequestConfig, ToolSchema } from "./header.js";

/** What the model is called with: rebuilt from the log by reference, never sent through history (design D2). */
export interface ModelRequest {
  readonly sessionId: string;
  readonly turn: number;
  readonly step: number;
  /** How often this request was already retried after a provider failure, from 0. */
  readonly retry: number;
  readonly config: RequestConfig;
  readonly system?: string;
  readonly tools: readonly ToolSchema[];
  readonly messages: readonly Message[];
  /** Asks for the summary of a compaction, not for the reply of the step. */
  readonly summary?: true;
}

export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
}

export type FinishReason = "stop" | "tool-calls" | "max-tokens" | "content-filter";

/** A provider failure as a value; the workflow decides about a retry (spec/harness §2). */
export interface ModelFailure {
  readonly code: ErrorCode;
  readonly message: string;
  /** HTTP status, when there was one. */
  readonly status?: number;
  /** What the provider asked for, ms. */
  readonly retryAfterMs?: number;
}

/** One piece of a streamed reply. The last part is `finish` or `failure`. */
export type ModelPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string; readonly replay?: unknown }
  | {
      readonly type: "tool-call";
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
    }
  | { readonly type: "finish"; readonly reason: FinishReason; readonly usage?: Usage }
  | { readonly type: "failure"; readonly failure: ModelFailure };

/**
 * A model. `stream` yields parts in order; deltas of one text or reasoning block may come in any number of parts,
 * a tool call comes whole. It reports failures as a `failure` part and stops within a second of an abort.
 */
export interface Model {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart>;
}

/** Finds the model of a request's config; unknown: a `failure` with MODEL_NOT_FOUND naming the known ones. */
export interface ModelProvider {
  /** `provider` of the request config this answers to, e.g. `scripted`. */
  readonly provider: string;
  model(name: string): Model;
  /** Tokens the route can hold; logged as `request/context`. */
  contextWindow?(name: string): number | undefined;
  /** What the adapter fills in where the request says nothing (spec/harness §4). */
  defaults?(name: string): AdapterDefaults | undefined;
}

export interface AdapterDefaults {
  readonly reasoningEffort?: string;
  readonly maxTokens?: number;
}

/** Capacity and defaults of one route, as the session workers know it. */
export interface ModelRoute {
  readonly provider: string;
  readonly model: string;
  readonly contextWindow?: number;
  readonly defaults?: AdapterDefaults;
}

/** Where the streamed text of one execution of a model call went (design D7). */
export interface StreamRef {
  /** `model/<turn>.<step>.<nonce>` */
  readonly stream: string;
  readonly bytes: number;
}

export type ModelOutcome =
  | {
      readonly kind: "reply";
      readonly content: readonly AssistantBlock[];
      readonly finish: FinishReason;
      readonly usage?: Usage;
      readonly stream?: StreamRef;
    }
  | { readonly kind: "failure"; readonly failure: ModelFailure; readonly stream?: StreamRef }
  | {
      /** Cancelled: text and reasoning that had arrived; half-built calls are dropped. */
      readonly kind: "cancelled";
      readonly content: readonly AssistantBlock[];
      readonly stream?: StreamRef;
    };
