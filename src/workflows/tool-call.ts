import { TimeoutType } from "@temporalio/common";
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  TimeoutFailure,
} from "@temporalio/workflow";
import { isErrorCode } from "../contracts/errors.js";
import type { Op, ToolSettled } from "../domain/effects.js";
import type { Session } from "../domain/session.js";
import { errorOutcome } from "../domain/tool-outcome.js";
import { sealCalls, sessionRef, toolCalls } from "./activity-calls.js";

type ToolOp = Extract<Op, { kind: "tool" }>;

/** Runs one world tool and maps everything that can happen to its activity to one result (design D6, spec/harness §11). */
export async function runWorldTool(session: Session, op: ToolOp): Promise<ToolSettled> {
  const { row, claim } = op;
  const { place } = session.folds;
  const host = row.where === "host" ? place.host : undefined;
  const { config } = session;
  try {
    const outcome = await toolCalls({
      summary: `${row.name} ${"inline" in op.args ? op.args.inline : `(${op.args.bytes} bytes of arguments)`}`,
      activityId: op.key,
      host,
      deadlineMs: op.deadlineMs,
      idempotent: row.idempotent,
    })["tool.run"]({
      ...sessionRef(),
      claim,
      callId: op.callId,
      tool: row.name,
      args: op.args,
      ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
      permissions: { outsideWorkspace: config.outsideWorkspace },
      ...(op.deadlineMs === undefined ? {} : { timeoutMs: op.deadlineMs }),
      maxInlineBytes: config.limits.maxInlineBytes,
      epoch: place.epoch,
    });
    if (host !== undefined && session.folds.place.epoch === place.epoch)
      session.answeredAt = session.now;
    return { kind: "outcome", outcome };
  } catch (error) {
    return await failed(op, host, error);
  }
}

async function failed(op: ToolOp, host: string | undefined, error: unknown): Promise<ToolSettled> {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof TimeoutFailure && cause.timeoutType === TimeoutType.SCHEDULE_TO_START) {
    const where = host === undefined ? "the shared queue" : `host ${host}`;
    return settledAs(
      "TOOL_NOT_STARTED",
      `no worker of ${where} took the call within 30 s; nothing was run, so it is safe to call again`,
    );
  }
  if (cause instanceof TimeoutFailure) {
    if (host !== undefined && !op.row.idempotent) await seal(host, op);
    return settledAs(
      "TOOL_OUTCOME_UNKNOWN",
      `the worker was lost while ${op.row.name} ran (${cause.timeoutType ?? "time-out"}); it may have had effects and is not run again: check before you repeat it`,
    );
  }
  if (cause instanceof CancelledFailure || isCancellation(error)) return { kind: "unstarted" };
  if (cause instanceof ApplicationFailure) {
    const code = isErrorCode(cause.type) ? cause.type : "TOOL_FAILED";
    return settledAs(code, cause.message);
  }
  return settledAs("TOOL_FAILED", `${op.row.name} failed: ${String(cause)}`);
}

/** Whether it is answered or not, the unknown outcome is logged after it (design D6). */
async function seal(host: string, op: ToolOp): Promise<void> {
  try {
    await CancellationScope.nonCancellable(() =>
      sealCalls({ host, summary: `end what is left of ${op.row.name}` })["tool.seal"]({
        ...sessionRef(),
        claim: op.claim,
      }),
    );
  } catch {
    // The host is gone; its supervisors end what they watched by themselves.
  }
}

function settledAs(code: Parameters<typeof errorOutcome>[0], message: string): ToolSettled {
  return { kind: "outcome", outcome: errorOutcome(code, message) };
}
