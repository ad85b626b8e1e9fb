import { describe, expect, test } from "vitest";
import { cancelAll, close, configure, interrupt } from "../../src/domain/commands.js";
import {
  calls,
  endsOf,
  entriesOf,
  once,
  openSession,
  row,
  run,
  send,
  starting,
  text,
  typesOf,
  userTexts,
  waitingFor,
} from "../support/session-script.js";

describe("aborts", () => {
  test("[harness/A8] a cancel while the model streams keeps the text as interrupted, drops half-built calls and ends the turn aborted by the user", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    const driven = run(session, {
      at: once(waitingFor("model"), () => cancelAll(session, {})),
      model: ({ cancelled }) =>
        cancelled
          ? {
              kind: "cancelled",
              content: [
                { type: "text", text: "I was" },
                { type: "tool-call", callId: "c1", name: "t", arguments: "{" },
              ],
              stream: { stream: "model/1.1.x", bytes: 5 },
            }
          : text("never"),
    });
    expect(entriesOf(session, "assistant/message")[0]?.data).toMatchObject({
      interrupted: true,
      message: { content: [{ type: "text", text: "I was" }] },
      stream: { bytes: 5 },
    });
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
    expect(driven.begun.map(({ op }) => op.kind)).toEqual(["route", "model"]);
    expect(typesOf(session).slice(-2)).toEqual(["step/end", "turn/end"]);
  });

  test("a cancel before anything was streamed leaves no assistant message", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      at: once(waitingFor("model"), () => interrupt(session, { reason: "parent" })),
      model: () => ({ kind: "cancelled", content: [] }),
    });
    expect(entriesOf(session, "assistant/message")).toEqual([]);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "parent" }]);
  });

  test("a reply that was whole when the abort came is kept, and each of its calls gets a result", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    const { begun } = run(session, {
      at: once(starting("model"), () => interrupt(session, {})),
      model: () => calls("t", "t"),
    });
    expect(begun.filter(({ op }) => op.kind === "tool")).toEqual([]);
    expect(entriesOf(session, "tool/result").map(({ data }) => data.error?.code)).toEqual([
      "ABORTED_BEFORE_DISPATCH",
      "ABORTED_BEFORE_DISPATCH",
    ]);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
  });

  test("[harness/A9] an interrupt keeps a queued prompt unrun until a later wake, then runs it first", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "followup", "queued");
    run(session, { at: once(waitingFor("model"), () => interrupt(session, {})) });
    expect(userTexts(session)).toEqual(["m1"]);
    expect(session.shouldRun()).toBe(false);
    send(session, "inject", "quiet");
    expect(session.shouldRun()).toBe(false);
    send(session, "followup", "later");
    run(session);
    expect(userTexts(session)).toEqual(["m1", "quiet", "queued", "later"]);
    expect(endsOf(session).map(({ kind }) => kind)).toEqual(["aborted", "completed", "completed"]);
  });

  test("[harness/A10] a message sent between abort and idle runs afterwards in a turn of its own, also a steer", () => {
    for (const mode of ["followup", "steer"] as const) {
      const session = openSession();
      send(session, "followup", "m1");
      run(session, {
        at: once(waitingFor("model"), () => {
          interrupt(session, {});
          send(session, mode, "after");
        }),
      });
      expect(userTexts(session)).toEqual(["m1", "after"]);
      const inserts = entriesOf(session, "agent/inbox/spliced").filter(
        ({ data }) => data.inserted.length > 0,
      );
      expect(inserts.at(-1)?.data.target).toBe("next-turn");
      expect(endsOf(session).map(({ kind }) => kind)).toEqual(["aborted", "completed"]);
    }
  });

  test("[harness/A10] a message sent after the abort and removed before the session is idle is not run", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      at: once(waitingFor("model"), () => {
        interrupt(session, {});
        send(session, "followup", "after");
        cancelAll(session, {});
      }),
    });
    expect(userTexts(session)).toEqual(["m1"]);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
    expect(session.shouldRun()).toBe(false);
  });

  test("the first cause of an abort wins", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      at: once(waitingFor("model"), () => {
        interrupt(session, { reason: "parent" });
        expect(interrupt(session, { reason: "user" })).toMatchObject({ result: "requested" });
        close(session, {});
      }),
    });
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "parent" }]);
    expect(entriesOf(session, "session/interrupt")).toHaveLength(1);
  });

  test("[harness/A15] a cancel while idle arms nothing: the next prompt runs normally", () => {
    const session = openSession();
    expect(cancelAll(session, {})).toEqual({ ok: true, result: "idle", removed: 0 });
    expect(interrupt(session, {})).toEqual({ ok: true, result: "idle", removed: 0 });
    expect(typesOf(session)).toEqual([]);
    send(session, "followup", "m1");
    run(session);
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
  });

  test("a cancel while idle removes what is queued, next-step first", () => {
    const session = openSession();
    send(session, "followup", "p");
    send(session, "inject", "i");
    expect(cancelAll(session, {})).toEqual({ ok: true, result: "idle", removed: 2 });
    expect(
      entriesOf(session, "agent/inbox/spliced")
        .slice(-2)
        .map(({ data }) => data),
    ).toEqual([
      { target: "next-step", start: 0, removedCount: 1, inserted: [], outcome: "canceled" },
      { target: "next-turn", start: 0, removedCount: 1, inserted: [], outcome: "canceled" },
    ]);
    expect(session.shouldRun()).toBe(false);
  });

  test("an abort before the claim leaves the prompt in the inbox", () => {
    const session = openSession();
    send(session, "followup", "m1");
    const settles = { seen: 0 };
    const { requests } = run(session, {
      at: (effect) => {
        if (effect.kind !== "settle") return;
        settles.seen += 1;
        if (settles.seen === 2) interrupt(session, {});
      },
    });
    expect(typesOf(session).slice(1)).toEqual(["turn/start", "session/interrupt", "turn/end"]);
    expect(requests).toEqual([]);
    expect(session.folds.inbox.nextTurn).toHaveLength(1);
  });

  test("a cancel right before a turn would open leaves no empty turn", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      at: once(
        (effect) => effect.kind === "settle",
        () => cancelAll(session, {}),
      ),
    });
    expect(entriesOf(session, "turn/start")).toEqual([]);
  });

  test("close ends the turn as disposed and no further turn opens", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "followup", "m2");
    run(session, { at: once(waitingFor("model"), () => close(session, { reason: "done" })) });
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "disposed" }]);
    expect(send(session, "followup", "m3")).toMatchObject({ ok: false, code: "SESSION_CLOSED" });
    expect(session.shouldRun()).toBe(false);
  });

  test("a tool table asked for and not got because of an abort is asked for again", () => {
    const session = openSession();
    configure(session, { refreshTools: true });
    send(session, "followup", "m1");
    run(session, { at: once(starting("tools"), () => interrupt(session, {})) });
    send(session, "steer", "m2");
    const { begun } = run(session);
    expect(begun.map(({ op }) => op.kind)).toEqual(["tools", "route", "model"]);
  });
});
