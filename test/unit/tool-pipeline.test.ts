import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../src/contracts/config.js";
import type { ToolOutcome } from "../../src/contracts/tools.js";
import type { Op } from "../../src/domain/effects.js";
import { builtinPolicy, type PolicyCall, type SessionPolicy } from "../../src/domain/policy.js";
import { inlineArgumentBytes } from "../../src/domain/tool-entries.js";
import {
  calls,
  endsOf,
  entriesOf,
  openSession,
  output,
  resultTexts,
  row,
  run,
  saying,
  send,
  typesOf,
  userTexts,
} from "../support/session-script.js";

function toolOps(ops: readonly { readonly op: Op }[]) {
  return ops.flatMap(({ op }) => (op.kind === "tool" ? [op] : []));
}

/** A session whose model makes these calls once, run to its end. */
function withCalls(
  made: Parameters<typeof calls>,
  policy: SessionPolicy = builtinPolicy,
  tools: Parameters<typeof run>[1] = {},
) {
  const session = openSession({}, [
    row("t"),
    row("p", { parallel: true }),
    row("timed", { timeoutMs: 500 }),
  ]);
  send(session, "followup", "m1");
  const driven = run(session, { ...tools, policy, model: saying(calls(...made)) });
  const results = entriesOf(session, "tool/result");
  return { session, driven, results };
}

describe("one tool call", () => {
  test("[harness/T1] is in the log before its body starts, and its result cites it", () => {
    const { session, driven, results } = withCalls(["t"]);
    const call = entriesOf(session, "tool/call")[0];
    const body = driven.begun.find(({ op }) => op.kind === "tool");
    expect(body?.lastSeq).toBe(call?.seq);
    expect(body?.op).toMatchObject({ callId: "c1", claim: "1.1.c1", key: "tool/1.1.c1" });
    expect(call?.data).toEqual({ turn: 1, step: 1, callId: "c1", name: "t", arguments: "{}" });
    expect(results[0]?.sourceEventSeqs).toEqual([call?.seq]);
    expect(results[0]?.data.message).toEqual({
      id: "r/1.1.c1",
      role: "user",
      content: [
        {
          type: "tool-result",
          callId: "c1",
          content: [{ type: "text", text: "done" }],
          isError: false,
        },
      ],
      source: { kind: "tool", callId: "c1" },
    });
  });

  test("[harness/T2] denied before execution runs no body, gives one error result, and post-execute sees it", () => {
    const seen: string[] = [];
    const { driven, results, session } = withCalls(["t"], {
      preExecute: () => ({ kind: "deny", reason: "not on a Friday" }),
      postExecute: (_, call, outcome) => {
        seen.push(`${call.name} ${String(outcome.isError)}`);
        return { kind: "accept" };
      },
    });
    expect(toolOps(driven.begun)).toEqual([]);
    expect(results.map(({ data }) => data.error)).toEqual([
      { name: "TOOL_DENIED", code: "TOOL_DENIED" },
    ]);
    expect(resultTexts(session)).toEqual(["Error: not on a Friday"]);
    expect(seen).toEqual(["t true"]);
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
  });

  test("[harness/T3] denied by a guard is denied although pre-execute allowed it", () => {
    const { driven, session } = withCalls(["t"], {
      preExecute: () => ({ kind: "allow" }),
      guard: () => "the guard says no",
    });
    expect(toolOps(driven.begun)).toEqual([]);
    expect(resultTexts(session)).toEqual(["Error: the guard says no"]);
  });

  test("[harness/T4] an ask is logged and rejected by the policy `never`: the body does not run, and later asks are asked anew", () => {
    const session = openSession({ ask: ["t"], deny: ["p"] }, [row("t"), row("p")]);
    send(session, "followup", "m1");
    const driven = run(session, { model: saying(calls("t", "p")) });
    expect(toolOps(driven.begun)).toEqual([]);
    expect(resultTexts(session)).toEqual([
      "Error: t needs an approval, and approvals are not available in this session",
      "Error: the session's configuration denies the tool p",
    ]);
    const pair = session.log.entries.filter((entry) => entry.type.startsWith("approval/"));
    expect(pair.map(({ type, data }) => [type, data])).toEqual([
      [
        "approval/asked",
        { requestId: "approval/1.1.c1", turn: 1, step: 1, callId: "c1", tool: "t" },
      ],
      ["approval/decided", { requestId: "approval/1.1.c1", outcome: "rejected", by: "policy" }],
    ]);
    const called = entriesOf(session, "tool/call")[0]?.seq ?? Number.NaN;
    const answered = entriesOf(session, "tool/result")[0]?.seq ?? Number.NaN;
    expect(pair.map((entry) => entry.seq > called && entry.seq < answered)).toEqual([true, true]);
  });

  test("[harness/B8] in place of a runner that is missing: where bash is denied, nothing of a command runs, with or without a wrapper", () => {
    const session = openSession({ deny: ["bash"] }, [row("bash")]);
    send(session, "followup", "m1");
    const driven = run(session, {
      model: saying(calls({ name: "bash", arguments: '{"command":"true"}' })),
    });
    expect(toolOps(driven.begun)).toEqual([]);
    expect(entriesOf(session, "tool/result").map(({ data }) => data.error?.code)).toEqual([
      "TOOL_DENIED",
    ]);
  });

  test("[harness/T5] [harness/B10] in place of a grant, which nobody can give: each ask is refused, with or without a reason for wider rights", () => {
    const args = JSON.stringify({
      sandbox_permissions: "danger-full-access",
      justification: "please",
    });
    const session = openSession({ ask: ["t"] }, [row("t")]);
    send(session, "followup", "m1");
    const driven = run(session, {
      model: saying(calls({ arguments: args }), calls({ arguments: args })),
    });
    expect(toolOps(driven.begun)).toEqual([]);
    expect(entriesOf(session, "approval/asked")).toHaveLength(2);
    expect(resultTexts(session)).toHaveLength(2);
  });

  test("[harness/T10] a failing body and an unknown tool are error results, and the turn goes on", () => {
    const { results, session, driven } = withCalls(["t", "nope"], builtinPolicy, {
      tools: {
        t: () => ({
          ...output("Error: it broke"),
          isError: true,
          error: { name: "TypeError", code: "TOOL_FAILED" },
        }),
      },
    });
    expect(results.map(({ data }) => data.error?.code)).toEqual(["TOOL_FAILED", "UNKNOWN_TOOL"]);
    expect(resultTexts(session)[1]).toBe(
      'Error: unknown tool "nope"; this session offers todo_write, t, p, timed',
    );
    expect(driven.requests).toHaveLength(2);
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
  });

  test("[harness/T13] blocked after execution gives an error result with the feedback and no value", () => {
    const { results, session } = withCalls(
      ["t"],
      { postExecute: () => ({ kind: "block", feedback: "that leaks a secret" }) },
      { tools: { t: () => output("hunter2", { meta: { exitCode: 0 } }) } },
    );
    expect(resultTexts(session)).toEqual(["Error: that leaks a secret"]);
    expect(results[0]?.data.message.content[0]).toMatchObject({ isError: true });
    expect(results[0]?.data.meta).toBeUndefined();
    expect(JSON.stringify(session.log.entries)).not.toContain("hunter2");
  });

  test("post-execute may replace the content", () => {
    const { session } = withCalls(["t"], {
      postExecute: () => ({ kind: "accept", content: [{ type: "text", text: "shorter" }] }),
    });
    expect(resultTexts(session)).toEqual(["shorter"]);
  });

  test.each<[string, SessionPolicy, string[]]>([
    ["preExecute", { preExecute: () => fail() }, []],
    ["guard", { guard: () => fail() }, []],
    ["deadline", { deadline: () => fail() }, []],
    ["postExecute", { postExecute: () => fail() }, ["p"]],
  ])(
    "a throw of %s is one error result; the stages before the body skip post-execute",
    (name, policy, ran) => {
      const seen: string[] = [];
      const { driven, results, session } = withCalls(["p"], {
        ...(name === "postExecute"
          ? {}
          : {
              postExecute: () => {
                seen.push("post");
                return { kind: "accept" };
              },
            }),
        ...policy,
      });
      expect(toolOps(driven.begun).map(({ row: { name: tool } }) => tool)).toEqual(ran);
      expect(results.map(({ data }) => data.error?.code)).toEqual(["TOOL_FAILED"]);
      expect(resultTexts(session)[0]).toContain("the policy broke");
      expect(seen).toEqual([]);
      expect(endsOf(session)).toEqual([{ kind: "completed" }]);
    },
  );

  test("what an observer throws changes nothing, and what it is shown is frozen", () => {
    const shown: ToolOutcome[] = [];
    const { session } = withCalls(["t"], {
      observe: (_, __, outcome) => {
        shown.push(outcome);
        fail();
      },
    });
    expect(resultTexts(session)).toEqual(["done"]);
    expect(() => Object.assign(shown[0]?.content[0] ?? {}, { text: "x" })).toThrow(TypeError);
  });

  test("arguments are parsed once and frozen: no policy can rewrite them", () => {
    const seen: PolicyCall[] = [];
    const note = (call: PolicyCall): undefined => {
      seen.push(call);
      if (typeof call.args === "object" && call.args !== null)
        Reflect.set(call.args, "path", "/etc");
      return undefined;
    };
    const { driven } = withCalls(
      [
        { name: "t", arguments: '{"path": "/tmp", "deep": [{"x": -0}]}' },
        { arguments: "" },
        { arguments: "{broken" },
      ],
      { guard: (_, call) => note(call), deadline: (_, call) => note(call) },
    );
    expect(seen.map(({ args }) => args)).toEqual([
      { path: "/tmp", deep: [{ x: -0 }] },
      { path: "/tmp", deep: [{ x: -0 }] },
      {},
      {},
      "{broken",
      "{broken",
    ]);
    expect(seen[0]?.args).toBe(seen[1]?.args);
    expect(toolOps(driven.begun)[0]?.args).toEqual({
      inline: '{"path": "/tmp", "deep": [{"x": -0}]}',
    });
  });

  test("arguments nested as deep as a model likes are frozen without a fault", () => {
    const deep = `${'{"a":['.repeat(3_000)}${"]}".repeat(3_000)}`;
    const { session } = withCalls([{ arguments: deep }]);
    expect(resultTexts(session)).toEqual(["done"]);
    expect(session.fault).toBeUndefined();
  });

  test("arguments travel inline up to 256 bytes, larger ones by place, size and digest", () => {
    const small = JSON.stringify({ a: "x".repeat(inlineArgumentBytes - 8) });
    const large = JSON.stringify({ a: "é".repeat(inlineArgumentBytes / 2) });
    const { driven, session } = withCalls([{ arguments: small }, { arguments: large }]);
    const [first, second] = toolOps(driven.begun);
    expect(Buffer.byteLength(small)).toBe(inlineArgumentBytes);
    expect(first?.args).toEqual({ inline: small });
    expect(second?.args).toEqual({
      seq: entriesOf(session, "tool/call")[1]?.seq,
      bytes: Buffer.byteLength(large),
      digest: expect.stringMatching(/^[0-9a-f]{64}$/u),
    });
  });

  test("a policy may shorten a deadline, not lengthen it, and a tool without one has none", () => {
    const deadlines = (policy: SessionPolicy) =>
      toolOps(withCalls(["timed", "t"], policy).driven.begun).map(({ deadlineMs }) => deadlineMs);
    expect(deadlines({})).toEqual([500, undefined]);
    expect(deadlines(builtinPolicy)).toEqual([500, undefined]);
    expect(deadlines({ deadline: () => 100 })).toEqual([100, 100]);
    expect(deadlines({ deadline: () => 9_000 })).toEqual([500, 9_000]);
  });

  test.each<[string, unknown]>([
    ["nothing", null],
    ["no content", { isError: false }],
    ["content that is no text", { content: [{ type: "image" }], isError: false }],
    ["no verdict", { content: [] }],
    ["images that are no list", { content: [], isError: false, images: {} }],
    ["contexts that are no list", { content: [], isError: false, additionalContexts: "x" }],
    ["contexts that are no texts", { content: [], isError: false, additionalContexts: [1] }],
  ])("a tool that returns %s gives one INVALID_TOOL_OUTPUT result", (_, returned) => {
    const { results, session } = withCalls(["t"], builtinPolicy, {
      tools: { t: () => ({ kind: "outcome", outcome: returned as ToolOutcome }) },
    });
    expect(results.map(({ data }) => data.error?.code)).toEqual(["INVALID_TOOL_OUTPUT"]);
    expect(session.fault).toBeUndefined();
  });

  test("a result that the log cannot keep is answered too, and does not fault the session", () => {
    const { results, session } = withCalls(["t"], {
      postExecute: () => ({
        kind: "accept",
        content: [{ type: "text", text: "x", at: Number.NaN } as never],
      }),
    });
    expect(results.map(({ data }) => data.error?.code)).toEqual(["INVALID_TOOL_OUTPUT"]);
    expect(session.fault).toBeUndefined();
  });
});

test("pictures of a result are in the log by reference, and gone when the result is blocked", () => {
  const image = { mediaType: "image/png", stream: "image/1.1.c1", bytes: 3, digest: "00" } as const;
  const tools = { tools: { t: () => output("a picture", { images: [image] }) } };
  const block = (policy: SessionPolicy) =>
    withCalls(["t"], policy, tools).results[0]?.data.message.content[0];
  expect(block({})).toMatchObject({ images: [image] });
  expect(block({ postExecute: () => ({ kind: "block", feedback: "no" }) })).not.toHaveProperty(
    "images",
  );
});

describe("the calls of one reply", () => {
  test("two calls with one id run once: the second is refused", () => {
    const { driven, results } = withCalls([
      { name: "p", callId: "same" },
      { name: "p", callId: "same" },
    ]);
    expect(toolOps(driven.begun)).toHaveLength(1);
    expect(results.map(({ data }) => data.error?.code)).toEqual([undefined, "INVALID_ARGS"]);
  });

  test("an odd call id does not become the key of an activity", () => {
    const odd = ["", "\ud800", "a b", "x".repeat(500)];
    const { driven, results } = withCalls(odd.map((callId) => ({ name: "p", callId })));
    expect(toolOps(driven.begun).map(({ key }) => key)).toEqual([
      "tool/1.1/1",
      "tool/1.1/2",
      "tool/1.1/3",
      "tool/1.1/4",
    ]);
    expect(results).toHaveLength(4);
  });

  test("[harness/T14] contexts of three calls appear after all three results, in call order", () => {
    const { session } = withCalls(["p", "p", "p"], builtinPolicy, {
      tools: {
        p: ({ callId }) => output(callId, { additionalContexts: [`${callId} a`, `${callId} b`] }),
      },
      pick: (open) => open.at(-1),
    });
    expect(resultTexts(session)).toEqual(["c1", "c2", "c3"]);
    expect(userTexts(session).slice(1)).toEqual(["c1 a", "c1 b", "c2 a", "c2 b", "c3 a", "c3 b"]);
    const types = typesOf(session);
    expect(types.indexOf("user/message", types.lastIndexOf("tool/result"))).toBeGreaterThan(0);
    expect(types.filter((type) => type === "step/start")).toHaveLength(2);
  });

  test("the pool holds what the configuration says, at least one", () => {
    for (const maxParallelToolCalls of [0, 1, 3]) {
      const session = openSession({ limits: { ...defaultLimits, maxParallelToolCalls } }, [
        row("p", { parallel: true }),
      ]);
      send(session, "followup", "m1");
      const { begun } = run(session, { model: saying(calls("p", "p", "p", "p", "p")) });
      const most = Math.max(...begun.map(({ beside }) => beside.length + 1));
      expect(most).toBe(Math.max(1, maxParallelToolCalls));
      expect(resultTexts(session)).toHaveLength(5);
    }
  });
});

function fail(): never {
  throw new Error("the policy broke");
}
