import { LonghaulError } from "../contracts/errors.js";
import type { Model, ModelFailure } from "../contracts/model.js";
import { nearestFirst } from "./nearest.js";

/** A model that answers every request with this failure. */
export function failingModel(failure: ModelFailure): Model {
  return {
    // oxlint-disable-next-line require-yield -- it has one part only
    async *stream() {
      yield { type: "failure", failure };
    },
  };
}

/** MODEL_NOT_FOUND for a provider or a model, naming the known ones, nearest first (at most ten). */
export function notFound(
  kind: "provider" | "model",
  name: string,
  known: readonly string[],
): ModelFailure {
  const names = nearestFirst(name, known).slice(0, 10).join(", ");
  const hint = known.length === 0 ? `no ${kind} is set up here` : `expected one of: ${names}`;
  return { code: "MODEL_NOT_FOUND", message: `unknown ${kind} "${name}": ${hint}` };
}

/** What a thrown error means to the workflow: its own code, or MODEL_ERROR. One line. */
export function failureOf(error: unknown): ModelFailure {
  const message = (error instanceof Error ? error.message : String(error)).replaceAll(
    /\s*\n\s*/g,
    " ",
  );
  return { code: error instanceof LonghaulError ? error.code : "MODEL_ERROR", message };
}
