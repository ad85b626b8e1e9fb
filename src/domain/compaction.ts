import type { CompactionPolicy, CompactionProblem } from "../contracts/compaction.js";
import type { NewEntry } from "../contracts/log.js";
import type { ModelOutcome } from "../contracts/model.js";
import { budgetOf, policyOf } from "./compaction-config.js";
import { planSpan, type CompactionSpan } from "./compaction-plan.js";
import { planPrune } from "./compaction-prune.js";
import { checkpointMessage, summaryInstruction } from "./compaction-texts.js";
import { runOne, type Loop } from "./effects.js";
import { routeName, type RouteContext } from "./request.js";
import type { Session } from "./session.js";
import { estimateHeader, estimateMessage } from "./token-meter.js";

/** What became of a run. `changed`: the surface is another one than before. */
export interface CompactionResult {
  readonly changed: boolean;
  /** Why it was not led to its end; the turn goes on with what there is. */
  readonly problem?: CompactionProblem;
  readonly message?: string;
}

/**
 * Before a request of an open turn: nothing below the threshold, else prune, and summarise when that is not enough
 * (spec/harness §6). Nothing either when the route's capacity is not known.
 */
export function* relievePressure(session: Session): Loop<CompactionResult> {
  const config = session.compactionConfig;
  const { context: route, turn } = session.folds;
  if (!config.auto || route === undefined) return unchanged;
  const policy = policyOf(config, route);
  const budget = budgetOf(policy, route.contextWindow);
  if (budget === undefined || sizeOf(session) < budget.threshold) return unchanged;
  let changed = config.prune && prune(session);
  for (let pass = 0; pass <= policy.extraPasses; pass += 1) {
    if (sizeOf(session) < budget.threshold) break;
    if (session.folds.compaction.failedIn === turn.number) break;
    const span = spanOf(session, budget.retain);
    if (span === undefined) break;
    const run = yield* summarise(session, span, policy.summaryTokens);
    if (run.problem !== undefined) return { ...run, changed };
    changed = true;
  }
  return { changed };
}

/**
 * After a request was too large for its model (CONTEXT_WINDOW_EXCEEDED): prunes, then summarises all but the newest unit. The
 * request is to be made once more exactly when `changed`, at most `maxOverflowRetries` times; `tried`: how often it was.
 */
export function* recoverOverflow(session: Session, tried: number): Loop<CompactionResult> {
  const config = session.compactionConfig;
  const policy = currentPolicy(session);
  if (!config.auto || tried >= policy.maxOverflowRetries || session.aborting) return unchanged;
  const pruned = config.prune && prune(session);
  const span = newestSpan(session);
  if (span === undefined) return { changed: pruned };
  const run = yield* summarise(session, span, policy.summaryTokens);
  // An abort wins: nothing is tried again.
  return session.aborting ? { ...run, changed: false } : { ...run, changed: pruned || run.changed };
}

/** Leads the bracket that was opened from outside to its end: all but the newest unit is summarised. */
export function* compactAsked(session: Session): Loop<CompactionResult> {
  if (session.folds.compaction.open?.turn !== null) return unchanged;
  const span = newestSpan(session);
  if (span === undefined) return close(session, failed("changed", "nothing is left to be cut"));
  return yield* lead(session, span, currentPolicy(session).summaryTokens);
}

/** Everything but the newest unit; undefined when nothing is to be cut. */
export function newestSpan(session: Session): CompactionSpan | undefined {
  return session.folds.header === undefined ? undefined : spanOf(session, "newest");
}

/** Takes the lock. `turn`: the open one that owns it. */
export function openBracket(session: Session, turn: number | null, opId?: string): void {
  const compactionId = `compaction/${session.log.lastSeq + 1}`;
  session.record({
    type: "compaction/start",
    data: { compactionId, turn, ...(opId === undefined ? {} : { opId }) },
  });
}

const unchanged: CompactionResult = { changed: false };

function currentPolicy(session: Session): CompactionPolicy {
  const config = session.compactionConfig;
  const route: RouteContext | undefined = session.folds.context;
  return route === undefined ? config : policyOf(config, route);
}

function sizeOf({ meter, log, folds }: Session): number {
  return meter.follow(log.entries).total(folds.header);
}

/** Share of the window that the summary's own request may take, so that it is not too large itself. */
const spanRatio = 0.95;

function spanOf(
  { meter, log, folds }: Session,
  retain: number | "newest",
): CompactionSpan | undefined {
  const { header, context } = folds;
  const scale = meter.follow(log.entries).scale(header);
  const window = context?.contextWindow ?? Infinity;
  const most = (window * spanRatio) / scale - estimateHeader(header);
  return planSpan(meter, retain === "newest" ? retain : retain / scale, most);
}

function prune(session: Session): boolean {
  const { log } = session;
  const pairs = planPrune(
    log.surface.nodes,
    (seq) => log.surface.positionOf(seq),
    (seq) => log.at(seq),
  );
  for (const pair of pairs) session.record(...pair);
  return pairs.length > 0;
}

/** A whole bracket of the open turn. */
function* summarise(
  session: Session,
  span: CompactionSpan,
  maxTokens: number,
): Loop<CompactionResult> {
  if (session.compacting) return failed("busy", "another one is running");
  openBracket(session, session.folds.turn.number);
  return yield* lead(session, span, maxTokens);
}

/** In an open bracket: summary of the model, and, when everything is as it was, the replacement; then the end, whatever happened. */
function* lead(session: Session, span: CompactionSpan, maxTokens: number): Loop<CompactionResult> {
  const { log, folds } = session;
  const { surface } = log;
  const { header } = folds;
  const { open } = folds.compaction;
  if (header === undefined || open === undefined)
    return close(session, failed("summary", "no request was made yet"));
  if (session.aborting) return close(session, failed("cancelled", "it was interrupted"));
  const before = {
    length: surface.length,
    whole: surface.digest(),
    span: surface.digestAt(span.end),
  };
  const outcome = yield* summaryOf(session, {
    headerSeq: header.seq,
    length: span.end,
    digest: before.span,
    maxTokens,
  });
  if (outcome.kind === "cancelled" || session.aborting)
    return close(session, failed("cancelled", "it was interrupted"));
  if (outcome.kind === "failure") {
    const { code, message } = outcome.failure;
    return close(session, failed("summary", `${code}: ${message}`));
  }
  // A turn's own looks at the whole surface; beside an idle session more may have come.
  const same =
    open.turn !== null
      ? surface.length === before.length && surface.digest() === before.whole
      : surface.length >= span.end && surface.digestAt(span.end) === before.span;
  if (!same)
    return close(session, failed("changed", "the transcript changed while it was summarised"));
  const text = outcome.content
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("")
    .trim();
  const message = checkpointMessage(open.id, text);
  if (text === "") return close(session, failed("summary", "the model wrote no summary"));
  if (estimateMessage(message) >= span.tokens)
    return close(session, failed("summary", "the summary is not smaller than what it stands for"));
  const seqs = surface.seqsTo(span.end);
  const [first = 0, last = first] = [seqs[0], seqs.at(-1)];
  const { provider, model } = header.header.config;
  const told: NewEntry = {
    type: "compaction/summary",
    data: {
      compactionId: open.id,
      summary: [{ type: "text", text }],
      shadowedRange: { start: first, end: last },
      shadowedSeqs: seqs,
      shadowedTokenCount: span.tokens,
      provider,
      model,
      maxTokens,
      ...(outcome.usage === undefined ? {} : { usage: outcome.usage }),
    },
  };
  const replacement: NewEntry = {
    type: "user/message",
    surfaceOp: { op: "replace", start: 0, end: span.end },
    sourceEventSeqs: seqs,
    data: { message },
  };
  const flaw = log.check(told) ?? log.check(replacement);
  if (flaw !== undefined) return close(session, failed("commit", flaw));
  session.record(told, replacement);
  return close(session, { changed: true });
}

/** Asks the model, by reference like every request (design D2). */
function* summaryOf(
  session: Session,
  request: {
    readonly headerSeq: number;
    readonly length: number;
    readonly digest: string;
    readonly maxTokens: number;
  },
): Loop<ModelOutcome> {
  const { turn, header, compaction } = session.folds;
  const settled = yield* runOne(
    {
      kind: "summary",
      key: compaction.open?.id ?? "compaction",
      turn: turn.number,
      step: turn.step,
      ...request,
      instruction: summaryInstruction,
      timeoutMs: session.config.limits.modelTimeoutMs,
      route: header === undefined ? "" : routeName(header.header.config),
    },
    () => session.aborting,
  );
  return settled.kind === "summary" ? settled.outcome : { kind: "cancelled", content: [] };
}

/** Gives the lock back. */
function close(session: Session, result: CompactionResult): CompactionResult {
  const { open } = session.folds.compaction;
  const { problem, message } = result;
  if (open !== undefined)
    session.record({
      type: "compaction/end",
      data: {
        compactionId: open.id,
        turn: open.turn,
        ...(problem === undefined ? {} : { error: problem }),
        ...(message === undefined ? {} : { message: message.slice(0, 1_000) }),
      },
    });
  return result;
}

function failed(problem: CompactionProblem, message: string): CompactionResult {
  return { changed: false, problem, message };
}
