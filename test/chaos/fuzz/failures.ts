import { once } from "node:events";
import type { ErrorCode } from "../../../src/contracts/errors.js";
import { eventStream, status, type Answer } from "../../support/protocol-server.js";
import { event } from "../../support/protocol-wires.js";
import { echoCall, someText, unevenStream, type FailureOutcome, type Making } from "./shot.js";

/** A way in which a request fails. `code` is what it must be told as. */
export interface Failing {
  readonly name: string;
  readonly code: ErrorCode;
  readonly waitMs?: FailureOutcome["waitMs"];
  /** Takes as long as a limit on silence or on the whole call. */
  readonly slow?: "silence" | "deadline";
  readonly answer: (making: Making) => Answer;
}

/** Codes that are asked again (spec/harness §2: the default retry policy). */
export const retriedCodes: ReadonlySet<ErrorCode> = new Set([
  "TRANSPORT",
  "TIMEOUT",
  "SERVER",
  "RATE_LIMIT",
  "EMPTY_RESPONSE",
]);

const page =
  "<!DOCTYPE html>\n<html><head><title>Bad\nGateway</title></head><body><h1>502</h1></body></html>";

const httpFailures: readonly Failing[] = [
  http(400, "invalid_request_error", "BAD_REQUEST"),
  http(401, "authentication_error", "AUTH"),
  http(402, "billing_error", "AUTH"),
  http(403, "permission_error", "AUTH"),
  http(404, "not_found_error", "MODEL_NOT_FOUND"),
  http(408, "timeout", "TIMEOUT"),
  http(413, "request_too_large", "CONTEXT_WINDOW_EXCEEDED"),
  http(422, "invalid_request_error", "BAD_REQUEST"),
  http(429, "rate_limit_error", "RATE_LIMIT"),
  http(500, "api_error", "SERVER"),
  http(503, "api_error", "SERVER"),
  http(529, "overloaded_error", "SERVER"),
  limited("seconds", { "retry-after": "1" }, [1_000, 1_000]),
  limited("milliseconds", { "retry-after-ms": "120" }, [120, 120]),
  limited(
    "a date",
    { date: "Wed, 21 Oct 2015 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2015 07:28:01 GMT" },
    [1_000, 1_000],
  ),
  limited("a date that is over", { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, [0, 0]),
  limited("an hour", { "retry-after": "3600" }),
  limited("nonsense", { "retry-after": "soon" }),
  {
    name: "HTTP 400 about the context length",
    code: "CONTEXT_WINDOW_EXCEEDED",
    answer: ({ wire }) =>
      status(
        400,
        wire.error("invalid_request_error", "This model's maximum context length is 10 tokens."),
      ),
  },
  {
    name: "HTTP 400 of a content filter",
    code: "CONTENT_FILTER",
    answer: ({ wire }) => status(400, wire.error("invalid_request_error", "Content Exists Risk")),
  },
  { name: "HTTP 502 with HTML", code: "SERVER", answer: () => status(502, page) },
  { name: "HTTP 200 with HTML", code: "INVALID_CONFIG", answer: () => status(200, page) },
  { name: "HTTP 404 with HTML", code: "INVALID_CONFIG", answer: () => status(404, page) },
  {
    name: "a redirect",
    code: "INVALID_CONFIG",
    answer: () => status(307, "", { location: "https://example.org/" }),
  },
  {
    name: "an error as JSON under HTTP 200",
    code: "SERVER",
    answer: ({ wire }) => status(200, wire.error("overloaded_error", "Too much.")),
  },
  {
    name: "one JSON answer instead of a stream",
    code: "INVALID_CONFIG",
    answer: () => status(200, { id: "1", choices: [{ message: { content: "hi" } }] }),
  },
];

const brokenConnections: readonly Failing[] = [
  {
    name: "a reset before the answer",
    code: "TRANSPORT",
    answer: () => (response) => void response.socket?.resetAndDestroy(),
  },
  {
    name: "a connection closed without an answer",
    code: "TRANSPORT",
    answer: () => (response) => void response.socket?.end(),
  },
  {
    name: "an answer that is not HTTP",
    code: "TRANSPORT",
    answer: () => (response) => void response.socket?.end("220 mail.example.org ESMTP\r\n"),
  },
  half("a reset in the middle of the reply", "TRANSPORT", "reset"),
  half("a cut in the middle of the reply", "TRANSPORT", "cut"),
  half("an end without a finish reason", "TRANSPORT", "end"),
  {
    name: "a cut in the middle of an event",
    code: "TRANSPORT",
    answer: (making) => {
      const events = halfReply(making).join("");
      return unevenStream(making.random, [events.slice(0, -making.random.between(3, 20))], {
        ending: "cut",
      });
    },
  },
  {
    name: "a cut in the middle of a call's arguments",
    code: "TRANSPORT",
    answer: (making) => {
      const events = making.wire.events({ calls: [echoCall(making)], finish: null, delta: 5 });
      return unevenStream(making.random, events.slice(0, -1), { ending: "cut" });
    },
  },
  {
    name: "a cut after the finish reason",
    code: "TRANSPORT",
    answer: ({ random, wire }) =>
      unevenStream(
        random,
        wire.events({ text: someText(random) }).filter((one) => !one.includes("[DONE]")),
        { ending: "cut" },
      ),
  },
  { name: "an empty event stream", code: "TRANSPORT", answer: () => eventStream([]) },
  { name: "[DONE] alone", code: "TRANSPORT", answer: () => eventStream([event("[DONE]")]) },
];

const silences: readonly Failing[] = [
  {
    name: "a stall before the headers",
    code: "TIMEOUT",
    slow: "silence",
    answer: () => async (response) => void (await once(response, "close")),
  },
  {
    name: "a stall before the first token",
    code: "TIMEOUT",
    slow: "silence",
    answer: ({ random }) => unevenStream(random, [": hello\n\n"], { ending: "stall" }),
  },
  { ...half("a stall in the middle of the reply", "TIMEOUT", "stall"), slow: "silence" },
  {
    name: "keep-alive comments without end",
    code: "TIMEOUT",
    slow: "deadline",
    answer: () => async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const beat = setInterval(() => response.write(": still here\n\n"), 100);
      await once(response, "close");
      clearInterval(beat);
    },
  },
];

const inStream: readonly Failing[] = [
  reported("overloaded_error", "SERVER"),
  reported("rate_limit_error", "RATE_LIMIT"),
  reported("authentication_error", "AUTH"),
  reported("invalid_request_error", "BAD_REQUEST"),
  reported("a_new_kind_of_error", "MODEL_ERROR"),
  {
    name: "an event that is no JSON",
    code: "MODEL_ERROR",
    answer: (making) =>
      unevenStream(making.random, [
        ...(making.random.between(0, 1) === 0 ? [] : halfReply(making)),
        event("{not json"),
        ...making.wire.events({ text: "more" }),
      ]),
  },
  finished("an empty reply", "EMPTY_RESPONSE", (making) => making.wire.words.stop),
  finished("an empty reply that says it calls", "EMPTY_RESPONSE", () => "tool_calls"),
  finished("a provider that runs out of resources", "SERVER", () => "insufficient_system_resource"),
  finished("a finish reason nobody knows", "MODEL_ERROR", () => "because"),
];

export const failings: readonly Failing[] = [
  ...httpFailures,
  ...brokenConnections,
  ...silences,
  ...inStream,
];

function http(code: number, type: string, expected: ErrorCode): Failing {
  return {
    name: `HTTP ${code}`,
    code: expected,
    answer: ({ random, wire }) => status(code, wire.error(type, someText(random))),
  };
}

function limited(
  what: string,
  headers: Readonly<Record<string, string>>,
  waitMs?: FailureOutcome["waitMs"],
): Failing {
  return {
    name: `HTTP 429, Retry-After: ${what}`,
    code: "RATE_LIMIT",
    ...(waitMs !== undefined && { waitMs }),
    answer: ({ wire }) => status(429, wire.error("rate_limit_error", "Slow down."), headers),
  };
}

function halfReply({ random, wire }: Making): readonly string[] {
  return wire.events({ text: someText(random), finish: null, delta: random.between(1, 20) });
}

function half(name: string, code: ErrorCode, ending: "end" | "cut" | "reset" | "stall"): Failing {
  return {
    name,
    code,
    answer: (making) => unevenStream(making.random, halfReply(making), { ending }),
  };
}

function reported(type: string, code: ErrorCode): Failing {
  return {
    name: `${type} in the stream`,
    code,
    answer: (making) =>
      unevenStream(making.random, [
        ...(making.random.between(0, 1) === 0 ? [] : halfReply(making)),
        making.wire.errorEvent(type, someText(making.random)),
      ]),
  };
}

function finished(name: string, code: ErrorCode, word: (making: Making) => string): Failing {
  return {
    name,
    code,
    answer: (making) => unevenStream(making.random, making.wire.events({ finish: word(making) })),
  };
}
