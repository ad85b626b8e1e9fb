import { setImmediate, setTimeout } from "node:timers/promises";
import type { ModelFailure, ModelPart, ModelProvider, ModelRequest } from "../contracts/model.js";
import { failingModel, failureOf, notFound } from "./failing.js";
import { recordRequest } from "./recording.js";
import { unmetExpectation } from "./scenario-expect.js";
import { checkScenario, createScenarioLoader } from "./scenario-file.js";
import { findStep } from "./scenario-position.js";
import { deltasOf, expand, expandJson, type Place } from "./scenario-text.js";
import type { Scenario, ScenarioStep } from "./scenario.js";

export interface ScriptedProviderOptions {
  /** Scenarios by name; any other `config.model` is the path of a YAML file (docs/scenarios.md). */
  readonly scenarios?: Readonly<Record<string, Scenario>>;
  /** Where requests are recorded, one file a session; default `LONGHAUL_SCRIPTED_RECORD`, else nowhere. */
  readonly recordDir?: string;
}

/**
 * The provider `scripted`: answers from a scenario, without a network. Which answer is derived from the request's turn,
 * step and retry, so a repeated call gets the same one. Failures (SCENARIO_EXHAUSTED, SCENARIO_EXPECTATION,
 * INVALID_SCENARIO, MODEL_NOT_FOUND) are answered, and are none that is retried; an abort is answered ABORTED.
 * INVALID_SCENARIO is thrown for a scenario given in code that is not valid.
 */
export function createScriptedProvider(options: ScriptedProviderOptions = {}): ModelProvider {
  const given = new Map(
    Object.entries(options.scenarios ?? {}).map(([name, scenario]) => [
      name,
      checkScenario(scenario, name),
    ]),
  );
  const recordDir = options.recordDir ?? process.env["LONGHAUL_SCRIPTED_RECORD"];
  const loadFile = createScenarioLoader();
  const load = (name: string): Scenario => given.get(name) ?? loadFile(name);
  function tryLoad(name: string): Scenario | undefined {
    if (!given.has(name) && !isPath(name)) return undefined;
    try {
      return load(name);
    } catch {
      // The request itself will tell.
      return undefined;
    }
  }

  return {
    provider: "scripted",
    model(name) {
      if (!given.has(name) && !isPath(name))
        return failingModel(notFound("model", name, [...given.keys()]));
      return { stream: (request, signal) => answer(() => load(name), request, signal, recordDir) };
    },
    contextWindow: (name) => tryLoad(name)?.contextWindow,
    defaults: (name) => tryLoad(name)?.defaults,
  };
}

function isPath(name: string): boolean {
  return /[/\\]|\.ya?ml$/iu.test(name);
}

async function* answer(
  load: () => Scenario,
  request: ModelRequest,
  signal: AbortSignal,
  recordDir: string | undefined,
): AsyncGenerator<ModelPart, void, undefined> {
  try {
    if (recordDir !== undefined && recordDir !== "") await recordRequest(recordDir, request);
    const found = findStep(load(), request);
    if (!found.ok) return yield { type: "failure", failure: found.failure };
    const { step, place } = found;
    const unmet = step.expect && unmetExpectation(step.expect, request, place);
    if (unmet !== undefined) return yield { type: "failure", failure: unmet };
    for await (const part of paced(partsOf(step, request.retry, place), step, signal)) yield part;
  } catch (error) {
    yield { type: "failure", failure: signal.aborted ? aborted : failureOf(error) };
  }
}

const aborted: ModelFailure = { code: "ABORTED", message: "the model request was aborted" };

/** All parts of an answer, without their timing. */
function* partsOf(
  step: ScenarioStep,
  retry: number,
  place: Place,
): Generator<ModelPart, void, undefined> {
  const length = step.chunk ?? 24;
  const failure = step.failures?.[retry];
  if (failure !== undefined) {
    const { afterText = "", code, message = `scripted ${code}`, ...rest } = failure;
    for (const text of deltasOf(expand(afterText, place), length)) yield { type: "text", text };
    yield { type: "failure", failure: { code, message, ...rest } };
    return;
  }
  for (const text of deltasOf(expand(step.reasoning ?? "", place), length))
    yield { type: "reasoning", text };
  for (const text of deltasOf(expand(step.text ?? "", place), length)) yield { type: "text", text };
  const calls = step.calls ?? [];
  for (const [index, { tool, args = {}, rawArgs, id }] of calls.entries()) {
    yield {
      type: "tool-call",
      callId:
        id === undefined ? `call-${place.turn}-${place.step}-${index + 1}` : expand(id, place),
      name: tool,
      arguments:
        rawArgs === undefined ? JSON.stringify(expandJson(args, place)) : expand(rawArgs, place),
    };
  }
  const reason = step.finish ?? (calls.length > 0 ? "tool-calls" : "stop");
  yield { type: "finish", reason, ...(step.usage && { usage: step.usage }) };
}

/** Gives the parts with their delays; rejects as soon as the signal aborts. */
async function* paced(
  parts: Iterable<ModelPart>,
  { firstDelayMs = 0, delayMs = 0 }: ScenarioStep,
  signal: AbortSignal,
): AsyncGenerator<ModelPart, void, undefined> {
  let count = 0;
  for (const part of parts) {
    const delay = count === 0 ? firstDelayMs : delayMs;
    if (delay > 0) await setTimeout(delay, undefined, { signal });
    // A long text without delays must let the abort in.
    else if (count % 64 === 0) await setImmediate();
    signal.throwIfAborted();
    yield part;
    count += 1;
  }
}
