import type { ModelFailure, ModelRequest } from "../contracts/model.js";
import type { Scenario, ScenarioStep } from "./scenario.js";
import type { Place } from "./scenario-text.js";

export type FoundStep =
  | { readonly ok: true; readonly step: ScenarioStep; readonly place: Place }
  | { readonly ok: false; readonly failure: ModelFailure };

/**
 * The step a request is for, from its turn and step alone (both from 1), or the one answer to all summaries; SCENARIO_EXHAUSTED
 * when there is none.
 */
export function findStep(
  scenario: Scenario,
  request: Pick<ModelRequest, "turn" | "step" | "summary">,
): FoundStep {
  if (request.summary === true) {
    const { turn, step } = request;
    return scenario.summary === undefined
      ? noSummary(scenario)
      : { ok: true, step: scenario.summary, place: { turn, step, n: 1 } };
  }
  const turn = pick(scenario.turns, request.turn);
  if (turn === undefined)
    return exhausted(scenario, request, `it has ${amount(scenario.turns, "turn")}`);
  const step = pick(turn.item.steps, request.step);
  if (step === undefined) {
    return exhausted(
      scenario,
      request,
      `its turn ${request.turn} has ${amount(turn.item.steps, "step")}`,
    );
  }
  const n = step.item.repeat === undefined ? turn.n : step.n;
  return { ok: true, step: step.item, place: { turn: request.turn, step: request.step, n } };
}

interface Repeatable {
  readonly repeat?: number | undefined;
}

/** The item at a position from 1, repetitions counted, and which repetition it is. */
function pick<T extends Repeatable>(
  items: readonly T[],
  position: number,
): { readonly item: T; readonly n: number } | undefined {
  let n = position;
  for (const item of items) {
    const repeat = item.repeat ?? 1;
    if (n >= 1 && n <= repeat) return { item, n };
    n -= repeat;
  }
  return undefined;
}

function exhausted(
  scenario: Scenario,
  request: Pick<ModelRequest, "turn" | "step">,
  had: string,
): FoundStep {
  const wanted = `${request.turn}.${request.step}`;
  return {
    ok: false,
    failure: {
      code: "SCENARIO_EXHAUSTED",
      message: `scenario "${scenario.name}" has no answer for turn.step ${wanted}: ${had}; add one to the scenario`,
    },
  };
}

function noSummary({ name }: Scenario): FoundStep {
  return {
    ok: false,
    failure: {
      code: "SCENARIO_EXHAUSTED",
      message: `scenario "${name}" has no answer for a summary; add \`summary\` to the scenario`,
    },
  };
}

function amount(items: readonly Repeatable[], noun: string): string {
  const total = items.reduce((sum, item) => sum + (item.repeat ?? 1), 0);
  return `${total} ${noun}${total === 1 ? "" : "s"}`;
}
