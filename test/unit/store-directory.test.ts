import { existsSync } from "node:fs";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDirectoryStore } from "../../src/store/directory.js";
import { describeStore } from "../support/store-conformance.js";

describeStore("the directory store", async () => {
  const root = await mkdtemp(join(tmpdir(), "longhaul-store-"));
  return {
    spec: `directory:${root}`,
    store: await openDirectoryStore(root),
    close: () => rm(root, { recursive: true, force: true }),
  };
});

describe("the directory store", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "longhaul-store-"));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  test("keeps a stream as a plain file under a readable name, which is its locator", async () => {
    const store = await openDirectoryStore(join(root, "made", "on demand"));
    await store.append("s-1", "model/3.1.k2j", 0, Buffer.from("hello"));
    const locator = store.locator("s-1", "model/3.1.k2j");
    expect(await readFile(locator, "utf8")).toBe("hello");
    expect(relative(root, locator)).toBe("made/on demand/s-1/model+3.1.k2j");
  });

  test("keeps every id inside its folder", async () => {
    const store = await openDirectoryStore(root);
    for (const id of ["..", "../..", "/", "a/../../b", "\0"]) {
      expect(dirname(dirname(store.locator(id, id)))).toBe(root);
    }
  });

  test("does not list files that are not its own", async () => {
    const store = await openDirectoryStore(root);
    await store.append("s", "a", 0, Buffer.from("x"));
    await Promise.all(
      ["UPPER", "has space", "~draft~1", `a~${"0".repeat(64)}`].map((name) =>
        writeFile(join(root, "s", name), "x"),
      ),
    );
    expect(await store.list("s", "")).toEqual([{ stream: "a", bytes: 1 }]);
  });

  test("deletes at its start what a killed removal left", async () => {
    await mkdir(join(root, "~removed~1"));
    await writeFile(join(root, "~removed~1", "a"), "x");
    await openDirectoryStore(root);
    expect(await readdir(root)).toEqual([]);
  });

  test("leaves no file of a removed session, also when ids were long", async () => {
    const store = await openDirectoryStore(root);
    const id = "x".repeat(900);
    await store.append(id, id, 0, Buffer.from("x"));
    expect(await store.list(id, "x")).toEqual([{ stream: id, bytes: 1 }]);
    await store.remove(id);
    expect(await readdir(root)).toEqual([]);
  });

  test("says in one line which path could not be written and why", async () => {
    const store = await openDirectoryStore(root);
    await writeFile(join(root, "s"), "a file where a folder belongs");
    const refusal = store.append("s", "a", 0, Buffer.from("x"));
    await expect(refusal).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: `cannot write ${join(root, "s", "a")}: ENOTDIR: not a directory; check the data directory`,
    });
    await expect(store.list("s", "")).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  test.runIf(existsSync("/dev/full"))(
    "says that the disk is full, and goes on when there is space again",
    async () => {
      const store = await openDirectoryStore(root);
      await store.append("s", "other", 0, Buffer.from("x"));
      await symlink("/dev/full", join(root, "s", "a"));
      await expect(store.append("s", "a", 0, Buffer.from("hello"))).rejects.toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: `cannot write ${join(root, "s", "a")}: ENOSPC: no space left on device; free some space on that disk`,
      });
      await rm(join(root, "s", "a"));
      expect(await store.append("s", "a", 0, Buffer.from("hello"))).toBe(5);
    },
  );

  test("is unavailable when its directory has gone, and is not made again elsewhere", async () => {
    const store = await openDirectoryStore(join(root, "data"));
    await store.append("s", "a", 0, Buffer.from("x"));
    await rename(join(root, "data"), join(root, "moved"));
    await expect(store.check()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(store.append("s", "a", 1, Buffer.from("y"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
    expect(existsSync(join(root, "data"))).toBe(false);
    await rename(join(root, "moved"), join(root, "data"));
    expect(await store.append("s", "a", 1, Buffer.from("y"))).toBe(2);
  });

  test("cannot be opened where a file is", async () => {
    await writeFile(join(root, "file"), "");
    await expect(openDirectoryStore(join(root, "file"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining(`${join(root, "file")} is a file, not a directory`),
    });
    await expect(openDirectoryStore(join(root, "file", "below"))).rejects.toMatchObject({
      message: expect.stringContaining(`${join(root, "file")} is a file, not a directory`),
    });
  });
});
