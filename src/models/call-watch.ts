import { LonghaulError } from "../contracts/errors.js";

/** How long a provider may be silent, ms. */
export interface SilenceLimits {
  /** Until the first text, reasoning or tool call. */
  readonly firstTokenMs: number;
  /** After that. Keep-alive bytes count as a sign of life in both. */
  readonly idleMs: number;
}

export const defaultSilence: SilenceLimits = { firstTokenMs: 300_000, idleMs: 120_000 };

/** Longest silence that can be allowed: Node's HTTP client gives up by itself after this, ms. */
export const longestSilenceMs = 300_000;

/** Ends a model call that is aborted or has fallen silent. */
export interface CallWatch {
  /** Aborts the call's own work: the HTTP request, whatever the reason. */
  readonly signal: AbortSignal;
  /** Bytes came. */
  touch(): void;
  /** Have any? */
  readonly touched: boolean;
  /** The reply itself has begun. */
  begin(): void;
  /** The result of `work`, or a rejection as soon as the call is aborted or silent for too long. */
  wait<T>(work: PromiseLike<T>): Promise<T>;
  /** Ends the request and the watch. */
  end(): void;
}

export function watchCall(signal: AbortSignal, limits: SilenceLimits, provider: string): CallWatch {
  const request = new AbortController();
  let last = performance.now();
  let touched = false;
  let begun = false;
  let interrupted: LonghaulError | undefined;
  let reject: ((error: LonghaulError) => void) | undefined;

  const interrupt = (error: LonghaulError): void => {
    interrupted ??= error;
    request.abort();
    reject?.(interrupted);
  };
  const onAbort = (): void =>
    interrupt(new LonghaulError("ABORTED", "the model request was aborted"));
  // One timer that looks when it fires; setting it anew for each of thousands of chunks would cost more.
  const look = (): void => {
    const limit = begun ? limits.idleMs : limits.firstTokenMs;
    const left = limit - (performance.now() - last);
    if (left > 0) timer = setTimeout(look, Math.ceil(left));
    else interrupt(new LonghaulError("TIMEOUT", silent(provider, begun, limit)));
  };
  let timer = setTimeout(look, limits.firstTokenMs);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });

  return {
    signal: request.signal,
    touch() {
      touched = true;
      last = performance.now();
    },
    get touched() {
      return touched;
    },
    begin() {
      if (begun) return;
      begun = true;
      last = performance.now();
      clearTimeout(timer);
      timer = setTimeout(look, limits.idleMs);
    },
    wait: (work) =>
      new Promise((resolve, fail) => {
        if (interrupted !== undefined) fail(interrupted);
        reject = fail;
        // What was interrupted rejects in its own words afterwards; the first reason counts.
        work.then(resolve, (error: unknown) => fail(interrupted ?? error));
      }),
    end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      request.abort();
    },
  };
}

function silent(provider: string, begun: boolean, limit: number): string {
  const seconds = `${Math.round(limit / 100) / 10} s`;
  return begun
    ? `${provider} stopped in the middle of its reply and sent nothing for ${seconds}`
    : `${provider} sent nothing for ${seconds} and had not begun its reply`;
}
