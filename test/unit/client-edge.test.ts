import { describe, expect, test } from "vitest";
import { listQuery, summarize, type SessionInfo } from "../../src/client/list.js";
import { runsAfter, runsOf, type TextRun } from "../../src/client/text-runs.js";
import { isQuiet } from "../../src/client/wait.js";
import { defaultLimits, type SessionConfig } from "../../src/contracts/config.js";
import { parseInput } from "../../src/contracts/schemas/parse.js";
import { sessionConfigSchema } from "../../src/contracts/schemas/config.js";
import {
  configureSchema,
  createSessionSchema,
  sendSchema,
  sessionIdSchema,
} from "../../src/contracts/schemas/session.js";
import type { SessionView } from "../../src/contracts/session.js";

const config: SessionConfig = {
  request: { provider: "p", model: "m" },
  allowParallelInProgress: false,
  worldTools: true,
  cwd: "/w",
  outsideWorkspace: false,
  deny: [],
  ask: [],
  limits: defaultLimits,
};

describe("input", () => {
  test.each(["a", "s-1.b_C", "x".repeat(200)])("a session id may be %s", (id) => {
    expect(parseInput(sessionIdSchema, id, "session id")).toBe(id);
  });

  test.each(["", "a b", "a/b", "é", "x".repeat(201), 7])("a session id may not be %j", (id) => {
    expect(() => parseInput(sessionIdSchema, id, "session id")).toThrow(
      /^session id: expected 1-200 characters of A-Z a-z 0-9 \. _ -, got /u,
    );
  });

  test("what is wrong is said in one line, with its place and the number of further faults", () => {
    const bad = {
      config: {
        ...config,
        worldTools: "yes",
        cwd: "w",
        limits: { ...defaultLimits, maxInlineBytes: 0 },
      },
    };
    expect(() => parseInput(createSessionSchema, bad, "createSession")).toThrow(
      /^createSession: config\.worldTools: expected boolean, .*got "yes" \(and 2 more\)$/u,
    );
    expect(() =>
      parseInput(sendSchema, { id: "a", mode: "shout", content: "x" }, "message"),
    ).toThrow('message: mode: expected followup, steer or inject, got "shout"');
  });

  test("unknown keys are refused and nothing is filled in", () => {
    expect(() => parseInput(sessionConfigSchema, { ...config, colour: 1 }, "config")).toThrow(
      "colour",
    );
    expect(parseInput(sessionConfigSchema, config, "config")).toEqual(config);
    expect(parseInput(configureSchema, { config: { system: "s" } }, "configure")).toEqual({
      config: { system: "s" },
    });
  });
});

describe("the list", () => {
  const info = (over: Partial<SessionInfo>): SessionInfo => ({
    workflowId: "s",
    status: { name: "RUNNING" },
    startTime: new Date(5),
    searchAttributes: {},
    ...over,
  });

  test("takes the state from the attribute while a session runs, and from its end afterwards", () => {
    const attributed = { searchAttributes: { LonghaulState: ["running"], LonghaulHost: ["h"] } };
    expect(summarize(info(attributed))).toEqual({
      id: "s",
      state: "running",
      host: "h",
      startedAt: 5,
    });
    expect(
      summarize(info({ ...attributed, status: { name: "TERMINATED" }, closeTime: new Date(9) })),
    ).toMatchObject({ state: "terminated", closedAt: 9 });
    expect(summarize(info({ ...attributed, status: { name: "COMPLETED" } })).state).toBe("closed");
    expect(summarize(info({ ...attributed, status: { name: "FAILED" } })).state).toBe("failed");
    expect(summarize(info({ searchAttributes: { LonghaulState: ["odd"] } })).state).toBe("unknown");
    expect(summarize(info({ memo: { title: "T", host: "h", parent: "p" } }))).toEqual({
      id: "s",
      state: "unknown",
      title: "T",
      host: "h",
      parent: "p",
      startedAt: 5,
    });
  });

  test("asks visibility only for attributes that are registered, and keeps the caller's condition together", () => {
    const registered = ["LonghaulState"] as const;
    expect(listQuery({ state: "idle" }, registered)).toContain("LonghaulState = 'idle'");
    expect(listQuery({ state: "idle" }, [])).not.toContain("Longhaul");
    expect(listQuery({ query: "A = 1 OR B = 2" }, registered)).toBe(
      "WorkflowType = 'session' AND ExecutionStatus != 'ContinuedAsNew' AND (A = 1 OR B = 2)",
    );
  });
});

describe("text runs", () => {
  const text = (value: string): TextRun => ({ kind: "text", text: value });
  const reasoning = (value: string): TextRun => ({ kind: "reasoning", text: value });

  test("of a message join text blocks over calls and leave empty ones out", () => {
    const message = {
      id: "a",
      role: "assistant",
      source: { kind: "model" },
      content: [
        { type: "reasoning", text: "r" },
        { type: "text", text: "" },
        { type: "text", text: "a" },
        { type: "tool-call", callId: "c", name: "n", arguments: "{}" },
        { type: "text", text: "b" },
      ],
    } as const;
    expect(runsOf(message)).toEqual([reasoning("r"), text("ab")]);
  });

  test.each<[string, TextRun[], TextRun[], TextRun[] | undefined]>([
    ["nothing shown", [text("ab")], [], [text("ab")]],
    ["all shown", [reasoning("r"), text("ab")], [reasoning("r"), text("ab")], []],
    ["cut within a run", [reasoning("r"), text("ab")], [reasoning("r"), text("a")], [text("b")]],
    ["cut between runs", [reasoning("r"), text("ab")], [reasoning("r")], [text("ab")]],
    ["another text", [text("ab")], [text("x")], undefined],
    ["another kind", [text("ab")], [reasoning("ab")], undefined],
    [
      "an earlier run cut short",
      [reasoning("rs"), text("ab")],
      [reasoning("r"), text("a")],
      undefined,
    ],
    ["more shown than there is", [text("a")], [text("a"), reasoning("r")], undefined],
  ])("what is left to show: %s", (_, whole, shown, rest) => {
    expect(runsAfter(whole, shown)).toEqual(rest);
  });
});

describe("quiet", () => {
  const view = (over: Partial<SessionView>): SessionView => ({
    id: "s",
    state: "idle",
    ready: true,
    header: { version: 0, id: "s", createdAt: 0 },
    config,
    epoch: 0,
    turn: { number: 1, open: false, step: 0 },
    inbox: { nextTurn: [], nextStep: [] },
    todos: null,
    lastSeq: 10,
    ...over,
  });

  test("means no turn, none about to come, and the log beyond the position asked for", () => {
    expect(isQuiet(view({}))).toBe(true);
    expect(isQuiet(view({}), 9)).toBe(true);
    expect(isQuiet(view({}), 10)).toBe(false);
    expect(isQuiet(view({ turn: { number: 1, open: true, step: 1 } }))).toBe(false);
    expect(isQuiet(view({ state: "running" }))).toBe(false);
    expect(isQuiet(view({ inbox: { nextTurn: ["m"], nextStep: [] } }))).toBe(false);
    expect(isQuiet(view({ inbox: { nextTurn: [], nextStep: ["injected"] } }))).toBe(true);
  });

  test("holds for leftovers of a turn that was aborted, and for a session that is closed", () => {
    const left = { inbox: { nextTurn: ["m"], nextStep: [] } };
    expect(isQuiet(view({ ...left, lastEnd: { turn: 1, kind: "aborted" } }))).toBe(true);
    expect(isQuiet(view({ ...left, lastEnd: { turn: 1, kind: "completed" } }))).toBe(false);
    expect(isQuiet(view({ ...left, state: "closed" }), 99)).toBe(true);
  });
});
