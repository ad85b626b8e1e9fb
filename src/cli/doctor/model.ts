import { modelName, type ModelRoute, type Settings } from "../../config.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { ModelOutcome, ModelProvider } from "../../contracts/model.js";
import type { Io } from "../io.js";
import { fail, ok, reasonOf, warn, type Check } from "./check.js";

const name = "Model";

/** What stands in the way of the configured model, without calling it. */
export async function modelCheck(
  io: Pick<Io, "env">,
  { model, configFile, file }: Pick<Settings, "model" | "configFile" | "file">,
): Promise<Check> {
  if (model === undefined)
    return warn(
      name,
      "none is configured; each command needs --model",
      `set LONGHAUL_MODEL=provider/model and its key (docs/models.md), or "model:" in ${configFile}`,
    );
  const shown = modelName(model);
  if (model.provider === "scripted") return scenarioCheck(shown, model.model);
  const { checkModel } = await import("../../models/providers.js");
  try {
    const problem = checkModel(model, io.env, file);
    if (problem === undefined) return ok(name, `${shown} is known, its key and address are set`);
    const found = `${shown}: ${problem.message}`;
    const cure = cures[problem.code] ?? `correct it in the environment or in ${configFile}`;
    return problem.certain
      ? fail(name, found, cure)
      : warn(name, found, "if it is a new one, `longhaul doctor --model` tells whether it answers");
  } catch (error) {
    return fail(name, `${configFile}: ${reasonOf(error)}`, `correct ${configFile}`);
  }
}

const cures: { readonly [code: string]: string } = {
  AUTH: "set the key where the worker runs: in its shell, its unit file or its secrets",
  MODEL_NOT_FOUND: "choose one of these (docs/models.md)",
};

async function scenarioCheck(shown: string, path: string): Promise<Check> {
  const { createScenarioLoader } = await import("../../models/scenario-file.js");
  try {
    createScenarioLoader()(path);
    return ok(name, `${shown} can be read`);
  } catch (error) {
    return fail(name, reasonOf(error), "correct the scenario (docs/scenarios.md)");
  }
}

export interface CallFacts {
  readonly outcome: ModelOutcome;
  /** Until the first text or reasoning, ms. */
  readonly firstMs?: number;
  readonly totalMs: number;
}

/** What one tiny call told. */
export function callCheck(route: ModelRoute, { outcome, firstMs, totalMs }: CallFacts): Check {
  const called = "Model call";
  const shown = modelName(route);
  if (outcome.kind === "reply") {
    const first = firstMs === undefined ? "" : `first token after ${firstMs.toFixed(0)} ms, `;
    return ok(called, `${shown} answered: ${first}${totalMs.toFixed(0)} ms in all`);
  }
  const [code, message] =
    outcome.kind === "failure"
      ? [outcome.failure.code, outcome.failure.message]
      : ["TIMEOUT", `no answer within ${(totalMs / 1000).toFixed(0)} s`];
  const cure = `see ${code} in docs/errors.md; this process's key and address were used, a worker uses its own`;
  return fail(called, `${shown}: ${code}: ${message}`, cure);
}

/** Makes one real request of a few tokens; its failures are part of the outcome. */
export async function callModel(
  io: Pick<Io, "env" | "stop">,
  { file }: Pick<Settings, "file">,
  route: ModelRoute,
): Promise<CallFacts> {
  const provider = await providerOf(io, file, route);
  const { collectReply } = await import("../../models/collect.js");
  const started = performance.now();
  let firstMs: number | undefined;
  const signal = AbortSignal.any([io.stop, AbortSignal.timeout(callLimitMs)]);
  const parts = provider.model(route.model).stream(
    {
      sessionId: "doctor",
      turn: 1,
      step: 1,
      retry: 0,
      config: { ...route, maxTokens: 16 },
      tools: [],
      messages: [
        {
          id: "doctor",
          role: "user",
          source: { kind: "user" },
          content: [{ type: "text", text: "Answer with OK." }],
        },
      ],
    },
    signal,
  );
  const outcome = await collectReply(parts, signal, () => {
    firstMs ??= performance.now() - started;
  });
  const totalMs = performance.now() - started;
  return { outcome, totalMs, ...(firstMs === undefined ? {} : { firstMs }) };
}

const callLimitMs = 60_000;

async function providerOf(
  io: Pick<Io, "env">,
  file: Settings["file"],
  route: ModelRoute,
): Promise<ModelProvider> {
  const { createScriptedProvider } = await import("../../models/scripted.js");
  const { providersFromEnv } = await import("../../models/providers.js");
  const all = [createScriptedProvider(), ...providersFromEnv(io.env, file)];
  const found = all.find((one) => one.provider === route.provider);
  if (found !== undefined) return found;
  throw new LonghaulError("MODEL_NOT_FOUND", `unknown provider "${route.provider}"`);
}
