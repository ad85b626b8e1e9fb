import { LonghaulError } from "../contracts/errors.js";
import { classifyFailure, type Failure } from "./failures.js";
import { pause } from "./pause.js";

/** The part of a Temporal connection that bounds calls. */
export interface Bounded {
  withDeadline<R>(deadline: number, fn: () => Promise<R>): Promise<R>;
  withAbortSignal<R>(signal: AbortSignal, fn: () => Promise<R>): Promise<R>;
  /** Aborts when the client is closed: nothing is tried again then. */
  readonly closed: AbortSignal;
}

export interface AttemptOptions {
  /** Epoch ms; no attempt begins or lasts longer. */
  readonly deadline: number;
  /** No attempt begins with less time than this, ms: nobody could answer it. Default 0. */
  readonly leastMs?: number;
  /** Longest single attempt, ms: a lost answer is asked for again. Default 10,000. */
  readonly attemptMs?: number;
  /** Ends the call; it then rejects with ABORTED. */
  readonly signal?: AbortSignal;
  /** Turns the server's "no such open session" into an error, or undefined to try again. */
  readonly gone: () => Promise<LonghaulError | undefined>;
  /** The error at the deadline, made from the last trouble. */
  readonly late: (last: Trouble) => Promise<LonghaulError>;
}

/** Why the last attempt failed. */
export type Trouble = Failure & { readonly kind: "retry" };

/** Runs a call until it is answered, refused, or its deadline has passed (design D10, facts §8.3). */
export async function attemptUntil<T>(
  bounds: Bounded,
  options: AttemptOptions,
  call: () => Promise<T>,
): Promise<T> {
  const { deadline, leastMs = 0, attemptMs = 10_000, signal } = options;
  let last: Trouble = { kind: "retry", why: "worker", message: "no answer" };
  for (let attempt = 0; Date.now() + leastMs < deadline; attempt++) {
    throwIfEnded(bounds, signal);
    try {
      return await attemptOnce(bounds, Math.min(deadline, Date.now() + attemptMs), signal, call);
    } catch (error) {
      throwIfEnded(bounds, signal);
      const failure = classifyFailure(error);
      const retriable = failure.kind === "gone" ? await judgeGone(options) : failure;
      if (retriable.kind !== "retry") {
        throw new LonghaulError(retriable.code, retriable.message, { cause: error });
      }
      last = retriable;
      const backoff = retriable.why === "update" ? 20 : Math.min(100 * 1.6 ** attempt, 1000);
      const wait = Math.min(backoff, deadline - Date.now());
      if (wait > 0) await pause(wait, signal, bounds.closed);
    }
  }
  throw await options.late(last);
}

/** One attempt. The SDK never removes its abort listeners, so each attempt gets a signal of its own. */
async function attemptOnce<T>(
  bounds: Bounded,
  deadline: number,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const forward = () => {
    own.abort();
  };
  for (const source of [signal, bounds.closed])
    source?.addEventListener("abort", forward, { once: true });
  try {
    return await bounds.withDeadline(deadline, () => bounds.withAbortSignal(own.signal, call));
  } finally {
    for (const source of [signal, bounds.closed]) source?.removeEventListener("abort", forward);
  }
}

async function judgeGone(options: AttemptOptions): Promise<Exclude<Failure, { kind: "gone" }>> {
  try {
    const error = await options.gone();
    if (error !== undefined) return { kind: "fatal", code: error.code, message: error.message };
    return {
      kind: "retry",
      why: "worker",
      message: "the session is open, but did not take the call",
    };
  } catch (error) {
    const failure = classifyFailure(error);
    return failure.kind === "gone"
      ? { kind: "fatal", code: "SESSION_NOT_FOUND", message: "no such session" }
      : failure;
  }
}

function throwIfEnded(bounds: Bounded, signal: AbortSignal | undefined): void {
  if (bounds.closed.aborted)
    throw new LonghaulError("ABORTED", "the client was closed during the call");
  if (signal?.aborted === true)
    throw new LonghaulError("ABORTED", "the call was aborted by its signal");
}
