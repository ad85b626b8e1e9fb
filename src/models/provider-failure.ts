import {
  InvalidArgumentError,
  InvalidPromptError,
  InvalidResponseDataError,
  JSONParseError,
  LoadAPIKeyError,
  NoSuchModelError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { type ErrorCode, LonghaulError } from "../contracts/errors.js";
import type { ModelFailure } from "../contracts/model.js";
import { nearestFirst } from "./nearest.js";
import { plainLine, withoutSecrets } from "./provider-text.js";
import { isUnreadableEvent, reportOf, streamReport, type Report } from "./reported.js";
import { retryAfterInWords, retryAfterOf } from "./retry-after.js";

/** What a failure is told with. */
export interface FailureContext {
  readonly provider: string;
  readonly model: string;
  /** Where requests go, e.g. `https://api.deepseek.com`. */
  readonly origin?: string;
  /** The setting that holds the key, e.g. `DEEPSEEK_API_KEY`. */
  readonly keyFrom?: string;
  /** Models to name when this one is unknown. */
  readonly known?: readonly string[];
  /** Texts that appear in no message. */
  readonly secrets: readonly string[];
}

/**
 * What a thrown error means (spec/harness §2): a report of the provider by its kind and HTTP status, a broken
 * connection TRANSPORT, a request the provider's library refuses BAD_REQUEST, the rest MODEL_ERROR. One line, no secrets.
 */
export function failureOfError(
  error: unknown,
  context: FailureContext,
  begun: boolean,
): ModelFailure {
  const report = reportOf(error);
  return clean(
    report === undefined ? unreported(error, context, begun) : reported(report, context),
    context,
  );
}

/** What an error event in a stream means; `raw` is the event as it came, where the library hands it on. */
export function failureOfEvent(
  error: unknown,
  raw: unknown,
  context: FailureContext,
): ModelFailure {
  if (raw === undefined && error instanceof Error) return failureOfError(error, context, true);
  return clean(reported(streamReport(raw ?? error), context), context);
}

function clean(failure: ModelFailure, { secrets }: FailureContext): ModelFailure {
  return { ...failure, message: withoutSecrets(failure.message, secrets) };
}

function reported(report: Report, context: FailureContext): ModelFailure {
  const code = codeOf(report);
  const { status, headers = {} } = report;
  const retryAfterMs =
    code === "RATE_LIMIT" || code === "SERVER"
      ? (retryAfterOf(headers, Date.now()) ?? retryAfterInWords(report.message))
      : undefined;
  const said = plainLine(withoutSecrets(report.message, context.secrets));
  const number = status === undefined ? "" : ` (${status})`;
  return {
    code,
    message: `${headline(code, report, context)}${number}${said === "" ? "" : `: ${said}`}${hint(code, context)}`,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

const kinds: readonly (readonly [RegExp, ErrorCode])[] = [
  [
    /context_length|context_window|request_too_large|string_above_max_length/,
    "CONTEXT_WINDOW_EXCEEDED",
  ],
  [/content_filter|content_policy|responsibleai/, "CONTENT_FILTER"],
  [/model_not_found|not_found_error|model_not_exist/, "MODEL_NOT_FOUND"],
  [/rate_limit|too_many_requests|resource_exhausted/, "RATE_LIMIT"],
  [/overloaded|server_error|api_error|internal|timeout_error|unavailable/, "SERVER"],
  [/authentication|permission|invalid_api_key|unauthorized|billing/, "AUTH"],
];

/** Only what refuses a request as it is; the same words under another status mean something else. */
const refusals: readonly (readonly [RegExp, ErrorCode])[] = [
  [
    /context (?:length|window|size|limit)|maximum (?:context|prompt|input) length|(?:prompt|input|request) is too long|too many (?:input )?tokens|exceeds? (?:the )?(?:model's )?(?:maximum )?(?:context|number of tokens)|reduce the length|max_model_len/i,
    "CONTEXT_WINDOW_EXCEEDED",
  ],
  [/content exists risk|content (?:management )?policy|content filter|flagged/i, "CONTENT_FILTER"],
  [
    /model .{0,80}(?:not exist|not found|unknown|unsupported)|(?:unknown|invalid|no such) model/i,
    "MODEL_NOT_FOUND",
  ],
];

function codeOf({ status, kind, message }: Report): ErrorCode {
  if (status !== undefined && status !== 400 && status !== 413 && status !== 422)
    return codeOfStatus(status);
  const code =
    refusals.find(([pattern]) => pattern.test(message))?.[1] ??
    kinds.find(([pattern]) => pattern.test(kind))?.[1];
  return code ?? (status === undefined ? "MODEL_ERROR" : codeOfStatus(status));
}

function codeOfStatus(status: number): ErrorCode {
  if (status >= 500) return "SERVER";
  switch (status) {
    case 401:
    case 402:
    case 403:
      return "AUTH";
    case 404:
      return "MODEL_NOT_FOUND";
    case 408:
      return "TIMEOUT";
    case 413:
      return "CONTEXT_WINDOW_EXCEEDED";
    case 429:
      return "RATE_LIMIT";
    default:
      return "BAD_REQUEST";
  }
}

function headline(
  code: ErrorCode,
  { status }: Report,
  { provider, model, keyFrom }: FailureContext,
): string {
  const key = keyFrom === undefined ? "the key" : `the key in ${keyFrom}`;
  switch (code) {
    case "AUTH":
      return status === 402
        ? `${provider} wants the account to be paid up`
        : `${provider} refused ${key}`;
    case "MODEL_NOT_FOUND":
      return `${provider} does not know the model "${model}"`;
    case "RATE_LIMIT":
      return `${provider} limits the rate of requests`;
    case "SERVER":
      return `${provider} failed on its side`;
    case "TIMEOUT":
      return `${provider} took too long`;
    case "CONTEXT_WINDOW_EXCEEDED":
      return `the transcript is longer than ${provider}/${model} can take`;
    case "CONTENT_FILTER":
      return `the content filter of ${provider} stopped the request`;
    case "BAD_REQUEST":
      return `${provider} refused the request`;
    default:
      return `${provider} reported an error`;
  }
}

function hint(code: ErrorCode, { model, known = [] }: FailureContext): string {
  if (code !== "MODEL_NOT_FOUND" || known.length === 0) return "";
  return `; known here: ${nearestFirst(model, known).slice(0, 10).join(", ")}`;
}

function unreported(error: unknown, context: FailureContext, begun: boolean): ModelFailure {
  if (error instanceof LonghaulError) return { code: error.code, message: error.message };
  const { provider, model, known = [] } = context;
  const said = plainLine(error instanceof Error ? error.message : String(error));
  if (LoadAPIKeyError.isInstance(error))
    return { code: "AUTH", message: `${provider} needs a key: ${said}` };
  if (NoSuchModelError.isInstance(error)) {
    const code = "MODEL_NOT_FOUND";
    return {
      code,
      message: `${provider} does not know the model "${model}"${hint(code, { ...context, known })}`,
    };
  }
  if (isRefusedRequest(error))
    return { code: "BAD_REQUEST", message: `${provider} cannot be asked this: ${said}` };
  const network = networkProblem(error);
  if (network !== undefined) {
    const { code, words } = network;
    const where = context.origin === undefined ? "" : ` at ${context.origin}`;
    return {
      code,
      message: begun
        ? `the connection to ${provider} broke off in the middle of its reply: ${words}`
        : `cannot reach ${provider}${where}: ${words}`,
    };
  }
  if (InvalidResponseDataError.isInstance(error) && /finish reason/.test(error.message))
    return cutOff(provider);
  if (isUnreadable(error)) {
    return {
      code: "MODEL_ERROR",
      message: `${provider} answered something that cannot be read: ${said}`,
    };
  }
  return { code: "MODEL_ERROR", message: `${provider} failed: ${said}` };
}

/** A stream that ended as if it were complete, without its last word. */
export function cutOff(provider: string): ModelFailure {
  return { code: "TRANSPORT", message: `the reply of ${provider} ended before it was finished` };
}

function isRefusedRequest(error: unknown): boolean {
  return (
    InvalidArgumentError.isInstance(error) ||
    InvalidPromptError.isInstance(error) ||
    UnsupportedFunctionalityError.isInstance(error)
  );
}

function isUnreadable(error: unknown): boolean {
  return (
    isUnreadableEvent(error) ||
    InvalidResponseDataError.isInstance(error) ||
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error)
  );
}

const networkWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was reset",
  UND_ERR_SOCKET: "the other side closed the connection",
  ENOTFOUND: "the host name is not known",
  EAI_AGAIN: "the host name cannot be looked up at the moment",
  ETIMEDOUT: "the connection was not accepted in time",
  UND_ERR_CONNECT_TIMEOUT: "the connection was not accepted in time",
  EHOSTUNREACH: "there is no way to the host",
  ENETUNREACH: "there is no way to the network",
  UND_ERR_HEADERS_TIMEOUT: "it sent nothing for 300 s",
  UND_ERR_BODY_TIMEOUT: "it sent nothing for 300 s",
};

/** A broken connection somewhere in an error's chain of causes. */
function networkProblem(
  error: unknown,
): { readonly code: ErrorCode; readonly words: string } | undefined {
  const seen = new Set<unknown>();
  let last: string | undefined;
  for (let at: unknown = error; at instanceof Error && !seen.has(at); at = at.cause) {
    seen.add(at);
    const code = "code" in at && typeof at.code === "string" ? at.code : undefined;
    if (code === undefined) {
      if (at instanceof TypeError && /^(?:terminated|fetch failed)$/.test(at.message))
        last ??= at.message;
      continue;
    }
    const silent = code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT";
    const words = networkWords[code];
    if (words !== undefined) return { code: silent ? "TIMEOUT" : "TRANSPORT", words };
    if (code.startsWith("HPE_")) return { code: "TRANSPORT", words: "the answer is not HTTP" };
    if (/^(?:E[A-Z]+|UND_ERR_\w+|ERR_(?:TLS|SSL)\w*|\w*(?:CERT|CRL|SIGNATURE)\w*)$/.test(code))
      last = `${plainLine(at.message)} (${code})`;
  }
  return last === undefined ? undefined : { code: "TRANSPORT", words: last };
}
