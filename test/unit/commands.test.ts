import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../src/contracts/config.js";
import { commands } from "../../src/contracts/names.js";
import {
  cancelAll,
  close,
  configure,
  interrupt,
  refusalOf,
  rejection,
  sendMessage,
  writeTodos,
} from "../../src/domain/commands.js";
import { maxMessageBytes } from "../../src/domain/guards.js";
import { once, openSession, run, send, typesOf, waitingFor } from "../support/session-script.js";

const good = { id: "m1", mode: "followup", content: "hello" };

describe("session.send", () => {
  test.each<[string, unknown, string]>([
    ["nothing", undefined, "session.send expects an `id` of 1 to 200 characters, got undefined"],
    [
      "an empty id",
      { ...good, id: "" },
      "an `id` of 1 to 200 characters, got text of 0 characters",
    ],
    ["a long id", { ...good, id: "x".repeat(201) }, "got text of 201 characters"],
    ["a number as id", { ...good, id: 7 }, "got 7"],
    ["an id of two lines", { ...good, id: "a\nb" }, "without control characters"],
    ["an id that turns the text around", { ...good, id: "a\u202eb" }, "without control characters"],
    ["an id of the session's own", { ...good, id: "job/bash-1/settled" }, 'begin with "job/"'],
    ["an id of a reminder", { ...good, id: "schedule/1/1" }, 'begin with "schedule/"'],
    ["an unknown mode", { ...good, mode: "shout" }, "`mode` to be one of followup, steer, inject"],
    ["no content", { ...good, content: null }, "`content` to be non-empty text, got null"],
    ["blank content", { ...good, content: " \n" }, "`content` to be non-empty text"],
    ["a list as content", { ...good, content: [] }, "got a list"],
  ])("refuses %s and changes nothing", (_, input, message) => {
    const session = openSession();
    expect(sendMessage(session, input)).toMatchObject({
      ok: false,
      code: "INVALID_INPUT",
      message: expect.stringContaining(message),
    });
    expect(typesOf(session)).toEqual([]);
  });

  test("takes 256 KB of UTF-8 and not a byte more", () => {
    const session = openSession();
    const most = "é".repeat(maxMessageBytes / 2);
    expect(send(session, "followup", "m1", most).ok).toBe(true);
    expect(send(session, "followup", "m2", `${most}a`)).toMatchObject({
      code: "MESSAGE_TOO_LARGE",
      message: expect.stringContaining("at most 262144 bytes, this one has 262145"),
    });
    expect(send(session, "followup", "m3", "😀".repeat(maxMessageBytes / 4)).ok).toBe(true);
  });

  test("a closing session still answers a repeat with the first verdict, and refuses the rest", () => {
    const session = openSession();
    const first = send(session, "followup", "m1");
    close(session, {});
    expect(send(session, "followup", "m1")).toEqual(first);
    expect(send(session, "followup", "m2")).toMatchObject({ ok: false, code: "SESSION_CLOSED" });
    expect(close(session, { reason: "again" })).toEqual({ ok: true });
    expect(session.closing).toEqual({});
  });
});

describe("session.configure", () => {
  test.each<[string, object, string]>([
    [
      "a request without a model",
      { request: { provider: "p" } },
      "needs a `provider` and a `model`",
    ],
    ["a request that is no object", { request: [] }, "`request` must be an object"],
    ["an unknown request key", { request: { provider: "p", model: "m", top: 1 } }, 'no key "top"'],
    [
      "a temperature that is text",
      { request: { provider: "p", model: "m", temperature: "0" } },
      "is a number",
    ],
    ["a token limit of 0", { request: { provider: "p", model: "m", maxTokens: 0 } }, "above 0"],
    ["-0 as temperature", { request: { provider: "p", model: "m", temperature: -0 } }, "is -0"],
    [
      "effort that is no text",
      { request: { provider: "p", model: "m", reasoningEffort: 1 } },
      "is text",
    ],
    [
      "stop words that are no list",
      { request: { provider: "p", model: "m", stop: "x" } },
      "list of texts",
    ],
    ["a system that is no text", { system: 1 }, "`system` is text"],
    ["a deny list of numbers", { deny: [1] }, "`deny` is a list of tool names"],
    ["a pool of 0", { limits: { ...defaultLimits, maxParallelToolCalls: 0 } }, "at least 1"],
    [
      "half a limit",
      { limits: { ...defaultLimits, retryCapMs: 0.5 } },
      "`retryCapMs` is a whole number",
    ],
    ["some of the limits", { limits: { retryCapMs: 1 } }, "needs every one of"],
    ["an unknown limit", { limits: { ...defaultLimits, x: 1 } }, 'no key "x"'],
    ["a workspace", { cwd: "/" }, "`cwd` cannot be changed in an open session"],
    ["an unknown key", { colour: 1 }, "`colour` cannot be changed"],
    [
      "[todo/25] no todo policy",
      { allowParallelInProgress: undefined },
      "$.allowParallelInProgress missing required value",
    ],
    [
      "[todo/25] a todo policy that is text",
      { allowParallelInProgress: "no" },
      "$.allowParallelInProgress expected boolean",
    ],
    ["a list with holes", { deny: Array(2) }, "must be JSON: $.deny[0] is a hole"],
  ])("refuses %s and changes nothing", (_, config, message) => {
    const session = openSession();
    const before = session.config;
    expect(configure(session, { config })).toMatchObject({
      ok: false,
      code: "INVALID_CONFIG",
      message: expect.stringContaining(message),
    });
    expect(session.config).toBe(before);
    expect(typesOf(session)).toEqual([]);
    expect(session.refreshTools).toBe(false);
  });

  test("changes the given part, logs it, and asks for the tool table again only when it has to", () => {
    const session = openSession({ system: "one", deny: ["t"] });
    expect(configure(session, { config: { system: "two" } })).toEqual({ ok: true });
    expect(session.config).toMatchObject({ system: "two", deny: ["t"] });
    expect(typesOf(session)).toEqual(["session/config"]);
    expect(session.refreshTools).toBe(false);
    configure(session, { config: { allowParallelInProgress: false } });
    expect(session.refreshTools).toBe(true);
  });

  test("without a config it only asks for the tool table", () => {
    const session = openSession();
    expect(configure(session, {})).toEqual({ ok: true });
    expect(session.refreshTools).toBe(false);
    expect(configure(session, { refreshTools: true })).toEqual({ ok: true });
    expect(typesOf(session)).toEqual([]);
    expect(session.refreshTools).toBe(true);
  });
});

describe("ending a turn", () => {
  test("says whether a turn is being ended, also when it was asked before", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "inject", "i1");
    run(session, {
      at: once(waitingFor("model"), () => {
        send(session, "followup", "m2");
        expect(interrupt(session, undefined)).toEqual({
          ok: true,
          result: "requested",
          removed: 0,
        });
        expect(interrupt(session, null)).toEqual({ ok: true, result: "requested", removed: 0 });
        expect(cancelAll(session, {})).toEqual({ ok: true, result: "requested", removed: 1 });
      }),
    });
    expect(interrupt(session, {})).toEqual({ ok: true, result: "idle", removed: 0 });
  });
});

const handlers = [
  [commands.send, sendMessage],
  [commands.interrupt, interrupt],
  [commands.cancel, cancelAll],
  [commands.close, close],
  [commands.configure, configure],
  [commands.todoWrite, writeTodos],
] as const;

/** Payloads near the right shape and far from it. */
const payload = fc.oneof(
  fc.anything(),
  fc.record(
    {
      id: fc.anything(),
      mode: fc.oneof(fc.constantFrom("followup", "steer", "inject"), fc.anything()),
      content: fc.anything(),
      reason: fc.anything(),
      refreshTools: fc.anything(),
      config: fc.oneof(
        fc.anything(),
        fc.record(
          {
            request: fc.anything(),
            system: fc.anything(),
            deny: fc.array(fc.anything()),
            limits: fc.anything(),
            outsideWorkspace: fc.anything(),
            allowParallelInProgress: fc.anything(),
          },
          { requiredKeys: [] },
        ),
      ),
      opId: fc.anything(),
      turn: fc.anything(),
      todos: fc.anything(),
    },
    { requiredKeys: [] },
  ),
);

describe("any payload of any command", () => {
  test(
    "is accepted, or refused in one line without a change; the session is never faulted",
    { timeout: 120_000 },
    () => {
      fc.assert(
        fc.property(fc.constantFrom(...handlers), payload, ([name, handle], input) => {
          const session = openSession();
          send(session, "followup", "m0");
          const before = JSON.stringify([session.folds, session.closing, session.refreshTools]);
          const { lastSeq } = session.log;
          const early = refusalOf(session, name, input);
          const verdict = handle(session, input);
          expect(session.fault).toBeUndefined();
          expect(JSON.parse(JSON.stringify(session.folds))).toEqual(session.folds);
          const refusal = verdict.ok ? undefined : verdict;
          expect(refusal?.code ?? "OK").toMatch(/^[A-Z_]+$/u);
          expect(refusal?.message ?? "").not.toMatch(/[\n\r]/u);
          // What an update's validator says first is what the handler says; `todo.write` has none: it logs refusals.
          expect(name === commands.todoWrite ? undefined : refusal).toEqual(early);
          const after = JSON.stringify([session.folds, session.closing, session.refreshTools]);
          const unchanged = session.log.lastSeq === lastSeq && after === before;
          expect(refusal === undefined || name === commands.todoWrite || unchanged).toBe(true);
          expect(session.folds.todo.todos).toBeNull();
          if (refusal !== undefined) session.record(rejection(name, input, refusal));
          expect(session.fault).toBeUndefined();
        }),
        { numRuns: 1_000 },
      );
    },
  );

  test("is refused before history by a closed or faulted session, close excepted", () => {
    const closed = openSession();
    close(closed, {});
    const faulted = openSession();
    faulted.record({ type: "turn/start", data: { turn: Number.NaN } });
    for (const [name] of handlers) {
      const input = name === commands.send ? good : {};
      const codes = [closed, faulted].map((session) => refusalOf(session, name, input)?.code);
      expect(codes).toEqual(
        name === commands.close ? [undefined, undefined] : ["SESSION_CLOSED", "SESSION_FAULTED"],
      );
    }
    for (const handle of [configure, writeTodos, sendMessage]) {
      expect(handle(faulted, good)).toMatchObject({ ok: false, code: "SESSION_FAULTED" });
    }
  });

  test("a validator passes a repeated message and refuses its id for another one", () => {
    const session = openSession();
    send(session, "followup", "m1", "hello");
    close(session, {});
    expect(refusalOf(session, commands.send, good)).toBeUndefined();
    expect(refusalOf(session, commands.send, { ...good, content: "x" })?.code).toBe("DUPLICATE_ID");
  });
});

test("a refused signal is kept with its command, id and cause, cut to size", () => {
  const session = openSession();
  const refusal = { ok: false, code: "INVALID_INPUT", message: "x".repeat(5_000) } as const;
  session.record(rejection("session.send", { id: "y".repeat(500) }, refusal));
  session.record(rejection("session.send", null, refusal));
  expect(session.log.entries.slice(-2).map(({ data }) => data)).toEqual([
    {
      command: "session.send",
      id: "y".repeat(200),
      code: "INVALID_INPUT",
      message: "x".repeat(1_000),
    },
    { command: "session.send", code: "INVALID_INPUT", message: "x".repeat(1_000) },
  ]);
});
