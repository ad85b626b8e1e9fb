import { APICallError } from "@ai-sdk/provider";
import type { Headers } from "./retry-after.js";

/** What a provider reported, before it is given a code. */
export interface Reported {
  readonly status?: number;
  readonly headers?: Headers;
  /** The answer's text. */
  readonly body?: string;
}

/** A provider's report that came by another way than an HTTP status. */
export class ReportedError extends Error {
  override readonly name = "ReportedError";
  readonly reported: Reported;

  constructor(reported: Reported) {
    super("the provider reported an error");
    this.reported = reported;
  }
}

/** A report read: its words and its kind. */
export interface Report extends Reported {
  readonly message: string;
  /** The provider's own words for the kind of error, lower case, e.g. `rate_limit_error context_length_exceeded`. */
  readonly kind: string;
}

/** The report in an error of a provider's library; undefined when the error reports nothing of the provider. */
export function reportOf(error: unknown): Report | undefined {
  if (error instanceof ReportedError) return read(error.reported);
  if (!APICallError.isInstance(error) || error.statusCode === undefined) return undefined;
  // 2xx: the answer broke while it was read, which is no report.
  if (error.statusCode < 300) return undefined;
  const { responseHeaders: headers = {}, responseBody: body = "" } = error;
  // The error was the first event of a stream; its status is made up by the library.
  if (headers["content-type"]?.includes("event-stream") === true)
    return isUnreadableEvent(error) ? undefined : read({ body });
  return read({ status: error.statusCode, headers, body });
}

/** Is this the complaint of a provider's library about a first event that is not of its protocol? */
export function isUnreadableEvent(error: unknown): boolean {
  return APICallError.isInstance(error) && /^\{"name":"AI_\w+Error"/.test(error.responseBody ?? "");
}

/** The report in an event of a stream. */
export function streamReport(event: unknown): Report {
  return read({ body: typeof event === "string" ? event : JSON.stringify(event) });
}

function read(reported: Reported): Report {
  const body = reported.body ?? "";
  const { message = body, kinds = [], status } = fieldsOf(parsed(body));
  const told =
    kinds.map((kind) => statusOfType[kind]).find((known) => known !== undefined) ?? status;
  return {
    ...reported,
    ...(reported.status === undefined && told !== undefined && { status: told }),
    message,
    kind: kinds.join(" ").toLowerCase(),
  };
}

/** Error types that stand for one HTTP status each, also where they come inside a stream. */
const statusOfType: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

interface Fields {
  readonly message?: string;
  readonly kinds?: readonly string[];
  readonly status?: number;
}

/** The usual shapes: `{error: {message, type, code}}`, `{error: "…"}`, `{message, code}`, `{detail: "…" | [{msg}]}`. */
function fieldsOf(value: unknown): Fields {
  if (Array.isArray(value)) return fieldsOf(value[0]);
  if (typeof value === "string") return { message: value };
  if (!isRecord(value)) return {};
  const nested = value["error"] ?? value["errors"];
  if (nested !== undefined && nested !== null) return fieldsOf(nested);
  const { message, msg, detail, type, code, status } = value;
  const text = message ?? msg;
  const http = [code, status].map(Number).find((n) => Number.isInteger(n) && n >= 400 && n < 600);
  return {
    ...(typeof text === "string"
      ? { message: text }
      : detail === undefined
        ? {}
        : pick(fieldsOf(detail))),
    kinds: [type, code, status].filter((kind) => typeof kind === "string"),
    ...(http !== undefined && { status: http }),
  };
}

function pick({ message }: Fields): Fields {
  return message === undefined ? {} : { message };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null;
}
