import type { ToolCallBlock, UserMessage } from "../contracts/content.js";
import type { ErrorCode } from "../contracts/errors.js";
import type { NewEntry } from "../contracts/log.js";
import type { ArgumentsRef, ToolOutcome, ToolRow } from "../contracts/tools.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { parseArguments } from "./argument-schema.js";
import { cancel, start, wait, type Loop, type ToolSettled } from "./effects.js";
import { decideInsert } from "./inbox.js";
import type { PolicyCall, PolicyContext, SessionPolicy } from "./policy.js";
import { pluginMessage, type Session } from "./session.js";
import { runStateTool } from "./state-tools.js";
import { errorOutcome } from "./tool-outcome.js";

/** Arguments up to this many UTF-8 bytes travel in the activity's input; larger ones by reference (design D2). */
export const inlineArgumentBytes = 2_048;

interface Call {
  readonly block: ToolCallBlock;
  readonly policyCall: PolicyCall;
  callSeq: number;
  settled?: ToolSettled;
  entries: readonly NewEntry[];
}

/**
 * The tool calls of one assistant message (spec/harness §3): a rolling pool of calls that may overlap, everything else
 * alone behind a barrier; decisions and results in model order. Every call gets exactly one result, also after an abort.
 * Returns whether a result concludes the turn.
 */
export function* runToolBatch(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  blocks: readonly ToolCallBlock[],
): Loop<{ readonly concludes: boolean }> {
  const calls = blocks.map((block) => prepareCall(session, block));
  const running = new Map<string, Call>();
  const contexts: UserMessage[] = [];
  let started = 0;
  let committed = 0;
  let concludes = false;
  let barrier = false;
  let told = false;

  while (committed < calls.length) {
    while (started < calls.length && !isAborting(session)) {
      const call = calls[started];
      if (call === undefined) break;
      const parallel = classify(session, call);
      const busy = started > committed;
      if (parallel ? barrier || running.size >= session.config.limits.maxParallelToolCalls : busy) break;
      barrier = !parallel;
      started++;
      yield* startCall(session, policy, context, call, running);
    }
    const next = calls[committed];
    if (next?.settled !== undefined && committed < started) {
      const outcome = commit(session, policy, context, next, isAborting(session));
      concludes ||= outcome.concludesTurn === true && !outcome.isError;
      for (const text of outcome.additionalContexts ?? []) {
        const id = `context/${claimOf(context, next.block)}/${contexts.length + 1}`;
        contexts.push(pluginMessage(id, next.block.name, text));
      }
      committed++;
      if (committed === started) barrier = false;
      continue;
    }
    if (isAborting(session)) {
      if (!told) {
        told = true;
        for (const key of running.keys()) yield* cancel(key);
      }
      if (running.size === 0) {
        const rest = calls[committed];
        if (rest === undefined) break;
        skip(session, context, rest);
        committed++;
        started = Math.max(started, committed);
        continue;
      }
    }
    const settled = yield* wait(!told);
    if (settled.kind !== "tool") continue;
    const call = running.get(settled.key);
    if (call === undefined) continue;
    running.delete(settled.key);
    call.settled = settled.result;
  }
  session.record(...decideInsert(session.folds.inbox, contexts));
  return { concludes };
}

function prepareCall(session: Session, block: ToolCallBlock): Call {
  const row = rowOf(session, block.name);
  const policyCall: PolicyCall = {
    callId: block.callId,
    name: block.name,
    args: parseArguments(block.arguments),
    ...(row === undefined ? {} : { row }),
  };
  return { block, policyCall, callSeq: -1, entries: [] };
}

/** Asked just before a call starts, because the table may have changed since. */
function classify(session: Session, call: Call): boolean {
  return rowOf(session, call.block.name)?.parallel === true;
}

function rowOf(session: Session, name: string): ToolRow | undefined {
  return session.folds.place.tools.find((tool) => tool.name === name);
}

/** Stages 1 to 6. */
function* startCall(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  call: Call,
  running: Map<string, Call>,
): Loop<void> {
  const { block, policyCall } = call;
  const { turn, step } = context;
  call.callSeq = session.record({
    type: "tool/call",
    data: { turn, step, callId: block.callId, name: block.name, arguments: block.arguments },
  });
  const { row } = policyCall;
  if (row === undefined) {
    call.settled = refused("UNKNOWN_TOOL", `unknown tool ${JSON.stringify(block.name)}; this session offers ${offered(session)}`);
    return;
  }
  let deadlineMs: number | undefined;
  try {
    const denied = judge(policy, context, policyCall);
    if (denied !== undefined) {
      call.settled = refused("TOOL_DENIED", denied);
      return;
    }
    deadlineMs = policy.deadline?.(context, policyCall);
  } catch (error) {
    call.settled = refused("TOOL_FAILED", `a tool policy failed: ${String(error)}`, true);
    return;
  }
  if (row.where === "state") {
    const result = runStateTool(session, policyCall);
    call.entries = result.entries;
    call.settled = { kind: "outcome", outcome: result.outcome };
    return;
  }
  const key = `tool/${claimOf(context, block)}`;
  running.set(key, call);
  yield* start({
    kind: "tool",
    key,
    row,
    callId: block.callId,
    claim: claimOf(context, block),
    args: argumentsRef(block.arguments, call.callSeq),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
}

/** Stages 2 to 4: the reason a call is refused, or undefined. An ask is refused: nobody can answer yet (fail closed). */
function judge(policy: SessionPolicy, context: PolicyContext, call: PolicyCall): string | undefined {
  const decision = policy.preExecute?.(context, call) ?? { kind: "allow" };
  if (decision.kind === "deny") return decision.reason;
  if (decision.kind === "ask") {
    return `${call.name} needs an approval, and approvals are not available in this session${
      decision.reason === undefined ? "" : ` (${decision.reason})`
    }`;
  }
  return policy.guard?.(context, call);
}

/** Stages 8 to 11. */
function commit(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  call: Call,
  aborting: boolean,
): ToolOutcome {
  const settled = call.settled;
  let outcome = settled?.kind === "outcome" ? settled.outcome : abortedBeforeDispatch();
  if (aborting && !outcome.isError) outcome = abortedWhileRunning(outcome);
  if (outcome.error?.name !== policyFailure) {
    try {
      const post = policy.postExecute?.(context, call.policyCall, outcome) ?? { kind: "accept" };
      if (post.kind === "block") outcome = errorOutcome("TOOL_DENIED", post.feedback);
      else if (post.content !== undefined) outcome = { ...outcome, content: post.content };
    } catch (error) {
      outcome = errorOutcome("TOOL_FAILED", `a tool policy failed: ${String(error)}`);
    }
  }
  try {
    policy.observe?.(context, call.policyCall, outcome);
  } catch {
    // An observer cannot undo a result (spec/harness §3, stage 10).
  }
  if (!outcome.isError) session.record(...call.entries);
  recordResult(session, context, call.block, call.callSeq, outcome);
  return outcome;
}

function recordResult(
  session: Session,
  context: PolicyContext,
  block: ToolCallBlock,
  callSeq: number,
  outcome: ToolOutcome,
): void {
  const { turn, step } = context;
  const { content, isError, error, meta } = outcome;
  session.record({
    type: "tool/result",
    surfaceOp: "append",
    sourceEventSeqs: [callSeq],
    data: {
      turn,
      step,
      message: {
        id: `r/${claimOf(context, block)}`,
        role: "user",
        content: [{ type: "tool-result", callId: block.callId, content, isError }],
        source: { kind: "tool", callId: block.callId },
      },
      ...(error === undefined ? {} : { error }),
      ...(meta === undefined ? {} : { meta }),
    },
  });
}

/** A call that never started because the turn was aborted: its pair of entries. */
function skip(session: Session, context: PolicyContext, call: Call): void {
  const { turn, step } = context;
  const { callId, name } = call.block;
  const callSeq = session.record({
    type: "tool/call",
    data: { turn, step, callId, name, arguments: call.block.arguments },
  });
  recordResult(session, context, call.block, callSeq, abortedBeforeDispatch());
}

const policyFailure = "PolicyFailure";

function refused(code: ErrorCode, message: string, isPolicyFailure = false): ToolSettled {
  return { kind: "outcome", outcome: errorOutcome(code, message, isPolicyFailure ? policyFailure : code) };
}

function abortedBeforeDispatch(): ToolOutcome {
  return errorOutcome("ABORTED_BEFORE_DISPATCH", "the turn was aborted before this call ran");
}

function abortedWhileRunning(outcome: ToolOutcome): ToolOutcome {
  const aborted = errorOutcome("ABORTED", "the turn was aborted while this call ran");
  return { ...outcome, ...aborted, content: [...aborted.content, ...outcome.content] };
}

function claimOf(context: PolicyContext, block: ToolCallBlock): string {
  return `${context.turn}.${context.step}.${block.callId}`;
}

function argumentsRef(raw: string, seq: number): ArgumentsRef {
  const bytes = utf8ToBytes(raw);
  if (bytes.length <= inlineArgumentBytes) return { inline: raw };
  return { seq, bytes: bytes.length, digest: bytesToHex(sha256(bytes)) };
}

function offered(session: Session): string {
  const names = session.folds.place.tools.map((tool) => tool.name);
  return names.length === 0 ? "no tools" : names.join(", ");
}

function isAborting(session: Session): boolean {
  return session.folds.turn.aborting !== undefined;
}
