import { describe, expect, test } from "vitest";
import { SessionCompaction } from "../../src/client/session-compaction.js";
import type { WatchEvent, WatchOptions } from "../../src/client/types.js";
import type { CompactResult } from "../../src/contracts/session.js";
import { compact } from "../../src/domain/commands.js";
import { openSession, run, send, text } from "../support/session-script.js";

/** What a client is told by a session that answers with this verdict and then logs this. */
function compactionOf(verdict: CompactResult, events: readonly WatchEvent[]) {
  const asked: unknown[] = [];
  const watched: WatchOptions[] = [];
  const writer = {
    write: (...write: unknown[]) => {
      asked.push(write);
      return Promise.resolve(verdict);
    },
  };
  async function* watch(options: WatchOptions): AsyncGenerator<WatchEvent, void, undefined> {
    watched.push(options);
    yield* events;
  }
  return { asked, watched, compaction: new SessionCompaction("s", writer as never, watch) };
}

describe("a compaction that was asked for", () => {
  const session = openSession({ compaction: false });
  for (const id of ["m1", "m2"]) send(session, "followup", id, "word ".repeat(100));
  run(session);
  const requested = compact(session, { opId: "a" });
  run(session, { summary: () => text("short") });
  const events = session.log.entries.map((entry): WatchEvent => ({ type: "entry", entry }));
  const seq = requested.ok && requested.result === "requested" ? requested.seq : -1;
  const later = events.slice(seq);

  test("resolves with its sizes, read from the log from its own start on", async () => {
    const { compaction, asked, watched } = compactionOf(requested, later);
    const outcome = await compaction.compact({ id: "a" });
    expect(asked).toEqual([["session.compact", "a", { opId: "a" }]]);
    expect(watched).toEqual([{ after: seq - 1 }]);
    expect(outcome).toMatchObject({ changed: true, messages: 3 });
    const sizes = outcome.changed ? [outcome.tokensBefore, outcome.tokensAfter] : [];
    expect(sizes[0]).toBeGreaterThan(sizes[1] ?? Infinity);
  });

  test("that came to nothing says why", async () => {
    const compactionId = `compaction/${seq}`;
    const data = { compactionId, turn: null, error: "summary", message: "AUTH: no key" };
    const end: WatchEvent = {
      type: "entry",
      entry: { type: "compaction/end", seq: seq + 1, time: 0, data },
    };
    const { compaction } = compactionOf(requested, [...later.slice(0, 1), end]);
    expect(await compaction.compact({})).toEqual({
      changed: false,
      problem: "summary",
      message: "AUTH: no key",
    });
    const nothing = compactionOf({ ok: true, result: "nothing" }, []);
    expect(await nothing.compaction.compact({})).toEqual({ changed: false });
    expect(nothing.watched).toEqual([]);
  });

  test("of a session that ends meanwhile is SESSION_CLOSED, and one that is not waited for ABORTED", async () => {
    const { compaction } = compactionOf(requested, later.slice(0, 1));
    await expect(compaction.compact({})).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    const signal = AbortSignal.abort();
    await expect(compaction.compact({ signal })).rejects.toMatchObject({ code: "ABORTED" });
    await expect(compaction.compact({ id: "" })).rejects.toMatchObject({ code: "INVALID_INPUT" });
  });
});
