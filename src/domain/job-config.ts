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
  const problem = jobsConfigProblem(input);
  if (problem !== undefined) return refuse("INVALID_CONFIG", problem.message);
  return { ok: true, config: filledIn(input) };
}

/** What is wrong with limits of background jobs. */
export interface JobsConfigProblem {
  /** The key it stands at; absent: the whole. */
  readonly key?: string;
  /** Says it alone, e.g. `jobs.heartbeatMs expected a whole number of at least 100, got 5`. */
  readonly message: string;
  /** The same without key and value, for one who names them. */
  readonly complaint: string;
}

export function jobsConfigProblem(input: unknown): JobsConfigProblem | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    const complaint = "expected an object";
    return { complaint, message: `jobs ${complaint}, got ${jsonOf(input)}` };
  }
  for (const [key, value] of givenOf(input)) {
    if (!isKey(key)) {
      const complaint = `is not a setting; known here: ${Object.keys(checks).join(", ")}`;
      return { key, complaint, message: `jobs has no key ${JSON.stringify(key)}` };
    }
    const expected = checks[key](value);
    if (expected !== undefined) {
      const complaint = `expected ${expected}`;
      return { key, complaint, message: `jobs.${key} ${complaint}, got ${printed(value)}` };
    }
  }
  const { waitTimeoutMs, maxWaitTimeoutMs, maxConsecutiveWakes, heartbeatMs, heartbeatTimeoutMs } =
    filledIn(input);
  if (waitTimeoutMs > maxWaitTimeoutMs) {
    return {
      key: "waitTimeoutMs",
      complaint: `exceeds maxWaitTimeoutMs (${maxWaitTimeoutMs})`,
      message: `tool-jobs: waitTimeoutMs (${waitTimeoutMs}) exceeds maxWaitTimeoutMs (${maxWaitTimeoutMs})`,
    };
  }
  if (heartbeatMs * 2 > heartbeatTimeoutMs) {
    return {
      key: "heartbeatTimeoutMs",
      complaint: `expected at least twice heartbeatMs (${heartbeatMs})`,
      message: `jobs.heartbeatTimeoutMs (${heartbeatTimeoutMs}) expected at least twice jobs.heartbeatMs (${heartbeatMs})`,
    };
  }
  if (!Number.isSafeInteger(maxConsecutiveWakes)) {
    return {
      key: "maxConsecutiveWakes",
      complaint: "must be a whole number of turns",
      message: `tool-jobs: maxConsecutiveWakes (${maxConsecutiveWakes}) must be a whole number of turns`,
    };
  }
  return undefined;
}

function givenOf(input: object): readonly (readonly [string, unknown])[] {
  return Object.entries(input).filter(([, value]) => value !== undefined);
}

function filledIn(input: unknown): JobsConfig {
  return { ...defaultJobsConfig, ...Object.fromEntries(givenOf(input as object)) };
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

/** Numbers as they are, so that NaN and Infinity can be told apart. */
function printed(value: unknown): string {
  return typeof value === "number" ? `${value}` : jsonOf(value);
}
