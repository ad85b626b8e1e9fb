import { randomBytes } from "node:crypto";
import { Context } from "@temporalio/activity";
import type { CallModelInput } from "../contracts/activities.js";
import { type ErrorCode, LonghaulError } from "../contracts/errors.js";
import type { ModelOutcome, ModelRequest } from "../contracts/model.js";
import type { Store } from "../contracts/store.js";
import { collectReply } from "../models/collect.js";
import type { Models } from "../models/registry.js";
import { encodeStreamedPart } from "../store/model-stream.js";
import { createStreamWriter } from "../store/stream-writer.js";
import { whileBeating } from "./heartbeat.js";
import type { SurfaceReader } from "./surface-reader.js";

/** Largest reply that enters history, bytes of JSON: the server refuses payloads over 2 MB (facts §3). */
const maxReplyBytes = 1_900_000;

const final = new Set<ErrorCode>(["SURFACE_MISMATCH", "LOG_CORRUPT", "ARCHIVE_UNAVAILABLE"]);

export interface CallModelDeps {
  readonly reader: SurfaceReader;
  readonly models: Models;
  readonly store: Store;
}

/**
 * Calls the model with what the log says (design D2). Provider failures and cancellation are values; a lost or stopping
 * worker makes Temporal run it again, which streams under another nonce.
 */
export function createCallModel(
  deps: CallModelDeps,
): (input: CallModelInput) => Promise<ModelOutcome> {
  return async function callModel(input) {
    const context = Context.current();
    // Nobody watches a summary being written.
    const stream =
      input.summary === undefined ? `model/${input.turn}.${input.step}.${nonce()}` : undefined;
    return whileBeating(
      context,
      () => (stream === undefined ? {} : { stream }),
      async () => {
        let request: ModelRequest;
        try {
          request = await rebuild(deps.reader, input, context.cancellationSignal);
        } catch (error) {
          if (context.cancellationSignal.aborted) return cancelledBy(context);
          return refused(error);
        }
        const outcome = await streamReply(deps, request, input, stream, context);
        return input.summary === undefined ? outcome : textOf(outcome);
      },
    );
  };
}

async function rebuild(
  reader: SurfaceReader,
  input: CallModelInput,
  signal: AbortSignal,
): Promise<ModelRequest> {
  const { sessionId, turn, step, retry, summary } = input;
  const header = await reader.header(input, input.headerSeq, signal);
  const messages = await reader.messages(input, signal);
  const request: ModelRequest = {
    sessionId,
    turn,
    step,
    retry,
    config: header.config,
    ...(header.system === undefined ? {} : { system: header.system }),
    tools: header.tools ?? [],
    messages,
  };
  return summary === undefined ? request : summaryRequest(request, summary);
}

/** The same request up to its last message, so that what the provider has cached of it holds (spec/harness §6). */
function summaryRequest(
  request: ModelRequest,
  { instruction, maxTokens }: NonNullable<CallModelInput["summary"]>,
): ModelRequest {
  const { config, messages } = request;
  return {
    ...request,
    summary: true,
    config: { ...config, maxTokens: Math.min(maxTokens, config.maxTokens ?? maxTokens) },
    messages: [
      ...messages,
      {
        id: "summary",
        role: "user",
        content: [{ type: "text", text: instruction }],
        source: { kind: "plugin", name: "compaction" },
      },
    ],
  };
}

/** Of a summary only its text counts. */
function textOf(outcome: ModelOutcome): ModelOutcome {
  return outcome.kind === "failure"
    ? outcome
    : { ...outcome, content: outcome.content.filter(({ type }) => type === "text") };
}

async function streamReply(
  deps: CallModelDeps,
  request: ModelRequest,
  input: CallModelInput,
  stream: string | undefined,
  context: Context,
): Promise<ModelOutcome> {
  const deadline = AbortSignal.timeout(input.timeoutMs);
  const signal = AbortSignal.any([context.cancellationSignal, deadline]);
  const writer =
    stream === undefined ? undefined : createStreamWriter(deps.store, input.sessionId, stream);
  const { model } = deps.models.find(request.config);
  const outcome = await collectReply(model.stream(request, signal), signal, (part) =>
    writer?.write(encodeStreamedPart(part)),
  );
  const bytes = writer === undefined ? undefined : await closeQuietly(writer);
  const ref =
    stream === undefined || bytes === undefined || bytes === 0 ? {} : { stream: { stream, bytes } };
  if (outcome.kind === "cancelled" && !context.cancellationSignal.aborted) {
    const message = `the model did not finish within ${Math.round(input.timeoutMs / 1_000)} s`;
    return { kind: "failure", failure: { code: "TIMEOUT", message }, ...ref };
  }
  if (outcome.kind === "cancelled") await cancelledBy(context);
  const size = Buffer.byteLength(JSON.stringify(outcome));
  if (size > maxReplyBytes) {
    const message = `the reply has ${size} bytes, more than the ${maxReplyBytes} a session can log; ask for a smaller one`;
    return { kind: "failure", failure: { code: "REPLY_TOO_LARGE", message }, ...ref };
  }
  return { ...outcome, ...ref };
}

/** Streamed text is a copy for watchers: when the store is away the reply counts all the same. */
async function closeQuietly(
  writer: ReturnType<typeof createStreamWriter>,
): Promise<number | undefined> {
  try {
    return await writer.close();
  } catch {
    return undefined;
  }
}

/** Cancelled by the session: a value. Cancelled for another reason (worker shutdown, reset, pause): rejects, to be run again. */
async function cancelledBy(context: Context): Promise<ModelOutcome> {
  if (context.cancellationDetails?.cancelRequested !== true) await context.cancelled;
  return { kind: "cancelled", content: [] };
}

/** What another attempt would not find otherwise ends the turn. */
function refused(error: unknown): ModelOutcome {
  if (error instanceof LonghaulError && final.has(error.code)) {
    return { kind: "failure", failure: { code: error.code, message: error.message } };
  }
  throw error;
}

/** Sorts by the time of the execution, so that watchers can follow the newest. */
function nonce(): string {
  return `${Date.now().toString(36).padStart(9, "0")}${randomBytes(4).toString("hex")}`;
}
