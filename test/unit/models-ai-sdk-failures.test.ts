import { createServer } from "node:net";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import type { ErrorCode } from "../../src/contracts/errors.js";
import type { ModelFailure, ModelOutcome } from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";
import { providersFromEnv } from "../../src/models/providers.js";
import { createModels } from "../../src/models/registry.js";
import { modelRequest } from "../support/model-request.js";
import { eventStream, status, type Answer } from "../support/protocol-server.js";
import {
  deepseekWire,
  envOf,
  event,
  key,
  openaiWire,
  wires,
  type Wire,
} from "../support/protocol-wires.js";
import { openLine } from "../support/provider-line.js";

function failureIn(outcome: ModelOutcome): ModelFailure {
  if (outcome.kind !== "failure")
    throw new Error(`expected a failure, got ${JSON.stringify(outcome)}`);
  const { message } = outcome.failure;
  expect(message).not.toContain(key);
  expect(message).not.toMatch(/<\/?\w|\p{Cc}/u);
  expect(message.length).toBeLessThan(600);
  return outcome.failure;
}

async function fail(wire: Wire, answer: Answer): Promise<ModelFailure> {
  const { ask } = await openLine(wire, answer);
  return failureIn(await ask());
}

const page =
  "<!DOCTYPE html>\n<html><head><title>502 Bad\nGateway</title><style>a{b:c}</style></head>\n<body><h1>Bad Gateway</h1><p>nginx &amp; co</p></body></html>";

describe.each(wires)("a failure of $provider", (wire) => {
  const said = "No such luck, sir.";

  test.each<[number, string, ErrorCode, RegExp]>([
    [
      400,
      "invalid_request_error",
      "BAD_REQUEST",
      /refused the request \(400\): No such luck, sir\./,
    ],
    [
      401,
      "authentication_error",
      "AUTH",
      new RegExp(`refused the key in ${wire.keyVariable} \\(401\\): No such`),
    ],
    [402, "billing_error", "AUTH", /wants the account to be paid up \(402\)/],
    [
      403,
      "permission_error",
      "AUTH",
      new RegExp(`refused the key in ${wire.keyVariable} \\(403\\)`),
    ],
    [
      404,
      "not_found_error",
      "MODEL_NOT_FOUND",
      new RegExp(`does not know the model "${wire.model}" \\(404\\)`),
    ],
    [422, "invalid_request_error", "BAD_REQUEST", /\(422\)/],
    [429, "rate_limit_error", "RATE_LIMIT", /limits the rate of requests \(429\): No such luck/],
    [500, "api_error", "SERVER", /failed on its side \(500\): No such luck/],
    [503, "api_error", "SERVER", /\(503\)/],
    [529, "overloaded_error", "SERVER", /\(529\)/],
  ])(
    "with HTTP %i has its code, the provider's words and no key",
    async (code, type, expected, words) => {
      const failure = await fail(wire, status(code, wire.error(type, said)));
      expect(failure).toMatchObject({
        code: expected,
        status: code,
        message: expect.stringMatching(words) as unknown,
      });
    },
  );

  test("names the wait that Retry-After asks for, in seconds or as a date, whatever the local clock says", async () => {
    const limited = (headers: Record<string, string>) =>
      fail(wire, status(429, wire.error("rate_limit_error", said), headers));
    expect(await limited({ "retry-after": "7" })).toMatchObject({ retryAfterMs: 7000 });
    expect(await limited({ "retry-after-ms": "1250", "retry-after": "2" })).toMatchObject({
      retryAfterMs: 1250,
    });
    const date = "Wed, 21 Oct 2015 07:28:00 GMT";
    expect(await limited({ date, "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT" })).toMatchObject({
      retryAfterMs: 30_000,
    });
    expect(await limited({ date, "retry-after": "Wed, 21 Oct 2015 07:27:00 GMT" })).toMatchObject({
      retryAfterMs: 0,
    });
    expect(await limited({ "retry-after": "soon" })).not.toHaveProperty("retryAfterMs");
    expect(await fail(wire, status(503, page, { "retry-after": "3" }))).toMatchObject({
      code: "SERVER",
      retryAfterMs: 3000,
    });
  });

  test("with a web page of a proxy is one line of its text", async () => {
    expect(await fail(wire, status(502, page))).toEqual({
      code: "SERVER",
      status: 502,
      message: `${wire.provider} failed on its side (502): 502 Bad Gateway Bad Gateway nginx & co`,
    });
  });

  test.each([200, 404])(
    "with a web page instead of an answer (%i) is about the base URL",
    async (code) => {
      const failure = await fail(wire, status(code, page));
      expect(failure.code).toBe("INVALID_CONFIG");
      expect(failure.message).toMatch(
        new RegExp(
          `^expected a model provider at http://127\\.0\\.0\\.1:\\d+${wire.path}, got a web page \\(${code}\\); correct ${wire.baseUrlVariable}$`,
        ),
      );
    },
  );

  test("with a redirect is about the base URL", async () => {
    const failure = await fail(
      wire,
      status(301, "", { location: "https://example.org/elsewhere" }),
    );
    expect(failure).toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringMatching(
        /redirect \(301\) to https:\/\/example\.org\/elsewhere; correct/,
      ) as unknown,
    });
  });

  test("with JSON instead of a stream is the error in it, or the server's lack of streams", async () => {
    expect(await fail(wire, status(200, wire.error("overloaded_error", said)))).toMatchObject({
      code: "SERVER",
    });
    expect(
      await fail(wire, status(200, { id: "1", choices: [{ message: { content: "hi" } }] })),
    ).toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringContaining("does not stream") as unknown,
    });
  });

  test.each<[string, string, ErrorCode]>([
    [
      "invalid_request_error",
      "This model's maximum context length is 131072 tokens. However, you requested 140000.",
      "CONTEXT_WINDOW_EXCEEDED",
    ],
    [
      "invalid_request_error",
      "prompt is too long: 213462 tokens > 200000 maximum",
      "CONTEXT_WINDOW_EXCEEDED",
    ],
    ["context_length_exceeded", "Sorry.", "CONTEXT_WINDOW_EXCEEDED"],
    ["invalid_request_error", "Content Exists Risk", "CONTENT_FILTER"],
    ["content_filter", "The response was filtered.", "CONTENT_FILTER"],
    ["invalid_request_error", "Model Not Exist", "MODEL_NOT_FOUND"],
    ["invalid_request_error", "tools.0.name: too long", "BAD_REQUEST"],
  ])("with HTTP 400, %s: %s is told by its words", async (type, message, code) => {
    expect(await fail(wire, status(400, wire.error(type, message)))).toMatchObject({
      code,
      status: 400,
    });
  });

  test.each<[string, ErrorCode]>([
    ["overloaded_error", "SERVER"],
    ["rate_limit_error", "RATE_LIMIT"],
    ["authentication_error", "AUTH"],
    ["invalid_request_error", "BAD_REQUEST"],
    ["api_error", "SERVER"],
    ["a_new_kind_of_error", "MODEL_ERROR"],
  ])("inside a stream, %s, has its code, first or later", async (type, code) => {
    const sent = wire.errorEvent(type, said);
    for (const before of [[], wire.events({ text: "Let me", finish: null })]) {
      const failure = await fail(wire, eventStream([...before, sent]));
      expect(failure).toMatchObject({ code, message: expect.stringContaining(said) as unknown });
    }
  });

  test("that cannot be read says so", async () => {
    const failure = await fail(wire, eventStream([event("{not json")]));
    expect(failure).toMatchObject({
      code: "MODEL_ERROR",
      message: expect.stringContaining("cannot be read") as unknown,
    });
  });

  test("never shows the key, however the provider quotes it", async () => {
    const quoted = `Incorrect API key provided: ${key}. ${encodeURIComponent(key)}`;
    for (const answer of [
      status(401, wire.error("authentication_error", quoted)),
      status(401, { detail: quoted }),
      status(500, `<html><body>Bearer ${key}</body></html>`),
      eventStream([wire.errorEvent("authentication_error", quoted)]),
    ])
      expect((await fail(wire, answer)).message).toContain("[key]");
  });

  test("is TRANSPORT when nobody listens, when the connection is closed at once, and when it is not HTTP", async () => {
    const dumb = createServer((socket) => socket.on("error", () => {}).end());
    const chatty = createServer((socket) =>
      socket.on("error", () => {}).end("220 mail.example.org ESMTP\r\n"),
    );
    const gone = createServer();
    for (const [server, words] of [
      [dumb, /the other side closed the connection|was reset/],
      [chatty, /not HTTP/],
      [gone, /^cannot reach \S+ at http:\/\/127\.0\.0\.1:\d+: the connection was refused$/],
    ] as const) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      if (server === gone) {
        gone.close();
        await once(gone, "close");
      }
      const failure = failureIn(await askAt(wire, `http://127.0.0.1:${port}`));
      expect(failure).toMatchObject({
        code: "TRANSPORT",
        message: expect.stringMatching(words) as unknown,
      });
      server.close();
    }
  });

  test("is TRANSPORT when the host name is not known", async () => {
    expect(failureIn(await askAt(wire, "http://no-such-host.invalid"))).toMatchObject({
      code: "TRANSPORT",
      message: expect.stringMatching(/host name/) as unknown,
    });
  });
});

function askAt(wire: Wire, url: string): Promise<ModelOutcome> {
  const config = { provider: wire.provider, model: wire.model };
  const { model } = createModels(providersFromEnv(envOf(wire, url))).find(config);
  const { signal } = new AbortController();
  return collectReply(model.stream(modelRequest({ config }), signal), signal);
}

test("errors in other shapes are read as well", async () => {
  for (const body of [
    { error: "Just words" },
    { message: "Just words", code: 400 },
    { object: "error", message: "Just words", type: "BadRequestError", code: 400 },
    { detail: [{ loc: ["body"], msg: "Just words" }] },
    [{ error: { code: 400, message: "Just words", status: "INVALID_ARGUMENT" } }],
    "Just words",
  ])
    expect(await fail(openaiWire, status(400, body))).toMatchObject({
      code: "BAD_REQUEST",
      message: "openai-compatible refused the request (400): Just words",
    });
});

test("a model that is not found is answered with the known ones, nearest first", async () => {
  const { ask } = await openLine(deepseekWire, status(404, { error: { message: "Not Exist" } }));
  const config = { provider: "deepseek", model: "deepseek-v4-pr" };
  const { message } = failureIn(await ask({ config }));
  expect(message).toMatch(/known here: deepseek-v4-pro, /);
});

test("a wait in words is read where there is no header", async () => {
  const limited = (message: string) =>
    fail(openaiWire, status(429, openaiWire.error("rate_limit_exceeded", message)));
  expect(await limited("Please try again in 1m20.5s. Visit …")).toMatchObject({
    retryAfterMs: 80_500,
  });
  expect(await limited("Please try again in 86ms.")).toMatchObject({ retryAfterMs: 86 });
  expect(await limited("Try again later.")).not.toHaveProperty("retryAfterMs");
});

test("a long answer is cut to a line that can be read", async () => {
  const failure = await fail(
    openaiWire,
    status(500, `<html><body>${"ab 😀\u001B[31m\n".repeat(10_000)}</body></html>`),
  );
  expect(failure.message.length).toBeLessThan(700);
  expect(failure.message).toMatch(/…$/);
});
