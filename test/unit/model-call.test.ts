import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../src/contracts/config.js";
import { errorCodes, type ErrorCode } from "../../src/contracts/errors.js";
import { cancelAll, interrupt } from "../../src/domain/commands.js";
import { retryDelay } from "../../src/domain/retry.js";
import { deriveMessages } from "../../src/domain/surface.js";
import {
  calls,
  endsOf,
  entriesOf,
  failure,
  once,
  openSession,
  run,
  saying,
  send,
  starting,
  text,
  typesOf,
  waitingFor,
} from "../support/session-script.js";

describe("a model call that fails", () => {
  test("[harness/A12] in place of cited chunks: two failing attempts then success are one turn and one step, and the reply names only its own stream", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const failed = (nonce: string) => ({
      ...failure("SERVER"),
      stream: { stream: `model/1.1.${nonce}`, bytes: 3 },
    });
    const { requests, begun } = run(session, {
      model: saying(failed("a"), failed("b"), {
        ...text("at last"),
        stream: { stream: "model/1.1.c", bytes: 7 },
      }),
    });
    expect(typesOf(session).slice(3)).toEqual([
      "step/start",
      "user/message",
      "request/header",
      "request/context",
      "llm/retry",
      "llm/retry-started",
      "llm/retry",
      "llm/retry-started",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    expect(requests.map(({ retry }) => retry)).toEqual([0, 1, 2]);
    expect(requests[2]?.messages).toEqual(requests[0]?.messages);
    expect(begun.flatMap(({ op }) => (op.kind === "sleep" ? [op.ms] : []))).toEqual([500, 1_000]);
    expect(entriesOf(session, "llm/retry")[1]?.data).toEqual({
      retryId: "retry/1.1.2",
      turn: 1,
      step: 1,
      provider: "scripted",
      mode: "auto",
      policy: "default",
      retry: 2,
      max: 5,
      delayMs: 1_000,
      failure: { code: "SERVER", message: "failed with SERVER" },
    });
    const log = JSON.stringify(session.log.entries);
    expect(log).toContain("model/1.1.c");
    expect(log).not.toMatch(/model\/1\.1\.[ab]/u);
  });

  test("after the last retry the turn ends with the provider's error", () => {
    const session = openSession({ limits: { ...defaultLimits, maxModelRetries: 2 } });
    send(session, "followup", "m1");
    const { requests } = run(session, {
      model: () => ({
        kind: "failure",
        failure: { code: "RATE_LIMIT", message: "slow down", status: 429 },
      }),
    });
    expect(requests).toHaveLength(3);
    expect(endsOf(session)).toEqual([
      { kind: "error", code: "RATE_LIMIT", message: "slow down", status: 429 },
    ]);
    expect(entriesOf(session, "assistant/message")).toEqual([]);
  });

  test("[harness/A13] a cancel during the back-off ends the turn aborted without a second request", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { requests } = run(session, {
      model: () => failure("SERVER"),
      at: once(waitingFor("sleep"), () => cancelAll(session, {})),
    });
    expect(requests).toHaveLength(1);
    expect(entriesOf(session, "llm/retry-started")).toEqual([]);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
  });

  test.each([Number.NaN, -1, Infinity])("a policy that asks to wait %d ms ends the turn", (ms) => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, { model: () => failure("SERVER"), policy: { requestError: () => ms } });
    expect(endsOf(session)).toMatchObject([{ kind: "error", code: "INVARIANT" }]);
    expect(session.fault).toBeUndefined();
  });

  test("a failure that comes after the abort is an abort, not an error", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { requests } = run(session, {
      model: () => failure("SERVER"),
      at: once(starting("model"), () => interrupt(session, {})),
    });
    expect(requests).toHaveLength(1);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
  });

  test("a call cancelled from outside, without an abort, is retried as a transport failure", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      model: saying(
        { kind: "cancelled", content: [{ type: "text", text: "half" }] },
        text("whole"),
      ),
    });
    expect(entriesOf(session, "llm/retry")[0]?.data.failure.code).toBe("TRANSPORT");
    expect(entriesOf(session, "assistant/message")).toHaveLength(1);
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
  });

  test("[harness/S2] a reply without content is kept with its usage and absent from history", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      model: () => ({ kind: "reply", content: [], finish: "stop", usage: { outputTokens: 3 } }),
    });
    expect(entriesOf(session, "assistant/message")[0]?.data).toMatchObject({
      usage: { outputTokens: 3 },
      message: { content: [] },
    });
    expect(deriveMessages(session.log.surface.nodes).map(({ role }) => role)).toEqual(["user"]);
  });

  test("a reply ended by the content filter says so in the log", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, { model: () => text("I", "content-filter") });
    expect(entriesOf(session, "assistant/message")[0]?.data.finish).toBe("content-filter");
  });

  test("a reply keeps calls and reasoning as they came", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const reply = calls({ name: "nope", arguments: '{"a": 1}' });
    const content = [
      { type: "reasoning" as const, text: "hm", replay: { sig: ["x", null] } },
      ...(reply.kind === "reply" ? reply.content : []),
    ];
    run(session, { model: saying({ kind: "reply", content, finish: "tool-calls" }) });
    expect(entriesOf(session, "assistant/message")[0]?.data.message.content).toEqual(content);
  });
});

describe("the delay before a retry", () => {
  const server = { code: "SERVER", message: "x" } as const;

  test.each([
    [1, 0, 450],
    [1, 0.5, 500],
    [1, 0.999_999, 550],
    [2, 0.5, 1_000],
    [3, 0.5, 2_000],
    [4, 0.5, 4_000],
    [5, 0.5, 8_000],
  ])("retry %d with random %d waits %d ms", (retry, random, ms) => {
    expect(retryDelay(server, retry, defaultLimits, random)).toBe(ms);
  });

  test("stops doubling at the cap and gives up after the last retry", () => {
    const limits = { ...defaultLimits, maxModelRetries: 9 };
    expect(retryDelay(server, 6, limits, 0.5)).toBe(10_000);
    expect(retryDelay(server, 9, limits, 0.5)).toBe(10_000);
    expect(retryDelay(server, 10, limits, 0.5)).toBeUndefined();
    expect(retryDelay(server, 1, { ...defaultLimits, maxModelRetries: 0 }, 0.5)).toBeUndefined();
  });

  test.each([
    [0, 0],
    [-5, 0],
    [1_234.6, 1_235],
    [10_000, 10_000],
    [10_001, 500],
  ])("a Retry-After of %d ms makes it %d ms", (retryAfterMs, ms) => {
    expect(retryDelay({ ...server, retryAfterMs }, 1, defaultLimits, 0.5)).toBe(ms);
  });

  test("only transport, time-out, server, rate-limit and empty-reply failures are worth another request", () => {
    const retried = errorCodes.filter(
      (code: ErrorCode) => retryDelay({ code, message: "x" }, 1, defaultLimits, 0.5) !== undefined,
    );
    expect(retried).toEqual(["EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT"]);
  });

  test("is a whole number of ms within 10 % of the doubled base or of the cap", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.nat(5_000),
        fc.nat(60_000),
        (retry, random, retryBaseMs, retryCapMs) => {
          const limits = { ...defaultLimits, maxModelRetries: 40, retryBaseMs, retryCapMs };
          const delay = retryDelay(server, retry, limits, random) ?? Number.NaN;
          const middle = Math.min(retryCapMs, retryBaseMs * 2 ** (retry - 1));
          expect(Number.isInteger(delay)).toBe(true);
          expect(Object.is(delay, -0)).toBe(false);
          expect(Math.abs(delay - middle)).toBeLessThanOrEqual(middle * 0.1 + 0.5);
        },
      ),
    );
  });
});
