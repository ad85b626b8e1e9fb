import type { SessionLimits } from "../contracts/config.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { ModelFailure } from "../contracts/model.js";

/** Failures worth another request (spec/harness §2). */
const retryable = new Set<ErrorCode>([
  "TRANSPORT",
  "TIMEOUT",
  "SERVER",
  "RATE_LIMIT",
  "EMPTY_RESPONSE",
]);

export const defaultRetryPolicy = "default";

/**
 * The default answer to a provider failure: how long to wait before request `retry` (from 1), or undefined to give up.
 * Back-off doubles from the base up to the cap with 10 % jitter; the provider's Retry-After is used when it is within the cap.
 * @param random in [0, 1)
 */
export function retryDelay(
  failure: ModelFailure,
  retry: number,
  limits: SessionLimits,
  random: number,
): number | undefined {
  if (!retryable.has(failure.code) || retry > limits.maxModelRetries) return undefined;
  if (failure.retryAfterMs !== undefined && failure.retryAfterMs <= limits.retryCapMs) {
    return Math.max(0, Math.round(failure.retryAfterMs));
  }
  const backoff = Math.min(limits.retryCapMs, limits.retryBaseMs * 2 ** (retry - 1));
  return Math.round(backoff * (0.9 + 0.2 * random));
}
