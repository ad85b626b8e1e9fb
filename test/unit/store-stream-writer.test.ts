import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LonghaulError, type ErrorCode } from "../../src/contracts/errors.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { readStream } from "../../src/store/stream-reader.js";
import { createStreamWriter } from "../../src/store/stream-writer.js";

describe("a stream writer", () => {
  let root: string;
  let store: Store;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "longhaul-writer-"));
    store = await openDirectoryStore(root);
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const content = async (): Promise<string> => {
    const pieces: Uint8Array[] = [];
    for await (const piece of readStream(store, "s", "a")) pieces.push(piece);
    return Buffer.concat(pieces).toString("utf8");
  };

  test("keeps the order and answers the length on close", async () => {
    const writer = createStreamWriter(store, "s", "a");
    let expected = "";
    for (let index = 0; index < 20_000; index += 1) {
      writer.write(Buffer.from(`${index};`));
      expected += `${index};`;
      // Lets batches be written in between.
      if (index % 500 === 0) await new Promise(setImmediate);
    }
    expect(await writer.close()).toBe(expected.length);
    expect(await content()).toBe(expected);
  });

  test("writes many small pieces in few appends", async () => {
    const append = vi.fn<Store["append"]>((...args) => store.append(...args));
    const writer = createStreamWriter({ append }, "s", "a", { batchBytes: 1000 });
    for (let index = 0; index < 1000; index += 1) writer.write(Buffer.from("0123456789"));
    expect(await writer.close()).toBe(10_000);
    expect(append.mock.calls.length).toBeLessThanOrEqual(11);
  });

  test("writes without being closed when the interval is over", async () => {
    const writer = createStreamWriter(store, "s", "a", { intervalMs: 1 });
    writer.write(Buffer.from("early"));
    await vi.waitFor(async () => expect(await content()).toBe("early"), { timeout: 10_000 });
    writer.write(Buffer.from(" late"));
    await vi.waitFor(async () => expect(await content()).toBe("early late"), { timeout: 10_000 });
    await writer.close();
  });

  test("goes on at an offset", async () => {
    await store.append("s", "a", 0, Buffer.from("old "));
    const writer = createStreamWriter(store, "s", "a", { offset: 4 });
    writer.write(Buffer.from("new"));
    expect(await writer.close()).toBe(7);
    expect(await content()).toBe("old new");
  });

  test("takes a copy, so that the caller may reuse its buffer", async () => {
    const writer = createStreamWriter(store, "s", "a");
    const buffer = Buffer.from("first");
    writer.write(buffer);
    buffer.fill("x");
    await writer.close();
    expect(await content()).toBe("first");
  });

  test("that was closed without bytes wrote nothing", async () => {
    const writer = createStreamWriter(store, "s", "a");
    expect(await writer.close()).toBe(0);
    expect(await store.size("s", "a")).toBeUndefined();
  });

  test("tries an unavailable store again and loses nothing", async () => {
    const failures = [failure("STORE_UNAVAILABLE"), failure("STORE_UNAVAILABLE")];
    const append: Store["append"] = async (...args) => {
      const next = failures.pop();
      if (next !== undefined) throw next;
      return store.append(...args);
    };
    const writer = createStreamWriter({ append }, "s", "a", { intervalMs: 1 });
    writer.write(Buffer.from("one "));
    await vi.waitFor(() => expect(failures.length).toBeLessThan(2), { timeout: 10_000 });
    writer.write(Buffer.from("two"));
    await vi.waitFor(async () => expect(await content()).toBe("one two"), { timeout: 10_000 });
    expect(await writer.close()).toBe(7);
  });

  test("does not throw from write, and tells on every close what kept it from writing", async () => {
    const reason = failure("STORE_UNAVAILABLE");
    const writer = createStreamWriter({ append: () => Promise.reject(reason) }, "s", "a", {
      intervalMs: 1,
    });
    writer.write(Buffer.from("lost"));
    await expect(writer.close()).rejects.toBe(reason);
    await expect(writer.close()).rejects.toBe(reason);
    writer.write(Buffer.from("after close"));
  });

  test("gives up after a conflict instead of writing in the wrong place", async () => {
    await store.append("s", "a", 0, Buffer.from("theirs"));
    const append = vi.fn<Store["append"]>((...args) => store.append(...args));
    const writer = createStreamWriter({ append }, "s", "a", { batchBytes: 1 });
    writer.write(Buffer.from("ours"));
    await vi.waitFor(() => expect(append.mock.settledResults[0]?.type).toBe("rejected"), {
      timeout: 10_000,
    });
    writer.write(Buffer.from("more"));
    await expect(writer.close()).rejects.toMatchObject({ code: "STORE_CONFLICT" });
    expect(append).toHaveBeenCalledTimes(1);
    expect(await content()).toBe("theirs");
  });

  test("keeps no more than its bound while the store is unavailable", async () => {
    const append = vi.fn<Store["append"]>(() => Promise.reject(failure("STORE_UNAVAILABLE")));
    const writer = createStreamWriter({ append }, "s", "a", {
      batchBytes: 10,
      maxPendingBytes: 100,
    });
    for (let index = 0; index < 50; index += 1) writer.write(Buffer.from("0123456789"));
    await expect(writer.close()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(
      Math.max(0, ...append.mock.calls.map(([, , , bytes]) => bytes.length)),
    ).toBeLessThanOrEqual(100);
  });
});

test("reading a stream gives all bytes to its end, from an offset, and tells an unknown one", async () => {
  const root = await mkdtemp(join(tmpdir(), "longhaul-reader-"));
  try {
    const store = await openDirectoryStore(root);
    const bytes = Buffer.alloc(700_000, "0123456");
    await store.append("s", "a", 0, bytes);
    const pieces: Uint8Array[] = [];
    for await (const piece of readStream(store, "s", "a", 3)) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(1);
    expect(Buffer.concat(pieces).equals(bytes.subarray(3))).toBe(true);
    await expect(readStream(store, "s", "b").next()).rejects.toMatchObject({
      code: "STREAM_NOT_FOUND",
    });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

function failure(code: ErrorCode): LonghaulError {
  return new LonghaulError(code, "the store said no");
}
