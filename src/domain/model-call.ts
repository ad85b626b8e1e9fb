import type { AssistantBlock, AssistantMessage, ToolCallBlock } from "../contracts/content.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { RequestConfig } from "../contracts/header.js";
import type { EndReason } from "../contracts/log.js";
import type { ModelFailure, ModelOutcome, ModelRoute } from "../contracts/model.js";
import { recoverOverflow } from "./compaction.js";
import { runOne, type Loop } from "./effects.js";
import type { PolicyContext, SessionPolicy } from "./policy.js";
import {
  buildHeader,
  checkRequest,
  decideContext,
  decideHeader,
  routeName,
  systemPrompt,
} from "./request.js";
import { defaultRetryPolicy } from "./retry.js";
import type { Session } from "./session.js";

export type ModelStep =
  | { readonly kind: "calls"; readonly calls: readonly ToolCallBlock[] }
  | { readonly kind: "aborted" }
  | { readonly kind: "end"; readonly reason: EndReason };

/**
 * One model request with its retries, inside one step (spec/harness §2): header check, request by reference, then the
 * reply in the log. A provider failure is logged and waited out; what is not retried ends the turn `error`.
 */
export function* callModel(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  random: () => number,
): Loop<ModelStep> {
  const { turn, step } = context;
  // Requests made again with less in them; they are none of the policy's retries.
  let overflows = 0;
  for (let retry = 0; ;) {
    if (session.fault !== undefined) return invariant(session);
    const route = yield* prepareRequest(session, policy, context);
    if (route.kind !== "ready") return route;
    const header = session.folds.header;
    if (header === undefined || session.fault !== undefined) return invariant(session);
    const settled = yield* runOne(
      {
        kind: "model",
        key: `model/${turn}.${step}.${retry + overflows}`,
        turn,
        step,
        retry: retry + overflows,
        headerSeq: header.seq,
        length: session.log.surface.length,
        digest: session.log.surface.digest(),
        timeoutMs: session.config.limits.modelTimeoutMs,
        route: routeName(header.header.config),
      },
      () => session.aborting,
    );
    if (settled.kind !== "model") return invariant(session);
    const outcome = asAnswer(session, settled.outcome);
    if (outcome.kind !== "failure")
      return recordReply(session, context, header.header.config, outcome);
    const { failure } = outcome;
    if (session.aborting) return { kind: "aborted" };
    if (failure.code === "CONTEXT_WINDOW_EXCEEDED") {
      const { changed } = yield* recoverOverflow(session, overflows);
      if (session.aborting) return { kind: "aborted" };
      if (changed) {
        overflows += 1;
        continue;
      }
    }
    let delayMs: number | undefined;
    try {
      delayMs = policy.requestError?.(context, failure, retry + 1, random());
    } catch (error) {
      return endWith("INVARIANT", `the request-error policy failed: ${String(error)}`);
    }
    if (delayMs === undefined) return { kind: "end", reason: errorEnd(failure) };
    if (!Number.isFinite(delayMs) || delayMs < 0) {
      return endWith("INVARIANT", `the request-error policy asked to wait ${delayMs} ms`);
    }
    const retried = yield* waitForRetry(
      session,
      context,
      header.header.config.provider,
      failure,
      retry + 1,
      delayMs,
    );
    if (!retried) return { kind: "aborted" };
    retry += 1;
  }
}

/** Logs the header and the route's capacity when they changed; the next request is described by them. */
function* prepareRequest(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
): Loop<{ readonly kind: "ready" } | Exclude<ModelStep, { kind: "calls" }>> {
  let request: RequestConfig;
  try {
    request = policy.request?.(context, session.config.request) ?? session.config.request;
  } catch (error) {
    return endWith("INVARIANT", `the request policy failed: ${String(error)}`);
  }
  const problem = checkRequest(request);
  if (problem !== undefined) return endWith("INVALID_CONFIG", problem);
  const route = yield* routeOf(session, context, request);
  if (session.aborting) return { kind: "aborted" };
  const { place } = session.folds;
  const header = buildHeader(
    request,
    route.defaults,
    systemPrompt(session.config, place),
    place.tools,
  );
  session.record(...decideHeader(session.folds.header, header));
  const { provider, model, contextWindow } = route;
  session.record(
    ...decideContext(session.folds.context, {
      provider,
      model,
      ...(contextWindow === undefined ? {} : { contextWindow }),
    }),
  );
  return { kind: "ready" };
}

function* routeOf(
  session: Session,
  context: PolicyContext,
  request: RequestConfig,
): Loop<ModelRoute> {
  const known = session.routes.find(
    (one) => one.provider === request.provider && one.model === request.model,
  );
  if (known !== undefined) return known;
  const settled = yield* runOne(
    { kind: "route", key: `route/${context.turn}.${context.step}`, request },
    () => session.aborting,
  );
  const answered = settled.kind === "route" ? settled.route : undefined;
  const route = answered ?? { provider: request.provider, model: request.model };
  if (answered !== undefined) session.routes = [...session.routes, answered];
  return route;
}

function* waitForRetry(
  session: Session,
  context: PolicyContext,
  provider: string,
  failure: ModelFailure,
  retry: number,
  delayMs: number,
): Loop<boolean> {
  const { turn, step } = context;
  const retryId = `retry/${turn}.${step}.${retry}`;
  const max = session.config.limits.maxModelRetries;
  session.record({
    type: "llm/retry",
    data: {
      retryId,
      turn,
      step,
      provider,
      mode: "auto",
      policy: defaultRetryPolicy,
      retry,
      max,
      delayMs,
      failure,
    },
  });
  const summary = `retry ${retry} of ${max} after ${failure.code}`;
  yield* runOne({ kind: "sleep", key: retryId, ms: delayMs, summary }, () => session.aborting);
  if (session.aborting) return false;
  session.record({ type: "llm/retry-started", data: { retryId, turn, step } });
  return true;
}

function recordReply(
  session: Session,
  context: PolicyContext,
  config: RequestConfig,
  outcome: Exclude<ModelOutcome, { kind: "failure" }>,
): ModelStep {
  const { turn, step } = context;
  const interrupted = outcome.kind === "cancelled";
  const cut = outcome.kind === "reply" && outcome.finish === "max-tokens";
  const content =
    interrupted || cut
      ? outcome.content.filter((block) => block.type !== "tool-call")
      : outcome.content;
  const message: AssistantMessage = {
    id: `m/${turn}.${step}`,
    role: "assistant",
    content,
    source: { kind: "model", provider: config.provider, model: config.model },
  };
  if (!interrupted || content.length > 0) {
    session.record({
      type: "assistant/message",
      surfaceOp: "append",
      data: {
        turn,
        step,
        message,
        ...(outcome.kind === "reply" && outcome.usage !== undefined
          ? { usage: outcome.usage }
          : {}),
        ...(interrupted ? { interrupted: true as const } : {}),
        ...(outcome.kind === "reply" &&
        (outcome.finish === "max-tokens" || outcome.finish === "content-filter")
          ? { finish: outcome.finish }
          : {}),
        ...(outcome.stream === undefined ? {} : { stream: outcome.stream }),
      },
    });
  }
  if (session.fault !== undefined) return invariant(session);
  if (interrupted) return { kind: "aborted" };
  return { kind: "calls", calls: content.filter(isToolCall) };
}

/** A call that was cancelled though nobody aborted the turn (its worker was stopped by hand) is a failed call. */
function asAnswer(session: Session, outcome: ModelOutcome): ModelOutcome {
  if (outcome.kind !== "cancelled" || session.aborting) return outcome;
  return {
    kind: "failure",
    failure: { code: "TRANSPORT", message: "the model call was cancelled from outside" },
  };
}

function isToolCall(block: AssistantBlock): block is ToolCallBlock {
  return block.type === "tool-call";
}

function errorEnd(failure: ModelFailure): EndReason {
  const { code, message, status } = failure;
  return { kind: "error", code, message, ...(status === undefined ? {} : { status }) };
}

function invariant(session: Session): { readonly kind: "end"; readonly reason: EndReason } {
  return endWith(
    "INVARIANT",
    session.fault?.message ?? "the log has no request header for the request",
  );
}

function endWith(
  code: ErrorCode,
  message: string,
): { readonly kind: "end"; readonly reason: EndReason } {
  return { kind: "end", reason: { kind: "error", code, message } };
}
