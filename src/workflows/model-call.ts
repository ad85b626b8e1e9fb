import {
  ActivityFailure,
  ApplicationFailure,
  isCancellation,
  TimeoutFailure,
} from "@temporalio/workflow";
import { isErrorCode } from "../contracts/errors.js";
import type { ModelOutcome } from "../contracts/model.js";
import type { Op } from "../domain/effects.js";
import { modelCalls, sessionRef } from "./activity-calls.js";

type CallOp = Extract<Op, { kind: "model" | "summary" }>;

/**
 * Calls the model by reference (design D2), for a reply or a summary; whatever happens to the activity is a value. `base`: the
 * archived segment the log goes on from.
 */
export async function runModelCall(base: string, op: CallOp): Promise<ModelOutcome> {
  const { turn, step, headerSeq, length, digest, timeoutMs } = op;
  try {
    return await modelCalls({
      summary: `${op.route} · ${purposeOf(op)}`,
      activityId: op.key,
      timeoutMs,
    }).callModel({
      ...sessionRef(),
      turn,
      step,
      retry: op.kind === "model" ? op.retry : 0,
      headerSeq,
      base,
      length,
      digest,
      timeoutMs,
      ...(op.kind === "model"
        ? {}
        : { summary: { instruction: op.instruction, maxTokens: op.maxTokens } }),
    });
  } catch (error) {
    if (isCancellation(error)) return { kind: "cancelled", content: [] };
    const cause = error instanceof ActivityFailure ? error.cause : error;
    if (cause instanceof TimeoutFailure) {
      return {
        kind: "failure",
        failure: {
          code: "TIMEOUT",
          message: `the model call ran out of time (${cause.timeoutType ?? ""})`,
        },
      };
    }
    const code =
      cause instanceof ApplicationFailure && isErrorCode(cause.type) ? cause.type : "MODEL_ERROR";
    return {
      kind: "failure",
      failure: { code, message: cause instanceof Error ? cause.message : String(cause) },
    };
  }
}

function purposeOf(op: CallOp): string {
  if (op.kind === "summary")
    return `summary of ${op.length} ${op.length === 1 ? "message" : "messages"}`;
  const { turn, step, retry } = op;
  return `turn ${turn}, step ${step}${retry === 0 ? "" : `, retry ${retry}`}`;
}
