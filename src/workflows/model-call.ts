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

type ModelOp = Extract<Op, { kind: "model" }>;

/**
 * Calls the model by reference (design D2); whatever happens to the activity is a value. `base`: the archived segment the log goes
 * on from.
 */
export async function runModelCall(base: string, op: ModelOp): Promise<ModelOutcome> {
  const { turn, step, retry, headerSeq, length, digest, timeoutMs } = op;
  try {
    return await modelCalls({
      summary: `${op.route} · turn ${turn}, step ${step}${retry === 0 ? "" : `, retry ${retry}`}`,
      activityId: op.key,
      timeoutMs,
    }).callModel({
      ...sessionRef(),
      turn,
      step,
      retry,
      headerSeq,
      base,
      length,
      digest,
      timeoutMs,
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
