import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it as base } from "vitest";
import type { Backend } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { openLogZip, zipOf } from "../../src/cli/log-zip.js";
import { writeOutputFile } from "../../src/cli/output-file.js";
import { runCli } from "../../src/cli/run.js";
import type { ForkOptions, ImportNotes, ImportOptions } from "../../src/client/index.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { fakeBackend, fakeIo, fakeSession } from "../support/fake-cli.js";

const it = base.extend<{ folder: string; store: Store }>({
  // oxlint-disable-next-line no-empty-pattern -- vitest wants it
  folder: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), "longhaul-logs-"));
    await use(folder);
    await rm(folder, { recursive: true });
  },
  store: async ({ folder }, use) => use(await openDirectoryStore(join(folder, "store"))),
});

async function line(
  argv: readonly string[],
  parts: Partial<Backend>,
  env: Record<string, string> = {},
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const io = fakeIo({ env });
  const backend = fakeBackend(fakeSession({}), parts);
  const exitCode = await runCli(argv, io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(backend),
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

async function* linesOf(...lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

const notes: ImportNotes = { entries: 2, dropped: 0, closed: 0, unused: [] };

describe("export", () => {
  it("prints the log, or writes it to a file that is not replaced unless asked", async ({
    folder,
  }) => {
    const parts = { export: () => linesOf("a\n", "b\n") };
    expect(await line(["export", "s-1"], parts)).toEqual({
      exitCode: 0,
      stdout: "a\nb\n",
      stderr: "",
    });
    const file = join(folder, "log.jsonl");
    await writeFile(file, "precious");
    const refused = await line(["export", "s-1", "-o", file], parts);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--force") });
    expect(await readFile(file, "utf8")).toBe("precious");
    expect(await line(["export", "s-1", "-o", file, "--force"], parts)).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: "",
    });
    expect(await readFile(file, "utf8")).toBe("a\nb\n");
    expect(await readdir(folder)).toEqual(["log.jsonl"]);
    for (const option of ["--zip", "--force"])
      expect(await line(["export", "s-1", option], parts)).toMatchObject({ exitCode: 2 });
  });

  it("leaves nothing behind when it fails half-way, and an older file as it was", async ({
    folder,
  }) => {
    const file = join(folder, "log.jsonl");
    await writeFile(file, "precious");
    const parts = {
      async *export() {
        yield "a\n";
        throw new LonghaulError("NO_WORKER", "nobody answers");
      },
    };
    for (const argv of [[], ["--zip"]]) {
      const failed = await line(["export", "s-1", "-o", file, "--force", ...argv], {
        ...parts,
        store: { list: () => Promise.resolve([]) } as never,
      });
      expect(failed).toMatchObject({
        exitCode: 1,
        stderr: "error: NO_WORKER: nobody answers\n",
      });
      expect(await readFile(file, "utf8")).toBe("precious");
      expect(await readdir(folder)).toEqual(["log.jsonl"]);
    }
  });

  it("says where it cannot write", async ({ folder }) => {
    await expect(
      writeOutputFile(join(folder, "none", "x"), false, linesOf("a")),
    ).rejects.toMatchObject({ code: "INVALID_INPUT" });
    if (process.getuid?.() === 0) return;
    await chmod(folder, 0o500);
    await expect(writeOutputFile(join(folder, "x"), false, linesOf("a"))).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    await chmod(folder, 0o700);
  });

  it("does not replace a file that came while it was written", async ({ folder }) => {
    const file = join(folder, "x");
    async function* slow(): AsyncGenerator<string> {
      yield "a";
      await writeFile(file, "another's");
    }
    await expect(writeOutputFile(file, false, slow())).rejects.toMatchObject({ code: "USAGE" });
    expect(await readFile(file, "utf8")).toBe("another's");
    expect(await readdir(folder)).toEqual(["x"]);
  });
});

describe("a zip", () => {
  it("has the log and what the session put into the store, and gives both back; not what the archive keeps", async ({
    folder,
    store,
  }) => {
    const streams: Record<string, Uint8Array> = {
      "model/1.1.x": Buffer.from("streamed"),
      "tool/1.1.a ../b": Buffer.from([0, 255, 1]),
      "job/bash-1/stdout": Buffer.alloc(700_000, "é"),
      "job/empty": Buffer.alloc(0),
    };
    for (const [stream, bytes] of Object.entries(streams))
      await store.append("s-1", stream, 0, bytes);
    for (const stream of ["segment/a", "body/b", "archived/c"])
      await store.append("s-1", stream, 0, Buffer.from("x"));
    const file = join(folder, "x.zip");
    const exported = await line(["export", "s-1", "-o", file, "--zip"], {
      export: () => linesOf("head\n", "é\n"),
      store,
    });
    expect(exported).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    const zip = await openLogZip(file);
    expect(zip.text).toBe("head\né\n");
    const found: Record<string, Uint8Array> = {};
    for await (const { stream, pieces } of zip.streams()) {
      const all: Buffer[] = [];
      for await (const piece of pieces) all.push(piece);
      found[stream] = Buffer.concat(all);
    }
    zip.close();
    expect(Object.keys(found).toSorted()).toEqual(Object.keys(streams).toSorted());
    for (const [stream, bytes] of Object.entries(streams))
      expect(Buffer.compare(found[stream] ?? Buffer.alloc(1), bytes)).toBe(0);

    const given: string[] = [];
    const imported = await line(["import", file], {
      store,
      importSession: (text) => {
        given.push(text);
        return Promise.resolve({ session: fakeSession({ id: "s-2" }), notes });
      },
    });
    expect(imported).toEqual({ exitCode: 0, stdout: "imported s-2: 2 entries\n", stderr: "" });
    expect(given).toEqual(["head\né\n"]);
    expect((await store.list("s-2", "")).map(({ stream }) => stream)).toEqual(
      Object.keys(streams)
        .filter((stream) => stream !== "job/empty")
        .toSorted(),
    );
  });

  it("takes of a stream that grows what there was when it began", async ({ folder, store }) => {
    await store.append("s-1", "job/1", 0, Buffer.from("begin"));
    async function* growing(): AsyncGenerator<string> {
      yield "head\n";
      await store.append("s-1", "job/1", 5, Buffer.from(" and more"));
    }
    const file = join(folder, "x.zip");
    await writeOutputFile(file, false, zipOf(growing(), store, "s-1"));
    const zip = await openLogZip(file);
    for await (const { pieces } of zip.streams())
      for await (const piece of pieces) expect(piece.toString()).toBe("begin");
    zip.close();
  });

  it("that is cut, another's or none is refused", async ({ folder, store }) => {
    const file = join(folder, "x.zip");
    await writeOutputFile(file, false, zipOf(linesOf("head\n"), store, "s-1"));
    const whole = await readFile(file);
    await writeFile(file, whole.subarray(0, whole.length - 30));
    for (const path of [file, join(folder, "none.zip"), folder])
      expect(await line(["import", path], {})).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(/^error: INVALID_INPUT: .*\n$/u),
      });
  });
});

describe("import", () => {
  const importing = (
    given: ImportOptions[],
    told: Partial<ImportNotes> = {},
  ): Partial<Backend> => ({
    importSession: (_, options) => {
      given.push(options);
      return Promise.resolve({
        session: fakeSession({ id: options.id ?? "s-9" }),
        notes: { ...notes, ...told },
      });
    },
  });

  it("passes on what is asked for, and tells what became of the log", async ({ folder }) => {
    const file = join(folder, "log.jsonl");
    await writeFile(file, '{"type":"session","cwd":"/there"}\n');
    const given: ImportOptions[] = [];
    const argv = ["import", file, "--id", "s-7", "--title", "T", "--host", "h"];
    const { stdout, stderr } = await line(
      argv,
      importing(given, { dropped: 1, closed: 3, unused: ["a/b"] }),
      { LONGHAUL_MODEL: "p/m" },
    );
    expect(stdout).toBe("imported s-7: 2 entries\n");
    expect(stderr).toBe(
      "note: the log's torn end was left out: 1 line\nnote: the log ends in a turn: it was closed as interrupted\nnote: kept, without effect here: a/b\n",
    );
    expect(given[0]).toMatchObject({
      id: "s-7",
      title: "T",
      host: "h",
      waitReady: false,
      fallbackConfig: { request: { provider: "p", model: "m" }, cwd: "/there" },
    });
    expect(given[0]).not.toHaveProperty("config");
    const asked: ImportOptions[] = [];
    const json = await line(["import", file, "--model", "p/other", "--json"], importing(asked));
    expect(JSON.parse(json.stdout)).toEqual({ session: "s-9", ...notes });
    expect(asked[0]?.config).toMatchObject({ request: { provider: "p", model: "other" } });
  });
});

describe("fork", () => {
  it("names the new session and its boundary", async () => {
    const given: ForkOptions[] = [];
    const parts: Partial<Backend> = {
      fork: (source, options) => {
        given.push(options);
        return Promise.resolve(fakeSession({ id: `${source}-child` }));
      },
    };
    expect((await line(["fork", "s-1", "--at", "12"], parts)).stdout).toBe(
      "forked s-1 as s-1-child\n",
    );
    expect(given).toEqual([{ boundary: 12, waitReady: false }]);
    expect(JSON.parse((await line(["fork", "s-1", "--json"], parts)).stdout)).toEqual({
      session: "s-1-child",
      parent: "s-1",
    });
    expect(await line(["fork", "s-1", "--at", "x"], parts)).toMatchObject({ exitCode: 2 });
  });
});

describe("verify", () => {
  it("prints a line for each check and ends with 1 when one fails", async () => {
    const report = {
      ok: false,
      checks: [
        { name: "segments", ok: true, text: "2" },
        { name: "model calls", ok: false, text: "model call of turn 1\nis not" },
      ],
    } as const;
    const parts: Partial<Backend> = { verify: () => Promise.resolve(report) };
    expect(await line(["verify", "s-1"], parts)).toEqual({
      exitCode: 1,
      stdout: "ok    segments     2\nFAIL  model calls  model call of turn 1 is not\n",
      stderr: "",
    });
    const json = await line(["verify", "s-1", "--json"], parts);
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stdout)).toEqual({ session: "s-1", ...report });
  });
});
