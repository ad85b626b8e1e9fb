import type { ModelOutcome, ModelPart } from "../contracts/model.js";
import { failureOf } from "./failing.js";
import { createReply, type ContentPart, type Reply } from "./reply.js";

/** How long an aborted stream may take to end by itself, ms (src/contracts/model.ts). */
const abortGraceMs = 1000;

/**
 * Reads a model's parts to the end and folds them (spec/harness §1-2): deltas of one kind become one block; call ids
 * are made unique; `max-tokens` drops all calls, cut or not; a stream that ends without a last part is a TRANSPORT
 * failure; a `stop` or `tool-calls` finish without content is EMPTY_RESPONSE; what the stream throws is a failure too.
 * When `signal` aborts first, the outcome is `cancelled` with text and reasoning alone, within a second.
 * `onPart` gets each part that counts, as it counts, in order.
 */
export async function collectReply(
  parts: AsyncIterable<ModelPart>,
  signal: AbortSignal,
  onPart: (part: ContentPart) => void = () => {},
): Promise<ModelOutcome> {
  const reply = createReply();
  const iterator = parts[Symbol.asyncIterator]();
  const limit = limitAfterAbort(signal);
  try {
    while (true) {
      const next = await limit.next(iterator);
      if (next === "given up") return cancelled(reply);
      if (next.done) return signal.aborted ? cancelled(reply) : incomplete();
      const part = next.value;
      if (part.type === "failure")
        return signal.aborted ? cancelled(reply) : { kind: "failure", failure: part.failure };
      if (part.type === "finish") return finished(reply, part);
      const counted = reply.add(part);
      if (counted !== undefined) onPart(counted);
    }
  } catch (error) {
    return signal.aborted ? cancelled(reply) : { kind: "failure", failure: failureOf(error) };
  } finally {
    limit.end();
    // Not awaited: a stream that hangs must not keep the outcome.
    iterator.return?.().then(undefined, () => {});
  }
}

function finished(
  reply: Reply,
  { reason, usage }: Extract<ModelPart, { readonly type: "finish" }>,
): ModelOutcome {
  const whole = reply.content();
  // A reply cut to nothing by its token limit or a filter is an answer; asking again would give the same.
  if (whole.length === 0 && (reason === "stop" || reason === "tool-calls")) {
    return {
      kind: "failure",
      failure: {
        code: "EMPTY_RESPONSE",
        message: `the model finished (${reason}) without any content`,
      },
    };
  }
  const content = reason === "max-tokens" ? reply.contentWithoutCalls() : whole;
  return { kind: "reply", content, finish: reason, ...(usage !== undefined && { usage }) };
}

function cancelled(reply: Reply): ModelOutcome {
  return { kind: "cancelled", content: reply.contentWithoutCalls() };
}

function incomplete(): ModelOutcome {
  return {
    kind: "failure",
    failure: {
      code: "TRANSPORT",
      message: "the model's stream ended before it said that it was finished",
    },
  };
}

interface AbortLimit {
  next(iterator: AsyncIterator<ModelPart>): Promise<IteratorResult<ModelPart> | "given up">;
  end(): void;
}

/** Waits for a stream no longer than the grace after an abort. One listener for all parts: a race each would pile up. */
function limitAfterAbort(signal: AbortSignal): AbortLimit {
  let timer: NodeJS.Timeout | undefined;
  let giveUp = (): void => {};
  const start = (): void => {
    timer = setTimeout(() => giveUp(), abortGraceMs);
  };
  if (signal.aborted) start();
  else signal.addEventListener("abort", start, { once: true });
  return {
    next: (iterator) =>
      new Promise((resolve, reject) => {
        giveUp = () => resolve("given up");
        iterator.next().then(resolve, reject);
      }),
    end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", start);
    },
  };
}
