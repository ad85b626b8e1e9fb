import {
  isGrpcServiceError,
  NamespaceNotFoundError,
  QueryNotRegisteredError,
  QueryRejectedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from "@temporalio/client";
import { isErrorCode, LonghaulError, type ErrorCode } from "../contracts/errors.js";
import { askAgain } from "../contracts/names.js";

/** What a failed call to Temporal means for the caller (facts §6). */
export type Failure =
  /** Another attempt may succeed. */
  | { readonly kind: "retry"; readonly why: RetryReason; readonly message: string }
  /** The server knows no open session of this id: its description says whether it ever did. */
  | { readonly kind: "gone" }
  /** The session refused, with a code of the list. */
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string }
  /** Another attempt would fail alike. */
  | { readonly kind: "fatal"; readonly code: ErrorCode; readonly message: string };

/** `transport`: the server is away; `worker`: nobody answered; `task`: the session's code fails on its worker. */
export type RetryReason = "transport" | "worker" | "task" | "update";

/** gRPC status codes met here. */
const grpc = {
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

export function classifyFailure(error: unknown): Failure {
  if (error instanceof LonghaulError)
    return { kind: "fatal", code: error.code, message: error.message };
  if (error instanceof WorkflowUpdateFailedError) return classifyUpdate(error.cause);
  if (error instanceof WorkflowNotFoundError) return { kind: "gone" };
  if (error instanceof NamespaceNotFoundError) {
    return {
      kind: "fatal",
      code: "NAMESPACE_NOT_FOUND",
      message: `namespace ${error.namespace} does not exist`,
    };
  }
  if (error instanceof QueryRejectedError) return retry("worker", "the query was rejected");
  if (isAskedTooEarly(error)) return retry("task", askAgain);
  if (error instanceof QueryNotRegisteredError) {
    return {
      kind: "fatal",
      code: "INVARIANT",
      message: `the session could not answer: ${firstLine(error.message)}`,
    };
  }
  const status = grpcStatus(error);
  if (status !== undefined) return classifyStatus(status.code, status.details);
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
    return retry("worker", firstLine(error.message));
  return {
    kind: "fatal",
    code: "INVARIANT",
    message: firstLine(error instanceof Error ? error.message : String(error)),
  };
}

/** True when the session did not answer a query because its next task has to come first (workflows/read-ahead.ts). */
export function isAskedTooEarly(error: unknown): boolean {
  return error instanceof QueryNotRegisteredError && error.message.includes(askAgain);
}

/** True when the server refuses to answer, as opposed to being away. */
export function isForbidden(error: unknown): boolean {
  const code = grpcStatus(error)?.code;
  return (
    code === grpc.permissionDenied || code === grpc.unimplemented || code === grpc.unauthenticated
  );
}

/** True when the server lacks a feature, or has it switched off. */
export function isDisabled(error: unknown): boolean {
  const status = grpcStatus(error);
  return (
    status?.code === grpc.unimplemented ||
    (status?.code === grpc.permissionDenied && /disabled/iu.test(status.details))
  );
}

export function isNotFound(error: unknown): boolean {
  return error instanceof NamespaceNotFoundError || grpcStatus(error)?.code === grpc.notFound;
}

/** First line of a message, for messages of one line. */
export function firstLine(message: string): string {
  return (message.split("\n", 1)[0] ?? "").replace(/\s*Resolution note:\s*$/u, "").trim();
}

function classifyUpdate(cause: unknown): Failure {
  const type = textAt(cause, "type");
  const message = firstLine(textAt(cause, "message") ?? "update failed");
  if (isErrorCode(type)) return { kind: "refused", code: type, message };
  // A query that raced the update on a session just loaded: not carried out, the same id may try again (facts §0.9).
  if (type === "UnprocessedUpdate") return retry("update", message);
  if (type === "AcceptedUpdateCompletedWorkflow") return { kind: "gone" };
  return {
    kind: "fatal",
    code: "INVARIANT",
    message: `the session refused without a known code: ${message}`,
  };
}

function classifyStatus(code: number, details: string): Failure {
  const message = firstLine(details);
  switch (code) {
    case grpc.resourceExhausted:
      // The server answers; the queries that wait for a worker have filled their buffer.
      return retry(/query buffer is full/iu.test(details) ? "worker" : "transport", message);
    case grpc.unavailable:
    case grpc.unknown:
    case grpc.aborted:
    case grpc.outOfRange:
    case grpc.internal:
    case grpc.dataLoss:
      return retry("transport", message);
    case grpc.deadlineExceeded:
    case grpc.cancelled:
      return retry("worker", message);
    case grpc.failedPrecondition:
      // "Workflow Task in failed state", or no poller of the queue was seen lately.
      return retry(/failed state/iu.test(details) ? "task" : "worker", message);
    case grpc.notFound:
      return { kind: "gone" };
    case grpc.permissionDenied:
    case grpc.unauthenticated:
      return { kind: "fatal", code: "AUTH", message: `Temporal refused the caller: ${message}` };
    case grpc.invalidArgument:
      return {
        kind: "fatal",
        code: "INVALID_INPUT",
        message: `Temporal refused the request: ${message}`,
      };
    default:
      return {
        kind: "fatal",
        code: "INVARIANT",
        message: `Temporal answered with status ${code}: ${message}`,
      };
  }
}

/** The gRPC status behind an error of the SDK, which wraps it once or twice. */
function grpcStatus(
  error: unknown,
): { readonly code: number; readonly details: string } | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (isGrpcServiceError(inner)) return { code: inner.code, details: inner.details };
  }
  return undefined;
}

function textAt(value: unknown, key: string): string | undefined {
  const inner: unknown =
    typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return typeof inner === "string" ? inner : undefined;
}

function retry(why: RetryReason, message: string): Failure {
  return { kind: "retry", why, message };
}
