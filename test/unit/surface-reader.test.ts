import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { SessionSource } from "../../src/activities/session-source.js";
import { SurfaceReader, type SurfaceRequest } from "../../src/activities/surface-reader.js";
import type { Archive } from "../../src/contracts/archive.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { SurfaceNode } from "../../src/contracts/session.js";
import { chain, hashNode } from "../../src/domain/surface.js";
import { openArchive } from "../../src/store/archive.js";
import { openDirectoryStore } from "../../src/store/directory.js";

let root: string;
let archive: Archive;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "longhaul-surface-"));
  archive = openArchive(await openDirectoryStore(root));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const signal = new AbortController().signal;

interface Asked {
  readonly from: number;
  readonly to: number;
}

/** A session whose surface can grow and be tampered with; it answers pages of at most `page` nodes. */
function sessionOf(count: number, page = 100) {
  const nodes: SurfaceNode[] = [];
  const asked: Asked[] = [];
  const headers: number[] = [];
  let tampered = false;
  const grow = (more: number): void => {
    for (let n = 0; n < more; n++) nodes.push(nodeOf(nodes.length, `message ${nodes.length}`));
  };
  grow(count);
  const source: Pick<SessionSource, "nodes" | "log"> = {
    nodes: (_ref, { from, to }) => {
      asked.push({ from, to });
      const slice = nodes.slice(from, Math.min(to, from + page));
      const shown = tampered ? slice.map((node) => nodeOf(node.seq, "tampered")) : slice;
      return Promise.resolve({ nodes: shown, length: nodes.length });
    },
    log: (_ref, { after }) => {
      const seq = after + 1;
      headers.push(seq);
      const entry: LogEntry =
        seq === 3
          ? {
              type: "request/header",
              seq,
              time: 0,
              data: { header: { config: { provider: "p", model: "m" } }, reason: "initial" },
            }
          : { type: "turn/start", seq, time: 0, data: { turn: 1 } };
      return Promise.resolve({ entries: [entry], lastSeq: 9, state: "idle" });
    },
  };
  const request = (length: number, change: Partial<SurfaceRequest> = {}): SurfaceRequest => ({
    v: 1,
    sessionId: "s",
    runId: "r",
    base: "",
    length,
    digest: nodes.slice(0, length).reduce((sum, node) => chain(sum, hashNode(node)), ""),
    ...change,
  });
  return { source, nodes, asked, headers, grow, request, tamper: (on: boolean) => (tampered = on) };
}

function nodeOf(seq: number, text: string): SurfaceNode {
  return {
    seq,
    message: {
      id: `m${seq}`,
      role: "user",
      content: [{ type: "text", text }],
      source: { kind: "user" },
    },
  };
}

describe("a surface is read by reference", () => {
  test("only what is not cached yet is asked for, in as many pages as it takes", async () => {
    const session = sessionOf(250);
    const reader = new SurfaceReader(session.source, archive);
    expect(await reader.messages(session.request(250), signal)).toHaveLength(250);
    expect(session.asked).toEqual([
      { from: 0, to: 250 },
      { from: 100, to: 250 },
      { from: 200, to: 250 },
    ]);
    session.asked.length = 0;
    session.grow(3);
    expect(await reader.messages(session.request(253), signal)).toHaveLength(253);
    expect(session.asked).toEqual([{ from: 250, to: 253 }]);
    session.asked.length = 0;
    expect((await reader.messages(session.request(10), signal)).at(-1)?.id).toBe("m9");
    expect(session.asked).toEqual([]);
  });

  test("what the workflow hands over is not asked for, as far as it goes on where the cache ends", async () => {
    const session = sessionOf(5);
    const reader = new SurfaceReader(session.source, archive);
    const ref = session.request(5);
    reader.offer(ref, 0, session.nodes.slice(0, 2));
    reader.offer(ref, 3, session.nodes.slice(3));
    reader.offer(ref, 1, [nodeOf(7, "another"), ...session.nodes.slice(2)]);
    expect(await reader.messages(ref, signal)).toHaveLength(5);
    expect(session.asked).toEqual([{ from: 2, to: 5 }]);
    session.grow(3);
    reader.offer(ref, 5, session.nodes.slice(5, 6));
    // The next run begins before the end of what the process has.
    reader.offer(ref, 4, session.nodes.slice(4));
    expect(await reader.messages(session.request(8), signal)).toHaveLength(8);
    expect(session.asked).toHaveLength(1);
  });

  test("what was handed over and is not what the log says is read again", async () => {
    const session = sessionOf(3);
    const reader = new SurfaceReader(session.source, archive);
    const [first, second, third] = session.nodes;
    reader.offer(session.request(3), 0, [second, first, third] as typeof session.nodes);
    expect((await reader.messages(session.request(3), signal)).map(({ id }) => id)).toEqual([
      "m0",
      "m1",
      "m2",
    ]);
    expect(session.asked).toEqual([{ from: 0, to: 3 }]);
  });

  test("a new run goes on with what is cached, another session never", async () => {
    const session = sessionOf(5);
    const reader = new SurfaceReader(session.source, archive);
    await reader.messages(session.request(5), signal);
    await reader.messages(session.request(5, { runId: "other" }), signal);
    expect(session.asked).toHaveLength(1);
    await reader.messages(session.request(5, { sessionId: "other" }), signal);
    expect(session.asked).toHaveLength(2);
  });

  test("runs of one session that differ, read at the same time, are each shown their own", async () => {
    const one = sessionOf(40, 3);
    const other = sessionOf(20, 3);
    for (let seq = 20; seq < 40; seq++) other.nodes.push(nodeOf(seq, `reset ${seq}`));
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const reader = new SurfaceReader(
      {
        ...one.source,
        nodes: async (ref, query, abort) => {
          if (ref.runId === "o" && query.from > 0) await gate;
          return (ref.runId === "r" ? one : other).source.nodes(ref, query, abort);
        },
      },
      archive,
    );
    const read = async (of: typeof one, runId: string): Promise<void> => {
      const messages = await reader.messages(of.request(40, { runId }), signal);
      expect(messages).toEqual(of.nodes.map(({ message }) => message));
    };
    await read(one, "r");
    const slow = read(other, "o");
    await vi.waitFor(() => expect(other.asked).toHaveLength(1));
    await read(one, "r");
    open();
    await slow;
    await Promise.all([read(one, "r"), read(other, "o"), read(one, "r"), read(other, "o")]);
  });

  test("calls at the same time give each the same messages, whole and in order", async () => {
    const session = sessionOf(40, 7);
    const reader = new SurfaceReader(session.source, archive);
    const all = await Promise.all(
      [40, 12, 40, 25].map((length) => reader.messages(session.request(length), signal)),
    );
    expect(all.map((messages) => messages.map((message) => message.id))).toEqual(
      [40, 12, 40, 25].map((length) => Array.from({ length }, (_, n) => `m${n}`)),
    );
  });

  test("calls at the same time count what they share once", async () => {
    const session = sessionOf(10);
    const one = JSON.stringify(nodeOf(1, "message 1")).length * 10;
    const reader = new SurfaceReader(session.source, archive, one * 2.5);
    const read = (sessionId: string) => reader.messages(session.request(10, { sessionId }), signal);
    await Promise.all([read("a"), read("a"), read("a")]);
    await read("b");
    session.asked.length = 0;
    await read("a");
    expect(session.asked).toEqual([]);
  });

  test("any sequence of lengths is answered with exactly that prefix", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(30), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 3_000 }),
        async (lengths, page, maxBytes) => {
          const session = sessionOf(30, page);
          const reader = new SurfaceReader(session.source, archive, maxBytes);
          for (const length of lengths) {
            const messages = await reader.messages(session.request(length), signal);
            expect(messages.map((message) => message.id)).toEqual(
              Array.from({ length }, (_, n) => `m${n}`),
            );
          }
        },
      ),
    );
  });

  test("beyond its bound it forgets the surface used longest ago", async () => {
    const session = sessionOf(10);
    const one = JSON.stringify(nodeOf(1, "message 1")).length * 10;
    const reader = new SurfaceReader(session.source, archive, one * 2.5);
    const read = (sessionId: string) => reader.messages(session.request(10, { sessionId }), signal);
    await read("a");
    await read("b");
    await read("a");
    await read("c");
    session.asked.length = 0;
    await read("a");
    await read("c");
    expect(session.asked).toEqual([]);
    await read("b");
    expect(session.asked).toHaveLength(1);
  });
});

describe("of what a reader keeps it counts", () => {
  const bytes = JSON.stringify(nodeOf(1, "message 1")).length * 10;

  test("a full read once", async () => {
    const session = sessionOf(10);
    const reader = new SurfaceReader(session.source, archive, bytes * 2.5);
    const read = (sessionId: string) => reader.messages(session.request(10, { sessionId }), signal);
    reader.offer({ sessionId: "a" }, 0, [nodeOf(0, "another")]);
    await read("a");
    await read("b");
    session.asked.length = 0;
    await read("a");
    expect(session.asked).toEqual([]);
  });

  test("once what is read on after it had to go", async () => {
    const session = sessionOf(10, 5);
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const reader = new SurfaceReader(
      {
        ...session.source,
        nodes: async (ref, query, abort) => {
          if (ref.sessionId === "a" && query.from > 0) await gate;
          return session.source.nodes(ref, query, abort);
        },
      },
      archive,
      bytes * 2.2,
    );
    const read = (sessionId: string) => reader.messages(session.request(10, { sessionId }), signal);
    const slow = read("a");
    await read("b");
    await read("c");
    open();
    await slow;
    session.asked.length = 0;
    await read("c");
    await read("a");
    expect(session.asked).toEqual([]);
  });
});

describe("[harness/H5] in place of an injected message: what the log does not say is never shown", () => {
  test("a cached surface that was tampered with is dropped and read again in full", async () => {
    const session = sessionOf(6);
    const reader = new SurfaceReader(session.source, archive);
    session.tamper(true);
    await expect(reader.messages(session.request(4), signal)).rejects.toMatchObject({
      code: "SURFACE_MISMATCH",
    });
    session.tamper(false);
    expect(await reader.messages(session.request(4), signal)).toHaveLength(4);

    // What was cached rightly, then continues wrongly: one full read, and the true one wins.
    session.asked.length = 0;
    let wrong = true;
    const flaky = new SurfaceReader(
      {
        ...session.source,
        nodes: async (ref, query, abort) => {
          const page = await session.source.nodes(ref, query, abort);
          if (!wrong) return page;
          wrong = false;
          return { ...page, nodes: page.nodes.map((node) => nodeOf(node.seq, "tampered")) };
        },
      },
      archive,
    );
    expect(
      (await flaky.messages(session.request(6), signal)).map((message) => message.id),
    ).toHaveLength(6);
    expect(session.asked).toEqual([
      { from: 0, to: 6 },
      { from: 0, to: 6 },
    ]);
  });

  test("a digest that is not the log's, and a surface that is too short are SURFACE_MISMATCH", async () => {
    const session = sessionOf(4);
    const reader = new SurfaceReader(session.source, archive);
    for (const request of [
      session.request(4, { digest: "0".repeat(64) }),
      session.request(4, { length: 5 }),
      session.request(0, { digest: "0".repeat(64) }),
    ]) {
      await expect(reader.messages(request, signal)).rejects.toMatchObject({
        code: "SURFACE_MISMATCH",
      });
    }
    expect(await reader.messages(session.request(4), signal)).toHaveLength(4);
  });

  test("a header is read once, and an entry that is none is refused", async () => {
    const session = sessionOf(0);
    const reader = new SurfaceReader(session.source, archive);
    const ref = { v: 1 as const, sessionId: "s", runId: "r", base: "" };
    expect(await reader.header(ref, 3, signal)).toEqual({ config: { provider: "p", model: "m" } });
    expect(await reader.header(ref, 3, signal)).toEqual({ config: { provider: "p", model: "m" } });
    expect(session.headers).toEqual([3]);
    await expect(reader.header(ref, 4, signal)).rejects.toMatchObject({ code: "SURFACE_MISMATCH" });
  });

  test("of a session's headers those of its newest run alone are kept, and of other sessions' all", async () => {
    const session = sessionOf(0);
    const reader = new SurfaceReader(session.source, archive);
    const read = async (sessionId: string, runId: string): Promise<void> => {
      await reader.header({ v: 1, sessionId, runId, base: "" }, 3, signal);
    };
    await read("other", "r1");
    await read("s", "r1");
    await read("s", "r2");
    expect(session.headers).toHaveLength(3);
    await read("other", "r1");
    await read("s", "r2");
    expect(session.headers).toHaveLength(3);
    await read("s", "r1");
    expect(session.headers).toHaveLength(4);
  });
});
