import { describe, expect, test } from "vitest";
import { cancelAll, interrupt } from "../../src/domain/commands.js";
import { seenWindow } from "../../src/domain/inbox.js";
import { Session } from "../../src/domain/session.js";
import {
  config,
  entriesOf,
  once,
  openSession,
  run,
  send,
  userTexts,
  waitingFor,
} from "../support/session-script.js";

describe("a message's id", () => {
  test("sent again with the same mode and content gets the first verdict and is one message", () => {
    const session = openSession();
    const first = send(session, "followup", "m1", "hello");
    expect(first).toEqual({ ok: true, id: "m1", seq: session.log.lastSeq });
    expect(send(session, "followup", "m1", "hello")).toEqual(first);
    run(session);
    expect(send(session, "followup", "m1", "hello")).toEqual(first);
    run(session);
    expect(userTexts(session)).toEqual(["hello"]);
  });

  test("sent again for another content or mode is refused and changes nothing", () => {
    const session = openSession();
    send(session, "followup", "m1", "hello");
    const { lastSeq } = session.log;
    for (const again of [
      send(session, "followup", "m1", "bye"),
      send(session, "steer", "m1", "hello"),
    ]) {
      expect(again).toMatchObject({
        ok: false,
        code: "DUPLICATE_ID",
        message: expect.stringContaining(
          `"m1" was already used for another message (entry ${lastSeq})`,
        ),
      });
    }
    expect(session.log.lastSeq).toBe(lastSeq);
  });

  test("is still known when its steer went to the next turn, and after it was cancelled", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      at: once(waitingFor("model"), () => {
        interrupt(session, {});
        send(session, "steer", "s1");
        cancelAll(session, {});
        send(session, "steer", "s1");
      }),
    });
    expect(session.folds.inbox.nextTurn).toEqual([]);
    expect(userTexts(session)).toEqual(["m1"]);
  });

  test("is remembered within the window, and beyond it while its message is pending", () => {
    const session = openSession();
    send(session, "inject", "pending");
    send(session, "followup", "p1");
    for (let n = 0; n < seenWindow + 5; n += 1) {
      send(session, "followup", `m${n}`);
      cancelled(session, `m${n}`);
    }
    expect(session.folds.inbox.seen).toHaveLength(seenWindow + 2);
    const { lastSeq } = session.log;
    expect(send(session, "inject", "pending")).toMatchObject({ ok: true, seq: 2 });
    expect(send(session, "followup", "p1")).toMatchObject({ ok: true, seq: 3 });
    expect(send(session, "followup", `m${seenWindow + 4}`)).toMatchObject({ ok: true });
    expect(session.log.lastSeq).toBe(lastSeq);
    expect(send(session, "followup", "m4")).toMatchObject({ seq: lastSeq + 1 });
  });
});

describe("waking", () => {
  test("an inject never wakes; a followup and a steer do", () => {
    for (const [mode, wakes] of [
      ["inject", false],
      ["followup", true],
      ["steer", true],
    ] as const) {
      const session = openSession();
      send(session, mode, "m1");
      expect(session.shouldRun()).toBe(wakes);
    }
  });

  test("an inject to a parked session does not run what is parked", () => {
    const session = openSession();
    send(session, "followup", "m1");
    send(session, "followup", "m2");
    run(session, { at: once(waitingFor("model"), () => interrupt(session, {})) });
    send(session, "inject", "i1");
    expect(session.shouldRun()).toBe(false);
    expect(session.folds.inbox.nextTurn.map(({ id }) => id)).toEqual(["m2"]);
  });

  test("a session without a tool table waits for it", () => {
    const session = new Session("s1", () => 0);
    const header = { version: 0, id: "s1", createdAt: 0 } as const;
    session.record({ type: "session/open", data: { header, config } });
    send(session, "followup", "m1");
    expect(session.shouldRun()).toBe(false);
    session.record({ type: "session/tools", data: { epoch: 0, tools: [], jobKinds: [] } });
    expect(session.shouldRun()).toBe(true);
  });

  test("every splice says where: a claim has no outcome, a removal is canceled", () => {
    const session = openSession();
    send(session, "steer", "s1");
    send(session, "inject", "i1");
    run(session);
    send(session, "inject", "i2");
    cancelAll(session, {});
    expect(
      entriesOf(session, "agent/inbox/spliced").map(({ data }) => [
        data.target,
        data.start,
        data.inserted.map(({ id }) => id),
        data.removedCount,
        data.outcome,
      ]),
    ).toEqual([
      ["next-step", 0, ["s1"], undefined, undefined],
      ["next-step", 1, ["i1"], undefined, undefined],
      ["next-step", 0, [], 2, undefined],
      ["next-step", 0, ["i2"], undefined, undefined],
      ["next-step", 0, [], 1, "canceled"],
    ]);
  });
});

/** Takes the newest prompt out again, as a queue's editor would. */
function cancelled(session: ReturnType<typeof openSession>, id: string): void {
  const start = session.folds.inbox.nextTurn.findIndex((message) => message.id === id);
  session.record({
    type: "agent/inbox/spliced",
    data: { target: "next-turn", start, removedCount: 1, inserted: [], outcome: "canceled" },
  });
}

test("a cancel leaves the reminders that were delivered into the inbox, in their order", () => {
  const session = openSession();
  const remind = (id: string): void =>
    void session.record({
      type: "agent/inbox/spliced",
      data: {
        target: "next-turn",
        start: session.folds.inbox.nextTurn.length,
        inserted: [
          {
            id,
            role: "user",
            content: [{ type: "text", text: id }],
            source: { kind: "plugin", plugin: "schedule" },
          },
        ],
      },
    });
  send(session, "followup", "a");
  remind("schedule/1/x");
  send(session, "followup", "b");
  send(session, "followup", "c");
  remind("schedule/2/x");
  send(session, "inject", "d");
  expect(cancelAll(session, {})).toMatchObject({ removed: 4 });
  const { nextTurn, nextStep } = session.folds.inbox;
  expect([nextTurn.map(({ id }) => id), nextStep]).toEqual([["schedule/1/x", "schedule/2/x"], []]);
});
