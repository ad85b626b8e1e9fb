import { describe, expect, test } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { closedView, closersOf } from "../../src/domain/log-repair.js";
import { exportLog, importLog } from "../../src/domain/log-text.js";
import { brokenRules } from "../support/log-rules.js";
import { calls, openSession, output, row, run, saying, send } from "../support/session-script.js";

/** Everything of a log up to and with the last entry of a type. */
function upTo(entries: readonly LogEntry[], type: LogEntry["type"], nth = -1): readonly LogEntry[] {
  const found = entries.filter((entry) => entry.type === type).at(nth);
  if (found === undefined) throw new Error(`no ${type}`);
  return entries.slice(0, found.seq + 1);
}

function ran(): readonly LogEntry[] {
  const session = openSession({}, [row("t")]);
  send(session, "followup", "m1");
  run(session, {
    model: saying(calls("t", "t")),
    tools: { t: () => output("done") },
    at: (effect) => {
      if (effect.kind === "start" && effect.op.kind === "tool")
        send(session, "inject", effect.op.key);
    },
  });
  return session.log.entries;
}

function closers(entries: readonly LogEntry[]): readonly LogEntry[] {
  const closed = closersOf(entries);
  if (!closed.ok) throw new Error(closed.message);
  return closed.closers;
}

const log = ran();

describe("what closes a log that ends in the middle of a turn", () => {
  test("[harness/R1] an open turn without a step: only turn/end, interrupted, at the time of the last entry", () => {
    const cut = upTo(log, "turn/start");
    expect(closers(cut)).toEqual([
      {
        type: "turn/end",
        seq: cut.length,
        time: cut.at(-1)?.time,
        data: { turn: 1, reason: { kind: "interrupted" } },
      },
    ]);
  });

  test("[harness/R2] an open step: step/end, then turn/end", () => {
    const cut = upTo(log, "user/message", 0);
    expect(closers(cut).map(({ type, seq }) => [type, seq])).toEqual([
      ["step/end", cut.length],
      ["turn/end", cut.length + 1],
    ]);
  });

  test("[harness/R3] [harness/R4] a call that began is unknown and cites it, one that did not was not started", () => {
    const cut = upTo(log, "tool/call", 0);
    const [first, second, ...rest] = closers(cut);
    expect(first).toMatchObject({
      type: "tool/result",
      sourceEventSeqs: [cut.length - 1],
      data: { turn: 1, step: 1, error: { code: "TOOL_OUTCOME_UNKNOWN" } },
    });
    expect(second).toMatchObject({
      type: "tool/result",
      data: { error: { code: "TOOL_NOT_STARTED" }, message: { source: { callId: "c2" } } },
    });
    expect(second).not.toHaveProperty("sourceEventSeqs");
    expect(rest.map(({ type }) => type)).toEqual(["step/end", "turn/end"]);
  });

  test("[harness/R5] nothing is made for an answered call, nor for a turn that was closed", () => {
    const results = closers(upTo(log, "tool/result")).filter(({ type }) => type === "tool/result");
    expect(results).toEqual([]);
    const again = [
      ...upTo(log, "turn/end"),
      { ...log[2], type: "turn/start", seq: log.length, data: { turn: 2 } } as LogEntry,
    ];
    expect(closers(again).map(({ type }) => type)).toEqual(["turn/end"]);
    expect(closers(log)).toEqual([]);
    expect(closers([])).toEqual([]);
  });

  test("the same call id twice is two calls, and a result that was only shortened answers none", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    run(session, { model: saying(calls({ callId: "c" }, { callId: "c" })) });
    const { entries } = session.log;
    const seqs = entries.flatMap(({ type, seq }) => (type === "tool/call" ? [seq] : []));
    const cut = upTo(entries, "tool/call");
    expect(closers(cut).flatMap(({ sourceEventSeqs }) => sourceEventSeqs ?? [])).toEqual(
      seqs.slice(1),
    );
    const result = entries.find(({ type }) => type === "tool/result") as LogEntry;
    const shortened = {
      ...result,
      seq: cut.length,
      surfaceOp: { op: "replace", start: 2, end: 3 },
    };
    expect(closers([...cut, shortened as LogEntry])).toHaveLength(closers(cut).length);
  });

  test("[harness/R9] a turn that is running is refused, not closed", () => {
    expect(closersOf(upTo(log, "step/start"), true)).toMatchObject({
      ok: false,
      code: "OPEN_TURN",
    });
    expect(closersOf(log, true)).toEqual({ ok: true, closers: [] });
  });

  test("[harness/R10] an inspection shows it closed and changes nothing", () => {
    const cut = upTo(log, "tool/call");
    const before = JSON.stringify(cut);
    const view = closedView(cut);
    expect(view.at(-1)).toMatchObject({ type: "turn/end" });
    expect(JSON.stringify(cut)).toBe(before);
  });

  test("wherever a log is cut, its closed form loads, is balanced, and needs no second repair", () => {
    for (let length = 1; length <= log.length; length += 1) {
      const view = closedView(log.slice(0, length));
      const read = importLog(exportLog({ version: 0, id: "s", createdAt: 0 }, view));
      if (!read.ok) throw new Error(read.message);
      expect(closers(read.log.entries)).toEqual([]);
      // A result without its call is the one thing that only a repair makes.
      const broken = brokenRules(view).filter((line) => !line.includes("before its call"));
      expect([length, broken]).toEqual([length, []]);
    }
  });
});
