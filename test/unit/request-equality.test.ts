import { describe, expect, test } from "vitest";
import type { RequestHeader } from "../../src/contracts/header.js";
import {
  buildHeader,
  decideContext,
  decideHeader,
  systemPrompt,
} from "../../src/domain/request.js";
import { config, row } from "../support/session-script.js";

describe("header equality", () => {
  const header: RequestHeader = {
    config: { provider: "p", model: "m" },
    system: "s",
    tools: [row("a"), row("b")].map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    })),
  };
  const decide = (next: RequestHeader) => decideHeader({ seq: 3, header }, next).length;

  test.each<[string, RequestHeader, number]>([
    ["the same", structuredClone(header), 0],
    [
      "keys in another order",
      { tools: header.tools ?? [], system: "s", config: { model: "m", provider: "p" } },
      0,
    ],
    ["another provider", { ...header, config: { ...header.config, provider: "q" } }, 1],
    ["an effort", { ...header, config: { ...header.config, reasoningEffort: "low" } }, 1],
    ["a temperature", { ...header, config: { ...header.config, temperature: 0 } }, 1],
    ["a token limit", { ...header, config: { ...header.config, maxTokens: 1 } }, 1],
    ["stop words", { ...header, config: { ...header.config, stop: ["x"] } }, 1],
    ["a default marker", { ...header, adapterDefaults: { maxTokens: true } }, 1],
    ["another prompt", { ...header, system: "t" }, 1],
    ["tools in another order", { ...header, tools: (header.tools ?? []).toReversed() }, 1],
    ["a tool less", { ...header, tools: (header.tools ?? []).slice(1) }, 1],
    [
      "another description",
      { ...header, tools: (header.tools ?? []).map((t) => ({ ...t, description: "x" })) },
      1,
    ],
  ])("%s", (_, next, entries) => {
    expect(decide(next)).toBe(entries);
  });

  test("an empty prompt and an empty tool table are absent", () => {
    expect(buildHeader({ provider: "p", model: "m" }, {}, "", [])).toEqual({
      config: { provider: "p", model: "m" },
    });
  });

  test("what the request says itself is not marked as a default", () => {
    const request = { provider: "p", model: "m", maxTokens: 5, reasoningEffort: "low" };
    expect(buildHeader(request, { maxTokens: 9, reasoningEffort: "high" }, undefined, [])).toEqual({
      config: request,
    });
  });

  test("a context of another model with the same capacity is another context", () => {
    const route = { provider: "p", model: "m", contextWindow: 1 };
    expect(decideContext(route, { ...route })).toEqual([]);
    expect(decideContext(route, { ...route, model: "n" })).toHaveLength(1);
    expect(decideContext(undefined, route)).toHaveLength(1);
  });
});

describe("the system prompt", () => {
  const world = { ...config, worldTools: true, cwd: "/w" };

  test("names the workspace, and says when its host does not answer", () => {
    expect(systemPrompt(config, { live: true, tools: [] })).toBeUndefined();
    expect(systemPrompt({ ...config, system: "" }, { live: true, tools: [] })).toBeUndefined();
    expect(systemPrompt({ ...world, system: "Be kind." }, { live: true, tools: [] })).toBe(
      "Be kind.\n\nYour workspace is /w. Relative paths are resolved against it.",
    );
    expect(systemPrompt(world, { live: false, host: "h1", tools: [] })).toContain(
      "The workspace host h1 does not answer",
    );
    expect(systemPrompt({ ...config, worldTools: true }, { live: false, tools: [] })).toContain(
      "The workspace host does not answer",
    );
  });
});
