import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";

import { builtinTools } from "../../src/tools/builtin.js";
import { loadToolsFile } from "../../src/tools/load.js";
import { openBench, textOf } from "./process-fixtures.js";

const example = fileURLToPath(new URL("../../examples/my-tools.ts", import.meta.url));

async function openFolder(files: Record<string, string>): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "longhaul-load-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

/** A tool in a few lines; its name stands in line 4. */
const tool = (name: string) => `import { defineTool } from "longhaul/tools";
import { z } from "zod";
export default defineTool({
  name: "${name}",
  description: "d",
  parameters: z.object({ n: z.int() }),
  execute: ({ n }: { n: number }) => String(n + 1),
});
`;

/** The message for a tools file with this text. */
async function refusal(text: string, more: Record<string, string> = {}): Promise<string> {
  const folder = await openFolder({ "tools.ts": text, ...more });
  const error: unknown = await loadToolsFile(join(folder, "tools.ts")).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ name: "LonghaulError", code: "INVALID_CONFIG" });
  const { message } = error as Error;
  expect(message).not.toContain("\n");
  return message.replaceAll(`${folder}/`, "");
}

describe("the example's tools", () => {
  it("load and work as they say", async () => {
    const { tools: loaded } = await loadToolsFile(example);
    expect(loaded.map(({ row }) => [row.name, row.where, row.parallel, row.idempotent])).toEqual([
      ["count_words", "host", true, true],
      ["look_up", "shared", true, true],
    ]);
    const bench = await openBench([...builtinTools, ...loaded]);
    await writeFile(join(bench.cwd, "a.txt"), "one two\nthrée\n");
    const counted = await bench.call("count_words", { path: "a.txt" });
    expect([textOf(counted), counted.meta]).toEqual([
      "a.txt: 2 lines, 3 words, 15 bytes",
      { words: 3 },
    ]);
    expect((await bench.call("count_words", { path: "none" })).error?.code).toBe("TOOL_FAILED");
    expect(textOf(await bench.call("look_up", { word: "Temporal", delayMs: 0 }))).toMatch(
      /^A service/,
    );
    expect(textOf(await bench.call("look_up", { word: "x", delayMs: 0 }))).toBe(
      "Nothing is known about x.",
    );
    expect((await bench.call("look_up", { word: "" })).error?.code).toBe("INVALID_ARGS");
    const abort = new AbortController();
    const call = bench.call("look_up", { word: "x", delayMs: 10_000 }, { signal: abort.signal });
    setImmediate(() => abort.abort());
    expect((await call).error?.code).toBe("ABORTED");
  });
});

describe("loadToolsFile", () => {
  it("takes one tool or a list, from TypeScript or JavaScript, without a package beside it", async () => {
    const folder = await openFolder({
      "one.ts": tool("one"),
      "one.mts": tool("two"),
      "list.js": `import one from "./one.ts";\nexport { one as unused };\nexport default [one];\n`,
      "list.mjs": tool("three").replace(": { n: number }", ""),
      "sub/inner.ts":
        "export enum Size { Big = 7 }\nexport const where: string = import.meta.url;\n",
      "types.ts": `import { Size, where } from "./sub/inner.js";\n${tool("typed").replace("n + 1", "`${n + Size.Big} ${where} ${require('node:os').EOL.length}`")}`,
    });
    const names = async (file: string) =>
      (await loadToolsFile(join(folder, file))).tools.map(({ row }) => row.name);
    expect(await names("one.ts")).toEqual(["one"]);
    expect(await names("one.mts")).toEqual(["two"]);
    expect(await names("list.js")).toEqual(["one"]);
    expect(await names("list.mjs")).toEqual(["three"]);
    const bench = await openBench([...(await loadToolsFile(join(folder, "types.ts"))).tools]);
    const text = textOf(await bench.call("typed", { n: 1 }));
    expect(text).toBe(`8 file://${join(folder, "types.ts")} 1`);
    expect((await readdir(folder)).toSorted()).toEqual([
      "list.js",
      "list.mjs",
      "one.mts",
      "one.ts",
      "sub",
      "types.ts",
    ]);
  });

  it("finds packages from the file, of either kind", async () => {
    const folder = await openFolder({
      "node_modules/esm/package.json":
        '{"name":"esm","type":"module","exports":{"import":"./i.js","require":"./r.cjs"}}',
      "node_modules/esm/i.js":
        'export const kind = "import " + import.meta.url.endsWith("node_modules/esm/i.js");',
      "node_modules/cjs/package.json": '{"name":"cjs","main":"m.js"}',
      "node_modules/cjs/m.js": "exports.kind = __filename.split('/').at(-1);",
      "shared/index.ts": "export const kind: string = 'linked';",
      "tools.ts": `import { kind as a } from "esm";\nimport { kind as b } from "cjs";\nimport { kind as c } from "linked";\n${tool("t").replace("String(n + 1)", "[a, b, c].join()")}`,
    });
    await symlink("../shared", join(folder, "node_modules/linked"));
    const bench = await openBench([...(await loadToolsFile(join(folder, "tools.ts"))).tools]);
    expect(textOf(await bench.call("t", { n: 1 }))).toBe("import true,m.js,linked");
  });

  it("says file and line of a mistake in the source", async () => {
    expect(await refusal("export default {\n  a: 1,\n  b: ;\n};\n")).toBe(
      'tools.ts:3: Unexpected ";"',
    );
    expect(
      await refusal("\nimport x from './inner';\nexport default x;", {
        "inner.ts": "let a = 1;\nlet a = 2;",
      }),
    ).toBe('inner.ts:2: The symbol "a" has already been declared');
    expect(await refusal("\nimport x from './missing.js';\nexport default x;")).toBe(
      'tools.ts:2: Could not resolve "./missing.js"',
    );
    expect(await refusal("\n\nimport x from 'no-such-package';\nexport default x;")).toMatch(
      /^tools\.ts:3: Could not resolve "no-such-package"/,
    );
  });

  it("says file and line of what is thrown while it loads", async () => {
    expect(
      await refusal(
        "const a: number = 1;\n\nfunction f(): never {\n  throw new Error('no\\n  luck');\n}\nexport default f();\n",
      ),
    ).toBe("tools.ts:4: no luck");
    expect(
      await refusal("import './inner.ts';\nexport default [];", { "inner.ts": "\n\nnull.x;" }),
    ).toMatch(/^inner\.ts:3: Cannot read properties of null/);
    expect(await refusal("throw 'a string';")).toBe("tools.ts: it threw a string");
    expect(await refusal(tool("a b"))).toBe(
      'tools.ts:3: a tool name has 1 to 64 of A-Z a-z 0-9 _ -, got "a b"',
    );
    expect(await refusal(tool("t").replace("z.int()", "z.date()"))).toMatch(
      /^tools\.ts:3: parameters of tool t have no JSON Schema: /,
    );
  });

  it("says what is no tool, and which names are taken by whom", async () => {
    expect(await refusal("export const a = 1;\n")).toBe(
      "tools.ts:1: there is no default export; export a tool made with defineTool, or a list of them",
    );
    expect(await refusal("\nexport default [];")).toBe("tools.ts:2: the list of tools is empty");
    expect(await refusal("\nexport default { name: 'x', execute() {} };")).toBe(
      'tools.ts:2: the default export is no tool and no job kind; make it with defineTool or defineJobKind from "longhaul/tools"',
    );
    const listed = tool("t").replace("export default", "const t =");
    expect(await refusal(`${listed}export default [t, null];`)).toBe(
      'tools.ts:9: item 2 of the default export is no tool and no job kind; make it with defineTool or defineJobKind from "longhaul/tools"',
    );
    expect(await refusal(tool("bash"))).toBe(
      "tools.ts:4: the name bash is taken by the built-in tool bash; choose another name",
    );
    for (const name of ["todo_write", "job_x", "schedule_create"])
      expect(await refusal(tool(name))).toBe(
        `tools.ts:4: the name ${name} is reserved for the session's own tools; choose another name`,
      );
    const second =
      "const u = defineTool({\n  name: 't', description: 'd', parameters: z.object({}), execute: () => '' });";
    expect(await refusal(`${listed}${second}\nexport default [t, u];`)).toBe(
      "tools.ts:10: the name t is taken by another tool of this file (line 4); choose another name",
    );
    const kind = (name: string) =>
      `import { defineJobKind } from "longhaul/tools";
import { z } from "zod";
const make = (kind: string) => defineJobKind({ kind, output: "final", input: z.object({}), run: () => undefined });
export default [make("${name}"), make("other"), make("other")];
`;
    expect(await refusal(kind("bash"))).toBe(
      "tools.ts:4: the job kind bash is taken by the built-in one; choose another name",
    );
    expect(await refusal(kind("mine"))).toBe(
      "tools.ts:4: the job kind other is taken by another one of this file; choose another name",
    );
    const folder = await openFolder({ "a.ts": tool("t"), "b.ts": tool("t") });
    const taken = [...builtinTools, ...(await loadToolsFile(join(folder, "a.ts"))).tools];
    await expect(loadToolsFile(join(folder, "b.ts"), { taken })).rejects.toThrow(
      `${join(folder, "b.ts")}:4: the name t is taken by the tool t; choose another name`,
    );
  });

  it("says what is no tools file", async () => {
    const folder = await openFolder({ "tools.py": "", "dir.ts/x": "" });
    const cases: Record<string, string> = {
      "none.ts": `cannot read the tools file ${folder}/none.ts: it does not exist`,
      "dir.ts": `the tools file ${folder}/dir.ts is not a file`,
      "tools.py": `the tools file ${folder}/tools.py must end in .ts, .mts, .js or .mjs`,
    };
    for (const [file, message] of Object.entries(cases))
      await expect(loadToolsFile(join(folder, file))).rejects.toThrow(message);
  });

  it("does not wait for ever for a file that does not come to its end", async () => {
    const folder = await openFolder({
      "tools.ts": "await new Promise(() => {});\nexport default 1;",
    });
    await expect(loadToolsFile(join(folder, "tools.ts"), { timeoutMs: 100 })).rejects.toThrow(
      /tools\.ts: the file did not come to its end within 100 ms$/,
    );
  });
});
