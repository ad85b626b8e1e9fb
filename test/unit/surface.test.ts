import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NewEntry, SurfaceOp } from "../../src/contracts/log.js";
import { SessionLog } from "../../src/domain/log.js";
import { chain, deriveMessages, emptyBase, hashNode } from "../../src/domain/surface.js";

function said(id: string, surfaceOp: SurfaceOp = "append", cites?: readonly number[]): NewEntry {
  return {
    type: "user/message",
    surfaceOp,
    ...(cites === undefined ? {} : { sourceEventSeqs: cites }),
    data: {
      message: {
        id,
        role: "user",
        content: [{ type: "text", text: id }],
        source: { kind: "user" },
      },
    },
  };
}

function result(
  text: string,
  more: { isError?: boolean; id?: string; by?: string } = {},
): NewEntry {
  const { isError = false, id = "r1", by = "tool" } = more;
  return {
    type: "tool/result",
    surfaceOp: "append",
    data: {
      turn: 1,
      step: 1,
      message: {
        id,
        role: "user",
        content: [
          { type: "tool-result", callId: "c1", content: [{ type: "text", text }], isError },
        ],
        source: { kind: by },
      },
    },
  };
}

/** A log with three messages, surface n1..n3 = entries 0..2. */
function three(): SessionLog {
  const log = new SessionLog();
  for (const id of ["n1", "n2", "n3"]) log.append(said(id), 0);
  return log;
}

const shown = (log: SessionLog) => deriveMessages(log.surface.nodes).map(({ id }) => id);

function fromScratch(log: SessionLog): string {
  return log.surface.nodes.reduce((digest, node) => chain(digest, hashNode(node)), emptyBase);
}

describe("replacing a part of the surface", () => {
  test("[harness/S7] is refused without citing every shadowed entry, and changes nothing", () => {
    const log = three();
    const digest = log.surface.digest();
    const refused = log.append(said("sum", { op: "replace", start: 0, end: 3 }, [0, 1]), 0);
    expect(refused).toMatchObject({
      ok: false,
      message: "log entry user/message: replace 0..3 must cite every shadowed entry; missing 2",
    });
    expect(shown(log)).toEqual(["n1", "n2", "n3"]);
    expect(log.entries).toHaveLength(3);
    expect(log.surface.digest()).toBe(digest);
  });

  test("puts the new entry where the shadowed ones were, and keeps them in the log", () => {
    const log = three();
    expect(log.append(said("sum", { op: "replace", start: 0, end: 2 }, [0, 1]), 0).ok).toBe(true);
    expect(shown(log)).toEqual(["sum", "n3"]);
    expect(log.entries.map(({ seq }) => seq)).toEqual([0, 1, 2, 3]);
    expect(log.append(said("sum2", { op: "replace", start: 0, end: 1 }, [0]), 0).ok).toBe(false);
    expect(log.append(said("sum2", { op: "replace", start: 0, end: 1 }, [3, 0]), 0).ok).toBe(true);
    expect(shown(log)).toEqual(["sum2", "n3"]);
  });

  test.each([
    [0, 0],
    [2, 1],
    [-1, 1],
    [0, 4],
    [0.5, 1],
    [0, Number.NaN],
  ])("refuses the range %d..%d of three nodes", (start, end) => {
    expect(three().append(said("x", { op: "replace", start, end }, [0, 1, 2]), 0).ok).toBe(false);
  });

  test("a result may be replaced by one that differs in content alone", () => {
    const log = new SessionLog();
    log.append(result("a long text"), 0);
    const replace = (entry: NewEntry) =>
      log.append(
        { ...entry, surfaceOp: { op: "replace", start: 0, end: 1 }, sourceEventSeqs: [0] },
        0,
      );
    const refusal = "may change only the content of the same result";
    for (const other of [{ isError: true }, { id: "r2" }, { by: "user" }]) {
      expect(replace(result("short", other))).toMatchObject({
        message: expect.stringContaining(refusal),
      });
    }
    expect(replace(result("short")).ok).toBe(true);
    expect(log.surface.nodes).toMatchObject([{ seq: 1 }]);
    log.append(said("n"), 0);
    expect(
      log.append(
        { ...result("x"), surfaceOp: { op: "replace", start: 0, end: 2 }, sourceEventSeqs: [1, 2] },
        0,
      ),
    ).toMatchObject({ message: expect.stringContaining("replaces exactly one node") });
  });
});

describe("the digest", () => {
  test("depends on order, place in the log and content", () => {
    const digests = [["a", "b"], ["b", "a"], ["a"], ["a", "b", "c"]].map((ids) => {
      const log = new SessionLog();
      for (const id of ids) log.append(said(id), 0);
      return log.surface.digest();
    });
    expect(new Set(digests).size).toBe(4);
    expect(new SessionLog().surface.digest()).toBe(emptyBase);
    const shifted = new SessionLog();
    shifted.append({ type: "turn/start", data: { turn: 1 } }, 0);
    shifted.append(said("a"), 0);
    expect(shifted.surface.digest()).not.toBe(digests[2]);
  });

  test("is that of the nodes from scratch, after any appends and replaces, asked for at any time", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("append" as const), id: fc.string() }),
      fc.record({ kind: fc.constant("replace" as const), at: fc.nat(99), length: fc.nat(5) }),
      fc.constant({ kind: "ask" as const }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const log = new SessionLog();
        const expected: number[] = [];
        for (const each of steps) {
          const length = expected.length;
          if (each.kind === "ask") log.surface.digest();
          else if (each.kind === "append") {
            log.append(said(each.id), 0);
            expected.push(log.lastSeq);
          } else if (length > 0) {
            const start = each.at % length;
            const end = Math.min(length, start + 1 + each.length);
            const op = { op: "replace", start, end } as const;
            log.append(said("sum", op, expected.slice(start, end)), 0);
            expected.splice(start, end - start, log.lastSeq);
          }
        }
        expect(log.surface.nodes.map(({ seq }) => seq)).toEqual(expected);
        expect(log.surface.digest()).toBe(fromScratch(log));
      }),
    );
  });
});
