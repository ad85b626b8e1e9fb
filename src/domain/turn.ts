import type { UserMessage } from "../contracts/content.js";
import type { EndReason } from "../contracts/log.js";
import { relievePressure } from "./compaction.js";
import { runOne, type Loop } from "./effects.js";
import { decideClaim, decideInsert } from "./inbox.js";
import { callModel } from "./model-call.js";
import type { PolicyContext, SessionPolicy } from "./policy.js";
import { pluginMessage, type Session } from "./session.js";
import { readTime } from "./time-context.js";
import { runToolBatch } from "./tool-batch.js";

/**
 * One turn (spec/harness §2), from its start or from the step edge at which an open one stands; it stays open when `pausesAt`
 * says so at an edge after one of its steps, to be gone on with in another run (design D8).
 *
 * Invariants:
 * 1. `turn/start` precedes the claim; a claimed message is in the log as `user/message` or its turn ended without it.
 * 2. Every `turn/start` meets one `turn/end`, every `step/start` one `step/end`, whatever fails in between.
 * 3. Between two effects nothing else can happen: a decision and its entries are one block.
 * 4. After an abort was requested nothing new is started.
 */
export function* runTurn(
  session: Session,
  policy: SessionPolicy,
  random: () => number,
  pausesAt: () => boolean = () => false,
): Loop<void> {
  yield { kind: "settle" };
  if (!session.folds.turn.open) {
    if (!session.shouldRun()) return;
    session.record({ type: "turn/start", data: { turn: session.folds.turn.number + 1 } });
  }
  let reason: EndReason | undefined;
  for (;;) {
    reason = yield* runStep(session, policy, random);
    if (reason !== undefined) break;
    if (pausesAt()) return;
  }
  session.record({ type: "turn/end", data: { turn: session.folds.turn.number, reason } });
}

/** One step, or the end of the turn. */
function* runStep(
  session: Session,
  policy: SessionPolicy,
  random: () => number,
): Loop<EndReason | undefined> {
  yield { kind: "settle" };
  const aborted = abortOf(session);
  if (aborted !== undefined) return aborted;
  if (session.refreshTools) {
    session.refreshTools = false;
    yield* runOne(
      { kind: "tools", key: `tools/${contextOf(session, 1).turn}` },
      () => abortOf(session) !== undefined,
    );
    const stopped = abortOf(session);
    if (stopped !== undefined) {
      session.refreshTools = true;
      return stopped;
    }
  }
  yield* relievePressure(session);
  const broken = faultOf(session) ?? abortOf(session);
  if (broken !== undefined) return broken;
  const readings = yield* readTime(session, session.folds.turn.step + 1);
  const late = abortOf(session);
  if (late !== undefined) return late;
  const first = session.folds.turn.step === 0;
  const context = contextOf(session, session.folds.turn.step + 1);
  const claim = decideClaim(session.folds.inbox, first ? "turn" : "step");
  session.record(...claim.entries);
  const entered = enterStep(session, policy, context, claim.messages);
  if (entered.kind === "end") return entered.reason;
  if (first && entered.messages.length === 0) return { kind: "completed" };

  const { turn, step } = context;
  session.record({ type: "step/start", data: { turn, step } });
  for (const message of [...entered.messages, ...entered.contexts, ...readings]) {
    session.record({ type: "user/message", surfaceOp: "append", data: { message } });
  }
  const reply = yield* callModel(session, policy, context, random);
  let owed = false;
  if (reply.kind === "calls" && reply.calls.length > 0) {
    const batch = yield* runToolBatch(session, policy, context, reply.calls);
    owed = !batch.concludes;
  }
  session.record({ type: "step/end", data: { turn, step } });
  if (reply.kind === "end") return reply.reason;
  const stopped = faultOf(session) ?? abortOf(session);
  if (stopped !== undefined || owed) return stopped;
  return endOrGoOn(session, policy, context);
}

/** Pre-step: what the claimed input becomes. The runtime context is rendered before it and follows the input. */
function enterStep(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
  claimed: readonly UserMessage[],
):
  | {
      readonly kind: "enter";
      readonly messages: readonly UserMessage[];
      readonly contexts: readonly UserMessage[];
    }
  | { readonly kind: "end"; readonly reason: EndReason } {
  try {
    const contexts = runtimeContext(session, policy, context);
    const decision = policy.preStep?.(context, claimed) ?? { kind: "enter", messages: claimed };
    if (decision.kind === "enter") return { ...decision, contexts };
    return {
      kind: "end",
      reason: {
        kind: "blocked",
        ...(decision.message === undefined ? {} : { message: decision.message }),
      },
    };
  } catch (error) {
    return { kind: "end", reason: brokenBy(`the pre-step policy failed: ${String(error)}`) };
  }
}

const runtimeContextName = "runtime-context";

/** The policy's runtime context, when it differs from the one the model last saw. */
function runtimeContext(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
): readonly UserMessage[] {
  const text = policy.runtimeContext?.(context);
  if (text === undefined) return [];
  if (shownContext(session) === text) return [];
  return [pluginMessage(`context/${context.turn}.${context.step}`, runtimeContextName, text)];
}

function shownContext({ log, recall }: Session): string | undefined {
  const shown = log.surface.nodes.findLast(
    (node) => node.message.source["name"] === runtimeContextName,
  );
  const block = shown?.message.content[0];
  if (block?.type === "text") return block.text;
  const before = recall.runtimeContext;
  return before !== undefined && log.surface.has(before.seq) ? before.text : undefined;
}

/** After a step that owes nothing: late input or an objection forces one more step, else the turn ends. */
function endOrGoOn(
  session: Session,
  policy: SessionPolicy,
  context: PolicyContext,
): EndReason | undefined {
  if (session.folds.inbox.nextStep.length === 0) {
    let objections: readonly string[];
    try {
      objections = policy.turnStopping?.(context) ?? [];
    } catch (error) {
      return brokenBy(`the turn-stopping policy failed: ${String(error)}`);
    }
    const messages = objections.map((text, index) =>
      pluginMessage(`stopping/${context.turn}.${context.step}/${index + 1}`, "turn-stopping", text),
    );
    session.record(...decideInsert(session.folds.inbox, messages));
    const broken = faultOf(session);
    if (broken !== undefined) return broken;
  }
  if (session.folds.inbox.nextStep.length > 0) return undefined;
  return { kind: session.folds.turn.cut ? "max-tokens" : "completed" };
}

function abortOf(session: Session): EndReason | undefined {
  const reason = session.folds.turn.aborting;
  return reason === undefined ? undefined : { kind: "aborted", reason };
}

/** Something the loop wanted to log was refused: the turn cannot go on. */
function faultOf(session: Session): EndReason | undefined {
  return session.fault === undefined ? undefined : brokenBy(session.fault.message);
}

function brokenBy(message: string): EndReason {
  return { kind: "error", code: "INVARIANT", message };
}

function contextOf(session: Session, step: number): PolicyContext {
  return { sessionId: session.id, turn: session.folds.turn.number, step, config: session.config };
}
