import type { ToolCallBlock } from "../contracts/content.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { NewEntry } from "../contracts/log.js";
import type { ToolOutcome, ToolRow } from "../contracts/tools.js";
import { parseArguments } from "./argument-schema.js";
import { start, type Loop, type Op, type ToolSettled } from "./effects.js";
import { boundJobResult, type BoundedText } from "./job-bound.js";
import { asksForBackground, runJobTool, startInBackground } from "./job-calls.js";
import { isJobTool, jobToolNames } from "./job-tool-rows.js";
import { limitOfCall } from "./job-tools.js";
import type { PolicyCall, PolicyContext, SessionPolicy } from "./policy.js";
import type { Session } from "./session.js";
import { runScheduleTool } from "./schedule-calls.js";
import { isScheduleTool } from "./schedule-tool-rows.js";
import { runStateTool } from "./state-tools.js";
import { argumentsRef, claimOf, keyOf, resultEntry } from "./tool-entries.js";
import { checkOutcome, errorOutcome } from "./tool-outcome.js";

/** One call of a batch on its way through the stages of spec/harness §3. */
export interface Call {
  readonly block: ToolCallBlock;
  readonly policyCall: PolicyCall;
  /** Names its body among the work under way. */
  readonly key: string;
  /** An earlier call of the same reply has its id: it is refused, for the id is the idempotency key. */
  readonly repeated: boolean;
  callSeq: number;
  settled?: ToolSettled;
  /** An abort was requested before its body settled. */
  aborted: boolean;
  /** A policy threw: the stages after the body are skipped. */
  policyFailed: boolean;
  /** What a state tool logs right before its result. */
  entries: readonly NewEntry[];
  /** How the result of a job tool is cut (spec/jobs §11). */
  limit?: number | undefined;
  text?: BoundedText | undefined;
}

/** Arguments are parsed once and frozen: no policy can rewrite them. */
export function prepareCalls(
  session: Session,
  context: PolicyContext,
  blocks: readonly ToolCallBlock[],
): readonly Call[] {
  return blocks.map((block, index) => {
    const row = rowOf(session, block.name);
    return {
      block,
      policyCall: {
        callId: block.callId,
        name: block.name,
        args: freezeJson(parseArguments(block.arguments)),
        ...(row === undefined ? {} : { row }),
      },
      key: keyOf(context, block, index),
      repeated: blocks.findIndex((other) => other.callId === block.callId) < index,
      callSeq: -1,
      aborted: false,
      policyFailed: false,
      entries: [],
    };
  });
}

/** Stages 1 to 6: the call in the log, the policies, and the body begun. What needs no body settles at once. */
export function* startCall(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  call: Call,
): Loop<void> {
  const { block, policyCall } = call;
  logCall(session, context, call);
  const { row } = policyCall;
  if (row === undefined) {
    call.settled = refused(
      "UNKNOWN_TOOL",
      `unknown tool ${JSON.stringify(block.name)}; this session offers ${offered(session)}`,
    );
    return;
  }
  if (call.repeated) {
    call.settled = refused(
      "INVALID_ARGS",
      `the call id ${JSON.stringify(block.callId)} is used twice in one reply; only the first call was run`,
    );
    return;
  }
  call.limit = limitOf(session, call);
  let deadlineMs: number | undefined;
  try {
    const denied = judge(session, policy, context, policyCall, claimOf(context, block));
    if (denied !== undefined) {
      call.settled = refused("TOOL_DENIED", denied);
      return;
    }
    deadlineMs = shortest(row.timeoutMs, policy.deadline?.(context, policyCall));
  } catch (error) {
    call.policyFailed = true;
    call.settled = refused("TOOL_FAILED", `a tool policy failed: ${String(error)}`);
    return;
  }
  if (asksForBackground(row, policyCall.args)) {
    call.settled = { kind: "outcome", outcome: startInBackground(session, policyCall) };
    return;
  }
  if (row.where === "state" && isJobTool(row.name)) {
    const result = yield* runJobTool(session, call.key, policyCall);
    session.record(...result.atOnce);
    call.entries = result.entries;
    call.text = result.text;
    call.settled = { kind: "outcome", outcome: result.outcome };
    return;
  }
  if (row.where === "state" && isScheduleTool(row.name)) {
    const { outcome, entries } = yield* runScheduleTool(session, call.key, policyCall);
    call.entries = entries;
    call.settled = { kind: "outcome", outcome };
    return;
  }
  if (row.where === "state") {
    const { outcome, entries } = runStateTool(policyCall, context.config);
    call.entries = entries;
    call.settled = { kind: "outcome", outcome };
    return;
  }
  yield* start(bodyOf(call, context, row, deadlineMs));
}

/** Stages 7 to 11: what the call came to, in the log as its one result. */
export function commitCall(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  call: Call,
): ToolOutcome {
  let outcome = settledOutcome(call);
  if (!call.policyFailed) {
    try {
      const post = policy.postExecute?.(context, call.policyCall, outcome) ?? { kind: "accept" };
      if (post.kind === "block") outcome = errorOutcome("TOOL_DENIED", post.feedback);
      else if (post.content !== undefined) outcome = { ...outcome, content: post.content };
    } catch (error) {
      outcome = errorOutcome("TOOL_FAILED", `a tool policy failed: ${String(error)}`);
    }
  }
  outcome = boundJobResult(outcome, call.limit ?? limitOf(session, call), call.text);
  const problem = checkOutcome(outcome) ?? session.log.check(resultEntry(context, call, outcome));
  if (problem !== undefined) {
    outcome = errorOutcome(
      "INVALID_TOOL_OUTPUT",
      `${call.block.name} gave no usable result: ${problem}`,
    );
  }
  freezeJson(outcome);
  try {
    policy.observe?.(context, call.policyCall, outcome);
  } catch {
    // An observer cannot undo a result (spec/harness §3, stage 10).
  }
  if (!outcome.isError) session.record(...call.entries);
  session.record(resultEntry(context, call, outcome));
  return outcome;
}

/** Of the job that the call names; only where a job tool reads or ends it. */
function limitOf(session: Session, { policyCall: { name, args, row } }: Call): number | undefined {
  if (row?.where !== "state" || name === jobToolNames.list || !isJobTool(name)) return undefined;
  return limitOfCall(session.folds.jobs, args, session.id);
}

/** A call that never started because the turn was aborted: its pair of entries. */
export function skipCall(session: Session, context: PolicyContext, call: Call): void {
  logCall(session, context, call);
  session.record(resultEntry(context, call, abortedBeforeDispatch()));
}

/** The row of a tool in the logged table as it is now. */
export function rowOf(session: Session, name: string): ToolRow | undefined {
  return session.folds.place.tools.find((tool) => tool.name === name);
}

/**
 * Stages 2 to 4: the reason a call is refused, or undefined. The approval policy is `never`: an ask is logged, and
 * rejected before anyone is asked (spec/harness §3).
 */
function judge(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  call: PolicyCall,
  claim: string,
): string | undefined {
  const decision = policy.preExecute?.(context, call) ?? { kind: "allow" };
  if (decision.kind === "deny") return decision.reason;
  if (decision.kind === "ask") {
    const { turn, step } = context;
    const requestId = `approval/${claim}`;
    const { reason } = decision;
    session.record(
      {
        type: "approval/asked",
        data: {
          requestId,
          turn,
          step,
          callId: call.callId,
          tool: call.name,
          ...(reason === undefined ? {} : { reason }),
        },
      },
      { type: "approval/decided", data: { requestId, outcome: "rejected", by: "policy" } },
    );
    return `${call.name} needs an approval, and approvals are not available in this session${
      reason === undefined ? "" : ` (${reason})`
    }`;
  }
  return policy.guard?.(context, call);
}

function bodyOf(
  call: Call,
  context: PolicyContext,
  row: ToolRow,
  deadlineMs: number | undefined,
): Op {
  const { block, key, callSeq } = call;
  return {
    kind: "tool",
    key,
    row,
    callId: block.callId,
    claim: claimOf(context, block),
    args: argumentsRef(block.arguments, callSeq),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  };
}

/** Stage 7, and the code of a call that an abort overtook; a tool's own failure is kept. */
function settledOutcome(call: Call): ToolOutcome {
  const { settled, aborted, block } = call;
  if (settled?.kind !== "outcome") return abortedBeforeDispatch();
  const problem = checkOutcome(settled.outcome);
  if (problem !== undefined) {
    return errorOutcome("INVALID_TOOL_OUTPUT", `${block.name} gave no usable result: ${problem}`);
  }
  if (!aborted || settled.outcome.isError) return settled.outcome;
  const told = errorOutcome("ABORTED", "the turn was aborted while this call ran");
  return { ...settled.outcome, ...told, content: [...told.content, ...settled.outcome.content] };
}

function logCall(session: Session, context: PolicyContext, call: Call): void {
  const { turn, step } = context;
  const { callId, name, arguments: raw } = call.block;
  call.callSeq = session.record({
    type: "tool/call",
    data: { turn, step, callId, name, arguments: raw },
  });
}

function refused(code: ErrorCode, message: string): ToolSettled {
  return { kind: "outcome", outcome: errorOutcome(code, message) };
}

function abortedBeforeDispatch(): ToolOutcome {
  return errorOutcome("ABORTED_BEFORE_DISPATCH", "the turn was aborted before this call ran");
}

/** A policy may shorten a deadline, not lengthen it. */
function shortest(declared: number | undefined, asked: number | undefined): number | undefined {
  if (declared === undefined || asked === undefined) return declared ?? asked;
  return Math.min(declared, asked);
}

function offered(session: Session): string {
  const names = session.folds.place.tools.map((tool) => tool.name);
  return names.length === 0 ? "no tools" : names.join(", ");
}

/** Freezes a JSON value in place; without recursion, because a model decides how deep it is. */
function freezeJson<T>(value: T): T {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null || Object.isFrozen(next)) continue;
    Object.freeze(next);
    for (const inner of Object.values(next)) open.push(inner);
  }
  return value;
}
