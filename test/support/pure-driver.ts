import type { ReadTimeInput } from "../../src/contracts/activities.js";
import type { RequestConfig } from "../../src/contracts/header.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelOutcome, ModelRoute } from "../../src/contracts/model.js";
import type { LocalTime, ZoneAnswer } from "../../src/contracts/schedule.js";
import type { SurfaceNode } from "../../src/contracts/session.js";
import type { ToolOutcome, ToolRow } from "../../src/contracts/tools.js";
import type {
  Effect,
  JobAnswer,
  Loop,
  Op,
  Settled,
  ToolSettled,
} from "../../src/domain/effects.js";
import { builtinPolicy, type SessionPolicy } from "../../src/domain/policy.js";
import type { Session } from "../../src/domain/session.js";
import { chain, deriveMessages, emptyBase, hashNode, Surface } from "../../src/domain/surface.js";
import { compactAsked } from "../../src/domain/compaction.js";
import { runTurn } from "../../src/domain/turn.js";
import type { RecordedRequest } from "./witness.js";

type ModelOp = Extract<Op, { kind: "model" }>;
type SummaryOp = Extract<Op, { kind: "summary" }>;
type JobOp = Extract<Op, { kind: "job" }>;
type ToolOp = Extract<Op, { kind: "tool" }>;

/** What the outside does. Functions are asked when an op settles, `cancelled` says whether its end was asked for. */
export interface Script {
  readonly model?: (call: ModelOp & { readonly cancelled: boolean }) => ModelOutcome;
  /** The summary of a compaction. */
  readonly summary?: (call: SummaryOp & { readonly cancelled: boolean }) => ModelOutcome;
  readonly tools?: {
    readonly [name: string]: (
      call: ToolOp & { readonly cancelled: boolean },
    ) => ToolOutcome | ToolSettled;
  };
  /** What a job tool's work comes to; `done` when absent. */
  readonly jobs?: (op: JobOp & { readonly cancelled: boolean }) => JobAnswer;
  /** What a local time means; nobody can say when absent. */
  readonly zone?: (local: LocalTime) => ZoneAnswer | undefined;
  readonly time?: (input: ReadTimeInput) => string;
  readonly route?: (request: RequestConfig) => ModelRoute | undefined;
  /** The whole table a refresh logs; absent: the one in force. */
  readonly table?: () => readonly ToolRow[];
  /** Where messages and aborts come in: before a wait or settle, after any other effect was carried out. */
  readonly at?: (effect: Effect, run: PureRun) => void;
  /** Which open op settles at a wait; the first when absent. */
  readonly pick?: (open: readonly Op[]) => Op | undefined;
  /** Entries of the runs before this one, which the session itself no longer has. */
  readonly archived?: readonly LogEntry[];
  readonly policy?: SessionPolicy;
  readonly random?: () => number;
}

const okReply: ModelOutcome = {
  kind: "reply",
  content: [{ type: "text", text: "ok" }],
  finish: "stop",
};
const okOutcome: ToolOutcome = { content: [{ type: "text", text: "done" }], isError: false };

/** One op that was begun, and what the session looked like then. */
export interface Begun {
  readonly op: Op;
  /** Keys of the ops already under way. */
  readonly beside: readonly string[];
  readonly lastSeq: number;
  readonly aborting: boolean;
}

/**
 * Drives the agent loop without a server, the way the workflow's driver does: `start` begins an op and waits for
 * nothing, a `wait` gives what settled first, an abort is seen only when nothing has settled, a cancelled op still
 * settles. It is stricter where the real one would break: a key under way twice, or a wait for nothing, is an error.
 */
export class PureRun {
  readonly session: Session;
  readonly script: Script;
  readonly effects: Effect[] = [];
  readonly begun: Begun[] = [];
  /** What each model call was shown, read by reference as the activity does; summaries are kept apart. */
  readonly requests: RecordedRequest[] = [];
  readonly summaries: RecordedRequest[] = [];
  readonly #open = new Map<string, Op>();
  readonly #cancelled = new Set<string>();
  readonly #settled: Settled[] = [];

  constructor(session: Session, script: Script) {
    this.session = session;
    this.script = script;
  }

  get open(): readonly Op[] {
    return [...this.#open.values()];
  }

  /** Turns as long as the session has something to do. */
  untilIdle(): void {
    const { policy = builtinPolicy, random = () => 0.5 } = this.script;
    for (let turns = 0; this.session.shouldRun() || this.session.compacting; turns += 1) {
      if (turns > 1_000) throw new Error("more than 1,000 turns: the session never becomes idle");
      this.drive(
        this.session.compacting
          ? compactAsked(this.session)
          : runTurn(this.session, policy, random),
      );
    }
  }

  drive(loop: Loop<unknown>): void {
    let next = loop.next();
    while (next.done !== true) {
      this.effects.push(next.value);
      if (this.effects.length > 100_000) throw new Error("more than 100,000 effects");
      const takesTime = next.value.kind === "wait" || next.value.kind === "settle";
      if (takesTime) this.script.at?.(next.value, this);
      const settled = this.#carryOut(next.value);
      if (!takesTime) this.script.at?.(next.value, this);
      next = loop.next(settled);
    }
    if (this.#open.size > 0)
      throw new Error(`left under way: ${[...this.#open.keys()].join(", ")}`);
  }

  /** Settles an open op as the script says; its result waits in line. */
  settle(key: string): void {
    const op = this.#open.get(key);
    if (op === undefined) throw new Error(`${key} is not under way`);
    this.#open.delete(key);
    this.#settled.push(this.#resultOf(op, this.#cancelled.has(key)));
  }

  #carryOut(effect: Effect): Settled | undefined {
    switch (effect.kind) {
      case "start":
        this.#begin(effect.op);
        return undefined;
      case "cancel":
        if (this.#open.has(effect.key)) this.#cancelled.add(effect.key);
        return undefined;
      case "settle":
        return undefined;
      case "wait": {
        const { aborting } = this.session;
        if (this.#settled.length === 0 && effect.abortable && aborting) return { kind: "abort" };
        if (this.#settled.length === 0) {
          const op = this.script.pick?.(this.open) ?? this.open[0];
          if (op === undefined) throw new Error("the loop waits, but nothing is under way");
          this.settle(op.key);
        }
        return this.#settled.shift();
      }
    }
  }

  #begin(op: Op): void {
    if (this.#open.has(op.key)) throw new Error(`${op.key} is under way already`);
    const { session } = this;
    const { aborting } = session;
    this.begun.push({ op, beside: [...this.#open.keys()], lastSeq: session.log.lastSeq, aborting });
    this.#open.set(op.key, op);
    this.#cancelled.delete(op.key);
    if (op.kind === "model") this.requests.push(readRequest(session, op, this.script.archived));
    if (op.kind === "summary")
      this.summaries.push(readRequest(session, { ...op, retry: 0 }, this.script.archived));
  }

  #resultOf(op: Op, cancelled: boolean): Settled {
    const { key } = op;
    const { script, session } = this;
    switch (op.kind) {
      case "model": {
        if (session.log.surface.length !== op.length) {
          throw new Error(`${key}: the surface grew while the model was called`);
        }
        const outcome = script.model?.({ ...op, cancelled }) ?? okReply;
        return { kind: "model", key, outcome: overTheWire(outcome) };
      }
      case "summary": {
        const outcome = script.summary?.({ ...op, cancelled }) ?? okReply;
        return { kind: "summary", key, outcome: overTheWire(outcome) };
      }
      case "tool": {
        const result = script.tools?.[op.row.name]?.({ ...op, cancelled }) ?? okOutcome;
        const settled = "kind" in result ? result : { kind: "outcome" as const, outcome: result };
        return { kind: "tool", key, result: overTheWire(settled) };
      }
      case "sleep":
        return { kind: "sleep", key };
      case "route":
        return { kind: "route", key, route: script.route?.(op.request) };
      case "job": {
        const answer = script.jobs?.({ ...op, cancelled }) ?? { kind: "done" as const };
        return { kind: "job", key, answer: overTheWire(answer) };
      }
      case "zone":
        return { kind: "zone", key, zone: cancelled ? undefined : script.zone?.(op.local) };
      case "time":
        return { kind: "time", key, text: cancelled ? undefined : script.time?.(op.input) };
      case "tools": {
        const tools = script.table?.() ?? session.folds.place.tools;
        session.record({ type: "session/tools", data: { epoch: 0, tools, jobKinds: [] } });
        return { kind: "tools", key };
      }
    }
  }
}

/** The digest of the surface as a reader computes it: from its JSON, node by node. */
export function digestFromScratch(session: Session, length = session.log.surface.length): string {
  return digestOf(session.log.surface.nodes.slice(0, length));
}

function digestOf(nodes: readonly SurfaceNode[]): string {
  return overTheWire(nodes).reduce((digest, node) => chain(digest, hashNode(node)), emptyBase);
}

/** The surface of a whole log. */
export function surfaceOf(entries: readonly LogEntry[]): Surface {
  const surface = new Surface();
  for (const entry of entries) surface.apply(entry);
  return surface;
}

/** Reads a request by reference; what does not fit the log is an error, as it is to the activity. */
function readRequest(
  session: Session,
  op: Pick<ModelOp, "turn" | "step" | "retry" | "headerSeq" | "length" | "digest">,
  archived: readonly LogEntry[] | undefined,
): RecordedRequest {
  const { turn, step, retry, headerSeq, length, digest } = op;
  const surface =
    archived === undefined ? session.log.surface : surfaceOf([...archived, ...session.log.entries]);
  const nodes = surface.nodes.slice(0, length);
  if (digestOf(nodes) !== digest) {
    throw new Error(
      `model call ${turn}.${step}: the surface of ${length} nodes has another digest`,
    );
  }
  const entry = session.log.at(headerSeq) ?? archived?.[headerSeq];
  if (entry?.type !== "request/header") throw new Error(`entry ${headerSeq} is no request/header`);
  const { config: request, system, tools = [] } = entry.data.header;
  const messages = deriveMessages(nodes);
  return overTheWire({
    turn,
    step,
    retry,
    config: request,
    ...(system === undefined ? {} : { system }),
    tools,
    messages,
  });
}

function overTheWire<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
