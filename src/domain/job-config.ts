import { refuse, type Refusal } from "../contracts/errors.js";
import { defaultJobsConfig, type JobsConfig } from "../contracts/jobs.js";
import { jsonOf } from "./job-texts.js";

/** Keys of `jobs` in a session's configuration; what is left out has its default (spec/jobs §13). */
const checks: { readonly [K in keyof JobsConfig]: (value: unknown) => string | undefined } = {
  maxConcurrentJobsPerOwner: (value) =>
    Number.isSafeInteger(value) && Number(value) >= 1
      ? undefined
      : "a whole number from 1 to 9007199254740991",
  waitTimeoutMs: waitProblem,
  maxWaitTimeoutMs: waitProblem,
  completionDelivery: (value) =>
    value === "quiet" || value === "wakeup" ? undefined : '"quiet" or "wakeup"',
  maxConsecutiveWakes: (value) =>
    typeof value === "number" && value >= 1 ? undefined : "a whole number of at least 1",
  enableRunInBackground: (value) => (typeof value === "boolean" ? undefined : "true or false"),
  heartbeatMs: (value) => wholeFrom(100, value),
  heartbeatTimeoutMs: (value) => wholeFrom(1_000, value),
  orphanGraceMs: (value) => wholeFrom(1_000, value),
  // The readable tail is kept in any case.
  outputBytes: (value) => wholeFrom(0, value),
};

/** Limits of background jobs, of any shape, with defaults filled in; INVALID_CONFIG when one cannot be. */
export function loadJobsConfig(
  input: unknown,
): { readonly ok: true; readonly config: JobsConfig } | Refusal {
  if (input === undefined) return { ok: true, config: defaultJobsConfig };
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return invalid(`jobs expected an object, got ${jsonOf(input)}`);
  }
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  for (const [key, value] of given) {
    if (!isKey(key)) return invalid(`jobs has no key ${JSON.stringify(key)}`);
    const expected = checks[key](value);
    if (expected !== undefined) {
      return invalid(`jobs.${key} expected ${expected}, got ${printed(value)}`);
    }
  }
  const config: JobsConfig = { ...defaultJobsConfig, ...Object.fromEntries(given) };
  const { waitTimeoutMs, maxWaitTimeoutMs, maxConsecutiveWakes } = config;
  if (waitTimeoutMs > maxWaitTimeoutMs) {
    return invalid(
      `tool-jobs: waitTimeoutMs (${waitTimeoutMs}) exceeds maxWaitTimeoutMs (${maxWaitTimeoutMs})`,
    );
  }
  if (config.heartbeatMs * 2 > config.heartbeatTimeoutMs) {
    return invalid(
      `jobs.heartbeatTimeoutMs (${config.heartbeatTimeoutMs}) expected at least twice jobs.heartbeatMs (${config.heartbeatMs})`,
    );
  }
  if (!Number.isSafeInteger(maxConsecutiveWakes)) {
    return invalid(
      `tool-jobs: maxConsecutiveWakes (${maxConsecutiveWakes}) must be a whole number of turns`,
    );
  }
  return { ok: true, config };
}

function wholeFrom(least: number, value: unknown): string | undefined {
  return Number.isSafeInteger(value) && Number(value) >= least
    ? undefined
    : `a whole number of at least ${least}`;
}

function waitProblem(value: unknown): string | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 1
    ? undefined
    : "a number of milliseconds of at least 1";
}

function isKey(key: string): key is keyof JobsConfig {
  return Object.hasOwn(checks, key);
}

function invalid(message: string): Refusal {
  return refuse("INVALID_CONFIG", message);
}

/** Numbers as they are, so that NaN and Infinity can be told apart. */
function printed(value: unknown): string {
  return typeof value === "number" ? `${value}` : jsonOf(value);
}
