import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NewEntry } from "../../src/contracts/log.js";
import type { LogQuery, SurfaceQuery } from "../../src/contracts/session.js";
import { cancelAll } from "../../src/domain/commands.js";
import { currentDetails, oneLine } from "../../src/domain/details.js";
import { utf8Bytes } from "../../src/domain/guards.js";
import type { Session } from "../../src/domain/session.js";
import { logPage, newestMessages, pageBytes, surfacePage, viewOf } from "../../src/domain/views.js";
import { failure, once, openSession, run, send, waitingFor } from "../support/session-script.js";

function said(text: string): NewEntry {
  return {
    type: "user/message",
    surfaceOp: "append",
    data: {
      message: {
        id: "m",
        role: "user",
        content: [{ type: "text", text }],
        source: { kind: "user" },
      },
    },
  };
}

/** Texts small, large and larger than a page, also in characters of many bytes. */
const sizes = fc.array(
  fc.tuple(
    fc.constantFrom("a", "é", "€", "😀", "\u0001", "\ud800"),
    fc.constantFrom(1, 900, 40_000, 130_000, 300_000),
  ),
  { maxLength: 12 },
);

function filled(parts: readonly (readonly [string, number])[]): Session {
  const session = openSession();
  for (const [unit, count] of parts) session.record(said(unit.repeat(count)));
  return session;
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

describe("pages", () => {
  test(
    "of the log hold at most 256 KB or one entry, and joined they are the log",
    { timeout: 60_000 },
    () => {
      fc.assert(
        fc.property(sizes, fc.integer({ min: 1, max: 20 }), (parts, limit) => {
          const session = filled(parts);
          const joined: unknown[] = [];
          while (joined.length <= session.log.lastSeq) {
            const page = logPage(session, { after: joined.length - 1, limit });
            expect(page.lastSeq).toBe(session.log.lastSeq);
            expect(page.entries.length).toBeGreaterThan(0);
            expect(page.entries.length).toBeLessThanOrEqual(limit);
            expect(page.entries.length === 1 || bytesOf(page) <= pageBytes).toBe(true);
            joined.push(...page.entries);
          }
          expect(joined).toEqual(session.log.entries);
        }),
        { numRuns: 40 },
      );
    },
  );

  test(
    "of the surface hold at most 256 KB or one node, and joined they are the range",
    { timeout: 60_000 },
    () => {
      fc.assert(
        fc.property(sizes, fc.nat(12), fc.nat(12), (parts, a, b) => {
          const session = filled(parts);
          const { nodes, length } = session.log.surface;
          const from = Math.min(a, b, length);
          const to = Math.min(Math.max(a, b), length);
          const joined: unknown[] = [];
          while (joined.length < to - from) {
            const page = surfacePage(session, { from: from + joined.length, to });
            if (!("nodes" in page)) throw new Error(page.message);
            expect(page.length).toBe(length);
            expect(page.nodes.length).toBeGreaterThan(0);
            expect(page.nodes.length === 1 || bytesOf(page) <= pageBytes).toBe(true);
            joined.push(...page.nodes);
          }
          expect(joined).toEqual(nodes.slice(from, to));
        }),
        { numRuns: 40 },
      );
    },
  );

  test("are as full as they can be", () => {
    const session = openSession();
    for (let n = 0; n < 20; n += 1) session.record(said("x".repeat(50_000)));
    expect(logPage(session, { after: 1, limit: 100 }).entries).toHaveLength(5);
  });

  test("count what joins and surrounds the items too", () => {
    const many = filled(Array.from({ length: 2_500 }, () => ["a", 1] as const));
    const page = logPage(many, { after: -1, limit: 5_000 });
    expect(page.entries.length).toBeLessThan(2_500);
    expect(bytesOf(page)).toBeLessThanOrEqual(pageBytes);
    const counts = new Set<number>();
    for (let less = 0; less < 700; less += 7) {
      const session = filled([
        ["a", 130_000],
        ["a", pageBytes - 130_000 - less],
      ]);
      const nodes = surfacePage(session, { from: 0, to: 2 });
      if (!("nodes" in nodes)) throw new Error(nodes.message);
      counts.add(nodes.nodes.length);
      expect(nodes.nodes.length === 1 || bytesOf(nodes) <= pageBytes).toBe(true);
    }
    expect(counts).toEqual(new Set([1, 2]));
  });

  test("past the end are empty, and a query that leaves something out means all", () => {
    const session = filled([["a", 1]]);
    const { lastSeq } = session.log;
    expect(logPage(session, { after: lastSeq, limit: 10 }).entries).toEqual([]);
    expect(logPage(session, { after: 99, limit: 10 }).entries).toEqual([]);
    expect(logPage(session, {} as LogQuery).entries).toHaveLength(lastSeq + 1);
    expect(logPage(session, { after: -7, limit: 0 }).entries).toHaveLength(1);
  });

  test.each([
    [-1, 1],
    [0, 9],
    [1, 0],
    [0.5, 1],
    [undefined, 1],
    ["0", {}],
  ])("of the surface from %j to %j are refused in one line", (from, to) => {
    const page = surfacePage(filled([["a", 1]]), { from, to } as SurfaceQuery);
    expect(page).toMatchObject({
      ok: false,
      code: "INVALID_INPUT",
      message: expect.stringMatching(
        /^session\.surface expects a range within 0\.\.1, got .+\.\..+$/u,
      ),
    });
  });
});

test("UTF-8 lengths are those of an encoder, lone surrogates as the replacement character", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
      ),
      (text) => {
        expect(utf8Bytes(text)).toBe(Buffer.byteLength(text));
      },
    ),
    { numRuns: 1_000 },
  );
  for (const text of [
    "a\ud800",
    "\udc00\ud800",
    "\ud83d\ude00",
    "\ud83d\ud83d\ude00",
    "é€",
    "\u007f",
    "\u0080",
    "\u07ff",
    "\u0800",
    "\uffff",
  ]) {
    expect(utf8Bytes(text)).toBe(Buffer.byteLength(text));
  }
});

describe("the newest messages", () => {
  test("are the end of the transcript, at most a page, but at least the last one", () => {
    fc.assert(
      fc.property(sizes, (parts) => {
        const session = filled(parts);
        const all = session.log.surface.nodes.map((node) => node.message);
        const shown = newestMessages(session);
        expect(shown).toEqual(all.slice(all.length - shown.length));
        expect(shown.length).toBeGreaterThanOrEqual(Math.min(1, all.length));
        // A last message that alone is larger than a page is shown all the same.
        expect(bytesOf(shown.slice(0, -1))).toBeLessThanOrEqual(pageBytes);
        expect(shown.length === 1 || bytesOf(shown) <= pageBytes || all.length === 0).toBe(true);
      }),
    );
  });
});

describe("the view", () => {
  test("shows turn, inbox, end and place of the log, and is plain JSON", () => {
    const session = openSession();
    expect(viewOf(session, undefined)).toMatchObject({
      id: "s1",
      state: "idle",
      ready: true,
      turn: { number: 0, open: false, step: 0 },
      todos: null,
      lastSeq: 1,
    });
    send(session, "followup", "m1");
    send(session, "inject", "i1");
    expect(viewOf(session, "a title")).toMatchObject({
      title: "a title",
      inbox: { nextTurn: ["m1"], nextStep: ["i1"] },
    });
    run(session, {
      model: () => failure("AUTH"),
      at: once(waitingFor("model"), () => {
        expect(viewOf(session, undefined)).toMatchObject({
          state: "running",
          turn: { number: 1, open: true, step: 1 },
          inbox: { nextTurn: [], nextStep: [] },
        });
      }),
    });
    const view = viewOf(session, undefined);
    expect(view.lastEnd).toEqual({
      turn: 1,
      kind: "error",
      code: "AUTH",
      message: "failed with AUTH",
    });
    expect(JSON.parse(JSON.stringify(view))).toEqual(view);
  });

  test("shows the first state that holds: closed, faulted, running, cold, idle", () => {
    const session = openSession();
    expect(session.state()).toBe("idle");
    send(session, "inject", "m0");
    expect(session.state()).toBe("idle");
    session.record({ type: "session/live", data: { live: false, why: "test" } });
    expect(session.state()).toBe("cold");
    send(session, "followup", "m1");
    expect(session.state()).toBe("running");
    session.record({ type: "turn/start", data: { turn: 1 } });
    expect(session.state()).toBe("running");
    session.record({ type: "turn/end", data: { turn: Number.NaN, reason: { kind: "completed" } } });
    expect(session.state()).toBe("faulted");
    session.record({ type: "session/close", data: {} });
    expect(session.state()).toBe("closed");
  });
});

describe("current details", () => {
  test("say in Markdown what the session does, each thing a paragraph of its own", () => {
    const session = openSession();
    expect(currentDetails(session, undefined)).toBe("**idle**");
    send(session, "followup", "m1");
    send(session, "followup", "m2");
    let during = "";
    run(session, {
      at: once(waitingFor("model"), () => {
        session.record({ type: "session/bound", data: { host: "h1", epoch: 1 } });
        const todos = [
          { content: "plan", status: "completed" },
          { content: "do\nit", status: "in_progress" },
          { content: "rest", status: "pending" },
        ] as const;
        session.record({ type: "todo/write", data: { todos } });
        during = currentDetails(session, "calling\nscripted/m");
        cancelAll(session, {});
      }),
      model: () => ({ kind: "cancelled", content: [] }),
    });
    expect(during).toBe(
      [
        "**running** · calling scripted/m",
        "Turn 1, step 1",
        "Inbox: 1 for the next turn, 0 for the next step",
        "Host: `h1`",
        "### Todo",
        "- ☑ plan\n- ▸ **do it**\n- ☐ rest",
      ].join("\n\n"),
    );
    expect(currentDetails(session, undefined)).toContain("\n\nTurn 1 ended: aborted\n\n");
  });

  test("name the error that ended a turn, the host that does not answer, and a fault", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      model: () => ({ kind: "failure", failure: { code: "AUTH", message: "no\nkey" } }),
    });
    session.record({ type: "session/bound", data: { host: "h1", epoch: 1 } });
    session.record({ type: "session/live", data: { live: false, why: "test" } });
    session.record({ type: "turn/start", data: { turn: Number.NaN } });
    const details = currentDetails(session, undefined);
    expect(details).toContain("**faulted**");
    expect(details).toContain("Turn 1 ended: error (AUTH: no key)");
    expect(details).toContain("Host: `h1` (does not answer)");
    expect(details).toContain("Fault: log entry turn/start: $.data.turn is NaN");
  });

  test("an activity's summary is one line, cut without splitting a character", () => {
    expect(oneLine("  a\n\tb  ")).toBe("a b");
    expect(oneLine("x".repeat(121))).toBe(`${"x".repeat(119)}…`);
    expect(oneLine("x".repeat(120))).toHaveLength(120);
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.integer({ min: 2, max: 20 }),
        (text, limit) => {
          const line = oneLine(text, limit);
          expect(line.length).toBeLessThanOrEqual(limit);
          expect(line).not.toMatch(/\p{Surrogate}/u);
        },
      ),
    );
  });
});
