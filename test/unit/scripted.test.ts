import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ModelOutcome, ModelPart, ModelRequest } from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";
import type { Scenario, ScenarioStep } from "../../src/models/scenario.js";
import { createScriptedProvider } from "../../src/models/scripted.js";
import { describeModel, type ModelCase } from "../support/model-conformance.js";
import {
  assistantMessage,
  modelRequest,
  toolResult,
  userMessage,
} from "../support/model-request.js";

describeModel("a scripted model", (wanted) => {
  const scenario = { name: "test", turns: [{ steps: [stepFor(wanted)] }] };
  const model = createScriptedProvider({ scenarios: { test: scenario } }).model("test");
  return Promise.resolve({ model, request: modelRequest(), close: () => Promise.resolve() });
});

describe("a scripted model", () => {
  test("answers by the turn and step of the request, and the same again", async () => {
    const scenario: Scenario = {
      name: "test",
      turns: [{ steps: [{ text: "one" }, { text: "two" }] }, { steps: [{ text: "three" }] }],
    };
    expect(await say(scenario, { turn: 2, step: 1 })).toBe("three");
    expect(await say(scenario, { turn: 1, step: 2 })).toBe("two");
    expect(await say(scenario, { turn: 1, step: 2 })).toBe("two");
    expect(await say(scenario, { turn: 1, step: 1 })).toBe("one");
  });

  test("answers every summary alike, by none of its steps; SCENARIO_EXHAUSTED where it has no answer", async () => {
    const scenario: Scenario = {
      name: "test",
      summary: { text: "turn ${turn} in short" },
      turns: [{ steps: [{ text: "one" }] }],
    };
    const asked = { turn: 7, step: 3, summary: true } as const;
    expect(await say(scenario, asked)).toBe("turn 7 in short");
    expect(await say(scenario, { turn: 1, step: 1 })).toBe("one");
    const { summary: _, ...without } = scenario;
    const outcome = await ask(without, asked);
    expect(outcome).toMatchObject({ kind: "failure", failure: { code: "SCENARIO_EXHAUSTED" } });
  });

  test("gives calls default ids, JSON arguments or raw ones, and finishes tool-calls", async () => {
    const calls = [
      { tool: "bash", args: { command: "ls", deep: { list: [1, "a"] } } },
      { tool: "read", rawArgs: '{"path":' },
      { tool: "todo_write", id: "mine" },
    ];
    expect(await collect({ calls }, { turn: 3, step: 2 })).toEqual({
      kind: "reply",
      content: [
        {
          type: "tool-call",
          callId: "call-3-2-1",
          name: "bash",
          arguments: '{"command":"ls","deep":{"list":[1,"a"]}}',
        },
        { type: "tool-call", callId: "call-3-2-2", name: "read", arguments: '{"path":' },
        { type: "tool-call", callId: "mine", name: "todo_write", arguments: "{}" },
      ],
      finish: "tool-calls",
    });
  });

  test("streams text in deltas of the given length, never cutting a character", async () => {
    const parts = await partsOf({ text: "ab😀cd", chunk: 3 });
    expect(parts).toEqual([
      { type: "text", text: "ab😀" },
      { type: "text", text: "cd" },
      { type: "finish", reason: "stop" },
    ]);
    expect((await partsOf({ text: "x".repeat(50) })).length).toBe(4);
  });

  test("says the finish and usage it is told", async () => {
    const usage = { inputTokens: 3 };
    expect(await partsOf({ finish: "max-tokens", usage })).toEqual([
      { type: "finish", reason: "max-tokens", usage },
    ]);
  });

  test("fails by the retry number, then replies", async () => {
    const step: ScenarioStep = {
      text: "at last",
      failures: [
        { code: "RATE_LIMIT", status: 429, retryAfterMs: 10, afterText: "so f" },
        { code: "SERVER", message: "down" },
      ],
    };
    expect(await partsOf(step, { retry: 0 })).toEqual([
      { type: "text", text: "so f" },
      {
        type: "failure",
        failure: {
          code: "RATE_LIMIT",
          message: "scripted RATE_LIMIT",
          status: 429,
          retryAfterMs: 10,
        },
      },
    ]);
    expect(await partsOf(step, { retry: 1 })).toEqual([
      { type: "failure", failure: { code: "SERVER", message: "down" } },
    ]);
    expect(await collect(step, { retry: 2 })).toMatchObject({
      kind: "reply",
      content: [{ text: "at last" }],
    });
  });

  test("fails when the scenario is exhausted, saying where and what there was", async () => {
    const scenario: Scenario = {
      name: "short",
      turns: [{ steps: [{ text: "a" }, { text: "b" }] }],
    };
    expect(await ask(scenario, { turn: 1, step: 3 })).toEqual({
      kind: "failure",
      failure: {
        code: "SCENARIO_EXHAUSTED",
        message:
          'scenario "short" has no answer for turn.step 1.3: its turn 1 has 2 steps; add one to the scenario',
      },
    });
    expect(await ask(scenario, { turn: 2, step: 1 })).toMatchObject({
      failure: { message: expect.stringContaining("2.1: it has 1 turn;") },
    });
    expect(await ask(scenario, { turn: 0, step: 1 })).toMatchObject({
      failure: { code: "SCENARIO_EXHAUSTED" },
    });
  });

  test("repeats steps and turns, and fills in placeholders", async () => {
    const text = "${turn}.${step}.${n} $${n} ${other}";
    const scenario: Scenario = {
      name: "long",
      turns: [
        { steps: [{ text }] },
        {
          repeat: 1000,
          steps: [
            { text, repeat: 20, calls: [{ tool: "t", args: { a: ["${n}"] }, id: "c${n}" }] },
            { text },
          ],
        },
        { steps: [{ text: "end" }] },
      ],
    };
    expect(await say(scenario, { turn: 1, step: 1 })).toBe("1.1.1 ${n} ${other}");
    expect(await say(scenario, { turn: 700, step: 20 })).toBe("700.20.20 ${n} ${other}");
    expect(await say(scenario, { turn: 700, step: 21 })).toBe("700.21.699 ${n} ${other}");
    expect(await say(scenario, { turn: 1002, step: 1 })).toBe("end");
    expect(await ask(scenario, { turn: 700, step: 22 })).toMatchObject({
      failure: { message: expect.stringContaining("its turn 700 has 21 steps") },
    });
    expect(await ask(scenario, { turn: 2, step: 7 })).toMatchObject({
      content: [{ type: "text" }, { callId: "c7", arguments: '{"a":["7"]}' }],
    });
  });

  test("expands {{bytes:N}} to that many characters", async () => {
    const outcome = await collect({
      text: "<{{bytes:5000}}>",
      calls: [{ tool: "t", args: { a: "{{bytes:12}}" } }],
    });
    expect(outcome).toMatchObject({
      content: [
        { text: expect.stringMatching(/^<.{5000}>$/) },
        { arguments: '{"a":"012345678901"}' },
      ],
    });
  });

  test("waits between deltas, and an abort ends the wait", async () => {
    const abort = new AbortController();
    const step: ScenarioStep = { text: "abcdef", chunk: 2, firstDelayMs: 5, delayMs: 3_600_000 };
    const parts: ModelPart[] = [];
    const reading = (async () => {
      for await (const part of streamOf(step, {}, abort.signal)) parts.push(part);
    })();
    await vi.waitFor(() => expect(parts).toEqual([{ type: "text", text: "ab" }]), {
      timeout: 10_000,
    });
    abort.abort();
    await reading;
    expect(parts.slice(1)).toMatchObject([{ type: "failure", failure: { code: "ABORTED" } }]);
  });

  test("lets an abort in while it streams a long text without delays", async () => {
    const abort = new AbortController();
    setImmediate(() => abort.abort());
    const outcome = await collectReply(
      streamOf({ text: "{{bytes:20000000}}" }, {}, abort.signal),
      abort.signal,
    );
    expect(outcome.kind).toBe("cancelled");
  });

  describe("expects", () => {
    const messages = [
      userMessage("please list the files"),
      assistantMessage("I will"),
      toolResult("a", "first\nresult"),
      toolResult("b", "Error: second", true),
    ];
    const request: Partial<ModelRequest> = {
      system: "You are a builder.",
      tools: [
        { name: "bash", description: "", parameters: {} },
        { name: "read", description: "", parameters: {} },
      ],
      messages,
    };

    test("nothing that the request does not meet", async () => {
      const expectation = {
        lastUser: "list the",
        system: "/^you ARE/i",
        tools: ["read"],
        toolResults: ["/^first$/m", "Error: "],
        messages: 4,
      };
      expect(await collect({ text: "ok", expect: expectation }, request)).toMatchObject({
        kind: "reply",
      });
      const noResults = [...messages, assistantMessage("done"), userMessage("thanks ${turn}")];
      const later = { toolResults: [], lastUser: "thanks" };
      expect(
        await collect({ text: "ok", expect: later }, { ...request, messages: noResults }),
      ).toMatchObject({ kind: "reply" });
    });

    test.each<readonly [NonNullable<ScenarioStep["expect"]>, string]>([
      [
        { lastUser: "delete" },
        'the last user message to contain "delete", came "please list the files"',
      ],
      [
        { lastUser: "/^list/" },
        'the last user message to match /^list/, came "please list the files"',
      ],
      [{ system: "pirate" }, 'the system prompt to contain "pirate", came "You are a builder."'],
      [
        { tools: ["write", "bash", "edit"] },
        "the tools write, edit to be offered, came bash, read",
      ],
      [
        { toolResults: ["first"] },
        '1 tool results of the step before, came 2: "first\\nresult", "Error: second"',
      ],
      [{ toolResults: ["first", "ok"] }, 'tool result 2 to contain "ok", came "Error: second"'],
      [
        { toolResults: ["second", "first"] },
        'tool result 1 to contain "second", came "first\\nresult"',
      ],
      [{ messages: 3 }, "3 messages, came 4"],
    ])("%j and tells what came", async (expectation, message) => {
      expect(
        await collect({ text: "ok", expect: expectation }, { ...request, turn: 2, step: 5 }),
      ).toEqual({
        kind: "failure",
        failure: { code: "SCENARIO_EXPECTATION", message: `turn.step 2.5: expected ${message}` },
      });
    });

    test("something of a request that has none", async () => {
      const empty = { messages: [], tools: [] };
      const came = async (expectation: ScenarioStep["expect"]): Promise<unknown> =>
        collect({ text: "ok", expect: expectation }, empty);
      const told = (message: string): object => ({
        failure: { message: expect.stringContaining(message) },
      });
      expect(await came({ lastUser: "hi" })).toMatchObject(told("came none"));
      expect(await came({ system: "hi" })).toMatchObject(told("came none"));
      expect(await came({ tools: ["bash"] })).toMatchObject(told("came none"));
      expect(await came({ toolResults: ["hi"] })).toMatchObject(told("came 0: none"));
    });
  });

  describe("records", () => {
    let directory: string;

    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), "longhaul-record-"));
    });
    afterEach(async () => {
      vi.unstubAllEnvs();
      await rm(directory, { recursive: true, force: true });
    });

    test("every request as one line of its session's file, also one it fails", async () => {
      const recordDir = join(directory, "made");
      const model = createScriptedProvider({ scenarios: { hello }, recordDir }).model("hello");
      const requests = [
        modelRequest(),
        modelRequest({ step: 9 }),
        modelRequest({ sessionId: "../a/b" }),
      ];
      for (const request of requests) await collectReply(model.stream(request, signal), signal);
      expect((await readdir(recordDir)).toSorted()).toEqual(["..%2Fa%2Fb.ndjson", "s-1.ndjson"]);
      const lines = (await readFile(join(recordDir, "s-1.ndjson"), "utf8")).trimEnd().split("\n");
      expect(lines.map((line): unknown => JSON.parse(line))).toEqual(requests.slice(0, 2));
    });

    test("where LONGHAUL_SCRIPTED_RECORD says, long and odd session ids apart", async () => {
      vi.stubEnv("LONGHAUL_SCRIPTED_RECORD", directory);
      const model = createScriptedProvider({ scenarios: { hello } }).model("hello");
      for (const sessionId of ["x".repeat(1000), "x".repeat(999), "\ud800"]) {
        const outcome = await collectReply(
          model.stream(modelRequest({ sessionId }), signal),
          signal,
        );
        expect(outcome.kind).toBe("reply");
      }
      expect(await readdir(directory)).toHaveLength(3);
    });

    test("and fails when it cannot", async () => {
      await writeFile(join(directory, "file"), "");
      const model = createScriptedProvider({
        scenarios: { hello },
        recordDir: join(directory, "file"),
      }).model("hello");
      expect(await collectReply(model.stream(modelRequest(), signal), signal)).toMatchObject({
        kind: "failure",
        failure: {
          code: "INVALID_CONFIG",
          message: expect.stringContaining(join(directory, "file")),
        },
      });
    });
  });
});

const hello: Scenario = { name: "hello", turns: [{ steps: [{ text: "Hello." }] }] };
const { signal } = new AbortController();

function stepFor(wanted: ModelCase): ScenarioStep {
  if (wanted.kind === "stalling") return { text: wanted.text, chunk: 100, delayMs: 600_000 };
  if (wanted.kind === "failing") {
    const { status, retryAfterMs, ...failure } = wanted.failure;
    const details = {
      ...(status !== undefined && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
    return { failures: [{ ...failure, ...details, afterText: wanted.text }] };
  }
  const { reasoning, text, finish, usage } = wanted;
  const calls = wanted.calls.map(({ callId, name, arguments: rawArgs }) => ({
    id: callId,
    tool: name,
    rawArgs,
  }));
  return { reasoning, text, calls, finish, usage, chunk: 3 };
}

function ask(scenario: Scenario, changes: Partial<ModelRequest> = {}): Promise<ModelOutcome> {
  const model = createScriptedProvider({ scenarios: { test: scenario } }).model("test");
  return collectReply(model.stream(modelRequest(changes), signal), signal);
}

async function say(scenario: Scenario, changes: Partial<ModelRequest>): Promise<string> {
  const outcome = await ask(scenario, changes);
  const [block] = outcome.kind === "reply" ? outcome.content : [];
  return block?.type === "text" ? block.text : JSON.stringify(outcome);
}

/** A step that is there for every request of the tests. */
function streamOf(
  step: ScenarioStep,
  changes: Partial<ModelRequest>,
  abort: AbortSignal,
): AsyncIterable<ModelPart> {
  const scenario = { name: "test", turns: [{ repeat: 9, steps: [{ repeat: 9, ...step }] }] };
  const model = createScriptedProvider({ scenarios: { test: scenario } }).model("test");
  return model.stream(modelRequest(changes), abort);
}

function collect(step: ScenarioStep, changes: Partial<ModelRequest> = {}): Promise<ModelOutcome> {
  return collectReply(streamOf(step, changes, signal), signal);
}

async function partsOf(
  step: ScenarioStep,
  changes: Partial<ModelRequest> = {},
): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of streamOf(step, changes, signal)) parts.push(part);
  return parts;
}
