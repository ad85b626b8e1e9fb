import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ArchivedWire } from "../../src/client/archived-wire.js";
import { SessionReader } from "../../src/client/session-reader.js";
import { Watchers } from "../../src/client/watch.js";
import type { Wire } from "../../src/client/wire.js";
import type { Archive } from "../../src/contracts/archive.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { queries } from "../../src/contracts/names.js";
import type {
  ArchivedNode,
  LogPage,
  LogQuery,
  SurfaceNode,
  SurfacePage,
  SurfaceQuery,
} from "../../src/contracts/session.js";
import { deriveMessages, messageOf } from "../../src/domain/surface.js";
import { openArchive } from "../../src/store/archive.js";
import { openDirectoryStore } from "../../src/store/directory.js";

const pageBytes = 262_144;

/** A session that talks on and goes on in new runs while it is read; it answers as the workflow does (design D8). */
class RollingSession implements Wire {
  readonly entries: LogEntry[] = [];
  readonly #archive: Archive;
  /** What happens before each answer. */
  between: () => Promise<void> = () => Promise.resolve();
  rolls = 0;
  open = true;
  #firstSeq = 0;
  #segment = "";

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  say(text: string): void {
    const seq = this.entries.length;
    const message = {
      id: `m-${seq}`,
      role: "user" as const,
      content: [{ type: "text" as const, text }],
      source: { kind: "user" as const },
    };
    this.entries.push({
      type: "user/message",
      seq,
      time: seq,
      data: { message },
      surfaceOp: "append",
    });
  }

  async roll(): Promise<void> {
    const to = this.entries.length - 1;
    if (to < this.#firstSeq) return;
    this.rolls++;
    const run = `run-${this.rolls}`;
    const [from, previous] = [this.#firstSeq, this.#segment];
    this.#segment = await this.#archive.write(
      { v: 1, session: "s", run, from, to, previous },
      this.entries.slice(from),
    );
    this.#firstSeq = to + 1;
  }

  /** As Temporal does at the end of the retention time. */
  async forget(): Promise<void> {
    await this.roll();
    await this.#archive.mark({
      v: 1,
      session: "s",
      run: "last",
      segment: this.#segment,
      lastSeq: this.entries.length - 1,
      status: "completed",
      startedAt: 1,
      closedAt: 2,
    });
    this.open = false;
  }

  async query<T>(_session: string, name: string, args: unknown): Promise<T> {
    await this.between();
    if (!this.open) throw missing();
    const answer =
      name === queries.log ? this.#logPage(args as LogQuery) : this.#surfacePage(args ?? {});
    return answer as T;
  }

  #logPage({ after, limit }: LogQuery): LogPage {
    const here = { lastSeq: this.entries.length - 1, state: "idle" } as const;
    if (after + 1 < this.#firstSeq) return { entries: [], archived: this.#archived(), ...here };
    return { entries: this.entries.slice(after + 1, after + 1 + limit), ...here };
  }

  #surfacePage({ from = 0, to = Infinity }: Partial<SurfaceQuery>): SurfacePage {
    const nodes = this.entries.map((entry): SurfaceNode | ArchivedNode => {
      const { seq } = entry;
      const message = messageOf(entry);
      return seq < this.#firstSeq || message === undefined
        ? { seq, archived: true }
        : { seq, message };
    });
    return {
      nodes: nodes.slice(from, Math.min(to, from + 40)),
      length: nodes.length,
      ...(this.#segment === "" ? {} : { archived: this.#archived() }),
    };
  }

  #archived() {
    return { to: this.#firstSeq - 1, segment: this.#segment };
  }

  update(): Promise<never> {
    return Promise.reject(missing());
  }

  signal(): Promise<never> {
    return Promise.reject(missing());
  }

  status() {
    return Promise.resolve(this.open ? ({ open: true, status: "RUNNING" } as const) : undefined);
  }

  record(): Promise<never> {
    return Promise.reject(missing());
  }
}

function missing(): LonghaulError {
  return new LonghaulError("SESSION_NOT_FOUND", "there is no session s in this namespace");
}

let root: string;
let archive: Archive;
let session: RollingSession;
let watchers: Watchers;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "longhaul-client-archive-"));
  archive = openArchive(await openDirectoryStore(root));
  session = new RollingSession(archive);
});
afterEach(async () => {
  watchers.close();
  await rm(root, { recursive: true, force: true });
});

/** A reader as the client makes it. */
function read(wire: Wire = new ArchivedWire(session, archive)): SessionReader {
  watchers = new Watchers((id) => ({
    session: id,
    page: (after, limit) => wire.query(id, queries.log, { after, limit }),
    projections: () => Promise.resolve({ asOfSeq: session.entries.length, values: {} }),
    isOpen: async () => (await wire.status(id))?.open === true,
  }));
  return new SessionReader("s", wire, watchers);
}

async function logOf(reader: SessionReader, after = -1): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of reader.log({ after })) entries.push(entry);
  return entries;
}

async function watched(reader: SessionReader, count: number, after = -1): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const event of reader.watch({ after, intervalMs: 1 })) {
    if (event.type === "entry") entries.push(event.entry);
    if (entries.length === count) break;
  }
  return entries;
}

describe("a session in many segments", () => {
  test("is read and watched from its beginning without a gap or a double, also while it rolls over between two pages", async () => {
    const reader = read();
    for (let n = 0; n < 50; n++) {
      for (let k = 0; k <= n % 4; k++) session.say(`${n}.${k}`);
      await session.roll();
    }
    expect(session.rolls).toBe(50);
    let more = 30;
    session.between = async () => {
      if (more-- <= 0) return;
      session.say(`late ${more}`);
      if (more % 2 === 0) await session.roll();
    };
    const total = session.entries.length + 30;
    const seen = await watched(reader, total);
    expect(session.rolls).toBeGreaterThan(60);
    expect(seen).toEqual(session.entries);
    expect(await logOf(reader)).toEqual(session.entries);
    expect(await logOf(reader, 70)).toEqual(session.entries.slice(71));
    expect(await watched(reader, total - 71, 70)).toEqual(session.entries.slice(71));
    expect(await reader.messages()).toEqual(
      deriveMessages(session.entries.map(({ seq, data }) => ({ seq, ...data }) as SurfaceNode)),
    );
  });

  test("is the same log wherever it was cut and from wherever it is read, live and when Temporal has forgotten it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 12 }),
        fc.integer({ min: -1, max: 40 }),
        async (runs, after) => {
          archive = openArchive(await openDirectoryStore(await mkdtemp(join(root, "s-"))));
          session = new RollingSession(archive);
          const reader = read();
          session.say("first");
          for (const count of runs) {
            for (let n = 0; n < count; n++) session.say(`entry ${n}`);
            await session.roll();
          }
          const rest = session.entries.slice(after + 1);
          expect(await logOf(reader, after)).toEqual(rest);
          const messages = await reader.messages();
          await session.forget();
          expect(await logOf(reader, after)).toEqual(rest);
          expect(await reader.messages()).toEqual(messages);
        },
      ),
      { numRuns: 30 },
    );
  });

  test("comes in pages of at most 256 KB or one entry, and of no more entries than asked for", async () => {
    const reader = read();
    for (const size of [100_000, 150_000, 20_000, 300_000, 10, 10, 10])
      session.say("x".repeat(size));
    await session.roll();
    const sizes: number[] = [];
    for (let after = -1; after < 6;) {
      const { entries, archived } = await reader.logPage({ after, limit: 2 });
      expect(archived).toBeUndefined();
      expect(entries.length === 1 || JSON.stringify(entries).length <= pageBytes).toBe(true);
      sizes.push(entries.length);
      after = entries.at(-1)?.seq ?? Infinity;
    }
    expect(sizes).toEqual([2, 1, 1, 2, 1]);
  });

  test("whose archive lacks a segment is an error for the reader that needs it alone", async () => {
    const reader = read();
    for (const text of ["one", "two"]) {
      session.say(text);
      await session.roll();
    }
    session.say("three");
    const other = await mkdtemp(join(root, "other-"));
    const elsewhere = read(new ArchivedWire(session, openArchive(await openDirectoryStore(other))));
    await expect(logOf(elsewhere)).rejects.toMatchObject({ code: "ARCHIVE_UNAVAILABLE" });
    expect(await logOf(elsewhere, 1)).toEqual(session.entries.slice(2));
    const behind = elsewhere.watch({ intervalMs: 1 });
    const current = elsewhere.watch({ after: 1, intervalMs: 1 });
    const [lost, had] = await Promise.allSettled([behind.next(), current.next()]);
    expect(lost).toMatchObject({ status: "rejected", reason: { code: "ARCHIVE_UNAVAILABLE" } });
    expect(had).toMatchObject({ status: "fulfilled", value: { value: { type: "entry" } } });
    await expect(logOf(reader)).resolves.toHaveLength(3);
  });
});

describe("a session that Temporal has forgotten", () => {
  test("takes nothing any more, and says so; one that nobody archived does not exist", async () => {
    const wire = new ArchivedWire(session, archive);
    session.say("one");
    session.open = false;
    await expect(wire.update("s", "session.send", "m", {})).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
    expect(await wire.status("s")).toBeUndefined();
    session.open = true;
    await session.forget();
    for (const write of [
      () => wire.update("s", "session.send", "m", {}),
      () => wire.signal("s", "x", {}),
    ])
      await expect(write()).rejects.toMatchObject({
        code: "SESSION_CLOSED",
        message: expect.stringContaining("its log can still be read, from the archive"),
      });
    expect(await wire.status("s")).toEqual({ open: false, status: "COMPLETED" });
    expect(await wire.record("s")).toEqual({
      id: "s",
      state: "closed",
      status: "closed",
      startedAt: 1,
      closedAt: 2,
      archived: true,
    });
    watchers = new Watchers(() => {
      throw new Error("nothing is watched here");
    });
  });
});
