import { createHash } from "node:crypto";
import { cp, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Archive, ArchivedSession, SegmentHeader } from "../../src/contracts/archive.js";
import { segmentText } from "../../src/contracts/archive.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { Store } from "../../src/contracts/store.js";
import { segmentName } from "../../src/domain/segment.js";
import { openArchive } from "../../src/store/archive.js";
import { createRecent } from "../../src/store/recent.js";
import { openDirectoryStore } from "../../src/store/directory.js";

let root: string;
let store: Store;
let archive: Archive;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "longhaul-archive-"));
  store = await openDirectoryStore(root);
  archive = openArchive(store);
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe("segments", () => {
  test("are one stream each, named by what they hold, and come back as they were written", async () => {
    const [name = ""] = await write("s", [3]);
    const header = headerOf("s", 0, 2, "");
    expect(name).toBe(segmentName(segmentText(header, entriesOf(0, 2))));
    expect(await readFile(fileOf("s", name), "utf8")).toBe(segmentText(header, entriesOf(0, 2)));
    expect(await fresh().segment("s", name)).toEqual({ name, header, entries: entriesOf(0, 2) });
  });

  test("keep every character, and an entry of 2 MB", async () => {
    const texts = ["\u2028\u0000\\n\n\r\n", "\ud800 lone", "😀".repeat(500_000), "", "__proto__"];
    const entries = texts.map((text, seq) => entryOf(seq, text));
    const name = await archive.write(headerOf("s", 0, 4, ""), entries);
    expect((await fresh().segment("s", name)).entries).toEqual(entries);
    expect(await fresh().entry("s", name, 2)).toEqual(entries[2]);
  });

  test("written again by anyone, also at once, are the same bytes once", async () => {
    const other = openArchive(await openDirectoryStore(root));
    const entries = entriesOf(0, 500);
    const header = headerOf("s", 0, 500, "");
    const names = await Promise.all(
      [archive, other, archive, other].map((writer) => writer.write(header, entries)),
    );
    expect(new Set(names).size).toBe(1);
    expect(await fresh().segment("s", names[0] ?? "")).toMatchObject({ header, entries });
    expect(await store.list("s", "")).toHaveLength(1);
  });

  test("whose writing was interrupted anywhere are damage until they are written again", async () => {
    const [name = ""] = await write("s", [4]);
    const whole = await readFile(fileOf("s", name));
    for (const length of [0, 1, 100, whole.length - 1]) {
      await truncate(fileOf("s", name), length);
      await expect(fresh().segment("s", name)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
      await archive.write(headerOf("s", 0, 3, ""), entriesOf(0, 3));
      expect(await readFile(fileOf("s", name))).toEqual(whole);
    }
  });

  test("that are not what they are said to be are not written", async () => {
    const entries = entriesOf(0, 2);
    for (const [header, given] of [
      [headerOf("s", 0, 3, ""), entries],
      [headerOf("s", 0, 2, ""), entries.toReversed()],
      [headerOf("s", 0, -1, ""), []],
      [headerOf("s", 0, 2, "0".repeat(64)), entries],
      [headerOf("s", 3, 5, ""), entriesOf(3, 5)],
    ] as const) {
      await expect(archive.write(header, given)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
    expect(await store.list("s", "")).toEqual([]);
  });
});

describe("a chain of segments", () => {
  test("gives any entry, any tail and any part of its headers", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 12 }),
        fc.nat(),
        fc.uuid(),
        async (sizes, pick, session) => {
          const names = await write(session, sizes);
          const last = names.at(-1) ?? "";
          const total = sizes.reduce((sum, size) => sum + size, 0);
          const seq = pick % total;
          for (const reader of [archive, fresh()]) {
            expect(await reader.entry(session, last, seq)).toEqual(entryOf(seq));
            expect(await all(reader.entries(session, last, seq - 1))).toEqual(
              entriesOf(seq, total - 1),
            );
            const chain = await reader.chain(session, last, seq);
            expect(chain[0]?.to).toBe(total - 1);
            expect(chain.at(-1)?.from).toBeLessThanOrEqual(seq);
            expect(chain.at(-1)?.to).toBeGreaterThanOrEqual(seq);
            expect(await reader.chain(session, last)).toHaveLength(sizes.length);
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  test("has nothing after its end, and none is empty", async () => {
    const last = (await write("s", [2, 2])).at(-1) ?? "";
    expect(await all(archive.entries("s", last, 3))).toEqual([]);
    expect(await archive.chain("s", last, 4)).toEqual([]);
    expect(await archive.chain("s", "")).toEqual([]);
    expect(await all(archive.entries("s", "", -1))).toEqual([]);
    for (const name of [last, ""])
      await expect(archive.entry("s", name, 4)).rejects.toMatchObject({
        code: "ARCHIVE_UNAVAILABLE",
      });
  });

  test(
    "is read segment by segment, each once, and only as far back as needed",
    { timeout: 60_000 },
    async () => {
      const names = await write(
        "s",
        Array.from({ length: 200 }, () => 5),
      );
      const { counted, reads } = countReads();
      const reader = openArchive(counted);
      expect(await reader.entry("s", names.at(-1) ?? "", 990)).toEqual(entryOf(990));
      expect(new Set(reads)).toEqual(new Set(names.slice(198).map((name) => `segment/${name}`)));
      reads.length = 0;
      await Promise.all([0, 1, 2, 3, 4].map((seq) => reader.entry("s", names.at(-1) ?? "", seq)));
      expect(new Set(reads)).toEqual(new Set(names.slice(0, 198).map((name) => `segment/${name}`)));
      expect(reads.filter((read) => read === `segment/${names[1] ?? ""}`)).toHaveLength(1);
      reads.length = 0;
      await reader.entry("s", names.at(-1) ?? "", 2);
      await reader.chain("s", names.at(-1) ?? "");
      expect(reads).toEqual([]);
    },
  );

  test("that is cut names the file that is missing", async () => {
    const names = await write("s", [2, 2, 2]);
    await rm(fileOf("s", names[1] ?? ""));
    const reader = fresh();
    expect(await reader.entry("s", names[2] ?? "", 5)).toEqual(entryOf(5));
    const refusal = {
      code: "ARCHIVE_UNAVAILABLE",
      message: expect.stringContaining(names[1] ?? ""),
    };
    await expect(reader.entry("s", names[2] ?? "", 0)).rejects.toMatchObject(refusal);
    await expect(all(reader.entries("s", names[2] ?? "", -1))).rejects.toMatchObject(refusal);
    await expect(reader.chain("nobody", names[2] ?? "")).rejects.toMatchObject({
      code: "ARCHIVE_UNAVAILABLE",
    });
  });

  test(
    "in which a byte changed or the end is gone is LOG_CORRUPT, and nothing of that segment is given",
    { timeout: 60_000 },
    async () => {
      const [name = ""] = await write("s", [3]);
      const whole = await readFile(fileOf("s", name));
      await fc.assert(
        fc.asyncProperty(
          fc.nat(whole.length - 1),
          fc.integer({ min: 1, max: 255 }),
          fc.boolean(),
          async (at, flip, cut) => {
            const bytes = Buffer.from(whole);
            bytes[at] = (bytes[at] ?? 0) ^ flip;
            await writeFile(fileOf("s", name), cut ? whole.subarray(0, at) : bytes);
            const given: LogEntry[] = [];
            const read = async (): Promise<void> => {
              for await (const entry of fresh().entries("s", name, -1)) given.push(entry);
            };
            await expect(read()).rejects.toMatchObject({
              code: "LOG_CORRUPT",
              message: expect.stringMatching(new RegExp(`segment/${name}.*backup`, "u")),
            });
            expect(given).toEqual([]);
          },
        ),
      );
      await writeFile(fileOf("s", name), Buffer.concat([whole, Buffer.from("x")]));
      await expect(fresh().segment("s", name)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    },
  );

  test("with a header that leads elsewhere is LOG_CORRUPT, though every name is right", async () => {
    const first = await archive.write(headerOf("s", 0, 2, ""), entriesOf(0, 2));
    const gap = await put("s", headerOf("s", 4, 5, first), entriesOf(4, 5));
    await expect(archive.entry("s", gap, 1)).rejects.toMatchObject({
      code: "LOG_CORRUPT",
      message: expect.stringContaining(first),
    });
    const mute = await put("s", headerOf("s", 3, 5, first), entriesOf(3, 4));
    await expect(archive.segment("s", mute)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    const endless = await put("s", headerOf("s", 3, 5, ""), entriesOf(3, 5));
    await expect(archive.chain("s", endless)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    const newer = await put("s", { ...headerOf("s", 0, 0, ""), v: 2 as 1 }, entriesOf(0, 0));
    await expect(archive.segment("s", newer)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
  });

  test("whose header was damaged is the one that is named, and is read again once it is whole", async () => {
    const names = await write("s", [2, 2, 2]);
    const [first = "", middle = "", last = ""] = names;
    const whole = await readFile(fileOf("s", middle), "utf8");
    for (const wrong of [
      whole.replace(first, "f".repeat(64)),
      whole.replace('"from":2', '"from":1'),
      whole.replace('"to":3', '"to":2'),
    ]) {
      const reader = fresh();
      await writeFile(fileOf("s", middle), wrong);
      for (const seq of [0, 1]) {
        await expect(reader.entry("s", last, seq)).rejects.toMatchObject({
          code: "LOG_CORRUPT",
          message: expect.stringContaining(middle),
        });
      }
      await writeFile(fileOf("s", middle), whole);
      expect(await all(reader.entries("s", last, -1))).toEqual(entriesOf(0, 5));
      expect(await reader.entry("s", last, 1)).toEqual(entryOf(1));
    }
  });

  test("of another session is LOG_CORRUPT", async () => {
    const [name = ""] = await write("one", [3]);
    await cp(dirname(fileOf("one", name)), dirname(fileOf("two", name)), { recursive: true });
    for (const read of [
      () => fresh().segment("two", name),
      () => fresh().chain("two", name),
      () => archive.segment("two", name),
    ])
      await expect(read()).rejects.toMatchObject({ code: "LOG_CORRUPT" });
  });

  test("that another wrote in place of what belongs there is LOG_CORRUPT for the writer", async () => {
    const header = headerOf("s", 0, 2, "");
    const name = segmentName(segmentText(header, entriesOf(0, 2)));
    await store.append("s", `segment/${name}`, 0, Buffer.from("something else"));
    await expect(archive.write(header, entriesOf(0, 2))).rejects.toMatchObject({
      code: "LOG_CORRUPT",
      message: expect.stringContaining(name),
    });
  });
});

test("whatever is written is flushed after its last byte", async () => {
  const done: string[] = [];
  const watched = new Proxy(store, {
    get: (_, name: keyof Store) => {
      if (name !== "append" && name !== "sync") return (store[name] as () => unknown).bind(store);
      return async (...args: readonly [string, string, number, Uint8Array]) => {
        const answer = await store[name](...args);
        done.push(`${name} ${args[1].split("/")[0] ?? ""}`);
        return answer;
      };
    },
  });
  const writer = openArchive(watched);
  await writer.write(headerOf("s", 0, 1, ""), entriesOf(0, 1));
  await writer.putBody("s", "b", '"text"');
  await writer.mark(endOf("s", "r", 10));
  expect(done).toEqual(
    ["segment", "body", "archived"].flatMap((stream) => [`append ${stream}`, `sync ${stream}`]),
  );
});

describe("what is kept in memory", () => {
  const loaded = <T>(value: T, size: number) => Promise.resolve({ value, size });

  test("is what was used last, as far as it fits", async () => {
    const recent = createRecent<string>(10);
    const loads: string[] = [];
    const get = (key: string, size: number) =>
      recent.get(key, () => {
        loads.push(key);
        return loaded(key, size);
      });
    for (const key of ["a", "b", "a", "c", "a", "b"]) expect(await get(key, 5)).toBe(key);
    expect(loads).toEqual(["a", "b", "c", "b"]);
    // Too large for it alone, and nothing goes for it.
    await get("huge", 11);
    await get("huge", 11);
    await get("b", 5);
    await get("a", 5);
    expect(loads.slice(4)).toEqual(["huge", "huge"]);
    recent.put("a", { value: "another", size: 10 });
    expect(await get("a", 5)).toBe("another");
    await get("b", 5);
    expect(loads.slice(6)).toEqual(["b"]);
  });

  test("of segments is what was read last, 8 MB of text: a session's age costs its worker nothing", async () => {
    const names: string[] = [];
    for (const seq of [0, 1, 2, 3, 4]) {
      const header = headerOf("s", seq, seq, names.at(-1) ?? "");
      names.push(await archive.write(header, [entryOf(seq, "x".repeat(2_000_000))]));
    }
    const read = new Set<string>();
    const reader = openArchive(
      new Proxy(store, {
        get: (_, name: keyof Store) => {
          if (name !== "read") return (store[name] as () => unknown).bind(store);
          return (...args: Parameters<Store["read"]>) => {
            read.add(args[1]);
            return store.read(...args);
          };
        },
      }),
    );
    const readAgain = async (seqs: readonly number[]): Promise<number[]> => {
      read.clear();
      for (const seq of seqs) await reader.segment("s", names[seq] ?? "");
      return seqs.filter((seq) => read.has(`segment/${names[seq] ?? ""}`));
    };
    expect(await readAgain([0, 1, 2, 3, 4])).toEqual([0, 1, 2, 3, 4]);
    expect(await readAgain([4, 3, 2, 1])).toEqual([]);
    expect(await readAgain([0, 4])).toEqual([0, 4]);
    expect(await readAgain([0, 1, 2])).toEqual([]);
  });

  test("is not what was dropped while it was loaded, nor what could not be", async () => {
    const recent = createRecent<number>(10);
    const first = recent.get("s/a", () => loaded(1, 1));
    recent.drop("s/");
    expect(await first).toBe(1);
    expect(await recent.get("s/a", () => loaded(2, 1))).toBe(2);
    recent.drop("other/");
    expect(await recent.get("s/a", () => loaded(3, 1))).toBe(2);
    await expect(recent.get("b", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await recent.get("b", () => loaded(4, 1))).toBe(4);
  });
});

describe("texts of checkpoints", () => {
  test("come back by their names, as far as they are there", async () => {
    const json = JSON.stringify("text".repeat(5_000));
    const name = createHash("sha256").update(json).digest("hex");
    await archive.putBody("s", name, json);
    await archive.putBody("s", name, json);
    expect(await fresh().bodies("s", [name, "0".repeat(64)])).toEqual(new Map([[name, json]]));
    expect(await archive.bodies("other", [name])).toEqual(new Map());
    await expect(archive.putBody("s", name, '"other"')).rejects.toMatchObject({
      code: "LOG_CORRUPT",
    });
  });
});

describe("sessions that ended", () => {
  test("are listed, those that closed last first, each by its last run", async () => {
    expect(await all(archive.list())).toEqual([]);
    await store.append("alive", "model/1.1.x", 0, Buffer.from("x"));
    const marks = [endOf("a", "r1", 10), endOf("b", "r1", 30), endOf("a", "r2", 20)];
    for (const mark of marks) await archive.mark(mark);
    expect(await all(fresh().list())).toEqual([marks[1], marks[2]]);
    expect(await archive.ended("a")).toEqual(marks[2]);
    expect(await archive.ended("alive")).toBeUndefined();
    expect(await archive.ended("nobody")).toBeUndefined();
  });

  test("marked again keep what was said first", async () => {
    await archive.mark({ ...endOf("s", "r", 10), title: "first" });
    await archive.mark({ ...endOf("s", "r", 10), title: "second" });
    expect(await archive.ended("s")).toMatchObject({ title: "first" });
  });

  test("whose mark was interrupted are not marked yet, and can be", async () => {
    const mark = endOf("s", "r", 10);
    await archive.mark(mark);
    const file = store.locator("s", "archived/r");
    const whole = await readFile(file);
    for (const length of [0, 20, whole.length - 66, whole.length - 1]) {
      await truncate(file, length);
      expect(await archive.ended("s")).toBeUndefined();
      expect(await all(archive.list())).toEqual([]);
      await archive.mark(mark);
      expect(await archive.ended("s")).toEqual(mark);
    }
  });

  test("whose mark is damaged are told after all others were listed", async () => {
    await archive.mark(endOf("bad", "r", 20));
    await archive.mark(endOf("good", "r", 10));
    const file = store.locator("bad", "archived/r");
    await writeFile(file, (await readFile(file, "utf8")).replace("20", "21"));
    await expect(archive.ended("bad")).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    const given: ArchivedSession[] = [];
    const list = async (): Promise<void> => {
      for await (const ended of archive.list()) given.push(ended);
    };
    await expect(list()).rejects.toMatchObject({
      code: "LOG_CORRUPT",
      message: expect.stringContaining("archived/r of session bad"),
    });
    expect(given).toEqual([endOf("good", "r", 10)]);
  });
});

/** Opened anew: nothing is in its memory. */
function fresh(): Archive {
  return openArchive(store);
}

function entryOf(seq: number, text = `message ${seq}`): LogEntry {
  const message = {
    id: `m${seq}`,
    role: "user" as const,
    content: [{ type: "text" as const, text }],
    source: { kind: "user" as const },
  };
  return { type: "user/message", seq, time: seq, data: { message }, surfaceOp: "append" };
}

function entriesOf(from: number, to: number): LogEntry[] {
  return Array.from({ length: to - from + 1 }, (_, index) => entryOf(from + index));
}

function headerOf(session: string, from: number, to: number, previous: string): SegmentHeader {
  return { v: 1, session, run: "r", from, to, previous };
}

function endOf(session: string, run: string, closedAt: number): ArchivedSession {
  const segment = "a".repeat(64);
  return { v: 1, session, run, segment, lastSeq: 4, status: "completed", startedAt: 1, closedAt };
}

/** A chain of segments with so many entries each; their names, the oldest first. */
async function write(session: string, sizes: readonly number[]): Promise<string[]> {
  const names: string[] = [];
  let from = 0;
  for (const size of sizes) {
    const header = headerOf(session, from, from + size - 1, names.at(-1) ?? "");
    names.push(await archive.write(header, entriesOf(from, from + size - 1)));
    from += size;
  }
  return names;
}

/** Writes what no archive would. */
async function put(
  session: string,
  header: SegmentHeader,
  entries: readonly LogEntry[],
): Promise<string> {
  const text = segmentText(header, entries);
  const name = segmentName(text);
  await store.append(session, `segment/${name}`, 0, Buffer.from(text));
  return name;
}

function fileOf(session: string, name: string): string {
  return store.locator(session, `segment/${name}`);
}

function countReads(): { counted: Store; reads: string[] } {
  const reads: string[] = [];
  const counted = new Proxy(store, {
    get: (_, name: keyof Store) =>
      name === "read"
        ? (...args: Parameters<Store["read"]>) => {
            reads.push(args[1]);
            return store.read(...args);
          }
        : (store[name] as () => unknown).bind(store),
  });
  return { counted, reads };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
