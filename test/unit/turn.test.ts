import { describe, expect, test } from "vitest";
import { Session } from "../../src/domain/session.js";
import { deriveMessages } from "../../src/domain/surface.js";
import type { Script } from "../support/pure-driver.js";
import {
  calls,
  endsOf,
  entriesOf,
  failure,
  once,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
  typesOf,
  userTexts,
  waitingFor,
} from "../support/session-script.js";

describe("a turn in the log", () => {
  test("[harness/A1] in place of chunks the reply cites its side stream: splice, turn/start, claim, step/start, message, header, context, reply, ends", () => {
    const session = openSession();
    send(session, "followup", "m1", "hello");
    run(session, {
      model: () => ({ ...text("hi"), stream: { stream: "model/1.1.x", bytes: 2 } }),
    });
    expect(typesOf(session)).toEqual([
      "agent/inbox/spliced",
      "turn/start",
      "agent/inbox/spliced",
      "step/start",
      "user/message",
      "request/header",
      "request/context",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    const [, , insert, , claim] = session.log.entries;
    expect(insert?.data).toMatchObject({ target: "next-turn", start: 0, wake: true });
    expect(claim?.data).toEqual({ target: "next-turn", start: 0, removedCount: 1, inserted: [] });
    expect(entriesOf(session, "assistant/message")[0]?.data).toMatchObject({
      turn: 1,
      step: 1,
      stream: { stream: "model/1.1.x", bytes: 2 },
      message: { source: { kind: "model", provider: "scripted", model: "m" } },
    });
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
    expect(session.state()).toBe("idle");
  });

  test("[harness/A2] three followups in one tick are three turns of one message each, numbered upwards", () => {
    const session = openSession();
    for (const id of ["m1", "m2", "m3"]) send(session, "followup", id);
    run(session);
    expect(entriesOf(session, "turn/start").map(({ data }) => data.turn)).toEqual([1, 2, 3]);
    expect(userTexts(session)).toEqual(["m1", "m2", "m3"]);
    const claims = entriesOf(session, "agent/inbox/spliced").filter((e) => e.data.removedCount);
    expect(claims.map(({ data }) => data.removedCount)).toEqual([1, 1, 1]);
  });

  test("a turn's claim takes all next-step input and one prompt, steers first", () => {
    const session = openSession();
    send(session, "followup", "p1");
    send(session, "inject", "i1");
    send(session, "steer", "s1");
    send(session, "followup", "p2");
    const { requests } = run(session);
    expect(userTexts(session)).toEqual(["i1", "s1", "p1", "p2"]);
    expect(requests.map(({ turn, step }) => `${turn}.${step}`)).toEqual(["1.1", "2.1"]);
  });

  test("a followup sent during a turn of several steps waits for a turn of its own", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    const { requests } = run(session, {
      model: saying(calls("t")),
      at: once(waitingFor("tool"), () => send(session, "followup", "m2")),
    });
    expect(requests.map(({ turn, step }) => `${turn}.${step}`)).toEqual(["1.1", "1.2", "2.1"]);
    expect(JSON.stringify(requests[1]?.messages)).not.toContain("m2");
  });

  test("[harness/A3] a message steered in during step 1 is in the request of step 2 of the same turn", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const { requests } = run(session, {
      at: once(waitingFor("model"), () => send(session, "steer", "s1", "rather this")),
    });
    expect(requests.map(({ turn, step }) => [turn, step])).toEqual([
      [1, 1],
      [1, 2],
    ]);
    expect(JSON.stringify(requests[0]?.messages)).not.toContain("rather this");
    expect(JSON.stringify(requests[1]?.messages)).toContain("rather this");
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
  });

  test("[harness/A4] in place of a restart the log is replayed: an inject while idle opens no turn and joins the next woken request", () => {
    const session = openSession();
    send(session, "inject", "i1", "by the way");
    run(session);
    expect(typesOf(session)).toEqual(["agent/inbox/spliced"]);
    const replayed = new Session("s1", () => 0);
    replayed.record(...session.log.entries);
    expect(replayed.shouldRun()).toBe(false);
    expect(replayed.folds.inbox.nextStep.map(({ id }) => id)).toEqual(["i1"]);
    send(replayed, "followup", "m1");
    const { requests } = run(replayed);
    expect(JSON.stringify(requests[0]?.messages)).toContain("by the way");
    expect(requests).toHaveLength(1);
  });

  test("[harness/A5] an inject during a tool body lands after all results of that batch", () => {
    const session = openSession({}, [row("t", { parallel: true })]);
    send(session, "followup", "m1");
    run(session, {
      model: saying(calls("t", "t")),
      at: once(
        (effect) => effect.kind === "wait" && session.log.entries.at(-1)?.type === "tool/call",
        () => send(session, "inject", "i1"),
      ),
    });
    const types = typesOf(session);
    expect(types.lastIndexOf("tool/result")).toBeLessThan(types.lastIndexOf("user/message"));
    expect(session.log.entries.filter((e) => e.type === "user/message")).toHaveLength(2);
  });
});

describe("how a turn ends", () => {
  test("[harness/A11] a reply cut by max-tokens in step 1 dispatches no call and marks the turn, also after a normal step 2", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    const cut = calls("t");
    const { begun, requests } = run(session, {
      model: saying({ ...cut, kind: "reply", finish: "max-tokens" } as typeof cut, text("fine")),
      at: once(waitingFor("model"), () => send(session, "steer", "go on")),
    });
    expect(requests).toHaveLength(2);
    expect(begun.some(({ op }) => op.kind === "tool")).toBe(false);
    expect(entriesOf(session, "assistant/message")[0]?.data).toMatchObject({
      finish: "max-tokens",
      message: { content: [] },
    });
    expect(endsOf(session)).toEqual([{ kind: "max-tokens" }]);
    send(session, "followup", "m2");
    run(session);
    expect(endsOf(session).at(-1)).toEqual({ kind: "completed" });
  });

  test("a result that concludes the turn ends the tool loop, but not input that is already there", () => {
    const script = (session: Session, steer: boolean): Script => ({
      model: saying(calls("t")),
      tools: {
        t: () => {
          if (steer) send(session, "steer", "s1");
          return output("done", { concludesTurn: true });
        },
      },
    });
    for (const steer of [false, true]) {
      const session = openSession({}, [row("t")]);
      send(session, "followup", "m1");
      const { requests } = run(session, script(session, steer));
      expect(requests).toHaveLength(steer ? 2 : 1);
      expect(endsOf(session)).toEqual([{ kind: "completed" }]);
    }
  });

  test("after an error the session parks with its inbox until the next wake", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "followup", "m2");
    run(session, { model: () => failure("AUTH") });
    expect(endsOf(session)).toEqual([{ kind: "error", code: "AUTH", message: "failed with AUTH" }]);
    expect(session.folds.inbox.nextTurn.map(({ id }) => id)).toEqual(["m2"]);
    send(session, "followup", "m3");
    run(session);
    expect(userTexts(session)).toEqual(["m1", "m2", "m3"]);
  });

  test("an entry the log refuses faults the session, and what is open is still closed", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "followup", "m2");
    const { requests } = run(session, {
      policy: { preStep: () => ({ kind: "enter", messages: [{ id: Number.NaN } as never] }) },
    });
    expect(requests).toEqual([]);
    expect(typesOf(session).slice(-3)).toEqual(["step/start", "step/end", "turn/end"]);
    expect(endsOf(session)).toMatchObject([{ kind: "error", code: "INVARIANT" }]);
    expect(session.state()).toBe("faulted");
    expect(send(session, "followup", "m3")).toMatchObject({ ok: false, code: "SESSION_FAULTED" });
    expect(session.shouldRun()).toBe(false);
  });

  test("the same ops settled the same way make the same log, byte for byte", () => {
    const logOf = (): string => {
      const session = openSession({}, [row("t", { parallel: true })]);
      send(session, "followup", "m1");
      run(session, { model: saying(failure("SERVER"), calls("t", "t"), text("bye")) });
      return JSON.stringify(session.log.entries);
    };
    expect(logOf()).toBe(logOf());
  });

  test("history that a model is shown alternates as the log says: user, assistant, results", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    run(session, { model: saying(calls("t")) });
    const roles = deriveMessages(session.log.surface.nodes).map(({ role }) => role);
    expect(roles).toEqual(["user", "assistant", "user", "assistant"]);
  });
});
