/** Every code a user can meet; each has a heading in docs/errors.md (design D17). */
export const errorCodes = [
  "ABORTED",
  "ABORTED_BEFORE_DISPATCH",
  "ARCHIVE_UNAVAILABLE",
  "AUTH",
  "BAD_REQUEST",
  "BUSY",
  "CHECKPOINT_TOO_LARGE",
  "CONTENT_FILTER",
  "CONTEXT_WINDOW_EXCEEDED",
  "DUPLICATE_ID",
  "EMPTY_RESPONSE",
  "INVALID_ARGS",
  "INVALID_BOUNDARY",
  "INVALID_CONFIG",
  "INVALID_INPUT",
  "INVALID_SCENARIO",
  "INVALID_TODOS",
  "INVALID_TOOL_OUTPUT",
  "INVARIANT",
  "JOBS_UNAVAILABLE",
  "JOB_FOREIGN",
  "JOB_LIMIT",
  "JOB_NOT_FOUND",
  "LOG_CORRUPT",
  "LOG_UNSUPPORTED",
  "MESSAGE_TOO_LARGE",
  "MODEL_ERROR",
  "MODEL_NOT_FOUND",
  "NAMESPACE_NOT_FOUND",
  "NO_HOST",
  "NO_WORKER",
  "OPEN_TURN",
  "RATE_LIMIT",
  "REPLY_TOO_LARGE",
  "SCENARIO_EXHAUSTED",
  "SCENARIO_EXPECTATION",
  "SERVER",
  "SESSION_CLOSED",
  "SESSION_EXISTS",
  "SESSION_FAULTED",
  "SESSION_NOT_FOUND",
  "SESSION_OPEN",
  "SPAWN_FAILED",
  "STORE_CONFLICT",
  "STORE_UNAVAILABLE",
  "STREAM_NOT_FOUND",
  "SURFACE_MISMATCH",
  "TEMPORAL_NOT_FOUND",
  "TEMPORAL_START_FAILED",
  "TEMPORAL_UNREACHABLE",
  "TIMEOUT",
  "TOOL_DENIED",
  "TOOL_FAILED",
  "TOOL_NOT_STARTED",
  "TOOL_OUTCOME_UNKNOWN",
  "TOOL_TIMEOUT",
  "TOOL_UNAVAILABLE",
  "TRANSPORT",
  "UNKNOWN_TOOL",
  "USAGE",
  "WORKSPACE",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** An error a person can act on: what was expected, what came, what to do. Never thrown in workflow code. */
export class LonghaulError extends Error {
  override readonly name = "LonghaulError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** A refusal inside `domain` and in update results: a value, never a throw (design D17). */
export interface Refusal {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly message: string;
}

export function refuse(code: ErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return errorCodes.some((code) => code === value);
}
