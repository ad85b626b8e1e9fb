import { describe, expect, test } from "vitest";
import { interrupt } from "../../src/domain/commands.js";
import type { PureRun, Script } from "../support/pure-driver.js";
import {
  calls,
  endsOf,
  entriesOf,
  once,
  openSession,
  output,
  resultTexts,
  row,
  run,
  saying,
  send,
} from "../support/session-script.js";

const rows = [row("p", { parallel: true }), row("x")];

function batch(names: readonly string[], script: Script = {}) {
  const session = openSession({}, rows);
  send(session, "followup", "m1");
  const driven = run(session, { model: saying(calls(...names)), ...script });
  return { session, driven };
}

function bodies(driven: PureRun) {
  return driven.begun.filter(({ op }) => op.kind === "tool");
}

const openTools = (driven: PureRun) => driven.open.filter((op) => op.kind === "tool");

describe("scheduling", () => {
  test("[harness/T6] p, p, X, p run as three groups with X alone", () => {
    const { driven } = batch(["p", "p", "x", "p"]);
    expect(bodies(driven).map(({ op, beside }) => [op.key, beside])).toEqual([
      ["tool/1.1.c1", []],
      ["tool/1.1.c2", ["tool/1.1.c1"]],
      ["tool/1.1.c3", []],
      ["tool/1.1.c4", []],
    ]);
  });

  test("an exclusive call begins only when the results before it are in the log", () => {
    const { driven, session } = batch(["p", "p", "x"]);
    const results = entriesOf(session, "tool/result").map(({ seq }) => seq);
    expect(bodies(driven)[2]?.lastSeq).toBeGreaterThan(results[1] ?? Infinity);
  });

  test("[harness/T7] of 12 safe calls never more than 10 are in flight, and a free place is taken at once", () => {
    const { driven, session } = batch(
      Array.from({ length: 12 }, () => "p"),
      {
        pick: (open) => open.at(-1),
      },
    );
    const beside = bodies(driven).map((one) => one.beside.length);
    expect(beside).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]);
    expect(resultTexts(session)).toHaveLength(12);
  });

  test("[harness/T8] results are in model order although later calls settle first", () => {
    const settled: string[] = [];
    const { session } = batch(["p", "p", "p"], {
      pick: (open) => open.at(-1),
      tools: {
        p: ({ callId }) => {
          settled.push(callId);
          return output(callId);
        },
      },
    });
    expect(settled).toEqual(["c3", "c2", "c1"]);
    expect(resultTexts(session)).toEqual(["c1", "c2", "c3"]);
  });

  test("whether a call may overlap is asked just before it starts", () => {
    let changed = false;
    const { driven } = batch(["x", "p", "p"], {
      at: (effect, { session }) => {
        if (changed || effect.kind !== "start" || effect.op.kind !== "tool") return;
        changed = true;
        const tools = session.folds.place.tools.map((one) => ({ ...one, parallel: false }));
        session.record({ type: "session/tools", data: { epoch: 0, tools, jobKinds: [] } });
      },
    });
    expect(bodies(driven).map(({ beside }) => beside.length)).toEqual([0, 0, 0]);
  });
});

describe("an abort while calls run", () => {
  const twoRunning = (act: (run: PureRun) => void) =>
    once((effect, driven) => effect.kind === "wait" && openTools(driven).length === 2, act);

  test("[harness/T9] with 2 running of 4 gives 2 real results, then 2 that never ran", () => {
    const { driven, session } = batch(["p", "p", "x", "p"], {
      at: twoRunning(({ session: running }) => interrupt(running, {})),
      tools: {
        p: ({ callId, cancelled }) =>
          callId === "c1"
            ? output("partial", { meta: { cancelled } })
            : {
                ...output("Error: boom"),
                isError: true,
                error: { name: "E", code: "TOOL_FAILED" },
              },
      },
    });
    expect(bodies(driven)).toHaveLength(2);
    const results = entriesOf(session, "tool/result").map(({ data }) => data);
    expect(results.map(({ error }) => error?.code)).toEqual([
      "ABORTED",
      "TOOL_FAILED",
      "ABORTED_BEFORE_DISPATCH",
      "ABORTED_BEFORE_DISPATCH",
    ]);
    expect(results[0]?.meta).toEqual({ cancelled: true });
    expect(resultTexts(session)).toEqual([
      "Error: the turn was aborted while this call ran|partial",
      "Error: boom",
      "Error: the turn was aborted before this call ran",
      "Error: the turn was aborted before this call ran",
    ]);
    expect(entriesOf(session, "tool/call")).toHaveLength(4);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
  });

  test("a body that settled before the abort keeps its result, though it is committed after it", () => {
    const { session } = batch(["p", "p"], {
      at: (effect, driven) => {
        if (effect.kind !== "wait") return;
        if (openTools(driven).length === 2) driven.settle("tool/1.1.c2");
        else if (openTools(driven).length === 1) interrupt(driven.session, {});
      },
    });
    expect(entriesOf(session, "tool/result").map(({ data }) => data.error?.code)).toEqual([
      "ABORTED",
      undefined,
    ]);
  });

  test("a call that was cancelled before its body ran says so", () => {
    const { session } = batch(["p", "p"], {
      at: twoRunning(({ session: running }) => interrupt(running, {})),
      tools: { p: ({ callId }) => (callId === "c1" ? { kind: "unstarted" } : output("x")) },
    });
    expect(entriesOf(session, "tool/result").map(({ data }) => data.error?.code)).toEqual([
      "ABORTED_BEFORE_DISPATCH",
      "ABORTED",
    ]);
  });

  test("every running body is told once, and none is abandoned", () => {
    const { driven } = batch(["p", "p", "p"], {
      at: once(
        (effect, { open }) => effect.kind === "wait" && open.length === 3,
        ({ session }) => interrupt(session, {}),
      ),
    });
    const cancels = driven.effects.flatMap((e) => (e.kind === "cancel" ? [e.key] : []));
    expect(cancels).toEqual(["tool/1.1.c1", "tool/1.1.c2", "tool/1.1.c3"]);
    expect(driven.open).toEqual([]);
  });
});
