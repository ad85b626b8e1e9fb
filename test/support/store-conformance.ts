import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { Store } from "../../src/contracts/store.js";
import { compiledScript } from "./compiled-script.js";
import { patternBytes } from "./byte-pattern.js";
import { openStore } from "./open-store.js";

export interface StoreFixture {
  /** Opens the same store again, here or in a child process; see `openStore`. */
  readonly spec: string;
  readonly store: Store;
  /** Removes everything. */
  close(): Promise<void>;
}

/** What every store must do (src/contracts/store.ts). `open` gives a fresh, empty store. */
export function describeStore(name: string, open: () => Promise<StoreFixture>): void {
  describe(`${name}, as a store`, () => {
    let fixture: StoreFixture;
    let store: Store;

    beforeEach(async () => {
      fixture = await open();
      store = fixture.store;
    });
    afterEach(() => fixture.close());

    const text = async (
      session: string,
      stream: string,
      offset = 0,
      limit = 1000,
    ): Promise<string> =>
      Buffer.from(await store.read(session, stream, offset, limit)).toString("utf8");

    describe("append", () => {
      test("creates a stream, goes on at its end and returns its length", async () => {
        expect(await store.append("s", "a", 0, bytesOf("one"))).toBe(3);
        expect(await store.append("s", "a", 3, bytesOf("two"))).toBe(6);
        expect(await text("s", "a")).toBe("onetwo");
      });

      test("of no bytes creates an empty stream", async () => {
        expect(await store.append("s", "a", 0, new Uint8Array())).toBe(0);
        expect(await store.size("s", "a")).toBe(0);
        expect(await text("s", "a")).toBe("");
      });

      test("again changes nothing and returns the length the stream has", async () => {
        await store.append("s", "a", 0, bytesOf("one"));
        await store.append("s", "a", 3, bytesOf("two"));
        expect(await store.append("s", "a", 0, bytesOf("one"))).toBe(6);
        expect(await store.append("s", "a", 3, bytesOf("two"))).toBe(6);
        expect(await text("s", "a")).toBe("onetwo");
      });

      test("that overlaps the end adds only what is new", async () => {
        await store.append("s", "a", 0, bytesOf("onetw"));
        expect(await store.append("s", "a", 3, bytesOf("twothree"))).toBe(11);
        expect(await text("s", "a")).toBe("onetwothree");
      });

      test("of other bytes than those there is refused and changes nothing", async () => {
        await store.append("s", "a", 0, bytesOf("onetwo"));
        await expect(store.append("s", "a", 3, bytesOf("tWo"))).rejects.toMatchObject({
          code: "STORE_CONFLICT",
        });
        await expect(store.append("s", "a", 3, bytesOf("twX and more"))).rejects.toMatchObject({
          code: "STORE_CONFLICT",
          message: expect.stringContaining("offset 5"),
        });
        expect(await text("s", "a")).toBe("onetwo");
      });

      test("beyond the end is refused, naming the length", async () => {
        await store.append("s", "a", 0, bytesOf("one"));
        const refusal = { code: "STORE_CONFLICT", message: expect.stringContaining("at most 3") };
        await expect(store.append("s", "a", 4, bytesOf("x"))).rejects.toMatchObject(refusal);
        await expect(store.append("s", "new", 1, bytesOf("x"))).rejects.toMatchObject({
          code: "STORE_CONFLICT",
        });
        expect(await text("s", "a")).toBe("one");
        expect((await store.size("s", "new")) ?? 0).toBe(0);
      });

      test("takes a megabyte at once, and any bytes", async () => {
        const bytes = patternBytes(0, 1_048_576);
        expect(await store.append("s", "a", 0, bytes)).toBe(bytes.length);
        expect(await store.append("s", "a", bytes.length, bytes)).toBe(2 * bytes.length);
        expect(Buffer.compare(await store.read("s", "a", 0, bytes.length), bytes)).toBe(0);
        expect(
          Buffer.compare(await store.read("s", "a", bytes.length, 2 * bytes.length), bytes),
        ).toBe(0);
      });

      test("of a part of a larger buffer writes that part", async () => {
        await store.append("s", "a", 0, bytesOf("xxonexx").subarray(2, 5));
        expect(await text("s", "a")).toBe("one");
      });

      test("answers like an array of bytes under any appends and reads", async () => {
        const offsets = fc.integer({ min: 0, max: 12 });
        const step = fc.record({
          offset: offsets,
          bytes: fc.uint8Array({ min: 0, max: 1, maxLength: 5 }),
        });
        let round = 0;
        await fc.assert(
          fc.asyncProperty(
            fc.array(step, { maxLength: 15 }),
            offsets,
            offsets,
            async (steps, offset, limit) => {
              round += 1;
              const stream = `round/${round}`;
              let model = Buffer.alloc(0);
              await store.append("s", stream, 0, model);
              for (const { offset: at, bytes } of steps) {
                const overlap = model.subarray(at, at + bytes.length);
                const fits =
                  at <= model.length && overlap.equals(bytes.subarray(0, overlap.length));
                if (fits) model = Buffer.concat([model, bytes.subarray(overlap.length)]);
                const answer = await store
                  .append("s", stream, at, bytes)
                  .catch((error: unknown) => codeOf(error));
                expect(answer).toBe(fits ? model.length : "STORE_CONFLICT");
              }
              expect(Buffer.from(await store.read("s", stream, offset, limit))).toEqual(
                Buffer.from(model.subarray(offset, offset + limit)),
              );
            },
          ),
          { numRuns: 60 },
        );
      });

      test.each([-1, 0.5, Number.NaN, 2 ** 60])("refuses the offset %d", async (offset) => {
        await expect(store.append("s", "a", offset, bytesOf("x"))).rejects.toMatchObject({
          code: "INVALID_INPUT",
        });
        await expect(store.read("s", "a", offset, 1)).rejects.toMatchObject({
          code: "INVALID_INPUT",
        });
      });
    });

    describe("read and size", () => {
      test("give the bytes from an offset, at most the limit, and none at or beyond the end", async () => {
        await store.append("s", "a", 0, bytesOf("0123456789"));
        expect(await text("s", "a", 3, 4)).toBe("3456");
        expect(await text("s", "a", 8, 100)).toBe("89");
        expect(await text("s", "a", 8, Number.MAX_SAFE_INTEGER)).toBe("89");
        expect(await text("s", "a", 10)).toBe("");
        expect(await text("s", "a", 99)).toBe("");
        expect(await text("s", "a", 0, 0)).toBe("");
        expect(await store.size("s", "a")).toBe(10);
      });

      test("tell an unknown stream", async () => {
        await store.append("s", "a", 0, bytesOf("x"));
        await expect(store.read("s", "b", 0, 1)).rejects.toMatchObject({
          code: "STREAM_NOT_FOUND",
        });
        await expect(store.read("other", "a", 0, 1)).rejects.toMatchObject({
          code: "STREAM_NOT_FOUND",
        });
        await expect(store.sync("s", "b")).rejects.toMatchObject({ code: "STREAM_NOT_FOUND" });
        expect(await store.size("s", "b")).toBeUndefined();
        expect(await store.size("other", "a")).toBeUndefined();
      });

      test("see what was appended after a sync as before it", async () => {
        await store.append("s", "a", 0, bytesOf("one"));
        await store.sync("s", "a");
        await store.append("s", "a", 3, bytesOf("two"));
        await store.sync("s", "a");
        expect(await text("s", "a")).toBe("onetwo");
      });
    });

    describe("list", () => {
      test("gives the streams of a session with a prefix, in the order of their names, with their lengths", async () => {
        const streams = [
          "model/1.2.b",
          "model/1.10.a",
          "job/bash-1/1",
          "spill/1.1.c",
          "model/1.1.B",
          "model/1.1.b",
          "model",
        ];
        await Promise.all(streams.map((stream) => store.append("s", stream, 0, bytesOf(stream))));
        await store.append("s2", "model/9.9.z", 0, bytesOf("x"));
        const names = async (prefix: string): Promise<string[]> =>
          (await store.list("s", prefix)).map(({ stream }) => stream);
        expect(await names("model/")).toEqual([
          "model/1.1.B",
          "model/1.1.b",
          "model/1.10.a",
          "model/1.2.b",
        ]);
        expect(await names("model/1.1")).toEqual(["model/1.1.B", "model/1.1.b", "model/1.10.a"]);
        expect(await names("job")).toEqual(["job/bash-1/1"]);
        expect(await store.list("s", "spill/")).toEqual([{ stream: "spill/1.1.c", bytes: 11 }]);
        expect(await names("")).toEqual(streams.toSorted());
        expect(await names("none")).toEqual([]);
      });

      test("of an unknown session is empty", async () => {
        expect(await store.list("nobody", "")).toEqual([]);
      });
    });

    describe("sessions", () => {
      test("gives those that have streams, in the order of their names", async () => {
        const ids = ["a/b", "Ä", "a", "z".repeat(1000), ""];
        for (const id of ["gone", ...ids]) await store.append(id, "x", 0, bytesOf("x"));
        await store.remove("gone");
        expect(await sessionsOf(store)).toEqual(ids.toSorted());
      });

      test("of an empty store are none", async () => {
        expect(await sessionsOf(store)).toEqual([]);
      });
    });

    describe("remove", () => {
      test("takes everything of a session and nothing of another, and may be repeated", async () => {
        await store.append("s", "a", 0, bytesOf("x"));
        await store.append("s", "b/c", 0, bytesOf("y"));
        await store.append("s/b", "a", 0, bytesOf("z"));
        await store.remove("s");
        await store.remove("s");
        expect(await store.list("s", "")).toEqual([]);
        expect(await store.size("s", "a")).toBeUndefined();
        expect(await text("s/b", "a")).toBe("z");
      });

      test("lets the session begin again", async () => {
        await store.append("s", "a", 0, bytesOf("old"));
        await store.remove("s");
        expect(await store.append("s", "a", 0, bytesOf("new"))).toBe(3);
        expect(await text("s", "a")).toBe("new");
      });
    });

    describe("ids", () => {
      test("of any characters name streams and sessions of their own", async () => {
        for (const id of oddIds) {
          await store.append("s", id, 0, bytesOf(`s ${id}`));
          await store.append(id, "stream", 0, bytesOf(`i ${id}`));
        }
        const listed = await store.list("s", "");
        expect(listed.map(({ stream }) => stream).toSorted()).toEqual(oddIds.toSorted());
        for (const id of oddIds) {
          expect(await text("s", id, 0, 10_000)).toBe(bytesOf(`s ${id}`).toString());
          expect(await text(id, "stream", 0, 10_000)).toBe(bytesOf(`i ${id}`).toString());
          expect(await store.list(id, "")).toHaveLength(1);
        }
        expect(new Set(oddIds.map((id) => store.locator("s", id))).size).toBe(oddIds.length);
      });

      test("over 1,000 characters are refused", async () => {
        await expect(store.append("s", "a".repeat(1001), 0, bytesOf("x"))).rejects.toMatchObject({
          code: "INVALID_INPUT",
        });
      });
    });

    test("check accepts a store that can be written and leaves nothing behind", async () => {
      await store.check();
      expect(await store.list("", "")).toEqual([]);
    });

    describe("two writers", () => {
      test("in one process appending the same bytes end with one copy", async () => {
        const other = await openStore(fixture.spec);
        const pieces = Array.from({ length: 40 }, (_, index) => patternBytes(index * 5000, 5000));
        const writeAll = async (writer: Store): Promise<void> => {
          for (const [index, piece] of pieces.entries()) {
            await writer.append("s", "a", index * 5000, piece);
          }
        };
        await Promise.all([writeAll(store), writeAll(other)]);
        expect(await patternLength(store, "a")).toBe(200_000);
      });

      test("in one process appending other bytes at the same place: one of them is told", async () => {
        const other = await openStore(fixture.spec);
        for (let round = 0; round < 20; round += 1) {
          const results = await Promise.allSettled([
            store.append("s", `r${round}`, 0, bytesOf("ours")),
            other.append("s", `r${round}`, 0, bytesOf("theirs")),
          ]);
          const statuses = results.map(({ status }) => status);
          expect(statuses.toSorted()).toEqual(["fulfilled", "rejected"]);
          expect(await text("s", `r${round}`)).toBe(
            statuses[0] === "fulfilled" ? "ours" : "theirs",
          );
        }
      });

      test("many appends given at once are done in the order given", async () => {
        const pieces = Array.from({ length: 50 }, (_, index) => patternBytes(index * 100, 100));
        const lengths = await Promise.all(
          pieces.map((piece, index) => store.append("s", "a", index * 100, piece)),
        );
        expect(lengths).toEqual(pieces.map((_, index) => (index + 1) * 100));
        expect(await patternLength(store, "a")).toBe(5000);
      });

      test(
        "in two processes appending the same bytes end with one copy",
        { timeout: 60_000 },
        async () => {
          const children = [1, 2].map(() => startAppender(fixture.spec, "a", 3_000_000, 7001));
          try {
            expect(await Promise.all(children.map((child) => exitOf(child)))).toEqual([0, 0]);
          } finally {
            for (const child of children) child.kill("SIGKILL");
          }
          expect(await patternLength(store, "a")).toBe(3_000_000);
        },
      );
    });

    test(
      "a process killed between its bytes leaves a prefix, and the next one goes on",
      { timeout: 120_000 },
      async () => {
        let acknowledged = 0;
        for (const step of [3000, 70_000, 1_048_576]) {
          const child = startAppender(fixture.spec, "a", Number.MAX_SAFE_INTEGER, step);
          const ended = exitOf(child);
          acknowledged = await killAfter(child, 12);
          await ended;
          const size = (await store.size("s", "a")) ?? 0;
          expect(size).toBeGreaterThanOrEqual(acknowledged);
          expect(await patternLength(store, "a")).toBe(size);
          // The appender that repeats its last append, and one that goes on from the length.
          const repeated = await store.append(
            "s",
            "a",
            acknowledged,
            patternBytes(acknowledged, step),
          );
          expect(repeated).toBe(Math.max(size, acknowledged + step));
          await store.append("s", "a", repeated, patternBytes(repeated, 10));
          expect(await patternLength(store, "a")).toBe(repeated + 10);
        }
      },
    );
  });
}

const oddIds = [
  "",
  ".",
  "..",
  "../up",
  "/etc/passwd",
  "a/b",
  "a+b",
  "a b",
  "a%2fb",
  "a~b",
  "~",
  "case",
  "Case",
  "CASE",
  "con",
  "-rf",
  "line\nbreak",
  "nul\0byte",
  "quote'\"`$(x)",
  "ß",
  "\u00e9",
  "e\u0301",
  "日本語",
  "😀",
  "\ud800",
  "\udc00",
  "z".repeat(1000),
  `${"z".repeat(999)}y`,
  "日".repeat(1000),
  "Z".repeat(1000),
];

/** The length of a stream that is a prefix of the byte pattern; -1 when it is not. */
async function patternLength(store: Store, stream: string): Promise<number> {
  const size = (await store.size("s", stream)) ?? 0;
  const bytes = await store.read("s", stream, 0, size + 1);
  return Buffer.compare(bytes, patternBytes(0, size)) === 0 ? size : -1;
}

async function sessionsOf(store: Store): Promise<string[]> {
  const sessions: string[] = [];
  for await (const session of store.sessions()) sessions.push(session);
  return sessions;
}

function codeOf(error: unknown): string {
  return error instanceof LonghaulError ? error.code : String(error);
}

function startAppender(spec: string, stream: string, until: number, step: number): ChildProcess {
  const script = compiledScript(new URL("store-appender.ts", import.meta.url));
  const args = [script, spec, "s", stream, String(until), String(step)];
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  child.stdout?.resume();
  const [code] = await once(child, "close");
  return typeof code === "number" ? code : null;
}

/** Kills a child -9 once it has told of so many appends; the length it told last. */
async function killAfter(child: ChildProcess, appends: number): Promise<number> {
  if (child.stdout === null) throw new Error("expected the child's output");
  let told = 0;
  let seen = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    told = Number(line);
    seen += 1;
    if (seen === appends) child.kill("SIGKILL");
  }
  if (seen < appends)
    throw new Error(`expected ${appends} appends before the kill, the child ended after ${seen}`);
  return told;
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, "utf8");
}
