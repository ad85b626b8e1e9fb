import type { CompactionConfig, CompactionProblem } from "../contracts/compaction.js";
import type { NewEntry } from "../contracts/log.js";
import type { ModelOutcome } from "../contracts/model.js";
import { budgetOf, policyOf } from "./compaction-config.js";
import { failedInTurn, openBracket, planSpan, type CompactionSpan } from "./compaction-plan.js";
import { planPrune } from "./compaction-prune.js";
import { checkpointMessage, summaryInstruction } from "./compaction-texts.js";
import type { Loop } from "./effects.js";
import type { Session } from "./session.js";
import { estimateHeader, estimateMessage, type TokenMeter } from "./token-meter.js";

/** One call of the model about the first `length` nodes of the surface, by reference like every request (design D2). */
export interface SummaryRequest {
  readonly compactionId: string;
  readonly headerSeq: number;
  readonly length: number;
  readonly digest: string;
  /** Stands after those messages as a user's. */
  readonly instruction: string;
  readonly maxTokens: number;
}

/** How the driver runs it; an abort is asked for while it runs, and what it has is returned. */
export type Summarize = (request: SummaryRequest) => Loop<ModelOutcome>;

export interface Compaction {
  readonly config: CompactionConfig;
  /** Of this session's surface. */
  readonly meter: TokenMeter;
  readonly summarize: Summarize;
}

/** What became of a run. `changed`: the surface is another one than before. */
export interface CompactionResult {
  readonly changed: boolean;
  /** Why it was not led to its end; the turn goes on with what there is. */
  readonly problem?: CompactionProblem;
  readonly message?: string;
}

/**
 * Before a request of an open turn: nothing below the threshold, else prune, and summarise when that is not enough
 * (spec/harness §6). Nothing either when the route's capacity is not known. @public
 */
export function* relievePressure(session: Session, compaction: Compaction): Loop<CompactionResult> {
  const { config } = compaction;
  const route = session.folds.context;
  if (!config.auto || route === undefined) return unchanged;
  const policy = policyOf(config, route);
  const budget = budgetOf(policy, route.contextWindow);
  if (budget === undefined || sizeOf(session, compaction) < budget.threshold) return unchanged;
  let changed = prune(session, compaction);
  for (let pass = 0; pass <= policy.extraPasses; pass += 1) {
    if (sizeOf(session, compaction) < budget.threshold) break;
    const span = spanOf(session, compaction, budget.retain);
    if (span === undefined) break;
    if (failedInTurn(session.log.entries, session.folds.turn.number)) break;
    const run = yield* summarise(session, compaction, span, policy.summaryTokens, "turn");
    if (run.problem !== undefined) return { ...run, changed };
    changed = true;
  }
  return { changed };
}

/**
 * After a request was too large for its model (CONTEXT_WINDOW_EXCEEDED): prunes, then summarises all but the newest unit. The
 * request is to be made once more exactly when `changed`, at most `maxOverflowRetries` times; `tried`: how often it was. @public
 */
export function* recoverOverflow(
  session: Session,
  compaction: Compaction,
  tried: number,
): Loop<CompactionResult> {
  const { config } = compaction;
  const route = session.folds.context;
  const policy = route === undefined ? config : policyOf(config, route);
  if (!config.auto || tried >= policy.maxOverflowRetries || session.aborting) return unchanged;
  const pruned = prune(session, compaction);
  const span = spanOf(session, compaction, "newest");
  if (span === undefined) return { changed: pruned };
  const run = yield* summarise(session, compaction, span, policy.summaryTokens, "turn");
  // An abort wins: nothing is tried again.
  return session.aborting ? { ...run, changed: false } : { ...run, changed: pruned || run.changed };
}

/** On demand, in an idle session: summarises all but the newest unit. Logs nothing when there is nothing to cut. @public */
export function* compactNow(session: Session, compaction: Compaction): Loop<CompactionResult> {
  const { config } = compaction;
  const busy = openBracket(session.log.entries);
  if (busy !== undefined || session.folds.turn.open)
    return failed("busy", busy === undefined ? "a turn is running" : `${busy} is running`);
  const route = session.folds.context;
  const policy = route === undefined ? config : policyOf(config, route);
  const span = spanOf(session, compaction, "newest");
  if (span === undefined) return unchanged;
  return yield* summarise(session, compaction, span, policy.summaryTokens, "manual");
}

const unchanged: CompactionResult = { changed: false };

function sizeOf(session: Session, { meter }: Compaction): number {
  return meter.follow(session.log.entries).total(session.folds.header);
}

/** Share of the window that the summary's own request may take, so that it is not too large itself. */
const spanRatio = 0.95;

function spanOf(
  session: Session,
  { meter }: Compaction,
  retain: number | "newest",
): CompactionSpan | undefined {
  const { header, context } = session.folds;
  const scale = meter.follow(session.log.entries).scale(header);
  const window = context?.contextWindow ?? Infinity;
  const most = (window * spanRatio) / scale - estimateHeader(header);
  return planSpan(meter, retain === "newest" ? retain : retain / scale, most);
}

function prune(session: Session, { config }: Compaction): boolean {
  if (!config.prune) return false;
  const { log } = session;
  const pairs = planPrune(
    log.surface.nodes,
    (seq) => log.surface.positionOf(seq),
    (seq) => log.at(seq),
  );
  for (const pair of pairs) session.record(...pair);
  return pairs.length > 0;
}

/** The bracket: start, summary of the model, and, when everything is as it was, the replacement; then the end, whatever happened. */
function* summarise(
  session: Session,
  { meter, summarize }: Compaction,
  span: CompactionSpan,
  maxTokens: number,
  owner: "turn" | "manual",
): Loop<CompactionResult> {
  const { log } = session;
  const { header } = session.folds;
  if (header === undefined) return failed("summary", "no request was made yet");
  if (openBracket(log.entries) !== undefined) return failed("busy", "another one is running");
  const turn = owner === "turn" ? session.folds.turn.number : null;
  const compactionId = `compaction/${log.lastSeq + 1}`;
  const { surface } = log;
  const before = {
    length: surface.length,
    whole: surface.digest(),
    span: surface.digestAt(span.end),
  };
  session.record({ type: "compaction/start", data: { compactionId, turn } });
  const outcome = yield* summarize({
    compactionId,
    headerSeq: header.seq,
    length: span.end,
    digest: before.span,
    instruction: summaryInstruction,
    maxTokens,
  });
  const close = (result: CompactionResult): CompactionResult => {
    const error = result.problem;
    session.record({
      type: "compaction/end",
      data: { compactionId, turn, ...(error === undefined ? {} : { error }) },
    });
    meter.follow(log.entries);
    return result;
  };
  if (outcome.kind === "cancelled" || session.aborting)
    return close(failed("cancelled", "it was interrupted"));
  if (outcome.kind === "failure") return close(failed("summary", outcome.failure.message));
  const same =
    owner === "turn"
      ? surface.length === before.length && surface.digest() === before.whole
      : surface.length >= span.end && surface.digestAt(span.end) === before.span;
  if (!same) return close(failed("changed", "the transcript changed while it was summarised"));
  const text = outcome.content
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("")
    .trim();
  const message = checkpointMessage(compactionId, text);
  if (text === "") return close(failed("summary", "the model wrote no summary"));
  if (estimateMessage(message) >= span.tokens)
    return close(failed("summary", "the summary is not smaller than what it stands for"));
  const seqs = surface.seqsTo(span.end);
  const [first = 0, last = first] = [seqs[0], seqs.at(-1)];
  const { provider, model } = header.header.config;
  const told: NewEntry = {
    type: "compaction/summary",
    data: {
      compactionId,
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
  if (flaw !== undefined) return close(failed("commit", flaw));
  session.record(told, replacement);
  return close({ changed: true });
}

function failed(problem: CompactionProblem, message: string): CompactionResult {
  return { changed: false, problem, message };
}
