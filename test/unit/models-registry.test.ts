import { describe, expect, test } from "vitest";
import type { ModelOutcome, ModelProvider } from "../../src/contracts/model.js";
import { collectReply } from "../../src/models/collect.js";
import { nearestFirst } from "../../src/models/nearest.js";
import { createModels, type Models } from "../../src/models/registry.js";
import { createScriptedProvider } from "../../src/models/scripted.js";
import { modelRequest } from "../support/model-request.js";

const hello = { name: "hello", contextWindow: 4096, turns: [{ steps: [{ text: "Hello." }] }] };

function ask(models: Models, provider: string, model: string): Promise<ModelOutcome> {
  const config = { provider, model };
  const { signal } = new AbortController();
  return collectReply(models.find(config).model.stream(modelRequest({ config }), signal), signal);
}

function named(provider: string): ModelProvider {
  return { ...createScriptedProvider({ scenarios: { hello } }), provider };
}

describe("the models of a worker", () => {
  const models = createModels([named("anthropic"), named("scripted"), named("openai")]);

  test("are found by provider and name, with the context window of the route", async () => {
    expect(models.find({ provider: "scripted", model: "hello" }).contextWindow).toBe(4096);
    expect(await ask(models, "scripted", "hello")).toMatchObject({
      kind: "reply",
      content: [{ text: "Hello." }],
    });
  });

  test("answer an unknown provider with the known ones, nearest first", async () => {
    expect(models.find({ provider: "opnai", model: "hello" })).not.toHaveProperty("contextWindow");
    expect(await ask(models, "opnai", "hello")).toEqual({
      kind: "failure",
      failure: {
        code: "MODEL_NOT_FOUND",
        message: 'unknown provider "opnai": expected one of: openai, scripted, anthropic',
      },
    });
    expect(await ask(createModels([]), "openai", "x")).toMatchObject({
      failure: {
        code: "MODEL_NOT_FOUND",
        message: 'unknown provider "openai": no provider is set up here',
      },
    });
  });

  test("answer an unknown model with the known ones", async () => {
    expect(await ask(models, "scripted", "helo")).toEqual({
      kind: "failure",
      failure: { code: "MODEL_NOT_FOUND", message: 'unknown model "helo": expected one of: hello' },
    });
  });

  test("turn what a provider throws into a failure of the request", async () => {
    const broken: ModelProvider = {
      provider: "broken",
      model: () => {
        throw new Error("no key");
      },
    };
    expect(await ask(createModels([broken]), "broken", "x")).toEqual({
      kind: "failure",
      failure: { code: "MODEL_ERROR", message: "no key" },
    });
  });

  test("have one provider of a name", () => {
    expect(() => createModels([named("a"), named("a")])).toThrow(
      expect.objectContaining({ code: "INVALID_CONFIG" }),
    );
  });
});

test("names are ordered by how near they are, whatever their case", () => {
  expect(
    nearestFirst("DeepSeek-chat", ["gpt", "deepseek-reasoner", "deepseek-chat", "chat"])[0],
  ).toBe("deepseek-chat");
  expect(nearestFirst("", ["b", "a"])).toEqual(["b", "a"]);
});
