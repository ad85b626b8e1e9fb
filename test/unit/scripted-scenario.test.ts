import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ModelOutcome } from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";
import { parseScenario } from "../../src/models/scenario-file.js";
import { createScriptedProvider } from "../../src/models/scripted.js";
import { modelRequest } from "../support/model-request.js";

const head = "name: test\nturns:\n  - steps:\n";

describe("a scenario file", () => {
  test("may use every key of the format", () => {
    const text = `${head}      - expect: { lastUser: a, system: /b/i, tools: [c], toolResults: [d], messages: 1 }
        reasoning: r
        text: t
        calls: [{ tool: x, args: { a: [1, null, { b: true }] }, id: i }, { tool: y, rawArgs: "{" }]
        finish: stop
        usage: { inputTokens: 1, outputTokens: 2, cachedInputTokens: 3, reasoningTokens: 4 }
        chunk: 5
        delayMs: 6
        firstDelayMs: 7
        failures: [{ code: SERVER, message: m, status: 500, retryAfterMs: 1, afterText: x }]
        repeat: 2
    repeat: 3
contextWindow: 1000
`;
    expect(parseScenario(text, "x.yaml")).toMatchObject({
      contextWindow: 1000,
      turns: [{ repeat: 3 }],
    });
  });

  test.each([
    ["name: test\n", 1, 1, "turns: expected array, received undefined"],
    ["", 1, 1, "expected object, received null"],
    ["- a\n", 1, 1, "expected object, received array"],
    [`${head}      - text: 5\n`, 4, 15, "turns[0].steps[0].text: expected string, received number"],
    [
      `${head}      - text: a\n        chunk: 0\n`,
      5,
      16,
      "turns[0].steps[0].chunk: Too small: expected number to be >=1",
    ],
    [
      `${head}      - text: a\n        txt: b\n`,
      5,
      9,
      'turns[0].steps[0]: unknown key "txt"; expected one of: text, ',
    ],
    [
      `${head}      - calls:\n          - { args: {} }\n`,
      5,
      13,
      "turns[0].steps[0].calls[0].tool: expected string",
    ],
    [
      `${head}      - calls:\n          - { tool: a, args: {}, rawArgs: "" }\n`,
      5,
      13,
      "turns[0].steps[0].calls[0]: expected args or rawArgs, got both",
    ],
    [
      `${head}      - expect:\n          tool: [a]\n`,
      5,
      11,
      'unknown key "tool"; expected one of: tools, ',
    ],
    [
      `${head}      - expect:\n          lastUser: /(/\n`,
      5,
      21,
      "turns[0].steps[0].expect.lastUser: Invalid regular expression",
    ],
    [`${head}      - finish: done\n`, 4, 17, 'finish: expected one of "stop"|"tool-calls"'],
    [
      `${head}      - failures:\n          - { code: OOPS }\n`,
      5,
      21,
      'failures[0].code: expected one of "ABORTED"|',
    ],
    [`${head}      []\n`, 4, 7, "turns[0].steps: Too small: expected array to have >=1 items"],
    [`${head}      - &a { txt: x }\n      - *a\n`, 4, 14, 'unknown key "txt"'],
    [`${head}      - text: "open\n`, 5, 1, "Missing closing"],
    [`${head}      - text: a\n        text: b\n`, 5, 9, "Map keys must be unique"],
    [`${head}      - { text: a, chunk: 0, delayMs: x, more: 1 }\n`, 4, 27, "(and 2 more)"],
  ])("with a mistake is refused with its place: %j", (text, line, column, message) => {
    expect(() => parseScenario(text, "x.yaml")).toThrow(
      expect.objectContaining({
        code: "INVALID_SCENARIO",
        message: expect.stringMatching(
          new RegExp(`^x\\.yaml:${line}:${column}: .*${escape(message)}`),
        ),
      }),
    );
  });
});

describe("the path of a scenario file as the model's name", () => {
  let directory: string;
  let path: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "longhaul-scenario-"));
    path = join(directory, "play.yaml");
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const { signal } = new AbortController();
  const provider = createScriptedProvider();
  const ask = (name: string): Promise<ModelOutcome> =>
    collectReply(provider.model(name).stream(modelRequest(), signal), signal);

  test("answers from the file, also after the file has changed", async () => {
    await writeFile(path, `${head}      - text: one\ncontextWindow: 100\n`);
    expect(await ask(path)).toMatchObject({ content: [{ text: "one" }] });
    expect(await ask(path)).toMatchObject({ content: [{ text: "one" }] });
    expect(provider.contextWindow?.(path)).toBe(100);
    await writeFile(path, `${head}      - text: another\n`);
    expect(await ask(path)).toMatchObject({ content: [{ text: "another" }] });
    expect(provider.contextWindow?.(path)).toBeUndefined();
  });

  test("of a file that is not there or cannot be read is INVALID_SCENARIO, naming the path", async () => {
    for (const [name, reason] of [
      [path, "ENOENT"],
      [`${directory}/`, "EISDIR"],
    ] as const) {
      expect(await ask(name)).toMatchObject({
        kind: "failure",
        failure: { code: "INVALID_SCENARIO", message: expect.stringContaining(directory) },
      });
      expect(await ask(name)).toMatchObject({
        failure: { message: expect.stringContaining(reason) },
      });
      expect(provider.contextWindow?.(name)).toBeUndefined();
    }
  });

  test("of a file with a mistake is INVALID_SCENARIO until it is mended", async () => {
    await writeFile(path, `${head}      - text: 5\n`);
    expect(await ask(path)).toMatchObject({
      failure: { code: "INVALID_SCENARIO", message: expect.stringContaining(`${path}:4:15: `) },
    });
    await writeFile(path, `${head}      - text: five\n`);
    expect(await ask(path)).toMatchObject({ content: [{ text: "five" }] });
  });

  test("is a name when it does not look like a path", async () => {
    expect(await ask("play")).toMatchObject({ failure: { code: "MODEL_NOT_FOUND" } });
    expect(provider.contextWindow?.("play")).toBeUndefined();
  });
});

test("a scenario given in code is checked at once", () => {
  expect(() => createScriptedProvider({ scenarios: { mine: { name: "x", turns: [] } } })).toThrow(
    expect.objectContaining({
      code: "INVALID_SCENARIO",
      message: 'scenario "mine": turns: Too small: expected array to have >=1 items',
    }),
  );
});

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
