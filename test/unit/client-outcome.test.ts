import { expect, test } from "vitest";
import type { EventData, EventType, LogEntry } from "../../src/contracts/log.js";
import { foldOutcome } from "../../src/domain/outcome.js";

let seq = 0;
function entry<T extends EventType>(type: T, data: EventData[T]): LogEntry {
  return { type, seq: seq++, time: 0, data } as LogEntry;
}
const start = (turn: number) => entry("turn/start", { turn });
const step = (turn: number, number = 1) => entry("step/start", { turn, step: number });
const end = (turn: number, reason: EventData["turn/end"]["reason"]) =>
  entry("turn/end", { turn, reason });
const claim = () =>
  entry("agent/inbox/spliced", { target: "next-turn", start: 0, removedCount: 1, inserted: [] });
const canceled = () =>
  entry("agent/inbox/spliced", {
    target: "next-turn",
    start: 0,
    removedCount: 1,
    inserted: [],
    outcome: "canceled",
  });
const says = (turn: number, ...texts: string[]) =>
  entry("assistant/message", {
    turn,
    step: 1,
    message: {
      id: `a${turn}`,
      role: "assistant",
      content: texts.map((text) => ({ type: "text", text })),
      source: { kind: "model" },
    },
  });

test("[harness/E1] [harness/E5] a completed turn is completed, with the last non-empty assistant text", () => {
  const log = [
    start(1),
    claim(),
    step(1),
    says(1, "first"),
    step(1, 2),
    says(1, "sec", "ond"),
    says(1, " \n"),
    end(1, { kind: "completed" }),
  ];
  expect(foldOutcome(log)).toEqual({
    kind: "completed",
    turn: 1,
    text: "second",
    canceledUnrun: false,
  });
});

test("[harness/E2] an error carries its code and message, and text shown before it", () => {
  const log = [
    start(1),
    claim(),
    step(1),
    says(1, "so far"),
    end(1, { kind: "error", code: "AUTH", message: "401", status: 401 }),
  ];
  expect(foldOutcome(log)).toEqual({
    kind: "error",
    turn: 1,
    code: "AUTH",
    message: "401",
    text: "so far",
    canceledUnrun: false,
  });
});

test.each([
  { kind: "aborted", reason: "user" },
  { kind: "max-tokens" },
  { kind: "interrupted" },
] as const)("[harness/E3] a turn that ended $kind says so", (reason) => {
  expect(foldOutcome([start(3), step(3), end(3, reason)])).toEqual({
    kind: reason.kind,
    turn: 3,
    canceledUnrun: false,
  });
});

test("[harness/E4] no turn in the interval is none", () => {
  expect(foldOutcome([])).toEqual({ kind: "none", canceledUnrun: false });
  expect(foldOutcome([start(1), claim(), step(1)])).toEqual({ kind: "none", canceledUnrun: false });
});

test("a turn that claimed input and was blocked counts; one that merely completed empty does not", () => {
  const done = [start(1), step(1), end(1, { kind: "completed" })];
  expect(
    foldOutcome([...done, start(2), claim(), end(2, { kind: "blocked", message: "no" })]),
  ).toMatchObject({ kind: "blocked", turn: 2, message: "no" });
  expect(foldOutcome([...done, start(2), claim(), end(2, { kind: "completed" })])).toMatchObject({
    kind: "completed",
    turn: 1,
  });
  expect(
    foldOutcome([...done, start(2), end(2, { kind: "aborted", reason: "user" })]),
  ).toMatchObject({ kind: "completed", turn: 1 });
});

test("a turn that began before the interval counts", () => {
  expect(foldOutcome([end(4, { kind: "completed" })])).toMatchObject({
    kind: "completed",
    turn: 4,
  });
});

test("messages that were cancelled out of the inbox are told apart from claimed ones", () => {
  expect(
    foldOutcome([
      start(1),
      claim(),
      step(1),
      canceled(),
      end(1, { kind: "aborted", reason: "user" }),
    ]),
  ).toMatchObject({ kind: "aborted", canceledUnrun: true });
  expect(
    foldOutcome([start(1), claim(), step(1), end(1, { kind: "completed" })]).canceledUnrun,
  ).toBe(false);
});
