import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Cards } from "../../src/cli/chat/cards.js";
import { footerLines } from "../../src/cli/chat/footer.js";
import { machineZone } from "../../src/time/zones.js";
import { Outbox, type Outgoing } from "../../src/cli/chat/outbox.js";
import { catchUp, lastSeen, rememberSeen } from "../../src/cli/chat/seen.js";
import { Situation } from "../../src/cli/chat/situation.js";
import { parseSlash } from "../../src/cli/chat/slash.js";
import type { SendOptions } from "../../src/client/types.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { EventData, EventType, LogEntry } from "../../src/contracts/log.js";
import type { Terminal } from "../../src/cli/render/terminal.js";

const terminal: Terminal = { color: false, unicode: true, columns: 40, live: false };

function log(...entries: readonly { [T in EventType]: readonly [T, EventData[T]] }[EventType][]) {
  return entries.map(([type, data], seq) => ({ type, data, seq, time: 0 }) as LogEntry);
}

const user = (id: string, text: string, kind = "user") => ({
  id,
  role: "user" as const,
  content: [{ type: "text" as const, text }],
  source: { kind },
});
const call = (
  callId: string,
  name: string,
  args: string,
): readonly ["tool/call", EventData["tool/call"]] => [
  "tool/call",
  { turn: 1, step: 1, callId, name, arguments: args },
];
const result = (
  callId: string,
  text: string,
  isError = false,
): readonly ["tool/result", EventData["tool/result"]] => [
  "tool/result",
  {
    turn: 1,
    step: 1,
    message: {
      id: `r-${callId}`,
      role: "user",
      content: [{ type: "tool-result", callId, content: [{ type: "text", text }], isError }],
      source: { kind: "tool" },
    },
  },
];

describe("slash commands", () => {
  it.each([
    ["/queue do this\nand that", { type: "queue", text: "do this\nand that" }],
    ["/open 12", { type: "open", number: 12 }],
    ["/open", { type: "open", number: undefined }],
    ["/TODO ", { type: "todo" }],
    ["/compact", { type: "compact" }],
    ["/exit", { type: "quit" }],
    ["/etc/passwd is wrong", { type: "message", text: "/etc/passwd is wrong" }],
    [" /todo", { type: "message", text: " /todo" }],
    ["// a comment", { type: "message", text: "// a comment" }],
    ["plain", { type: "message", text: "plain" }],
  ])("reads %j", (text, slash) => expect(parseSlash(text)).toEqual(slash));

  it.each([
    ["/queue ", "/queue expected a text after it"],
    ["/open last", '/open expected a number, got "last"'],
    ["/quit now", '/quit takes nothing after it; got "now"'],
    ["/intrrupt", "unknown command /intrrupt; did you mean /interrupt? (see /help)"],
    ["/zzz", "unknown command /zzz (see /help)"],
  ])("says what is wrong with %j", (text, message) =>
    expect(parseSlash(text)).toEqual({ type: "mistake", message }),
  );
});

describe("cards", () => {
  it("are numbered by their results and open into arguments and output", () => {
    const cards = new Cards();
    for (const entry of log(
      call("b", "bash", JSON.stringify({ command: "one\ntwo", n: 3 })),
      call("a", "todo_write", "{}"),
      call("c", "read", "not json\u001b[31m"),
      result("a", "written"),
      result("c", "red \u001b[31mtext\n"),
      result("b", ""),
    ))
      cards.entry(entry);
    expect(cards.last).toBe(2);
    expect(cards.open(1)).toEqual(["[1] read", "  not json", "  | red text"]);
    expect(cards.open(2)).toEqual([
      "[2] bash",
      "  command: one",
      "    two",
      "  n: 3",
      "  | (no output)",
    ]);
    expect([cards.open(0), cards.open(3)]).toEqual([undefined, undefined]);
  });

  it("number a refused todo list too, and forget what is long ago", () => {
    const cards = new Cards();
    for (const entry of log(call("a", "todo_write", "{}"), result("a", "bad", true)))
      cards.entry(entry);
    expect(cards.last).toBe(1);
    for (let n = 0; n < 500; n++)
      for (const entry of log(call("b", "bash", "{}"), result("b", String(n)))) cards.entry(entry);
    expect(cards.last).toBe(501);
    expect(cards.open(1)).toBeUndefined();
    expect(cards.open(2)?.at(-1)).toBe("  | 0");
    expect(cards.open(501)?.at(-1)).toBe("  | 499");
  });
});

describe("what a session is at", () => {
  const facts = (situation: Situation, waiting: readonly Outgoing[] = [], more = {}) => ({
    situation,
    outbox: { waiting, trouble: undefined },
    calls: "",
    interrupted: false,
    fresh: false,
    ...more,
  });

  it("follows turns, thought, the connection and the messages that wait", () => {
    const situation = new Situation();
    expect(footerLines(facts(situation), terminal)).toEqual([]);
    expect(footerLines(facts(situation, [], { fresh: true }), terminal)[0]).toMatch(/^Enter sends/);
    const entries = log(
      ["turn/start", { turn: 1 }],
      [
        "agent/inbox/spliced",
        { target: "next-turn", start: 0, inserted: [user("q", "later\non")] },
      ],
      [
        "agent/inbox/spliced",
        { target: "next-step", start: 0, inserted: [user("s", "now"), user("p", "x", "plugin")] },
      ],
      ["agent/inbox/spliced", { target: "next-step", start: 0, removedCount: 2, inserted: [] }],
      ["turn/end", { turn: 1, reason: { kind: "completed" } }],
    );
    const shown: (readonly string[])[] = [];
    for (const entry of entries) {
      situation.event({ type: "entry", entry });
      shown.push(footerLines(facts(situation), terminal));
    }
    const working = "○ working; Ctrl-C interrupts";
    expect(shown).toEqual([
      [working],
      [working, "next turn  later on"],
      [working, "next step  now", "next turn  later on"],
      [working, "next turn  later on"],
      ["next turn  later on"],
    ]);
    situation.event({ type: "entry", entry: { ...log(["turn/start", { turn: 2 }])[0]!, seq: 5 } });
    situation.event({ type: "delta", turn: 2, step: 1, kind: "reasoning", text: "hm" });
    expect(footerLines(facts(situation), terminal)[0]).toBe("○ thinking; Ctrl-C interrupts");
    expect(footerLines(facts(situation, [], { calls: "○ bash  ls" }), terminal)[0]).toBe(
      "○ bash  ls",
    );
    expect(footerLines(facts(situation, [], { interrupted: true }), terminal)[0]).toMatch(
      /interrupting/,
    );
    situation.event({ type: "connection", up: false, message: "no worker answered" });
    expect(footerLines(facts(situation), terminal)[0]).toBe("waiting: no worker answered");
    situation.event({ type: "connection", up: true, message: "" });
    expect(footerLines(facts(situation), terminal)[0]).toBe("○ thinking; Ctrl-C interrupts");
  });

  it("shows a message that is on its way until the session has it, few of many, and no row too wide", () => {
    const situation = new Situation();
    const outgoing = ["a", "b", "c", "d", "e"].map((id) => ({
      id,
      text: `${id} ${"long ".repeat(20)}`,
      mode: "steer" as const,
    }));
    expect(footerLines(facts(situation, outgoing.slice(0, 1)), terminal)).toEqual([
      `sending  a ${"long ".repeat(20)}`.slice(0, 38) + "…",
    ]);
    const lines = footerLines(facts(situation, outgoing), terminal);
    expect(lines).toHaveLength(4);
    expect(lines[3]).toBe("and 2 more");
    const [entry] = log([
      "agent/inbox/spliced",
      { target: "next-step", start: 0, inserted: [user("a", "taken")] },
    ]);
    if (entry !== undefined) situation.event({ type: "entry", entry });
    expect(footerLines(facts(situation, outgoing.slice(0, 1)), terminal)).toEqual([
      "next step  taken",
    ]);
  });
});

describe("the outbox", () => {
  function outbox(send: (text: string, options: SendOptions) => Promise<number>) {
    const refused: string[] = [];
    const troubles = new Set<string | undefined>();
    const box: Outbox = new Outbox(
      {
        send: async (text, options = {}) => ({
          ok: true,
          id: options.id ?? "",
          seq: await send(text, options),
        }),
      },
      {
        changed: () => troubles.add(box.trouble),
        refused: (message) => refused.push(message.text),
      },
      1,
    );
    return { box, refused, troubles };
  }

  it("sends in order, and a message that got no answer again under the same id", async () => {
    const sent: (readonly [string, string | undefined, string | undefined])[] = [];
    const { box, refused, troubles } = outbox((text, { id, mode, timeZone }) => {
      expect(timeZone).toBe(machineZone());
      sent.push([text, mode, id]);
      return sent.length < 3
        ? Promise.reject(new LonghaulError("NO_WORKER", "no worker"))
        : Promise.resolve(sent.length);
    });
    box.add("one", "steer");
    box.add("two", "followup");
    await box.empty();
    expect(troubles).toContain("no worker");
    expect(sent.map(([text, mode]) => [text, mode])).toEqual([
      ["one", "steer"],
      ["one", "steer"],
      ["one", "steer"],
      ["two", "followup"],
    ]);
    const ids = sent.map(([, , id]) => id);
    expect(new Set(ids.slice(0, 3)).size).toBe(1);
    expect(new Set(ids).size).toBe(2);
    expect(refused).toEqual([]);
    expect([box.waiting, box.trouble]).toEqual([[], undefined]);
  });

  it("gives up what the session refuses, and goes on with the next", async () => {
    const { box, refused } = outbox((text) =>
      text === "large"
        ? Promise.reject(new LonghaulError("MESSAGE_TOO_LARGE", "too large"))
        : Promise.resolve(1),
    );
    box.add("large", "steer");
    box.add("small", "steer");
    await box.empty();
    expect(refused).toEqual(["large"]);
    expect(box.waiting).toEqual([]);
  });

  it("tries no more once it is stopped, and still knows what was not sent", async () => {
    let attempts = 0;
    const { box } = outbox(() => {
      attempts += 1;
      return Promise.reject(new LonghaulError("TEMPORAL_UNREACHABLE", "away"));
    });
    box.add("unsent", "steer");
    await vi.waitFor(() => expect(attempts).toBeGreaterThan(1), { timeout: 10_000 });
    box.stop();
    await box.empty();
    const before = attempts;
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(attempts).toBe(before);
    expect(box.waiting.map((one) => one.text)).toEqual(["unsent"]);
  });
});

describe("coming back", () => {
  const turn = (n: number) =>
    [
      ["agent/inbox/spliced", { target: "next-turn", start: 0, inserted: [user(`m${n}`, "hi")] }],
      ["turn/start", { turn: n }],
      ["user/message", { message: user(`m${n}`, "hi") }],
      ["turn/end", { turn: n, reason: { kind: "completed" } }],
    ] as const;
  const six = log(...[1, 2, 3, 4, 5, 6].flatMap((n) => [...turn(n)]));

  it("shows everything that is new and at least the last three turns", () => {
    expect(catchUp(six, undefined)).toEqual({ from: 13, earlierTurns: 3, fresh: undefined });
    expect(catchUp(six, 23)).toEqual({ from: 13, earlierTurns: 3, fresh: undefined });
    // Turn 2 was seen up to its message.
    expect(catchUp(six, 6)).toEqual({ from: 5, earlierTurns: 1, fresh: 7 });
    // Only the inbox changed since.
    expect(catchUp(six.slice(0, 21), 19)).toMatchObject({ fresh: undefined });
    expect(catchUp(six.slice(0, 8), undefined)).toEqual({
      from: 0,
      earlierTurns: 0,
      fresh: undefined,
    });
    expect(catchUp([], 3)).toEqual({ from: 0, earlierTurns: 0, fresh: undefined });
  });

  it("remembers the last entry of each session, the newest of many", async () => {
    const home = mkdtempSync(join(tmpdir(), "longhaul-seen-"));
    onTestFinished(() => rmSync(home, { recursive: true }));
    expect(await lastSeen(home, "s/1")).toBeUndefined();
    await rememberSeen(home, "s/1", 4);
    await rememberSeen(home, "s/2", 9);
    await rememberSeen(home, "s/1", 7);
    expect([await lastSeen(home, "s/1"), await lastSeen(home, "s/2")]).toEqual([7, 9]);
    for (let n = 0; n < 200; n++) await rememberSeen(home, `other-${n}`, n);
    expect([await lastSeen(home, "s/1"), await lastSeen(home, "other-0")]).toEqual([undefined, 0]);
    await rememberSeen(join(home, "chat-seen.json", "no-directory"), "s", 1);
  });
});
