import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { brokenStore, openBench, textOf, exists } from "./process-fixtures.js";

describe("read", () => {
  it("returns a text file as it is", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a.txt"), "one\ntwo\nthree");
    expect(await bench.call("read", { path: "a.txt" })).toEqual({
      content: [{ type: "text", text: "one\ntwo\nthree" }],
      isError: false,
    });
    await writeFile(join(bench.cwd, "empty"), "");
    expect(textOf(await bench.call("read", { path: "empty" }))).toBe("(empty file)");
  });

  it("returns lines from an offset and says where to go on", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a.txt"), "1\n2\n3\n4\n5\n");
    expect(textOf(await bench.call("read", { path: "a.txt", offset: 2, limit: 2 }))).toBe(
      "2\n3\n[lines 2-3 of 5; next offset 4]",
    );
    expect(textOf(await bench.call("read", { path: "a.txt", offset: 4, limit: 2 }))).toBe("4\n5\n");
    expect(textOf(await bench.call("read", { path: "a.txt", offset: 6 }))).toBe(
      "Error: offset 6 is past the end of a.txt, which has 5 lines",
    );
  });

  it("bounds its text to the inline limit by whole lines, and reading on gives the whole file", async () => {
    const bench = await openBench();
    const lines = Array.from(
      { length: 1_500 },
      (_, index) => `${index} ${"あ".repeat(index % 50)}`,
    );
    await writeFile(join(bench.cwd, "a.txt"), lines.join("\n"));
    let collected = "";
    for (let offset = 1; ;) {
      const text = textOf(
        await bench.call("read", { path: "a.txt", offset }, { maxInlineBytes: 10_000 }),
      );
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(10_000);
      const more = /\[lines \d+-\d+ of 1500; next offset (\d+)\]$/.exec(text);
      collected += more === null ? text : text.slice(0, more.index);
      if (more === null) break;
      offset = Number(more[1]);
    }
    expect(collected).toBe(lines.join("\n"));
  });

  it("cuts a single line that is too long", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a.txt"), `${"あ".repeat(10_000)}\nb\n`);
    const text = textOf(await bench.call("read", { path: "a.txt" }, { maxInlineBytes: 1_000 }));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_000);
    expect(text).toMatch(/^あ+\n\[line 1 of 2 is cut: it has 30001 bytes; next offset 2\]$/u);
  });

  it("replaces what is not UTF-8", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "latin"), Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]));
    expect(textOf(await bench.call("read", { path: "latin" }))).toBe("caf\uFFFD\n");
    await writeFile(join(bench.cwd, "junk"), Buffer.alloc(40_000, 0xff));
    expect(
      Buffer.byteLength(textOf(await bench.call("read", { path: "junk" }))),
    ).toBeLessThanOrEqual(50_000);
  });

  it("refuses in one line what it cannot show", async () => {
    const bench = await openBench();
    await mkdir(join(bench.cwd, "dir"));
    await writeFile(join(bench.cwd, "binary"), Buffer.from([1, 2, 0, 3]));
    await writeFile(join(bench.cwd, "huge"), "");
    await truncate(join(bench.cwd, "huge"), 65 * 1024 * 1024);
    execFileSync("mkfifo", [join(bench.cwd, "fifo")]);
    const cases = {
      missing: "Error: cannot read missing: it does not exist",
      dir: "Error: dir is a directory; list it with glob or bash",
      binary: "Error: binary is a binary file of 4 bytes; inspect it with bash (file, xxd)",
      huge: "Error: huge has 68157440 bytes, more than 67108864; read parts of it with bash (head, tail, sed)",
      fifo: "Error: fifo is not a regular file",
      "binary/x": "Error: binary/x cannot be resolved: a part of the path is not a directory",
      "a\0b": "Error: path must be a non-empty string without NUL",
    };
    for (const [path, text] of Object.entries(cases)) {
      const outcome = await bench.call("read", { path });
      expect([outcome.error?.code, textOf(outcome)]).toEqual(["TOOL_FAILED", text]);
    }
  });

  it.skipIf(process.getuid?.() === 0)("refuses a file it has no permission for", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "closed"), "x", { mode: 0o000 });
    expect(textOf(await bench.call("read", { path: "closed" }))).toBe(
      "Error: cannot read closed: no permission",
    );
  });
});

describe("read of an image", () => {
  /** Heads of real files, with the size in them. */
  const images = {
    "a.png": ["image/png", "89504e470d0a1a0a0000000d4948445200000003000000020802000000"],
    "a.jpg": [
      "image/jpeg",
      "ffd8ffe000104a46494600010100000100010000ffc0001108000200030301220002110103110100",
    ],
    "a.gif": ["image/gif", "47494638396103000200800000000000ffffff2c0000"],
    "lossy.webp": [
      "image/webp",
      "524946462400000057454250565038201800000030010 09d012a0300020002003425a400".replace(" ", ""),
    ],
    "lossless.webp": [
      "image/webp",
      "524946461a000000574542505650384c0d0000002f02400000000000000000000000",
    ],
    "extended.webp": [
      "image/webp",
      "524946461600000057454250565038580a000000100000000200000100000000",
    ],
  } as const;

  it("gives a line for those who cannot see and the picture by reference, known by its content", async () => {
    const bench = await openBench();
    for (const [name, [mediaType, hex]] of Object.entries(images)) {
      const bytes = Buffer.from(hex, "hex");
      // The name does not tell.
      await writeFile(join(bench.cwd, `${name}.txt`), bytes);
      const outcome = await bench.call("read", { path: `${name}.txt` }, { claim: `1.1.${name}` });
      const digest = createHash("sha256").update(bytes).digest("hex");
      const stream = `spill/1.1.${name}.image.${digest.slice(0, 12)}`;
      expect(outcome).toEqual({
        content: [
          {
            type: "text",
            text: `[image ${name}.txt: ${mediaType}, 3x2, ${bytes.length} bytes; a model that cannot see gets only this line]`,
          },
        ],
        images: [{ mediaType, stream, bytes: bytes.length, digest }],
        isError: false,
        meta: { mediaType, width: 3, height: 2, bytes: bytes.length },
      });
      const stored = await bench.store.read("session-1", stream, 0, 10_000);
      expect(Buffer.from(stored).equals(bytes)).toBe(true);
      expect(JSON.parse(JSON.stringify(outcome))).toEqual(outcome);
    }
  });

  it("may run again though the file has changed", async () => {
    const bench = await openBench();
    const digests = new Set<string | undefined>();
    for (const end of ["00", "00", "01"]) {
      await writeFile(join(bench.cwd, "a"), Buffer.from(images["a.png"][1] + end, "hex"));
      const outcome = await bench.call("read", { path: "a" }, { claim: "1.1.again" });
      digests.add(outcome.images?.[0]?.digest);
    }
    expect([digests.size, digests.has(undefined)]).toEqual([2, false]);
  });

  it("refuses one that is too large or cannot be kept, and takes a broken one for what it is", async () => {
    const bench = await openBench();
    const png = Buffer.from(images["a.png"][1], "hex");
    await writeFile(join(bench.cwd, "big"), Buffer.concat([png, Buffer.alloc(3_750_000)]));
    await writeFile(join(bench.cwd, "a"), png);
    expect(textOf(await bench.call("read", { path: "big" }))).toBe(
      `Error: big is an image of ${3_750_000 + png.length} bytes, more than 3750000; make a smaller one with bash and read that`,
    );
    const lost = await bench.call("read", { path: "a" }, { store: brokenStore(bench.store) });
    expect([lost.error?.code, textOf(lost)]).toEqual([
      "TOOL_FAILED",
      "Error: cannot show the image a: the store did not take it: the disk is on fire",
    ]);
    for (const [name, hex] of Object.entries({
      cut: "89504e470d0a1a0a00",
      jpeg: "ffd8ffe0ffff00",
      frames: "ffd8ff000000000000000000",
      riff: "524946462400000057454250",
    })) {
      await writeFile(join(bench.cwd, name), Buffer.from(`${hex}00`, "hex"));
      expect(textOf(await bench.call("read", { path: name }))).toMatch(
        / is a binary file of \d+ bytes/,
      );
    }
    await writeFile(join(bench.cwd, "gif"), "GIF89a is a format");
    expect((await bench.call("read", { path: "gif" })).images).toHaveLength(1);
  });
});

describe("write", () => {
  it("creates a file with its directories, then replaces it and keeps its mode", async () => {
    const bench = await openBench();
    const created = await bench.call("write", { path: "a/b/run.sh", content: "echo あ\n" });
    expect(created).toMatchObject({ isError: false, meta: { bytes: 9, created: true } });
    expect(textOf(created)).toBe("created a/b/run.sh (9 bytes)");
    await chmod(join(bench.cwd, "a/b/run.sh"), 0o750);
    const replaced = await bench.call("write", { path: "a/b/run.sh", content: "" });
    expect(replaced.meta).toEqual({ bytes: 0, created: false });
    expect(textOf(replaced)).toBe("replaced a/b/run.sh (0 bytes)");
    expect((await stat(join(bench.cwd, "a/b/run.sh"))).mode & 0o7777).toBe(0o750);
    expect(await readdir(join(bench.cwd, "a/b"))).toEqual(["run.sh"]);
  });

  it("never shows a part of its content to a reader", async () => {
    const bench = await openBench();
    const contents = ["a".repeat(300_000), "b".repeat(200_000)];
    await bench.call("write", { path: "f", content: contents[0] });
    let writing = true;
    const writer = (async () => {
      for (let round = 0; round < 20; round += 1)
        await bench.call("write", { path: "f", content: contents[round % 2] });
      writing = false;
    })();
    while (writing) expect(contents).toContain(await readFile(join(bench.cwd, "f"), "utf8"));
    await writer;
  });

  it("writes through a symlink that stays inside and keeps the link", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "real"), "old");
    await symlink("real", join(bench.cwd, "link"));
    await symlink("later", join(bench.cwd, "dangling"));
    await bench.call("write", { path: "link", content: "new" });
    await bench.call("write", { path: "dangling", content: "made" });
    expect(await bench.content("real")).toBe("new");
    expect(await bench.content("later")).toBe("made");
    expect(await readdir(bench.cwd)).toEqual(["dangling", "later", "link", "real"]);
  });

  it("refuses in one line what it cannot write, and leaves nothing behind", async () => {
    const bench = await openBench();
    await mkdir(join(bench.cwd, "dir"));
    await writeFile(join(bench.cwd, "file"), "x");
    const cases = {
      dir: "Error: dir is a directory; name a file",
      "file/below": "Error: file/below cannot be resolved: a part of the path is not a directory",
      ["n".repeat(300)]: `Error: ${"n".repeat(300)} cannot be resolved: the name is too long`,
    };
    for (const [path, text] of Object.entries(cases)) {
      const outcome = await bench.call("write", { path, content: "y" });
      expect([outcome.error?.code, textOf(outcome)]).toEqual(["TOOL_FAILED", text]);
    }
    expect(await readdir(bench.cwd)).toEqual(["dir", "file"]);
  });

  it.skipIf(process.getuid?.() === 0)(
    "refuses a read-only file and a closed directory",
    async () => {
      const bench = await openBench();
      await writeFile(join(bench.cwd, "fixed"), "x", { mode: 0o444 });
      await mkdir(join(bench.cwd, "closed"), { mode: 0o555 });
      expect(textOf(await bench.call("write", { path: "fixed", content: "y" }))).toBe(
        "Error: cannot write fixed: no permission",
      );
      expect(textOf(await bench.call("write", { path: "closed/a", content: "y" }))).toBe(
        "Error: cannot write closed/a: no permission",
      );
    },
  );
});

describe("the workspace", () => {
  it("[harness/B9] [harness/B11] in place of a sandbox's fence and a one-shot grant: is not left by dots, absolute paths or symlinks, unless that is permitted", async () => {
    const bench = await openBench();
    const outside = join(bench.home, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "secret"), "secret");
    await mkdir(join(bench.home, "workspace-2"));
    await symlink(outside, join(bench.cwd, "door"));
    await symlink(join(outside, "secret"), join(bench.cwd, "leak"));
    await symlink(join(outside, "new"), join(bench.cwd, "dangling"));
    await symlink("door/deeper/new", join(bench.cwd, "twice"));
    const paths = [
      "../outside/secret",
      join(outside, "secret"),
      "door/secret",
      "leak",
      "../workspace-2/x",
      "dangling",
      "twice",
      "door/a/b",
    ];
    for (const path of paths) {
      for (const [tool, args] of [
        ["read", { path }],
        ["write", { path, content: "x" }],
      ] as const) {
        const outcome = await bench.call(tool, args);
        expect([path, tool, outcome.error?.code]).toEqual([path, tool, "WORKSPACE"]);
        expect(textOf(outcome)).toMatch(/^Error: [^\n]+ is outside the workspace [^\n]+$/);
      }
    }
    expect(await readdir(outside)).toEqual(["secret"]);
    expect(await readFile(join(outside, "secret"), "utf8")).toBe("secret");
    const permissions = { outsideWorkspace: true };
    expect(textOf(await bench.call("read", { path: "leak" }, { permissions }))).toBe("secret");
    expect(
      (await bench.call("write", { path: "dangling", content: "x" }, { permissions })).isError,
    ).toBe(false);
    expect(await exists(join(outside, "new"))).toBe(true);
  });

  it("may itself be reached by a symlink, and holds names that begin with dots", async () => {
    const bench = await openBench();
    await symlink(bench.cwd, join(bench.home, "link"));
    const cwd = join(bench.home, "link");
    expect((await bench.call("write", { path: "..name", content: "x" }, { cwd })).isError).toBe(
      false,
    );
    expect(textOf(await bench.call("read", { path: join(cwd, "..name") }, { cwd }))).toBe("x");
  });

  it("must exist", async () => {
    const bench = await openBench();
    const outcome = await bench.call("read", { path: "a" }, { cwd: join(bench.home, "gone") });
    expect(outcome.error?.code).toBe("WORKSPACE");
    expect(textOf(outcome)).toBe(
      `Error: the workspace ${join(bench.home, "gone")} cannot be used: it does not exist`,
    );
  });

  it("ends a symlink loop with one line", async () => {
    const bench = await openBench();
    await symlink("b", join(bench.cwd, "a"));
    await symlink("a", join(bench.cwd, "b"));
    expect(textOf(await bench.call("write", { path: "a", content: "x" }))).toBe(
      "Error: a cannot be resolved: too many symbolic links",
    );
  });
});
