import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../src/contracts/config.js";
import { sessionInputProblem } from "../../src/domain/session-input.js";

const valid = {
  v: 1,
  attributes: ["LonghaulState"],
  config: {
    request: { provider: "scripted", model: "a.yaml" },
    allowParallelInProgress: true,
    worldTools: false,
    outsideWorkspace: false,
    deny: [],
    ask: [],
    limits: defaultLimits,
  },
};

describe("start input of a session", () => {
  test("a complete one is accepted", () => {
    expect(sessionInputProblem(valid)).toBeUndefined();
  });

  test.each([
    [undefined, "expected start input"],
    [{ ...valid, v: 2 }, "got v 2"],
    [{ ...valid, host: 3 }, "`host` is text"],
    [{ ...valid, attributes: "LonghaulState" }, "`attributes`"],
    [{ ...valid, config: undefined }, "`config.request`"],
    [{ ...valid, config: { ...valid.config, request: { provider: "x" } } }, "`config.request`"],
    [
      { ...valid, config: { ...valid.config, allowParallelInProgress: "no" } },
      "$.allowParallelInProgress expected boolean",
    ],
    [{ ...valid, config: { ...valid.config, worldTools: 1 } }, "`config.worldTools`"],
    [{ ...valid, config: { ...valid.config, deny: [1] } }, "`config.deny`"],
    [
      {
        ...valid,
        config: { ...valid.config, limits: { ...defaultLimits, maxParallelToolCalls: 0 } },
      },
      "maxParallelToolCalls",
    ],
  ])("what is missing or of the wrong kind is named: %#", (input, problem) => {
    expect(sessionInputProblem(input)).toContain(problem);
  });

  test("anything at all gets an answer, never a throw", () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        expect(sessionInputProblem(input)).toEqual(expect.any(String));
      }),
    );
  });
});
