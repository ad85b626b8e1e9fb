import { describe, expect, test } from "vitest";
import { builtinPolicy, type SessionPolicy } from "../../src/domain/policy.js";
import {
  endsOf,
  entriesOf,
  failure,
  openSession,
  run,
  send,
  text,
  typesOf,
  userTexts,
} from "../support/session-script.js";

describe("what a policy decides before a step", () => {
  const reject: SessionPolicy = {
    ...builtinPolicy,
    preStep: (_, messages) =>
      messages.some(({ id }) => id === "bad")
        ? { kind: "reject", message: "not this" }
        : { kind: "enter", messages },
  };

  test("[harness/A6] a rejected turn is blocked without step or model call; later prompts stay and the session parks", () => {
    const session = openSession();
    send(session, "followup", "bad");
    send(session, "followup", "next");
    const first = run(session, { policy: reject });
    expect(typesOf(session)).toEqual([
      "agent/inbox/spliced",
      "agent/inbox/spliced",
      "turn/start",
      "agent/inbox/spliced",
      "turn/end",
    ]);
    expect(endsOf(session)).toEqual([{ kind: "blocked", message: "not this" }]);
    expect(first.requests).toEqual([]);
    expect(session.folds.inbox.nextTurn.map(({ id }) => id)).toEqual(["next"]);
    expect(session.shouldRun()).toBe(false);
    send(session, "steer", "wake");
    run(session, { policy: reject });
    expect(userTexts(session)).toEqual(["wake", "next"]);
  });

  test("[harness/A7] a first batch rewritten to empty completes the turn without a step", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { requests } = run(session, {
      policy: { preStep: () => ({ kind: "enter", messages: [] }), runtimeContext: () => "now" },
    });
    expect(typesOf(session).slice(1)).toEqual(["turn/start", "agent/inbox/spliced", "turn/end"]);
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
    expect(requests).toEqual([]);
  });

  test.each<[string, SessionPolicy]>([
    ["preStep", { preStep: () => fail() }],
    ["runtimeContext", { runtimeContext: () => fail() }],
    ["request", { request: () => fail() }],
    ["requestError", { requestError: () => fail() }],
    ["turnStopping", { turnStopping: () => fail() }],
  ])("a throw of %s ends the turn with an error and closes what is open", (_, policy) => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      policy,
      model: () => ("requestError" in policy ? failure("AUTH") : text("ok")),
    });
    expect(endsOf(session)).toMatchObject([{ kind: "error", code: "INVARIANT" }]);
    expect(JSON.stringify(endsOf(session))).toContain("the policy broke");
    expect(entriesOf(session, "step/start")).toHaveLength(entriesOf(session, "step/end").length);
    expect(session.fault).toBeUndefined();
  });

  test("a request that is no usable config ends the turn INVALID_CONFIG, and the session goes on", () => {
    const session = openSession();
    for (const [index, temperature] of [undefined, Number.NaN].entries()) {
      send(session, "followup", `m${index}`);
      const policy = { request: (_: unknown, given: object) => ({ ...given, temperature }) };
      run(session, { policy: policy as unknown as SessionPolicy });
    }
    send(session, "followup", "m3");
    run(session, { policy: { request: (_, given) => ({ ...given, model: "" }) } });
    expect(endsOf(session)).toMatchObject(
      [1, 2, 3].map(() => ({ kind: "error", code: "INVALID_CONFIG" })),
    );
    expect(session.state()).toBe("idle");
  });

  test("the runtime context follows the input, and comes again only when it changed or left the surface", () => {
    const session = openSession();
    let now = "noon";
    const policy: SessionPolicy = { runtimeContext: () => now };
    for (const id of ["m1", "m2"]) {
      send(session, "followup", id);
      run(session, { policy });
    }
    now = "evening";
    send(session, "followup", "m3");
    run(session, { policy });
    expect(userTexts(session)).toEqual(["m1", "noon", "m2", "m3", "evening"]);
    const end = session.log.surface.length;
    session.record({
      type: "user/message",
      surfaceOp: { op: "replace", start: 0, end },
      sourceEventSeqs: session.log.surface.nodes.map(({ seq }) => seq),
      data: {
        message: { id: "k", role: "user", content: [], source: { kind: "plugin", name: "k" } },
      },
    });
    send(session, "followup", "m4");
    run(session, { policy });
    expect(userTexts(session).slice(-2)).toEqual(["m4", "evening"]);
  });

  test("[harness/A14] a turn that is about to end and is objected to takes another step and ends once", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { requests } = run(session, {
      policy: { turnStopping: ({ step }) => (step === 1 ? ["check your work"] : []) },
    });
    expect(requests).toHaveLength(2);
    expect(JSON.stringify(requests[1]?.messages)).toContain("check your work");
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
  });
});

function fail(): never {
  throw new Error("the policy broke");
}
