import type { ToolCallBlock, UserMessage } from "../contracts/content.js";
import { cancel, wait, type Loop } from "./effects.js";
import { decideInsert } from "./inbox.js";
import type { PolicyContext, SessionPolicy } from "./policy.js";
import { pluginMessage, type Session } from "./session.js";
import { claimOf } from "./tool-entries.js";
import {
  commitCall,
  prepareCalls,
  rowOf,
  skipCall,
  startCall,
  type Call,
} from "./tool-pipeline.js";

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
  const calls = prepareCalls(session, context, blocks);
  const running = new Map<string, Call>();
  const contexts: UserMessage[] = [];
  let started = 0;
  let committed = 0;
  let concludes = false;
  let barrier = false;
  let told = false;

  while (committed < calls.length) {
    while (started < calls.length && !session.aborting) {
      const call = calls[started];
      if (call === undefined) break;
      const parallel = mayOverlap(session, call);
      if (parallel ? barrier || running.size >= poolSize(session) : started > committed) break;
      barrier = !parallel;
      started++;
      yield* startCall(session, policy, context, call);
      if (call.settled === undefined) running.set(call.key, call);
    }
    const next = calls[committed];
    if (next?.settled !== undefined) {
      const outcome = commitCall(session, policy, context, next);
      concludes ||= outcome.concludesTurn === true && !outcome.isError;
      for (const text of outcome.additionalContexts ?? []) {
        const id = `context/${claimOf(context, next.block)}/${contexts.length + 1}`;
        contexts.push(pluginMessage(id, next.block.name, text));
      }
      committed++;
      if (committed === started) barrier = false;
      continue;
    }
    if (session.aborting) {
      if (!told) {
        told = true;
        for (const key of running.keys()) yield* cancel(key);
      }
      if (running.size === 0 && next !== undefined) {
        skipCall(session, context, next);
        committed++;
        started = committed;
        continue;
      }
    }
    const settled = yield* wait(!told);
    if (settled.kind !== "tool") continue;
    const call = running.get(settled.key);
    if (call === undefined) continue;
    running.delete(settled.key);
    call.settled = settled.result;
    call.aborted = session.aborting;
  }
  session.record(...decideInsert(session.folds.inbox, contexts));
  return { concludes };
}

/** Asked just before a call starts, because the table may have changed since. */
function mayOverlap(session: Session, call: Call): boolean {
  return rowOf(session, call.block.name)?.parallel === true;
}

function poolSize(session: Session): number {
  return Math.max(1, session.config.limits.maxParallelToolCalls);
}
