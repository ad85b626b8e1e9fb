import { describe, expect, it, vi } from "vitest";
import * as z from "zod";

import { builtinTools } from "../../src/tools/builtin.js";
import { defineTool, type ToolContext } from "../../src/tools/define.js";
import { createToolRegistry } from "../../src/tools/registry.js";
import { brokenStore, openBench, textOf } from "./process-fixtures.js";

const none = z.object({});

function body(execute: (args: unknown, context: ToolContext) => unknown, more: object = {}) {
  return defineTool({
    name: "probe",
    description: "A probe.",
    parameters: none,
    execute: execute as () => string,
    ...more,
  });
}

describe("defineTool", () => {
  it("refuses what no provider would take", () => {
    const base = { name: "ok", description: "d", parameters: none, execute: () => "" };
    for (const wrong of [
      { name: "" },
      { name: "a b" },
      { name: "x".repeat(65) },
      { description: " " },
    ]) {
      expect(() => defineTool({ ...base, ...wrong })).toThrow(
        expect.objectContaining({ code: "INVALID_CONFIG" }),
      );
    }
    for (const timeoutMs of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
      expect(() => defineTool({ ...base, timeoutMs })).toThrow(/timeoutMs of tool ok/);
    }
    expect(() => defineTool({ ...base, parameters: z.object({ when: z.date() }) })).toThrow(
      /parameters of tool ok have no JSON Schema/,
    );
  });
});

describe("createToolRegistry", () => {
  it("refuses a name given twice and the session's own names", () => {
    expect(() => createToolRegistry([body(() => ""), body(() => "")])).toThrow(
      "tool probe is defined twice; give each its own name",
    );
    for (const name of ["todo_write", "job_output", "job_x", "schedule_create"]) {
      expect(() => createToolRegistry([body(() => "", { name })])).toThrow(
        `tool name ${name} is reserved`,
      );
    }
    expect(() =>
      createToolRegistry([
        body(() => "", { name: "jobs" }),
        body(() => "", { name: "todo_writer" }),
      ]),
    ).not.toThrow();
  });

  it("describes its tools in the order given", () => {
    const shared = defineTool({
      name: "look_up",
      description: "Look up.",
      parameters: z.strictObject({
        word: z.string().describe("A word."),
        times: z.int().default(1),
      }),
      execute: ({ word, times }) => word.repeat(times),
      timeoutMs: 5_000,
      parallel: true,
      idempotent: true,
      workspace: false,
    });
    const table = createToolRegistry([shared, ...builtinTools]).table();
    expect(table[0]).toEqual({
      name: "look_up",
      description: "Look up.",
      parameters: {
        type: "object",
        properties: {
          word: { type: "string", description: "A word." },
          times: {
            type: "integer",
            default: 1,
            minimum: Number.MIN_SAFE_INTEGER,
            maximum: Number.MAX_SAFE_INTEGER,
          },
        },
        required: ["word"],
      },
      where: "shared",
      parallel: true,
      idempotent: true,
      timeoutMs: 5_000,
    });
    const flags = table
      .slice(1)
      .map(({ name, where, parallel, idempotent }) => ({ name, where, parallel, idempotent }));
    expect(flags).toEqual([
      { name: "bash", where: "host", parallel: false, idempotent: false },
      { name: "read", where: "host", parallel: true, idempotent: true },
      { name: "write", where: "host", parallel: false, idempotent: false },
      { name: "edit", where: "host", parallel: false, idempotent: false },
      { name: "glob", where: "host", parallel: true, idempotent: true },
      { name: "grep", where: "host", parallel: true, idempotent: true },
    ]);
    expect(JSON.parse(JSON.stringify(table))).toEqual(table);
  });
});

describe("a tool call", () => {
  it("is an error result for a body that throws and for an unknown tool [harness/T10]", async () => {
    const bench = await openBench([
      body(() => {
        throw new Error("no luck");
      }),
      body(() => Promise.reject("a string"), { name: "odd" }),
    ]);
    expect(await bench.call("probe", {})).toEqual({
      content: [{ type: "text", text: "Error: no luck" }],
      isError: true,
      error: { name: "ToolError", code: "TOOL_FAILED" },
    });
    expect(textOf(await bench.call("odd", {}))).toBe("Error: a string");
    const unknown = await bench.call("nope", {});
    expect(unknown).toMatchObject({ isError: true, error: { code: "TOOL_UNAVAILABLE" } });
    expect(textOf(unknown)).toBe("Error: tool nope is not available here; available: probe, odd");
  });

  it("parses its arguments once and lists all violations", async () => {
    const parameters = z.object({ a: z.string(), b: z.object({ c: z.number() }).optional() });
    const tool = defineTool({
      name: "probe",
      description: "d",
      parameters,
      execute: (args) => JSON.stringify(args),
    });
    const bench = await openBench([tool, body((args) => JSON.stringify(args), { name: "empty" })]);
    expect(textOf(await bench.call("probe", '{"a":"x","extra":1}'))).toBe('{"a":"x"}');
    expect(textOf(await bench.call("empty", ""))).toBe("{}");
    const wrong = await bench.call("probe", '{"a":1,"b":{"c":"x"}}');
    expect(wrong.error?.code).toBe("INVALID_ARGS");
    expect(textOf(wrong)).toMatch(/^Error: invalid arguments for probe: a: [^;]+; b\.c: [^;]+$/);
    const broken = await bench.call("probe", '{"a":');
    expect(broken.error?.code).toBe("INVALID_ARGS");
    expect(textOf(broken)).toContain("expected object, received string");
    for (const raw of ["null", "[]", "3"])
      expect((await bench.call("probe", raw)).error?.code).toBe("INVALID_ARGS");
  });

  it("tolerates unknown keys for a strict declaration too, but only at the top", async () => {
    const parameters = z.strictObject({
      a: z.strictObject({ b: z.string().optional() }).optional(),
    });
    const tool = defineTool({ name: "probe", description: "d", parameters, execute: () => "ok" });
    const bench = await openBench([tool]);
    expect(textOf(await bench.call("probe", { extra: 1 }))).toBe("ok");
    expect((await bench.call("probe", { a: { extra: 1 } })).error?.code).toBe("INVALID_ARGS");
  });

  it("gives the body its context and passes on what it returns", async () => {
    const seen: ToolContext[] = [];
    const tool = body((_, context) => {
      seen.push(context);
      return { text: "ok", meta: { n: 1 }, concludesTurn: true, additionalContexts: ["later"] };
    });
    const bench = await openBench([tool]);
    expect(await bench.call("probe", {}, { claim: "3.2.c", callId: "c" })).toEqual({
      content: [{ type: "text", text: "ok" }],
      isError: false,
      meta: { n: 1 },
      concludesTurn: true,
      additionalContexts: ["later"],
    });
    expect(seen[0]).toMatchObject({
      sessionId: "session-1",
      claim: "3.2.c",
      callId: "c",
      cwd: bench.cwd,
      home: bench.home,
    });
  });

  it("is INVALID_TOOL_OUTPUT when the body returns neither text nor a result", async () => {
    const values: unknown[] = [
      undefined,
      null,
      3,
      {},
      { text: 1 },
      { text: "x", meta: { deep: {} } },
      { text: "x", meta: { n: Number.NaN } },
    ];
    const bench = await openBench([body(() => values.shift())]);
    for (let left = values.length; left > 0; left -= 1) {
      expect((await bench.call("probe", {})).error?.code).toBe("INVALID_TOOL_OUTPUT");
    }
  });

  it("ends at its deadline with TOOL_TIMEOUT when the body gives up, and has none without a budget [harness/T11]", async () => {
    const seen: string[] = [];
    const patient = async (_: unknown, { signal }: ToolContext) => {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve());
        if (!budgeted) setTimeout(resolve, 200);
      });
      seen.push(signal.aborted ? "aborted" : "in peace");
      return "late";
    };
    let budgeted = true;
    const bench = await openBench([
      body(patient, { timeoutMs: 50 }),
      body(patient, { name: "free" }),
    ]);
    const timedOut = await bench.call("probe", {});
    expect(timedOut.error?.code).toBe("TOOL_TIMEOUT");
    expect(textOf(timedOut)).toBe("Error: the call did not end within 50 ms");
    expect((await bench.call("free", {}, { timeoutMs: 20 })).error?.code).toBe("TOOL_TIMEOUT");
    budgeted = false;
    expect(textOf(await bench.call("free", {}))).toBe("late");
    expect(seen).toEqual(["aborted", "aborted", "in peace"]);
  });

  it("stays ABORTED when the caller's cancel came before the deadline, and waits for the body", async () => {
    const abort = new AbortController();
    let ended = false;
    const tool = body(
      async () => {
        abort.abort();
        await new Promise((resolve) => setTimeout(resolve, 100));
        ended = true;
        return "too late";
      },
      { timeoutMs: 20 },
    );
    const bench = await openBench([tool]);
    const outcome = await bench.call("probe", {}, { signal: abort.signal });
    expect(outcome.error?.code).toBe("ABORTED");
    expect(ended).toBe(true);
  });

  it("keeps a body's own failure after a cancel, but not the cancel itself thrown on", async () => {
    let abort = new AbortController();
    const own = body(() => {
      abort.abort();
      throw new Error("disk full");
    });
    const passOn = (_: unknown, { signal }: ToolContext): void => {
      abort.abort();
      signal.throwIfAborted();
    };
    const bench = await openBench([own, body(passOn, { name: "pass_on" })]);
    const failed = await bench.call("probe", {}, { signal: abort.signal });
    expect([failed.error?.code, textOf(failed)]).toEqual(["TOOL_FAILED", "Error: disk full"]);
    abort = new AbortController();
    expect((await bench.call("pass_on", {}, { signal: abort.signal })).error?.code).toBe("ABORTED");
  });

  it("moves 60 KB of text to the store and leaves head, tail and address within the limit [harness/T12]", async () => {
    const text = `START${"あ".repeat(20_000)}END`;
    const bench = await openBench([
      body(() => text),
      body(() => text, { name: "reader", spill: false }),
    ]);
    const outcome = await bench.call("probe", {}, { claim: "1.1.big" });
    const shown = textOf(outcome);
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(50_000);
    expect(Buffer.byteLength(shown)).toBeGreaterThan(49_900);
    expect(shown).toMatch(
      /^START[あ]+\n\n\[60008 bytes, the middle is left out; full text: (.+)\]\n\n[あ]+END$/u,
    );
    expect(shown).toContain(bench.store.locator("session-1", "spill/1.1.big"));
    const stored = await bench.store.read("session-1", "spill/1.1.big", 0, 100_000);
    expect(Buffer.from(stored).toString()).toBe(text);
    expect(textOf(await bench.call("probe", {}, { store: brokenStore(bench.store) }))).toBe(text);
    expect(textOf(await bench.call("reader", {}))).toBe(text);
    const exact = await bench.call("probe", {}, { maxInlineBytes: 60_008 });
    expect(textOf(exact)).toBe(text);
  });

  it("keeps whole lines of a long text and says which are left out", async () => {
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index + 1}`);
    const bench = await openBench([body(() => lines.join("\n"))]);
    const shown = textOf(await bench.call("probe", {}, { maxInlineBytes: 1_000 }));
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(1_000);
    const parts =
      /^([^]*)\n\n\[\d+ bytes, lines (\d+)-(\d+) of 500 are left out; full text: .+\]\n\n([^]*)$/.exec(
        shown,
      );
    const [, head = "", from, to, tail = ""] = parts ?? [];
    expect(head.split("\n")).toEqual(lines.slice(0, Number(from) - 1));
    expect(tail.split("\n")).toEqual(lines.slice(Number(to)));
    expect(head.length).toBeGreaterThan(300);
    expect(tail.length).toBeGreaterThan(300);
  });

  it("keeps the whole text under another name when a second run found other text", async () => {
    const texts = ["a".repeat(2_000), "a".repeat(2_000), "b".repeat(2_000)];
    const bench = await openBench([body(() => texts.shift(), { idempotent: true })]);
    const run = async () =>
      textOf(await bench.call("probe", {}, { claim: "1.1.again", maxInlineBytes: 500 }));
    const [first, same, other] = [await run(), await run(), await run()];
    expect(same).toBe(first);
    expect(other).not.toBe(first);
    const streams = await bench.store.list("session-1", "spill/1.1.again");
    expect(streams.map(({ bytes }) => bytes)).toEqual([2_000, 2_000]);
    for (const { stream } of streams)
      expect(first + other).toContain(bench.store.locator("session-1", stream));
  });

  it("refuses a reference to a picture that is none", async () => {
    const image = { mediaType: "image/png", stream: "spill/x", bytes: 1, digest: "0".repeat(64) };
    const values = [
      [image],
      [{ ...image, digest: "x" }],
      [{ ...image, mediaType: "image/bmp" }],
      Array.from({ length: 17 }, () => image),
    ];
    const codes = [];
    const bench = await openBench([body(() => ({ text: "x", images: values[codes.length] }))]);
    while (codes.length < values.length) codes.push((await bench.call("probe", {})).error?.code);
    const bad = "INVALID_TOOL_OUTPUT";
    expect(codes).toEqual([undefined, bad, bad, bad]);
  });

  it("bounds a long error text in the same way", async () => {
    const bench = await openBench([body(() => Promise.reject(new Error("x".repeat(60_000))))]);
    const outcome = await bench.call("probe", {});
    expect(outcome.error?.code).toBe("TOOL_FAILED");
    expect(Buffer.byteLength(textOf(outcome))).toBeLessThanOrEqual(50_000);
    for (const maxInlineBytes of [0, 1, 40, 300]) {
      const small = await bench.call("probe", {}, { maxInlineBytes });
      expect(Buffer.byteLength(textOf(small))).toBeLessThanOrEqual(maxInlineBytes);
    }
  });

  it("never runs twice for one claim: the record answers, or nobody knows", async () => {
    const execute = vi.fn(async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { text: "x".repeat(60_000), meta: { n: 1 } };
    });
    const bench = await openBench([body(execute)]);
    const [first, second] = await Promise.all([
      bench.call("probe", {}, { claim: "1.1.once" }),
      bench.call("probe", {}, { claim: "1.1.once" }),
    ]);
    const outcomes = [first, second].toSorted((a, b) => Number(a.isError) - Number(b.isError));
    expect(outcomes.map((outcome) => outcome.error?.code)).toEqual([
      undefined,
      "TOOL_OUTCOME_UNKNOWN",
    ]);
    expect(await bench.call("probe", {}, { claim: "1.1.once" })).toEqual(outcomes[0]);
    expect(execute).toHaveBeenCalledTimes(1);
  });

  it("runs again under one claim when it is idempotent", async () => {
    const execute = vi.fn((_: unknown, { claimDirectory }: ToolContext) => String(claimDirectory));
    const bench = await openBench([body(execute, { idempotent: true })]);
    for (let round = 0; round < 2; round += 1) {
      expect(textOf(await bench.call("probe", {}, { claim: "1.1.again" }))).toBe("undefined");
    }
    expect(execute).toHaveBeenCalledTimes(2);
  });

  it("takes no claim when it was refused before its body", async () => {
    const bench = await openBench([
      defineTool({
        name: "probe",
        description: "d",
        parameters: z.object({ a: z.string() }),
        execute: ({ a }) => a,
      }),
    ]);
    expect((await bench.call("probe", {}, { claim: "1.1.x" })).error?.code).toBe("INVALID_ARGS");
    expect(
      (await bench.call("probe", { a: "1" }, { claim: "1.1.x", signal: AbortSignal.abort() })).error
        ?.code,
    ).toBe("ABORTED_BEFORE_DISPATCH");
    expect(textOf(await bench.call("probe", { a: "1" }, { claim: "1.1.x" }))).toBe("1");
  });
});
