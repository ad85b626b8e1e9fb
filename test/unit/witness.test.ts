import { describe, expect, test } from "vitest";
import { compareWithHistory, readHistory } from "../support/witness-history.js";
import { compareRequests, readRecorded, witnessRequests } from "../support/witness.js";

const user = (id: string, text: string) => ({
  id,
  role: "user",
  content: [{ type: "text", text }],
  source: { kind: "user" },
});
const assistant = (id: string, ...content: object[]) => ({
  id,
  role: "assistant",
  content,
  source: { kind: "model", provider: "scripted", model: "m" },
});
const text = (value: string) => ({ type: "text", text: value });
const call = { type: "tool-call", callId: "c1", name: "bash", arguments: "{}" };
const result = (value: string) => ({
  id: "r1",
  role: "user",
  content: [{ type: "tool-result", callId: "c1", content: [text(value)], isError: false }],
  source: { kind: "tool", callId: "c1" },
});
const header = { config: { provider: "scripted", model: "m" }, system: "be brief" };
const tool = { name: "bash", description: "runs", parameters: { type: "object" } };

const at = (turn: number, step: number) => ({ turn, step });
const startStep = (turn: number, step: number) => ({ type: "step/start", data: at(turn, step) });
const endStep = (turn: number, step: number) => ({ type: "step/end", data: at(turn, step) });
const said = (message: object) => ({
  type: "user/message",
  data: { message },
  surfaceOp: "append",
});
const replied = (turn: number, step: number, message: object) => ({
  type: "assistant/message",
  data: { ...at(turn, step), message },
  surfaceOp: "append",
});

/** One turn: a tool step with a retried request, then an answer; then a compaction; then a second turn. */
const entries = [
  { type: "session/open", data: {} },
  { type: "turn/start", data: { turn: 1 } },
  startStep(1, 1),
  said(user("m1", "list the files")),
  { type: "request/header", data: { header, reason: "initial" } },
  { type: "llm/retry", data: { ...at(1, 1), retry: 1 } },
  { type: "llm/retry-started", data: at(1, 1) },
  replied(1, 1, assistant("a1", text("looking"), call)),
  { type: "tool/call", data: { ...at(1, 1), callId: "c1" } },
  { type: "tool/result", data: { ...at(1, 1), message: result("README") }, surfaceOp: "append" },
  endStep(1, 1),
  startStep(1, 2),
  { type: "request/header", data: { header: { ...header, tools: [tool] }, reason: "change" } },
  replied(1, 2, assistant("a2")),
  endStep(1, 2),
  { type: "turn/end", data: { turn: 1 } },
  {
    type: "user/message",
    data: { message: user("k1", "summary") },
    surfaceOp: { op: "replace", start: 0, end: 3 },
    sourceEventSeqs: [3, 7, 9],
  },
  { type: "turn/start", data: { turn: 2 } },
  startStep(2, 1),
  said(user("m2", "and now?")),
  replied(2, 1, assistant("a3", text("done"))),
  endStep(2, 1),
  { type: "turn/end", data: { turn: 2 } },
];
const log = entries.map((entry, seq) => ({ ...entry, seq, time: seq }));

const first = [user("m1", "list the files")];
const second = [...first, assistant("a1", text("looking"), call), result("README")];
const third = [user("k1", "summary"), user("m2", "and now?")];

describe("the witness", () => {
  test("rebuilds every request: retries, header changes, dropped empty replies, a replace", () => {
    const bare = { config: header.config, system: "be brief" };
    expect(witnessRequests(log)).toEqual([
      {
        ...at(1, 1),
        retry: 0,
        ...bare,
        tools: [],
        messages: first,
        headerSeq: 4,
        nodes: 1,
        outcome: "retry",
      },
      {
        ...at(1, 1),
        retry: 1,
        ...bare,
        tools: [],
        messages: first,
        headerSeq: 4,
        nodes: 1,
        outcome: "reply",
      },
      {
        ...at(1, 2),
        retry: 0,
        ...bare,
        tools: [tool],
        messages: second,
        headerSeq: 12,
        nodes: 3,
        outcome: "reply",
      },
      {
        ...at(2, 1),
        retry: 0,
        ...bare,
        tools: [tool],
        messages: third,
        headerSeq: 12,
        nodes: 3,
        outcome: "reply",
      },
    ]);
  });

  test("says of a step cut short, and of a log that stops, that the request may not have gone out", () => {
    const cut = [...log.slice(0, 5), endStep(1, 1), startStep(1, 2)].map((entry, seq) => ({
      ...entry,
      seq,
    }));
    expect(witnessRequests(cut).map((request) => request.outcome)).toEqual(["ended", "open"]);
  });

  test.each([
    ["a gap in seq", log.filter((entry) => entry.seq !== 6)],
    ["a reply outside a step", renumbered(log.filter((entry) => entry.seq !== 2))],
    [
      "a reply before any header",
      renumbered(log.filter((entry) => entry.type !== "request/header")),
    ],
    [
      "a message without surfaceOp",
      log.map((entry) => (entry.seq === 3 ? { ...entry, surfaceOp: undefined } : entry)),
    ],
    [
      "a replace that cites too little",
      log.map((entry) => (entry.seq === 16 ? { ...entry, sourceEventSeqs: [3, 7] } : entry)),
    ],
    [
      "a replace beyond the surface",
      log.map((entry) =>
        entry.seq === 16 ? { ...entry, surfaceOp: { op: "replace", start: 2, end: 9 } } : entry,
      ),
    ],
  ])("refuses a log with %s", (_, broken) => {
    expect(() => witnessRequests(broken)).toThrow(/entry|step/);
  });

  test("agrees with a record that holds what the log says, repeats included", () => {
    expect(compareRequests(witnessRequests(log), [...recorded(), ...recorded()])).toEqual([]);
  });

  test.each([
    [
      "an edited message",
      1,
      (all: Recorded[]) =>
        replace(all, 2, { messages: [...first, ...second.slice(1, 2), result("LICENSE")] }),
    ],
    ["a missing message", 1, (all: Recorded[]) => replace(all, 3, { messages: third.slice(0, 1) })],
    ["another order", 2, (all: Recorded[]) => replace(all, 3, { messages: third.toReversed() })],
    ["another system text", 1, (all: Recorded[]) => replace(all, 0, { system: "be long" })],
    ["another tool", 1, (all: Recorded[]) => replace(all, 2, { tools: [] })],
    [
      "another model",
      1,
      (all: Recorded[]) => replace(all, 0, { config: { provider: "scripted", model: "n" } }),
    ],
    ["a call the log does not have", 1, (all: Recorded[]) => [...all, { ...all[0]!, turn: 9 }]],
    ["an answer without a call", 1, (all: Recorded[]) => all.slice(1)],
  ])("reports %s, in %i places", (_, places, change) => {
    expect(compareRequests(witnessRequests(log), change(recorded()))).toHaveLength(places);
  });

  test("reads the record of one session", () => {
    const lines = ["s-1", "s-2", "s-1"].map((sessionId, turn) =>
      JSON.stringify({ sessionId, turn }),
    );
    expect(readRecorded(`${lines.join("\n")}\n`, "s-1").map((request) => request.turn)).toEqual([
      0, 2,
    ]);
  });
});

describe("the witness, against a Temporal history", () => {
  test("finds every outside claim of the log in history", () => {
    expect(compareWithHistory(log, readHistory([history()]))).toEqual([]);
  });

  test.each([
    ["text that was not sent", () => history({ sent: "list the dirs" }), /message m1 reads/],
    [
      "a reply no call returned",
      () => history({ reply: "looked" }),
      /no model call of 1\.1 returned/,
    ],
    ["a result no run returned", () => history({ result: "LICENSE" }), /no run of c1 returned/],
    ["a call for another surface", () => history({ nodes: 4 }), /shown 4 nodes, the log has 3/],
    ["a call under another header", () => history({ header: 4 }), /header 4, the log says 12/],
    [
      "a reply without a scheduled call",
      () => ({ events: history().events.slice(0, -2) }),
      /never scheduled/,
    ],
  ])("reports %s", (_, make, expected) => {
    expect(compareWithHistory(log, readHistory([make()])).join("\n")).toMatch(expected);
  });
});

type Recorded = ReturnType<typeof recorded>[number];

function recorded() {
  const bare = { sessionId: "s", config: header.config, system: "be brief", tools: [] as object[] };
  return [
    { ...bare, ...at(1, 1), retry: 0, messages: first as object[] },
    { ...bare, ...at(1, 1), retry: 1, messages: first as object[] },
    { ...bare, ...at(1, 2), retry: 0, tools: [tool], messages: second as object[] },
    { ...bare, ...at(2, 1), retry: 0, tools: [tool], messages: third as object[] },
  ];
}

function replace(all: Recorded[], index: number, change: Partial<Recorded>): Recorded[] {
  return all.map((request, i) => (i === index ? { ...request, ...change } : request));
}

function renumbered<T extends object>(list: readonly T[]): (T & { seq: number })[] {
  return list.map((entry, seq) => ({ ...entry, seq }));
}

/** A history with what the log above came from; `change` makes it tell another story. */
function history(
  change: { sent?: string; reply?: string; result?: string; nodes?: number; header?: number } = {},
) {
  const events: Record<string, unknown>[] = [];
  const payloads = (...values: unknown[]) => ({
    payloads: values.map((value) => ({
      data: Buffer.from(JSON.stringify(value)).toString("base64"),
    })),
  });
  const add = (name: string, fields: object) =>
    events.push({ eventId: String(events.length + 1), [`${name}EventAttributes`]: fields });
  const activity = (name: string, input: object, outcome: unknown) => {
    add("activityTaskScheduled", { activityType: { name }, input: payloads(input) });
    add("activityTaskCompleted", {
      scheduledEventId: String(events.length),
      result: payloads(outcome),
    });
  };
  const callModel = (
    turn: number,
    step: number,
    retry: number,
    headerSeq: number,
    length: number,
    outcome: unknown,
  ) => activity("callModel", { turn, step, retry, headerSeq, length }, outcome);
  const reply = (...content: object[]) => ({ kind: "reply", content, finish: "stop" });

  add("workflowExecutionUpdateAccepted", {
    acceptedRequest: {
      input: {
        name: "session.send",
        args: payloads({ id: "m1", mode: "followup", content: change.sent ?? "list the files" }),
      },
    },
  });
  callModel(1, 1, 0, 4, 1, { kind: "failure", failure: { code: "SERVER", message: "no" } });
  callModel(1, 1, 1, 4, 1, reply(text(change.reply ?? "looking"), call));
  activity(
    "tool.run",
    { claim: "1.1.c1" },
    { content: [text(change.result ?? "README")], isError: false },
  );
  callModel(1, 2, 0, change.header ?? 12, change.nodes ?? 3, reply());
  add("workflowExecutionSignaled", {
    signalName: "session.send",
    input: payloads([
      { id: "k1", mode: "inject", content: "summary" },
      { id: "m2", mode: "followup", content: "and now?" },
    ]),
  });
  callModel(2, 1, 0, 12, 3, reply(text("done")));
  return { events };
}
