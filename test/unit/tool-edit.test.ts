import { execFileSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
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
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";

import { openBench, textOf } from "./process-fixtures.js";

describe("edit", () => {
  it("replaces a text that is there once and touches nothing else", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a.ts"), "one\n\ttwo\nthree", { mode: 0o640 });
    await chmod(join(bench.cwd, "a.ts"), 0o750);
    const outcome = await bench.call("edit", { path: "a.ts", oldText: "\ttwo", newText: "\t2あ" });
    expect(textOf(outcome)).toBe("edited a.ts at line 2 (15 bytes)");
    expect(outcome.meta).toEqual({ replacements: 1, line: 2, bytes: 15 });
    expect(await bench.content("a.ts")).toBe("one\n\t2あ\nthree");
    expect((await stat(join(bench.cwd, "a.ts"))).mode & 0o7777).toBe(0o750);
    expect(await readdir(bench.cwd)).toEqual(["a.ts"]);
    await bench.call("edit", { path: "a.ts", oldText: "\t2あ\n", newText: "" });
    expect(await bench.content("a.ts")).toBe("one\nthree");
  });

  it("takes replacement patterns of other languages literally", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a"), "price: X (.*)");
    await bench.call("edit", { path: "a", oldText: "X (.*)", newText: "$& $1 $$ \\1" });
    expect(await bench.content("a")).toBe("price: $& $1 $$ \\1");
  });

  it("refuses a text that is there more than once, overlapping too, unless all shall go", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a"), "x\ny\nx\nx\n");
    const refused = await bench.call("edit", { path: "a", oldText: "x", newText: "z" });
    expect([refused.error?.code, textOf(refused)]).toEqual([
      "TOOL_FAILED",
      "Error: oldText matches 3 places in a (lines 1, 3, 4); add surrounding lines to make it unique, or set replaceAll",
    ]);
    expect(await bench.content("a")).toBe("x\ny\nx\nx\n");
    const all = await bench.call("edit", {
      path: "a",
      oldText: "x",
      newText: "xx",
      replaceAll: true,
    });
    expect([textOf(all), all.meta?.["replacements"]]).toEqual([
      "edited a at 3 places (11 bytes)",
      3,
    ]);
    expect(await bench.content("a")).toBe("xx\ny\nxx\nxx\n");
    await writeFile(join(bench.cwd, "b"), "aaa");
    expect(textOf(await bench.call("edit", { path: "b", oldText: "aa", newText: "b" }))).toContain(
      "matches 2 places",
    );
    await bench.call("edit", { path: "b", oldText: "aa", newText: "b", replaceAll: true });
    expect(await bench.content("b")).toBe("ba");
  });

  it("says which lines differ only in whitespace", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a"), "if (x) {\n    call(1,  2);\n}\n");
    const hint = async (oldText: string) =>
      textOf(await bench.call("edit", { path: "a", oldText, newText: "-" }));
    expect(await hint("if (x) {\n\tcall(1, 2);\n}")).toBe(
      "Error: oldText was not found in a; lines 1-3 differ only in whitespace; read them and copy the text exactly",
    );
    expect(await hint("call(1, 2)")).toBe(
      "Error: oldText was not found in a; line 2 differs only in whitespace; read them and copy the text exactly",
    );
    expect(await hint("call(3)")).toBe(
      "Error: oldText was not found in a; read the file and copy the text exactly",
    );
    expect(await hint(" \n ")).toContain("read the file");
  });

  it("finds LF text in a CRLF file, keeps its endings and its byte order mark", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a"), "\uFEFFone\r\ntwo\r\nthree\r\n");
    await bench.call("edit", { path: "a", oldText: "one\ntwo\n", newText: "1\n2\n2b\n" });
    expect(await bench.content("a")).toBe("\uFEFF1\r\n2\r\n2b\r\nthree\r\n");
    await bench.call("edit", { path: "a", oldText: "three", newText: "3\n4" });
    expect(await bench.content("a")).toBe("\uFEFF1\r\n2\r\n2b\r\n3\r\n4\r\n");
    await writeFile(join(bench.cwd, "b"), "one\ntwo\n");
    await bench.call("edit", { path: "b", oldText: "one\r\ntwo\r\n", newText: "1\r\n2\r\n" });
    expect(await bench.content("b")).toBe("1\n2\n");
    await writeFile(join(bench.cwd, "c"), "a\nb\nc\r\nd\n");
    await bench.call("edit", { path: "c", oldText: "c", newText: "c\nc2" });
    expect(await bench.content("c")).toBe("a\nb\nc\nc2\r\nd\n");
  });

  it("leaves bytes alone that are not UTF-8", async () => {
    const bench = await openBench();
    const latin = Buffer.from([0xe9, 0x20, 0x78, 0x20, 0xff]);
    await writeFile(join(bench.cwd, "a"), latin);
    await bench.call("edit", { path: "a", oldText: "x", newText: "yz" });
    expect([...(await readFile(join(bench.cwd, "a")))]).toEqual([
      0xe9, 0x20, 0x79, 0x7a, 0x20, 0xff,
    ]);
  });

  it("edits what a symlink inside the workspace points to and keeps the link", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "real"), "old");
    await symlink("real", join(bench.cwd, "link"));
    await bench.call("edit", { path: "link", oldText: "old", newText: "new" });
    expect(await bench.content("real")).toBe("new");
    const entries = await readdir(bench.cwd, { withFileTypes: true });
    expect(entries.map((entry) => [entry.name, entry.isSymbolicLink()])).toEqual([
      ["link", true],
      ["real", false],
    ]);
  });

  it("refuses in one line what it cannot edit, and leaves all as it was", async () => {
    const bench = await openBench();
    await mkdir(join(bench.cwd, "dir"));
    await writeFile(join(bench.cwd, "a"), "x");
    await writeFile(join(bench.cwd, "binary"), Buffer.from([0x78, 0]));
    await writeFile(join(bench.cwd, "huge"), "x");
    await truncate(join(bench.cwd, "huge"), 11 * 1024 * 1024);
    execFileSync("mkfifo", [join(bench.cwd, "fifo")]);
    const cases: [object, string, string][] = [
      [{ path: "missing" }, "TOOL_FAILED", "cannot read missing: it does not exist"],
      [{ path: "dir" }, "TOOL_FAILED", "dir is a directory; list it with glob or bash"],
      [{ path: "fifo" }, "TOOL_FAILED", "fifo is not a regular file"],
      [
        { path: "binary" },
        "TOOL_FAILED",
        "binary is a binary file of 2 bytes; change it with bash (sed, or a script)",
      ],
      [
        { path: "huge" },
        "TOOL_FAILED",
        "huge has 11534336 bytes, more than 10485760; change it with bash (sed, or a script)",
      ],
      [{ newText: "x" }, "TOOL_FAILED", "oldText and newText are the same; nothing to change"],
      [{ oldText: "" }, "INVALID_ARGS", "invalid arguments for edit: oldText: "],
      [{ path: "../a" }, "WORKSPACE", "../a is outside the workspace"],
      [
        { newText: "y".repeat(11 * 1024 * 1024) },
        "TOOL_FAILED",
        "a would have 11534336 bytes, more than 10485760",
      ],
    ];
    for (const [change, code, text] of cases) {
      const args = { path: "a", oldText: "x", newText: "y", ...change };
      const outcome = await bench.call("edit", args);
      expect(outcome.error?.code).toBe(code);
      expect(textOf(outcome).slice(0, 7 + text.length)).toBe(`Error: ${text}`);
      expect(textOf(outcome)).not.toContain("\n");
    }
    await writeFile(join(bench.cwd, "crlf"), "a\r\nb\r\n");
    const same = { path: "crlf", oldText: "a\nb", newText: "a\r\nb" };
    expect(textOf(await bench.call("edit", same))).toBe(
      "Error: oldText and newText are the same; nothing to change",
    );
    expect(await readdir(bench.cwd)).toEqual(["a", "binary", "crlf", "dir", "fifo", "huge"]);
    expect(await bench.content("a")).toBe("x");
  });

  it("never shows a part of its result to a reader", async () => {
    const bench = await openBench();
    const contents = [`A${"a".repeat(300_000)}`, `B${"a".repeat(300_000)}`];
    await writeFile(join(bench.cwd, "f"), contents[0] ?? "");
    let editing = true;
    const editor = (async () => {
      for (let round = 0; round < 20; round += 1) {
        const [oldText, newText] = round % 2 === 0 ? ["A", "B"] : ["B", "A"];
        expect((await bench.call("edit", { path: "f", oldText, newText })).isError).toBe(false);
      }
      editing = false;
    })().finally(() => (editing = false));
    while (editing) expect(contents).toContain(await readFile(join(bench.cwd, "f"), "utf8"));
    await editor;
  });

  it("refuses to overwrite what someone else wrote meanwhile", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a"), `x${"y".repeat(5_000_000)}`);
    let ended = false;
    const edit = bench
      .call("edit", { path: "a", oldText: "x", newText: "z" })
      .finally(() => (ended = true));
    // The new content is on its way as soon as its temporary file is there.
    while (!ended && readdirSync(bench.cwd).length === 1) await turn();
    writeFileSync(join(bench.cwd, "a"), "theirs");
    expect(textOf(await edit)).toBe(
      "Error: a was changed by someone else meanwhile; read it and edit it again",
    );
    expect(await bench.content("a")).toBe("theirs");
    expect(await readdir(bench.cwd)).toEqual(["a"]);
  });

  it("ends without a change when it was cancelled, and does not run twice", async () => {
    const bench = await openBench();
    await writeFile(join(bench.cwd, "a"), "x");
    const args = { path: "a", oldText: "x", newText: "xx" };
    const cancelled = await bench.call("edit", args, { signal: AbortSignal.abort() });
    expect(cancelled.error?.code).toBe("ABORTED_BEFORE_DISPATCH");
    const first = await bench.call("edit", args, { claim: "1.1.once" });
    expect(await bench.call("edit", args, { claim: "1.1.once" })).toEqual(first);
    expect(await bench.content("a")).toBe("xx");
  });
});
