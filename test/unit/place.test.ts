import { describe, expect, it, test } from "vitest";
import { close, rebind, resume, suspend } from "../../src/domain/commands.js";
import { presenceOf } from "../../src/domain/place.js";
import { Session } from "../../src/domain/session.js";
import { config, entriesOf, openSession, send } from "../support/session-script.js";

/** A session bound to host a, which has answered at 0, and a clock. */
function boundSession(): { readonly session: Session; readonly clock: { now: number } } {
  const clock = { now: 0 };
  const session = new Session("s1", () => clock.now);
  session.record(
    {
      type: "session/open",
      data: {
        header: { version: 0, id: "s1", createdAt: 0 },
        config: { ...config, worldTools: true, schedule: true },
      },
    },
    { type: "session/bound", data: { host: "a", epoch: 1 } },
    { type: "session/tools", data: { epoch: 1, tools: [], jobKinds: [] } },
  );
  session.answeredAt = 0;
  return { session, clock };
}

const livenessOf = (session: Session) => entriesOf(session, "session/live").map(({ data }) => data);

describe("the presence of a host", () => {
  it("counts for 30 s after an answer, and is not known any more after that", () => {
    const { session, clock } = boundSession();
    expect(presenceOf(session)).toBe("live");
    clock.now = 30_000;
    expect(presenceOf(session)).toBe("live");
    clock.now = 30_001;
    expect(presenceOf(session)).toBe("unknown");
    session.answeredAt = undefined;
    expect(presenceOf(session)).toBe("unknown");
  });

  it("does not matter to a session that is bound to none, and is not asked for while suspended", () => {
    expect(presenceOf(openSession())).toBe("live");
    const { session } = boundSession();
    suspend(session);
    expect(presenceOf(session)).toBe("cold");
  });
});

describe("suspend and resume", () => {
  it("are logged once each, and a repeat changes nothing", () => {
    const session = openSession();
    for (const command of [resume, suspend, suspend, resume, resume])
      expect(command(session)).toEqual({ ok: true });
    expect(livenessOf(session)).toEqual([
      { live: false, why: "suspended", suspended: true, cold: false },
      { live: true, why: "resumed" },
    ]);
    expect(session.state()).toBe("idle");
  });

  it("leave a session cold that was cold", () => {
    const { session } = boundSession();
    session.record({ type: "session/live", data: { live: false, why: "host a did not answer" } });
    suspend(session);
    expect(session.state()).toBe("suspended");
    resume(session);
    expect(session.state()).toBe("cold");
    expect(session.folds.place).toMatchObject({ live: false, suspended: false, cold: true });
  });

  test.each(["followup", "steer"] as const)("a %s resumes, and opens a turn", (mode) => {
    const session = openSession();
    suspend(session);
    send(session, mode, "m");
    expect(session.folds.place.suspended).toBe(false);
    expect(session.shouldRun()).toBe(true);
  });

  test("an injected message does neither, nor does one that is refused or sent twice", () => {
    const session = openSession();
    send(session, "followup", "first");
    suspend(session);
    send(session, "inject", "m");
    expect(send(session, "followup", "first")).toMatchObject({ ok: true });
    expect(send(session, "followup", "first", "other")).toMatchObject({ code: "DUPLICATE_ID" });
    expect(session.state()).toBe("suspended");
    expect(session.shouldRun()).toBe(false);
    // What woke before it was suspended runs when it is resumed.
    resume(session);
    expect(session.shouldRun()).toBe(true);
  });

  it("are refused by a session that is closing", () => {
    const session = openSession();
    close(session, {});
    for (const command of [suspend, resume])
      expect(command(session)).toMatchObject({ ok: false, code: "SESSION_CLOSED" });
  });
});

describe("rebind", () => {
  it("binds, tells the model without waking it, and forgets what the old host answered", () => {
    const { session } = boundSession();
    expect(rebind(session, { host: "b" })).toEqual({ ok: true });
    expect(session.folds.place).toMatchObject({ host: "b", epoch: 2, ready: false });
    expect(presenceOf(session)).toBe("unknown");
    expect(session.effects).toEqual([{ kind: "bind", epoch: 2 }]);
    expect(session.folds.inbox.nextStep.map(({ id }) => id)).toEqual(["bound/2"]);
    expect(session.folds.inbox.wake).toBe(false);
  });

  it("makes a cold session live for the time being, and a suspended one stays suspended", () => {
    const { session } = boundSession();
    session.record({ type: "session/live", data: { live: false, why: "host a did not answer" } });
    suspend(session);
    rebind(session, { host: "b" });
    expect(session.folds.place).toMatchObject({ live: false, suspended: true, cold: false });
  });

  it("to the host it has changes nothing", () => {
    const { session } = boundSession();
    const before = session.log.lastSeq;
    expect(rebind(session, { host: "a" })).toEqual({ ok: true });
    expect(session.log.lastSeq).toBe(before);
    expect(session.effects).toEqual([]);
  });

  test.each([
    ["no host", {}],
    ["an empty name", { host: "" }],
    ["a path", { host: "../b" }],
    ["a name of 201 characters", { host: "b".repeat(201) }],
    ["a number", { host: 7 }],
    ["nothing", undefined],
  ])("refuses %s", (_name, input) => {
    const { session } = boundSession();
    expect(rebind(session, input)).toMatchObject({ ok: false, code: "INVALID_INPUT" });
    expect(session.folds.place.host).toBe("a");
  });

  it("is refused where there are no world tools, and by a session that is closing", () => {
    expect(rebind(openSession(), { host: "b" })).toMatchObject({ code: "INVALID_INPUT" });
    const { session } = boundSession();
    close(session, {});
    expect(rebind(session, { host: "b" })).toMatchObject({ code: "SESSION_CLOSED" });
  });
});
