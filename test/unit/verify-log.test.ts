import { describe, expect, test } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { segmentName, segmentText } from "../../src/domain/segment.js";
import type { Session } from "../../src/domain/session.js";
import { LogVerifier, showsOtherThan, type WitnessedCall } from "../../src/domain/verify-log.js";
import { projectionsOf, viewOf } from "../../src/domain/views.js";
import { openSession, row, run, saying, send, text, calls } from "../support/session-script.js";

/** A session of two turns, and its model calls as its history would have them. */
function lived(): { readonly session: Session; readonly calls: readonly WitnessedCall[] } {
  const session = openSession({}, [row("t")]);
  const seen: WitnessedCall[] = [];
  for (const id of ["m1", "m2"]) {
    send(session, "followup", id);
    run(session, {
      model: saying(calls("t"), text("said")),
      at: (effect) => {
        if (effect.kind !== "start" || effect.op.kind !== "model") return;
        const { turn, step, headerSeq, length, digest } = effect.op;
        const event = String(seen.length);
        seen.push({ run: "r", event, turn, step, headerSeq, length, digest, summary: false });
      },
    });
  }
  expect(seen).toHaveLength(4);
  return { session, calls: seen };
}

function verified(entries: readonly LogEntry[], given: readonly WitnessedCall[]): LogVerifier {
  const verifier = new LogVerifier(given);
  for (const entry of entries) expect(verifier.take(entry)).toEqual({ ok: true });
  return verifier;
}

describe("a log that is verified", () => {
  test("has every model call as history has it, retries too, and the session of its views", () => {
    const { session, calls: given } = lived();
    const twice = given.flatMap((call) => [call, call]);
    const verifier = verified(session.log.entries, twice);
    expect([verifier.calls, verifier.mismatch]).toEqual([8, undefined]);
    const shown = { view: viewOf(session, undefined), projections: projectionsOf(session) };
    expect(showsOtherThan(verifier.session("s1"), shown)).toBeUndefined();
  });

  test.each([
    ["length", (call: WitnessedCall) => ({ ...call, length: call.length - 1 })],
    ["digest", (call: WitnessedCall) => ({ ...call, digest: "0".repeat(64) })],
    ["header", (call: WitnessedCall) => ({ ...call, headerSeq: call.headerSeq + 1 })],
    ["step", (call: WitnessedCall) => ({ ...call, step: call.step + 7 })],
  ] as const)("does not have a call of another %s", (_, change) => {
    const { session, calls: given } = lived();
    const changed = given.map((call, index) => (index === 1 ? change(call) : call));
    const { mismatch } = verified(session.log.entries, changed);
    expect(mismatch).toContain("run r, event 1");
  });

  test("shows another transcript for a message that was changed, from the first call that was shown it", () => {
    const { session, calls: given } = lived();
    const forged = JSON.parse(
      JSON.stringify(session.log.entries).replace('"text":"said"', '"text":"gone"'),
    ) as LogEntry[];
    expect(verified(forged, given).mismatch).toMatch(/^model call of turn 2, step 1 /u);
  });

  test("has summaries that were shown a part of it, at the beginning of their compaction", () => {
    const { session, calls: given } = lived();
    const summary = { ...given[0], step: 0, summary: true } as WitnessedCall;
    expect(verified(session.log.entries, [summary]).mismatch).toContain("summary request");
    const start = {
      type: "compaction/start",
      seq: session.log.entries.length,
      time: 0,
      data: { compactionId: "c", turn: null },
    } as unknown as LogEntry;
    const { headerSeq } = given.at(-1) ?? summary;
    expect(
      verified([...session.log.entries, start], [{ ...summary, headerSeq }]).mismatch,
    ).toBeUndefined();
  });

  test("is refused for a gap, an entry that cannot follow, and keys an entry does not have", () => {
    const { session } = lived();
    const { entries } = session.log;
    const first = (given: readonly unknown[]): unknown => {
      const verifier = new LogVerifier([]);
      return (given as readonly LogEntry[])
        .map((entry) => verifier.take(entry))
        .find(({ ok }) => !ok);
    };
    expect(first(entries.toSpliced(5, 1))).toMatchObject({
      message: "entry 5 was expected, entry 6 came",
    });
    const at = entries.findIndex(({ type }) => type === "user/message");
    expect(
      first(entries.with(at, { ...entries[at], surfaceOp: undefined } as never)),
    ).toMatchObject({ code: "LOG_CORRUPT" });
    expect(first(entries.with(at, { ...entries[at], more: 1 } as never))).toMatchObject({
      message: `entry ${at} has more than an entry has`,
    });
  });

  test("makes the segment that a run had archived, and none of entries it does not have", () => {
    const { session } = lived();
    const { entries } = session.log;
    const verifier = verified(entries, []);
    const of = { v: 1, sessionId: "s1", runId: "r", from: 2, to: 4, previous: "", digest: "" };
    const header = { v: 1, session: "s1", run: "r", from: 2, to: 4, previous: "" } as const;
    expect(verifier.segmentName({ ...of, v: 1, bodies: [] })).toBe(
      segmentName(segmentText(header, entries.slice(2, 5))),
    );
    expect(verifier.segmentName({ ...of, v: 1, bodies: [], to: 10_000 })).toBeUndefined();
  });

  test("is told apart from what the session shows, by the first part that differs", () => {
    const { session } = lived();
    const verifier = verified(session.log.entries, []);
    const view = viewOf(session, undefined);
    const projections = projectionsOf(session);
    const other = (change: Partial<typeof view>): string | undefined =>
      showsOtherThan(verifier.session("s1"), { view: { ...view, ...change }, projections });
    expect(other({ lastSeq: 0 })).toContain("the session shows lastSeq 0, its log says");
    expect(other({ todos: [] })).toContain("todos []");
    expect(other({ host: "elsewhere" })).toContain("host");
    expect(
      showsOtherThan(verifier.session("s1"), {
        view,
        projections: { ...projections, asOfSeq: 0 },
      }),
    ).toContain("projections");
  });
});
