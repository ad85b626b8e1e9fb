import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, symlink, truncate, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import * as fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";

import { defineGrep } from "../../src/tools/grep.js";
import { globTool } from "../../src/tools/glob.js";
import { compileGlob } from "../../src/tools/glob-match.js";
import { walkFiles } from "../../src/tools/walk.js";
import { type Bench, openBench, textOf } from "./process-fixtures.js";

afterEach(() => vi.unstubAllEnvs());

const engines = ["auto", "own"] as const;

async function searchBench(engine: (typeof engines)[number] = "auto"): Promise<Bench> {
  return await openBench([defineGrep({ engine }), globTool]);
}

async function plant(bench: Bench, files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(bench.cwd, path)), { recursive: true });
    await writeFile(join(bench.cwd, path), content);
  }
}

/** Every rule of what is searched, in one tree. */
const tree: Record<string, string | Buffer> = {
  ".gitignore":
    "# built\r\ndist/\n*.log\n!keep.log\n/only-root.txt\nlib/**/gen\n\\#odd\nfoo[12]?.c\n**/deep/x\nblank \n",
  "a.txt": "needle one\nhay\nNeedle two\n",
  "b/.gitignore": "!special.log\nlocal\n",
  "b/a.txt": "hay\nhay needle\r\nhay\r\n",
  "b/special.log": "needle",
  "b/local": "needle",
  "b/only-root.txt": "needle",
  "b-side.txt": "needle",
  "B.txt": "needle",
  "dist/out.txt": "needle",
  "dist/x.log": "needle",
  "b/dist/out.txt": "needle",
  "dist.txt": "needle",
  "trace.log": "needle",
  "keep.log": "needle",
  "only-root.txt": "needle",
  "lib/gen/a": "needle",
  "lib/a/b/gen/a": "needle",
  "gen/a": "needle",
  "#odd": "needle",
  "foo1x.c": "needle",
  "foo3x.c": "needle",
  "q/deep/x": "needle",
  "q/deep/y": "needle",
  blank: "needle",
  ".hidden": "needle",
  ".dir/a": "needle",
  ".git/config": "needle",
  binary: Buffer.from("needle\n\0"),
  "late-binary": `${"needle\n".repeat(20_000)}\0`,
  utf16: Buffer.from("\uFEFFneedle\n", "utf16le"),
  bom: "\uFEFFneedle at the start\n",
  latin: Buffer.from([0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0xe9, 0x0a]),
  empty: "",
  名前: "needle あ\n",
  "with space:1": "needle",
};

const found = `
B.txt:1:needle
a.txt:1:needle one
b/a.txt:2:hay needle
b/only-root.txt:1:needle
b/special.log:1:needle
b-side.txt:1:needle
bom:1:\uFEFFneedle at the start
dist.txt:1:needle
foo3x.c:1:needle
gen/a:1:needle
keep.log:1:needle
latin:1:needle\uFFFD
q/deep/y:1:needle
with space:1:1:needle
名前:1:needle あ
[15 matching lines in 15 files]`.trim();

// Without ripgrep each search starts a thread.
describe.each(engines)("grep with engine %s", { timeout: 60_000 }, (engine) => {
  it("gives path, line and text in path order, without what is ignored, hidden or binary", async () => {
    const bench = await searchBench(engine);
    await plant(bench, tree);
    const outcome = await bench.call("grep", { pattern: "needle" });
    expect(textOf(outcome)).toBe(found);
    expect(outcome.meta).toEqual({ matches: 15, files: 15 });
  });

  it("narrows by path, glob and case", async () => {
    const bench = await searchBench(engine);
    await plant(bench, tree);
    const grep = async (args: object) =>
      textOf(await bench.call("grep", { pattern: "^needle", ...args }));
    expect(await grep({ ignoreCase: true, glob: "a.*" })).toBe(
      "a.txt:1:needle one\na.txt:3:Needle two\n[2 matching lines in 1 files]",
    );
    expect(await grep({ path: "b" })).toContain("b/only-root.txt:1:needle\nb/special.log");
    expect(await grep({ path: "b", glob: "*.txt" })).toBe(
      "b/only-root.txt:1:needle\n[1 matching lines in 1 files]",
    );
    expect(await grep({ glob: "q/**/*" })).toBe("q/deep/y:1:needle\n[1 matching lines in 1 files]");
    expect(await grep({ path: "b", glob: "!*.{txt,log}" })).toMatch(
      /^no line matches in 0 files of b$/,
    );
    expect(await grep({ path: join(bench.cwd, "b/only-root.txt") })).toContain(
      "b/only-root.txt:1:",
    );
    expect(await grep({ pattern: "nothing like it" })).toMatch(
      /^no line matches in \d+ files of the workspace$/,
    );
  });

  it("searches what is named even if it is ignored or hidden", async () => {
    const bench = await searchBench(engine);
    await plant(bench, tree);
    for (const path of ["trace.log", "dist", "b/dist/out.txt", ".dir", ".hidden", "lib/a/b/gen"])
      expect(textOf(await bench.call("grep", { pattern: "needle", path }))).toMatch(/:1:needle\n/);
    expect(textOf(await bench.call("grep", { pattern: "needle", path: "dist" }))).toBe(
      "dist/out.txt:1:needle\ndist/x.log:1:needle\n[2 matching lines in 2 files]",
    );
    expect(textOf(await bench.call("grep", { pattern: "needle", path: "binary" }))).toMatch(
      /^no line/,
    );
  });

  it("shows lines around a match, once each, with -- between groups", async () => {
    const bench = await searchBench(engine);
    await plant(bench, {
      a: "1\n2 x\n3\n4 x\n5\n6\n7\n8\n9 x",
      b: "x\n",
      c: "x1\r\n2",
    });
    expect(textOf(await bench.call("grep", { pattern: "x", context: 1 }))).toBe(
      "a-1-1\na:2:2 x\na-3-3\na:4:4 x\na-5-5\n--\na-8-8\na:9:9 x\n--\nb:1:x\n--\nc:1:x1\nc-2-2\n[5 matching lines in 3 files]",
    );
  });

  it("stops at maxResults in path order and says that there is more", async () => {
    const bench = await searchBench(engine);
    const files: Record<string, string> = { "000": Buffer.from("x\n\0").toString() };
    for (let index = 0; index < 300; index += 1) files[`f${1_000 + index}`] = "x\nx\n";
    await plant(bench, files);
    expect(textOf(await bench.call("grep", { pattern: "x", maxResults: 3 }))).toBe(
      "f1000:1:x\nf1000:2:x\nf1001:1:x\n[first 3 matching lines, in 2 files; there are more: make the search narrower or raise maxResults]",
    );
    const exact = textOf(await bench.call("grep", { pattern: "x", maxResults: 600 }));
    expect(exact).toMatch(/\[600 matching lines in 300 files\]$/);
    expect(exact.split("\n")).toHaveLength(601);
  });

  it("cuts long lines and counts them once", async () => {
    const bench = await searchBench(engine);
    await plant(bench, { "min.js": `${"あ".repeat(400_000)}\nxx` });
    expect(textOf(await bench.call("grep", { pattern: "あ|x" }))).toBe(
      `min.js:1:${"あ".repeat(133)} [+1199601 bytes]\nmin.js:2:xx\n[2 matching lines in 1 files]`,
    );
  });

  it("reads the pattern the same way whatever runs it", async () => {
    const bench = await searchBench(engine);
    const lines = [
      "foo() {",
      "a.b",
      "aXb",
      "É",
      "٣",
      "3",
      "cafe",
      "café",
      "x\u00A0y",
      "x y",
      "tail  ",
      "",
      "a\rb",
      "K",
      "{2}",
      "[z]",
      "a-b",
      "\uFFFD",
    ];
    await plant(bench, {
      lines: lines.join("\r\n"),
      odd: Buffer.concat([Buffer.from("caf"), Buffer.from([0xe9, 0x0a, 0xff, 0x78, 0xff])]),
    });
    const cases: Record<string, string> = {
      "foo() {": "",
      "foo\\(\\) {$": "1",
      "a\\.b": "2",
      "^\\w$": "6 14",
      "^\\W$": "4 5 18",
      "\\d": "6 15",
      "^\\D$": "4 5 14 18",
      "(?i)CAFÉ": "8",
      "(?i:é)": "4 8",
      "\\bcaf\\b": "8 o1",
      "caf\\B": "7",
      "^caf.$": "7 8",
      "^.$": "4 5 6 14 18",
      "[^a]$": "1 2 3 4 5 6 7 8 9 10 11 13 14 15 16 17 18",
      "x\\sy": "10",
      "\\s+$": "11",
      "^$": "12",
      "a\\rb": "13",
      "(?i)k": "14",
      "{2}": "!",
      "[{]2": "15",
      "[[]z[]]": "16",
      "a[x-]b": "17",
      "^[\\w.&&~-]{3}$": "2 3 17",
      "\\p{Lu}": "3 4 14",
      "^\\P{L}$": "5 6 18",
      "[[:digit:]]": "6 15",
      "\\x41|\\x{4b}": "14",
      "a|b|(?P<n>z)": "2 3 7 8 11 13 16 17 o1",
      "c(?:af){1,2}é": "8",
      "x{0}3": "6",
      "(x+x+)+y": "",
      "\uFFFD": "18",
      "^.x": "",
      x: "9 10 o2",
    };
    for (const [pattern, expected] of Object.entries(cases)) {
      const outcome = await bench.call("grep", { pattern });
      const numbers = [...textOf(outcome).matchAll(/^(lines|odd):(\d+):/gm)].map(
        ([, file, line]) => `${file === "odd" ? "o" : ""}${line}`,
      );
      const got = outcome.error?.code === "INVALID_ARGS" ? "!" : numbers.join(" ");
      expect([pattern, got]).toEqual([pattern, expected]);
    }
  });

  it("ends soon for a pattern that makes other engines hang", async () => {
    const bench = await searchBench(engine);
    await plant(bench, { a: `${"a".repeat(200_000)}!`, b: "b".repeat(5_000_000) });
    for (const pattern of ["^(a+)+$", "(a|aa)+b$", "(?:.*){50}z", "^(b|b?b)*c"]) {
      const outcome = await bench.call("grep", { pattern });
      expect(textOf(outcome)).toBe("no line matches in 2 files of the workspace");
    }
  });
});

describe("grep", { timeout: 60_000 }, () => {
  it("gives the same with ripgrep and without it for generated trees and patterns", async () => {
    const names = fc.constantFrom(
      "a",
      "b",
      "a.ts",
      "B.ts",
      "c.log",
      "node_modules",
      ".x",
      "ö",
      "x-y",
    );
    const path = fc.array(names, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
    const line = fc.stringMatching(/^[abAé1 _.\-(){\t]{0,12}$/);
    const content = fc
      .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\0\n", "\u{1F600}\n")), { maxLength: 6 })
      .map((lines) => lines.flat().join(""))
      .map((text) => (text.length % 7 === 6 ? Buffer.from(text, "latin1") : Buffer.from(text)));
    const rule = fc.constantFrom(
      "*.log",
      "a",
      "/a",
      "a/",
      "!a",
      "b/**",
      "**/b",
      "!*.ts",
      "*.[tl]s",
      "a/*/b",
      "ö",
      "#",
      "x?y",
    );
    const atom = fc.constantFrom(
      "a",
      "b",
      ".",
      "\\w",
      "\\d",
      "\\s",
      "[^ab]",
      "[a-c]",
      "é",
      "\\.",
      "^",
      "$",
      "(a|b)",
      "\\b",
      "\\W",
      "{",
      "(?i:A)",
      "[[:alpha:]]",
    );
    const pattern = fc.array(fc.tuple(atom, fc.constantFrom("", "", "*", "+?", "{2}")), {
      minLength: 1,
      maxLength: 4,
    });
    const seed = Date.now() % 1_000_000_000;
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(path, content, { maxKeys: 10 }),
        fc.array(fc.tuple(path, fc.array(rule, { maxLength: 4 })), { maxLength: 2 }),
        fc.array(pattern, { minLength: 3, maxLength: 3 }),
        fc.boolean(),
        async (files, ignores, patterns, ignoreCase) => {
          const bench = await openBench([
            defineGrep(),
            // Beside the first under another name.
            renamed(defineGrep({ engine: "own" }), "own"),
          ]);
          const planted = ignores.map(
            ([at, rules]) => [`${at}/.gitignore`, rules.join("\n")] as const,
          );
          for (const [name, text] of [...Object.entries(files), ...planted])
            await plant(bench, { [name]: text }).catch(() => {});
          for (const parts of patterns) {
            const args = { pattern: parts.flat().join(""), ignoreCase, context: 1 };
            expect(await bench.call("own", args)).toEqual(await bench.call("grep", args));
          }
        },
      ),
      { seed, numRuns: 25, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
    );
  }, 60_000);

  it("asks the rg on PATH, and does without one that is missing, fails or talks nonsense", async () => {
    const bench = await searchBench();
    await plant(bench, { a: "one\ntwo\nthree\n", "b b": "one\n" });
    const bin = join(bench.home, "bin");
    await mkdir(bin);
    const withRg = async (script: string | undefined, pattern = "o"): Promise<string> => {
      if (script !== undefined) {
        await writeFile(join(bin, "rg"), `#!/bin/sh\n${script}\n`);
        await chmod(join(bin, "rg"), 0o755);
      }
      vi.stubEnv(
        "PATH",
        script === undefined ? bench.home : `${bin}${delimiter}/bin${delimiter}/usr/bin`,
      );
      return textOf(await bench.call("grep", { pattern }));
    };
    const own = "a:1:one\na:2:two\nb b:1:one\n[3 matching lines in 2 files]";
    const a = join(bench.cwd, "a");
    expect(await withRg(undefined)).toBe(own);
    expect(await withRg("exit 127")).toBe(own);
    expect(await withRg("exit 2")).toBe(own);
    expect(await withRg("kill -9 $$")).toBe(own);
    expect(await withRg("echo 'ripgrep 3000'")).toBe(own);
    expect(await withRg(`printf '%s\\0one:\\n' '${a}'`)).toBe(own);
    expect(await withRg(`printf '%s\\0003:\\n' '${a}'`)).toBe(
      "a:3:three\n[1 matching lines in 1 files]",
    );
    expect(await withRg("exit 1")).toBe("no line matches in 2 files of the workspace");
    expect(await withRg("yes | head -c 70000000")).toBe(own);
    await withRg(`printf '%s\\n' "$@" >'${bench.cwd}/seen'; exit 1`, "-x");
    const seen = (await bench.content("seen")).split("\n");
    expect(seen.slice(seen.indexOf("--regexp"))).toEqual([
      "--regexp",
      "(?:\\x{2d}x)(?-u:[^\\n]*)",
      "--",
      a,
      join(bench.cwd, "b b"),
      "",
    ]);
  });

  it("refuses in one line a pattern it cannot use", async () => {
    const bench = await searchBench();
    const cases: Record<string, string> = {
      "(a": "missing closing )",
      "a)": "unexpected )",
      "[a": "a [ is not closed",
      "*a": "missing argument to repetition operator",
      "(?=a)": "look-around is not supported",
      "(?<!a)b": "look-around is not supported",
      "(a)\\1": "back-references are not supported",
      "a\\nb": "it has a line break, and lines are searched one by one",
      "a\nb": "it has a line break, and lines are searched one by one",
      "\\": "it ends in a backslash",
      "\\Aa": "\\A is not supported",
      "[\\D]": "\\D inside [ ] is not supported",
      "a{1001}": "invalid repeat count",
      "(?:\\w{999}){9}": "invalid repeat count",
      "\\x{110000}": "\\x needs two hexadecimal digits or {a code point}",
      "\\p{Nope}": "invalid character class range",
      "[z-a]": "invalid character class range",
      "a\0": "it is not plain text",
      "\uD800": "it is not plain text",
      [`(${"x{900}".repeat(30)})`]: "its repetitions make it too large",
      ["x".repeat(1_001)]: "it has 1001 characters, more than 1000",
    };
    for (const [pattern, reason] of Object.entries(cases)) {
      const outcome = await bench.call("grep", { pattern });
      expect([pattern, outcome.error?.code]).toEqual([pattern, "INVALID_ARGS"]);
      expect(textOf(outcome)).toContain(`cannot be used: ${reason}; use RE2 syntax`);
      expect(textOf(outcome)).not.toContain("\n");
    }
  });

  it("moves a long result to the store and leaves whole lines of its head and tail", async () => {
    const bench = await searchBench();
    await plant(bench, {
      a: Array.from({ length: 2_000 }, (_, at) => `${at} ${"x".repeat(40)}`).join("\n"),
    });
    const outcome = await bench.call("grep", { pattern: "x", maxResults: 2_000 });
    const lines = textOf(outcome).split("\n");
    expect(Buffer.byteLength(textOf(outcome))).toBeLessThanOrEqual(50_000);
    for (const line of lines.slice(0, -1))
      expect(line).toMatch(
        /^a:\d+:\d+ x{40}$|^$|^\[\d+ bytes, lines \d+-\d+ of 2001 are left out; full text: .*\]$/,
      );
    expect(lines.at(-1)).toBe("[2000 matching lines in 1 files]");
    const stored = await bench.store.read("session-1", "spill/1.1.call-1", 0, 1_000_000);
    expect(Buffer.from(stored).toString().split("\n")).toHaveLength(2_001);
  });

  it("stops on cancel and leaves no thread or process", async () => {
    const bench = await openBench([defineGrep(), renamed(defineGrep({ engine: "own" }), "own")]);
    await plant(bench, { big: Buffer.alloc(9_000_000, "ab ") });
    for (const tool of ["grep", "own"]) {
      const abort = new AbortController();
      const call = bench.call(tool, { pattern: "(?:a.*){40}z" }, { signal: abort.signal });
      setImmediate(() => abort.abort());
      expect((await call).error?.code).toBe("ABORTED");
    }
  });
});

describe.each(["grep", "glob"])("%s", (tool) => {
  const pattern = tool === "grep" ? "x" : "**";

  it("does not leave the workspace by path or symlinks, unless that is permitted", async () => {
    const bench = await searchBench();
    const outside = join(bench.home, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "secret"), "x");
    await symlink(outside, join(bench.cwd, "door"));
    await symlink(join(outside, "secret"), join(bench.cwd, "leak"));
    await plant(bench, { own: "x" });
    for (const path of ["..", outside, "door", "door/secret", "leak", "/"])
      expect((await bench.call(tool, { pattern, path })).error?.code).toBe("WORKSPACE");
    const all = textOf(await bench.call(tool, { pattern }));
    expect(all).toMatch(/^own/);
    expect(all).not.toMatch(/secret|leak|door/);
    const permissions = { outsideWorkspace: true };
    expect(textOf(await bench.call(tool, { pattern, path: "door" }, { permissions }))).toMatch(
      new RegExp(`^${join(outside, "secret")}`),
    );
  });

  it("ends in a loop of symlinks and says what is no place to search", async () => {
    const bench = await searchBench();
    await plant(bench, { "d/a": "x" });
    await symlink("..", join(bench.cwd, "d/up"));
    await symlink("loop", join(bench.cwd, "loop"));
    execFileSync("mkfifo", [join(bench.cwd, "fifo")]);
    expect(textOf(await bench.call(tool, { pattern })).split("\n")[0]).toMatch(/^d\/a/);
    const refused = async (path: string) => textOf(await bench.call(tool, { pattern, path }));
    expect(await refused("missing")).toBe("Error: cannot search missing: it does not exist");
    expect(await refused("fifo")).toBe(
      "Error: cannot search fifo: it is neither a directory nor a regular file",
    );
    expect(await refused("loop")).toBe("Error: loop cannot be resolved: too many symbolic links");
  });

  it.skipIf(process.getuid?.() === 0)("goes on past a directory it may not read", async () => {
    const bench = await searchBench();
    await plant(bench, { "a/f": "x", "z/f": "x" });
    await chmod(join(bench.cwd, "a"), 0o000);
    const text = textOf(await bench.call(tool, { pattern }));
    await chmod(join(bench.cwd, "a"), 0o755);
    expect(text).toMatch(/^z\/f[^]*\[1 directories could not be read\]$/);
  });
});

describe("glob", () => {
  it("lists files in path order, without what is ignored or hidden", async () => {
    const bench = await searchBench();
    await plant(bench, tree);
    const glob = async (args: object) => textOf(await bench.call("glob", args)).split("\n");
    expect(await glob({ pattern: "*" })).toEqual([
      "B.txt",
      "a.txt",
      "b-side.txt",
      "binary",
      "bom",
      "dist.txt",
      "empty",
      "foo3x.c",
      "keep.log",
      "late-binary",
      "latin",
      "utf16",
      "with space:1",
      "名前",
    ]);
    expect(await glob({ pattern: "**/*.{txt,log}" })).toEqual([
      "B.txt",
      "a.txt",
      "b/a.txt",
      "b/only-root.txt",
      "b/special.log",
      "b-side.txt",
      "dist.txt",
      "keep.log",
    ]);
    expect(await glob({ pattern: "**/y", path: "q" })).toEqual(["q/deep/y"]);
    expect(await glob({ pattern: "q/**" })).toEqual(["q/deep/y"]);
    expect(await glob({ pattern: ".d*/**" })).toEqual([".dir/a"]);
    expect(await glob({ pattern: "{.dir,q}/*" })).toEqual([".dir/a"]);
    expect(await glob({ pattern: ".git/**" })).toEqual([
      "no file matches .git/** in the workspace",
    ]);
    expect(await glob({ pattern: "dist/*" })).toEqual(["no file matches dist/* in the workspace"]);
    expect(await glob({ pattern: "*", path: "dist" })).toEqual(["dist/out.txt", "dist/x.log"]);
  });

  it("gives the first thousand and says that there are more", async () => {
    const bench = await searchBench();
    await plant(
      bench,
      Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`f${10_000 + at}`, ""])),
    );
    const lines = textOf(await bench.call("glob", { pattern: "*" })).split("\n");
    expect(lines).toHaveLength(1_001);
    expect(lines.slice(-2)).toEqual([
      "f10999",
      "[first 1000 paths; there are more: make the pattern narrower]",
    ]);
  });

  it("refuses in one line what it cannot use", async () => {
    const bench = await searchBench();
    await plant(bench, { file: "" });
    const cases: [object, string][] = [
      [{ pattern: "/etc/*" }, "Error: pattern /etc/* is absolute; give the directory as path"],
      [{ pattern: "../*" }, "Error: pattern ../* goes up; give the directory as path"],
      [{ pattern: "./" }, 'Error: glob "./" names nothing'],
      [{ pattern: "*", path: "file" }, "Error: file is a file; name a directory"],
      [
        { pattern: "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}" },
        "Error: a glob has at most 200 alternatives in braces",
      ],
    ];
    for (const [args, text] of cases) expect(textOf(await bench.call("glob", args))).toBe(text);
  });

  it("matches as a shell does", () => {
    const yes: [string, string][] = [
      ["*.ts", "a.ts"],
      ["a/*", "a/b"],
      ["**", "a/b/c"],
      ["**/c", "c"],
      ["a/**/c", "a/c"],
      ["a/**/c", "a/b/b/c"],
      ["a?c", "abc"],
      ["a?c", "a😀c"],
      ["[a-c]x", "bx"],
      ["[!a-c]x", "dx"],
      ["[]a]", "]"],
      ["[a-]", "-"],
      ["[", "["],
      ["{a,b{c,d}}e", "bde"],
      ["{a}", "{a}"],
      ["{a,}b", "b"],
      ["\\*", "*"],
      [".*", ".a"],
      ["**/.a/b", "x/.a/b"],
      ["*a*b*", "xxaxxbxx"],
      ["./a//b", "a/b"],
      ["a**b", "axxb"],
      ["{a,b", "{a,b"],
      ["\\{a,b\\}", "{a,b}"],
    ];
    const no: [string, string][] = [
      ["*.ts", "b/a.ts"],
      ["*.ts", ".ts"],
      ["**", ".a/b"],
      ["a/**", "a"],
      ["a/*", "a/b/c"],
      ["[a-c]x", "dx"],
      ["[!a]", "/"],
      ["?", ".x"],
      ["a", "A"],
      ["**/a", "ba"],
      ["*a*b", "xab1"],
      ["{a,b}", "c"],
    ];
    const matches = ([pattern, path]: [string, string]) => compileGlob(pattern)(path.split("/"));
    expect(yes.filter((one) => !matches(one))).toEqual([]);
    expect(no.filter(matches)).toEqual([]);
  });

  it("ends soon for patterns and .gitignore rules that make other matchers hang", async () => {
    const name = "a".repeat(250);
    const hard = `${"*a".repeat(120)}*b`;
    expect(compileGlob(`${"**/a/".repeat(100)}b`)(Array.from({ length: 500 }, () => "a"))).toBe(
      false,
    );
    const bench = await searchBench();
    await plant(bench, { ".gitignore": `${hard}\n${" ".repeat(100_000)}x\n`, [name]: "" });
    expect(textOf(await bench.call("glob", { pattern: hard }))).toMatch(/^no file matches/);
    expect(await readdir(bench.cwd)).toHaveLength(2);
  });
});

describe("walkFiles", () => {
  it("counts a directory it cannot read and ends", async () => {
    const bench = await searchBench();
    const root = join(bench.cwd, "gone");
    const report = { files: 0, unreadable: 0 };
    const stop = new AbortController().signal;
    const batches = [];
    for await (const batch of walkFiles(
      { root, rulesFrom: bench.cwd, hidden: false, stop },
      report,
    ))
      batches.push(batch);
    expect([batches, report]).toEqual([[], { files: 0, unreadable: 1 }]);
  });

  it("ends when it is told to", async () => {
    const bench = await searchBench();
    await plant(bench, { a: "" });
    const walk = {
      root: bench.cwd,
      rulesFrom: bench.cwd,
      hidden: false,
      stop: AbortSignal.abort(),
    };
    expect((await walkFiles(walk, { files: 0, unreadable: 0 }).next()).done).toBe(true);
  });
});

describe("grep and large files", () => {
  it.each(engines)("leaves out files over 10 MB with engine %s", async (engine) => {
    const bench = await searchBench(engine);
    await plant(bench, { big: "x\n", fits: "x\n" });
    await truncate(join(bench.cwd, "big"), 10 * 1024 * 1024 + 1);
    expect(textOf(await bench.call("grep", { pattern: "x" }))).toBe(
      "fits:1:x\n[1 matching lines in 1 files]",
    );
  });
});

function renamed(tool: ReturnType<typeof defineGrep>, name: string): ReturnType<typeof defineGrep> {
  return { ...tool, row: { ...tool.row, name } };
}
