import type { TextBlock, UserMessage } from "../contracts/content.js";
import type { SessionConfig } from "../contracts/config.js";
import type { RequestConfig } from "../contracts/header.js";
import type { ModelFailure } from "../contracts/model.js";
import type { ToolOutcome, ToolRow } from "../contracts/tools.js";
import { retryDelay } from "./retry.js";

/** Where the agent loop is when it asks a policy. */
export interface PolicyContext {
  readonly sessionId: string;
  readonly turn: number;
  readonly step: number;
  readonly config: SessionConfig;
}

/** One call as policies see it; `args` is parsed once and never rewritten (spec/harness §3). */
export interface PolicyCall {
  readonly callId: string;
  readonly name: string;
  readonly args: unknown;
  readonly row?: ToolRow;
}

export type PreStep =
  | { readonly kind: "enter"; readonly messages: readonly UserMessage[] }
  | { readonly kind: "reject"; readonly message?: string };

export type PreExecute =
  | { readonly kind: "allow" }
  | { readonly kind: "deny"; readonly reason: string }
  | { readonly kind: "ask"; readonly reason?: string };

export type PostExecute =
  | { readonly kind: "accept"; readonly content?: readonly TextBlock[] }
  | { readonly kind: "block"; readonly feedback: string };

/**
 * The stages of the agent loop and the tool pipeline that a deployment may decide on (spec/harness §§2, 3).
 * They run in workflow code: pure, synchronous, no clocks, no I/O. A stage that throws ends as the spec says.
 */
export interface SessionPolicy {
  /** Before a step: rewrite or reject what was claimed. A throw ends the turn `error`. */
  preStep?(context: PolicyContext, messages: readonly UserMessage[]): PreStep;
  /** Text shown to the model as a plugin message whenever it changed since it was last shown. */
  runtimeContext?(context: PolicyContext): string | undefined;
  /** May replace the request's config (`agent/request`), never its messages. A throw ends the turn `error`. */
  request?(context: PolicyContext, config: RequestConfig): RequestConfig;
  /** After a provider failure: ms to wait before the next request, or undefined to end the turn `error`. */
  requestError?(
    context: PolicyContext,
    failure: ModelFailure,
    retry: number,
    random: number,
  ): number | undefined;
  /** When the turn is about to end: text to steer with, which forces another step. */
  turnStopping?(context: PolicyContext): readonly string[];
  /** Stage 2. A throw is one error result. */
  preExecute?(context: PolicyContext, call: PolicyCall): PreExecute;
  /** Stage 4: can only deny, and may not be overruled. */
  guard?(context: PolicyContext, call: PolicyCall): string | undefined;
  /** Stage 5: may shorten a call's deadline, ms. A throw is one error result. */
  deadline?(context: PolicyContext, call: PolicyCall): number | undefined;
  /** Stage 8. */
  postExecute?(context: PolicyContext, call: PolicyCall, outcome: ToolOutcome): PostExecute;
  /** Stage 10: sees the frozen result; what it throws is ignored. */
  observe?(context: PolicyContext, call: PolicyCall, outcome: ToolOutcome): void;
}

/** What a session without a deployment policy does: its configured deny and ask lists, the default retry. */
export const builtinPolicy = {
  preStep: (_context, messages): PreStep => ({ kind: "enter", messages }),
  requestError: (context, failure, retry, random) =>
    retryDelay(failure, retry, context.config.limits, random),
  preExecute: (context, call): PreExecute => {
    if (context.config.deny.includes(call.name)) {
      return { kind: "deny", reason: `the session's configuration denies the tool ${call.name}` };
    }
    if (context.config.ask.includes(call.name)) return { kind: "ask" };
    return { kind: "allow" };
  },
  deadline: (_context, call) => call.row?.timeoutMs,
} satisfies SessionPolicy;
