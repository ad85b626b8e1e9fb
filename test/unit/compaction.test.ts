import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultCompactionConfig, type CompactionConfig } from "../../src/contracts/compaction.js";
import type { Message } from "../../src/contracts/content.js";
import type { ModelOutcome } from "../../src/contracts/model.js";
import type { CompactResult } from "../../src/contracts/session.js";
import { compact, interrupt } from "../../src/domain/commands.js";
import {
  compactAsked,
  recoverOverflow,
  relievePressure,
  type CompactionResult,
} from "../../src/domain/compaction.js";
import { budgetOf, loadCompactionConfig, policyOf } from "../../src/domain/compaction-config.js";
import { planSpan } from "../../src/domain/compaction-plan.js";
import type { Loop, Op } from "../../src/domain/effects.js";
import type { Session } from "../../src/domain/session.js";
import { deriveMessages } from "../../src/domain/surface.js";
import { TokenMeter, type NodeMeasure } from "../../src/domain/token-meter.js";
import { brokenRules } from "../support/log-rules.js";
import { digestFromScratch, PureRun } from "../support/pure-driver.js";
import { expectSoundLog } from "../support/log-invariants.js";
import {
  calls,
  endsOf,
  entriesOf,
  once,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
  typesOf,
  userTexts,
  waitingFor,
} from "../support/session-script.js";
import { compareRequests, witnessRequests } from "../support/witness.js";

type SummaryOp = Extract<Op, { kind: "summary" }>;

const words = (count: number): string => "word".repeat(count);

/** A session and its compaction; the summariser is the test's. Its turns are not compacted by themselves. */
class Bench {
  readonly session: Session;
  readonly requests: SummaryOp[] = [];
  outcome: ModelOutcome = text("what happened");
  /** What happens while the model writes. */
  during: () => void = () => {};
  readonly #config: CompactionConfig;
  #asked = 0;

  constructor(contextWindow: number, config: Partial<CompactionConfig> = {}) {
    this.session = openSession({ compaction: false }, [row("t")]);
    this.session.routes = [{ provider: "scripted", model: "m", contextWindow }];
    this.#config = { ...defaultCompactionConfig, ...config };
  }

  /** A turn of one message and one reply. */
  talk(id: string, said = 100, replied = 100, usage?: object): this {
    send(this.session, "followup", id, words(said));
    const reply = { ...text(words(replied)), ...(usage === undefined ? {} : { usage }) };
    return this.#play(saying(reply));
  }

  /** A turn that calls a tool with a result so long. */
  work(id: string, said: string): this {
    send(this.session, "followup", id, id);
    return this.#play(saying(calls("t")), said);
  }

  /** From here on it is compacted as it is configured. */
  openTurn(config: CompactionConfig = this.#config): this {
    const { session } = this;
    const { number, open } = session.folds.turn;
    this.#configure(config);
    if (!open) session.record({ type: "turn/start", data: { turn: number + 1 } });
    return this;
  }

  relieve(): CompactionResult {
    return this.#drive(relievePressure(this.session));
  }

  recover(tried = 0): CompactionResult {
    return this.#drive(recoverOverflow(this.session, tried));
  }

  ask(): CompactResult {
    return compact(this.session, { opId: `op-${(this.#asked += 1)}` });
  }

  /** Asked for from outside, and led to its end. */
  now(): CompactionResult | CompactResult {
    const verdict = this.ask();
    return verdict.ok && verdict.result === "requested"
      ? this.#drive(compactAsked(this.session))
      : verdict;
  }

  get messages(): readonly string[] {
    return deriveMessages(this.session.log.surface.nodes).map(({ id }) => id);
  }

  get size(): number {
    const { meter, log, folds } = this.session;
    return meter.follow(log.entries).total(folds.header);
  }

  #play(model: () => ModelOutcome, said = ""): this {
    this.#configure({ ...this.#config, auto: false });
    run(this.session, { model, tools: { t: () => output(said, { meta: { n: 1 } }) } });
    return this;
  }

  #configure(compaction: CompactionConfig): void {
    const config = { ...this.session.config, compaction };
    this.session.record({ type: "session/config", data: { config } });
  }

  #drive(loop: Loop<CompactionResult>): CompactionResult {
    let result: CompactionResult | undefined;
    function* keep(): Loop<void> {
      result = yield* loop;
    }
    const summary = (op: SummaryOp): ModelOutcome => {
      this.requests.push(op);
      this.during();
      return this.outcome;
    };
    new PureRun(this.session, { summary }).drive(keep());
    expect(this.session.fault).toBeUndefined();
    expect(this.session.compacting).toBe(false);
    expect(this.session.log.surface.digest()).toBe(digestFromScratch(this.session));
    // What is kept as it grows is what is measured anew.
    const { meter, log } = this.session;
    const fresh = new TokenMeter().follow(log.entries);
    expect(meter.follow(log.entries).state).toEqual(fresh.state);
    const { header } = this.session.folds;
    expect(meter.total(header)).toBe(new TokenMeter(fresh.state).total(header));
    if (result === undefined) throw new Error("no result");
    return result;
  }
}

const compactions = (session: Session, after = -1): readonly string[] =>
  typesOf(session, after).filter((type) => type.startsWith("compaction/"));

describe("under pressure", () => {
  test("[harness/K1] below the threshold nothing is logged, and large results stay", () => {
    const bench = new Bench(100_000).work("m1", words(3_000)).openTurn();
    const { lastSeq } = bench.session.log;
    expect(bench.relieve()).toEqual({ changed: false });
    expect(bench.session.log.lastSeq).toBe(lastSeq);
    expect(bench.requests).toEqual([]);
  });

  test("[harness/K2] where shortening results is enough, the model is not asked", () => {
    const bench = new Bench(8_000).work("m1", words(4_000)).work("m2", words(4_000)).openTurn();
    const originals = JSON.stringify(entriesOf(bench.session, "tool/result"));
    const { lastSeq } = bench.session.log;
    expect(bench.relieve()).toEqual({ changed: true });
    expect(typesOf(bench.session, lastSeq)).toEqual(
      Array.from({ length: 2 }, () => ["compaction/prune", "tool/result"]).flat(),
    );
    expect(bench.requests).toEqual([]);
    const [before, , after] = entriesOf(bench.session, "tool/result");
    const [block] = after?.data.message.content ?? [];
    if (block?.type !== "tool-result") throw new Error("no result");
    const points = Array.from(block.content[0]?.text ?? "");
    expect(points.slice(0, 4_096).join("")).toBe(words(1_024));
    expect(points.slice(-1_024).join("")).toBe(words(256));
    expect(points.length).toBeLessThan(5_300);
    expect(block.content[0]?.text).toContain("[10880 characters of this result were removed");
    // Only its content differs, and the log keeps the original.
    expect({ ...after?.data, message: undefined }).toEqual({ ...before?.data, message: undefined });
    expect(JSON.stringify(entriesOf(bench.session, "tool/result").slice(0, 2))).toBe(originals);
    expect(bench.relieve()).toEqual({ changed: false });
  });

  test("[harness/K3] where it is not, one bracket stands for the head, and the tail stays", () => {
    const bench = new Bench(2_000);
    for (const id of ["m1", "m2", "m3", "m4", "m5", "m6", "m7"]) bench.talk(id);
    bench.openTurn();
    const before = bench.messages;
    const turn = bench.session.folds.turn.number;
    const { lastSeq } = bench.session.log;
    expect(bench.size).toBeGreaterThan(1_600);
    expect(bench.relieve()).toEqual({ changed: true });
    expect(typesOf(bench.session, lastSeq)).toEqual([
      "compaction/start",
      "compaction/summary",
      "user/message",
      "compaction/end",
    ]);
    expect(bench.size).toBeLessThan(1_600);
    const [summary] = entriesOf(bench.session, "compaction/summary");
    const { length: cut } = summary?.data.shadowedSeqs ?? [];
    expect(bench.messages).toEqual([`compaction/${lastSeq + 1}`, ...before.slice(cut)]);
    // 0.16 of the window stays.
    expect(before.length - (cut ?? 0)).toBe(2);
    expect(bench.requests).toMatchObject([
      { length: cut, maxTokens: 8_192, headerSeq: bench.session.folds.header?.seq },
    ]);
    expect(summary?.data).toMatchObject({
      provider: "scripted",
      model: "m",
      summary: [{ text: "what happened" }],
    });
    expect(entriesOf(bench.session, "compaction/end")[0]?.data).toEqual({
      compactionId: `compaction/${lastSeq + 1}`,
      turn,
    });
    const [head] = bench.session.log.surface.nodes;
    expect(JSON.stringify(head?.message)).toContain(
      "<session-summary>\\nwhat happened\\n</session-summary>",
    );
  });

  test("[harness/K5] a summariser that fails leaves the surface, and is not asked again in the turn", () => {
    const failures: readonly ModelOutcome[] = [
      { kind: "failure", failure: { code: "SERVER", message: "down" } },
      text(""),
      calls("t"),
      text(words(3_000)),
    ];
    for (const outcome of failures) {
      const bench = new Bench(1_000).talk("m1").talk("m2").talk("m3").talk("m4").openTurn();
      bench.outcome = outcome;
      const { messages } = bench;
      expect(bench.relieve()).toMatchObject({ changed: false, problem: "summary" });
      expect(bench.messages).toEqual(messages);
      expect(entriesOf(bench.session, "compaction/end")[0]?.data.error).toBe("summary");
      bench.relieve();
      expect(bench.requests).toHaveLength(1);
      bench.session.record({ type: "turn/end", data: { turn: 5, reason: { kind: "completed" } } });
      bench.outcome = text("short");
      bench.openTurn();
      expect(bench.relieve()).toEqual({ changed: true });
    }
  });

  test("a transcript that changes meanwhile, or an abort, leaves the surface", () => {
    const bench = new Bench(1_000).talk("m1").talk("m2").talk("m3").talk("m4").openTurn();
    const { nodes } = bench.session.log.surface;
    const last = nodes.at(-1)?.message;
    bench.during = () =>
      bench.session.record({
        type: "user/message",
        surfaceOp: "append",
        data: { message: { ...last, role: "user", id: "new" } as never },
      });
    expect(bench.relieve()).toMatchObject({ changed: false, problem: "changed" });
    bench.during = () => void bench.session.requestAbort("user", true);
    expect(bench.recover()).toMatchObject({ changed: false, problem: "cancelled" });
    expect(compactions(bench.session).filter((type) => type === "compaction/summary")).toEqual([]);
    expect(bench.recover()).toEqual({ changed: false });
  });

  test("a route whose capacity is not known is never compacted by itself, nor is one that is switched off", () => {
    const bench = new Bench(1_000, { auto: false })
      .talk("m1")
      .talk("m2")
      .talk("m3")
      .talk("m4")
      .openTurn();
    expect(bench.relieve()).toEqual({ changed: false });
    bench.openTurn(defaultCompactionConfig);
    bench.session.record({ type: "request/context", data: { provider: "scripted", model: "m" } });
    expect(bench.relieve()).toEqual({ changed: false });
    expect(bench.requests).toEqual([]);
  });

  test("[harness/K11] a second one merges the first summary, and the originals are still in the log", () => {
    const bench = new Bench(2_000)
      .talk("m1")
      .talk("m2")
      .talk("m3")
      .talk("m4")
      .talk("m5")
      .talk("m6")
      .talk("m7")
      .openTurn();
    bench.relieve();
    const [first] = bench.messages;
    bench.session.record({ type: "turn/end", data: { turn: 8, reason: { kind: "completed" } } });
    bench.talk("m8").talk("m9").talk("m10").talk("m11").talk("m12").talk("m13").openTurn();
    expect(bench.relieve()).toEqual({ changed: true });
    const [, second] = entriesOf(bench.session, "compaction/summary");
    const firstNode = entriesOf(bench.session, "user/message").find(
      ({ data }) => data.message.id === first,
    );
    expect(second?.data.shadowedSeqs[0]).toBe(firstNode?.seq);
    const ids = entriesOf(bench.session, "user/message").map(({ data }) => data.message.id);
    for (const id of ["m1", "m2", "m3", "m4", "m5", "m8"]) expect(ids).toContain(id);
    expect(bench.messages[0]).toBe(second?.data.compactionId);
  });
});

describe("after a request that was too large", () => {
  test("[harness/K6] results that were shortened are worth one retry, also when the summary fails", () => {
    const bench = new Bench(100_000).work("m1", words(4_000)).talk("m2").openTurn();
    bench.outcome = {
      kind: "failure",
      failure: { code: "CONTEXT_WINDOW_EXCEEDED", message: "too large" },
    };
    expect(bench.recover()).toMatchObject({ changed: true, problem: "summary" });
    expect(bench.recover(1)).toEqual({ changed: false });
  });

  test("[harness/K7] with nothing to replace the first error stands", () => {
    const bench = new Bench(100_000).openTurn();
    bench.session.record({
      type: "user/message",
      surfaceOp: "append",
      data: { message: { id: "m", role: "user", content: [], source: { kind: "user" } } },
    });
    const { lastSeq } = bench.session.log;
    expect(bench.recover()).toEqual({ changed: false });
    expect(bench.session.log.lastSeq).toBe(lastSeq);
  });

  test("only the newest unit stays, and the capacity of the model need not be known", () => {
    const bench = new Bench(100_000).work("m1", "x".repeat(2_000)).talk("m2").openTurn();
    bench.session.record({ type: "request/context", data: { provider: "scripted", model: "m" } });
    expect(bench.recover()).toEqual({ changed: true });
    expect(bench.messages.slice(1)).toEqual(["m/2.1"]);
  });
});

describe("on demand", () => {
  test("keeps only the newest unit, owned by no turn; with nothing to cut nothing is logged", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2");
    expect(bench.now()).toEqual({ changed: true });
    expect(bench.messages.slice(1)).toEqual(["m/2.1"]);
    expect(entriesOf(bench.session, "compaction/start")[0]?.data).toMatchObject({ turn: null });
    expect(entriesOf(bench.session, "compaction/end")[0]?.data.turn).toBe(null);
    const { lastSeq } = bench.session.log;
    expect(bench.now()).toEqual({ ok: true, result: "nothing" });
    expect(bench.session.log.lastSeq).toBe(lastSeq);
    expect(new Bench(1_000).now()).toEqual({ ok: true, result: "nothing" });
  });

  test("[harness/K10] [harness/K9] what comes in meanwhile waits, and stands behind the summary", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2");
    bench.during = () => {
      send(bench.session, "inject", "context");
      send(bench.session, "followup", "m3");
      expect(bench.session.shouldRun()).toBe(false);
      expect(bench.session.state()).toBe("running");
    };
    expect(bench.now()).toEqual({ changed: true });
    const [summary, kept] = bench.messages;
    const { requests } = run(bench.session);
    expect(requests[0]?.messages).toMatchObject(
      [summary, kept, "context", "m3"].map((id) => ({ id })),
    );
    expectSound(bench.session);
  });

  test("what is appended meanwhile survives, what is replaced within the span does not", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2");
    const message = { id: "late", role: "user", content: [], source: { kind: "user" } } as const;
    bench.during = () =>
      bench.session.record({ type: "user/message", surfaceOp: "append", data: { message } });
    expect(bench.now()).toEqual({ changed: true });
    expect(bench.messages.slice(1)).toEqual(["m/2.1", "late"]);
    bench.talk("m3");
    const seq = bench.session.log.surface.nodes[0]?.seq ?? -1;
    bench.during = () =>
      bench.session.record({
        type: "user/message",
        surfaceOp: { op: "replace", start: 0, end: 1 },
        sourceEventSeqs: [seq],
        data: { message: { ...message, id: "other" } },
      });
    expect(bench.now()).toMatchObject({ changed: false, problem: "changed" });
  });

  test("one at a time, never in a turn or before one that waits; the same id gets the first verdict", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2").openTurn();
    expect(bench.ask()).toMatchObject({ ok: false, code: "BUSY" });
    const other = new Bench(100_000).talk("m1").talk("m2");
    send(other.session, "followup", "m3");
    expect(other.ask()).toMatchObject({ ok: false, code: "BUSY" });
    run(other.session);
    const first = compact(other.session, { opId: "mine" });
    expect(first).toEqual({
      ok: true,
      result: "requested",
      compactionId: `compaction/${other.session.log.lastSeq}`,
      seq: other.session.log.lastSeq,
    });
    expect(other.ask()).toMatchObject({ ok: false, code: "BUSY" });
    expect(compact(other.session, { opId: "mine" })).toEqual(first);
    run(other.session, { summary: () => text("short") });
    const { lastSeq } = other.session.log;
    expect(compact(other.session, { opId: "mine" })).toEqual(first);
    expect(other.session.log.lastSeq).toBe(lastSeq);
    for (const opId of [undefined, "", 1, "x".repeat(201)])
      expect(compact(other.session, { opId })).toMatchObject({ ok: false, code: "INVALID_INPUT" });
    expectSound(other.session);
  });

  test("an interrupt ends it and leaves the surface; what waits stays parked until the next waking message", () => {
    for (const when of ["before it begins", "while the model writes"]) {
      const bench = new Bench(100_000).talk("m1").talk("m2");
      const { session, messages } = bench;
      const stop = (): void => {
        send(session, "followup", "m3");
        expect(interrupt(session, {})).toMatchObject({ result: "requested" });
      };
      bench.ask();
      if (when === "before it begins") stop();
      const { summaries } = run(session, {
        summary: () => text("late"),
        at: (effect) => {
          if (effect.kind === "wait" && when === "while the model writes" && !session.aborting)
            stop();
        },
      });
      expect(summaries).toHaveLength(when === "before it begins" ? 0 : 1);
      expect(entriesOf(session, "compaction/end")[0]?.data).toMatchObject({ error: "cancelled" });
      expect(bench.messages).toEqual(messages);
      expect(session.aborting).toBe(false);
      expect(session.folds.inbox.nextTurn.map(({ id }) => id)).toEqual(["m3"]);
      send(session, "followup", "m4");
      run(session);
      expect(bench.messages).toEqual([...messages, "m3", "m/3.1", "m4", "m/4.1"]);
      expectSound(session);
    }
  });

  test("why it came to nothing is told at its end", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2");
    bench.outcome = { kind: "failure", failure: { code: "AUTH", message: "no key" } };
    expect(bench.now()).toMatchObject({ problem: "summary" });
    expect(entriesOf(bench.session, "compaction/end")[0]?.data).toMatchObject({
      error: "summary",
      message: "AUTH: no key",
    });
  });

  test("[harness/K8] a bracket that a seed left open is dead, one that is open in this life is the lock", () => {
    const { session } = new Bench(100_000).talk("m1").talk("m2");
    session.record({ type: "compaction/start", data: { compactionId: "x", turn: null } });
    expect(session.compacting).toBe(true);
    expect(compact(session, { opId: "a" })).toMatchObject({ code: "BUSY" });
    session.record({ type: "session/end-seed", data: {} });
    expect(session.compacting).toBe(false);
    expect(compact(session, { opId: "a" })).toMatchObject({ result: "requested" });
  });
});

describe("a turn", () => {
  const big = { t: () => output(words(4_000)) };

  test("[harness/K1] far below the threshold is what it is without compaction, also with large results", () => {
    const plays = [true, false].map((compaction) => {
      const session = openSession({ compaction }, [row("t")]);
      session.routes = [{ provider: "scripted", model: "m", contextWindow: 100_000 }];
      send(session, "followup", "m1");
      const { effects } = run(session, { model: saying(calls("t"), calls("t")), tools: big });
      return { types: typesOf(session), effects };
    });
    expect(plays[0]).toEqual(plays[1]);
  });

  test("[harness/K2] above it shortens results before the next step, and asks the model for nothing but its reply", () => {
    const session = roomFor(8_000);
    send(session, "followup", "m1");
    const played = run(session, { model: saying(calls("t"), calls("t")), tools: big });
    expect(played.summaries).toEqual([]);
    expect(compactions(session)).toEqual(["compaction/prune", "compaction/prune"]);
    const order = typesOf(session);
    const at = order.indexOf("compaction/prune");
    expect(order.slice(at - 1, at + 5)).toEqual([
      "step/end",
      "compaction/prune",
      "tool/result",
      "compaction/prune",
      "tool/result",
      "step/start",
    ]);
    expect(JSON.stringify(played.requests.at(-1)?.messages)).not.toContain(words(3_000));
    expectSound(session, played);
  });

  test("[harness/K3] [harness/K11] where that is not enough, has a summary and the tail for its next request, again and again", () => {
    const session = roomFor(3_000);
    for (let n = 1; n <= 40; n += 1) send(session, "followup", `m${n}`, words(100));
    const played = run(session, {
      model: () => text(words(100)),
      summary: ({ length }) => text(`stands for ${length}`),
    });
    const { summaries, requests } = played;
    expect(summaries.length).toBeGreaterThan(2);
    expect(session.folds.turn.number).toBe(40);
    const merged = summaries[1]?.messages[0];
    expect(JSON.stringify(merged)).toContain("stands for");
    expect(requests.at(-1)?.messages[0]).toMatchObject({ source: { name: "compaction" } });
    // The originals are still in the log.
    expect(userTexts(session).filter((one) => one === words(100))).toHaveLength(40);
    const { nodes } = session.log.surface;
    expect(nodes.length).toBeLessThan(30);
    expectSound(session, played);
  });

  test("[harness/K4] compacted between its steps keeps each call with its result", () => {
    const session = roomFor(4_000);
    send(session, "followup", "m1", words(300));
    const played = run(session, {
      model: saying(...Array.from({ length: 12 }, () => calls("t", "t"))),
      tools: { t: () => output(words(150)) },
      summary: () => text("short"),
    });
    const { summaries, requests } = played;
    expect(summaries.length).toBeGreaterThan(0);
    for (const { messages } of [...requests, ...summaries]) expect(unpaired(messages)).toEqual([]);
    expectSound(session, played);
  });

  test("[harness/K5] goes on with everything when the summariser fails, and asks it once", () => {
    const session = roomFor(1_000);
    for (const id of ["m1", "m2", "m3"]) send(session, "followup", id, words(100));
    run(session, { model: () => text(words(100)) });
    send(session, "followup", "m4");
    const played = run(session, {
      model: saying(calls("t"), calls("t")),
      summary: () => ({ kind: "failure", failure: { code: "SERVER", message: "down" } }),
    });
    const { summaries, requests } = played;
    expect(summaries).toHaveLength(1);
    expect(requests[0]?.messages.length).toBeGreaterThan(6);
    expect(endsOf(session).at(-1)).toEqual({ kind: "completed" });
    expectSound(session);
  });

  test("that is interrupted while the model summarises ends aborted, and its input stays in the inbox", () => {
    const session = roomFor(1_000);
    for (const id of ["m1", "m2", "m3"]) send(session, "followup", id, words(100));
    run(session, { model: () => text(words(100)) });
    send(session, "followup", "m4");
    const played = run(session, {
      summary: ({ cancelled }) => {
        expect(cancelled).toBe(true);
        return { kind: "cancelled", content: [] };
      },
      at: once(waitingFor("summary"), () => interrupt(session, {})),
    });
    const { requests } = played;
    expect(requests).toEqual([]);
    expect(endsOf(session).at(-1)).toEqual({ kind: "aborted", reason: "user" });
    expect(session.folds.inbox.nextTurn.map(({ id }) => id)).toEqual(["m4"]);
    expect(entriesOf(session, "compaction/end")[0]?.data.error).toBe("cancelled");
    expectSound(session);
  });

  test("[harness/K6] whose request was too large makes it once more from the shortened surface, though the summary fails", () => {
    const session = roomFor(undefined);
    send(session, "followup", "m1");
    const played = run(session, {
      model: saying(calls("t"), tooLarge, text("fits")),
      tools: big,
      summary: () => tooLarge,
    });
    const { requests, begun, summaries } = played;
    expect(summaries).toHaveLength(1);
    expect(begun.flatMap(({ op }) => (op.kind === "model" ? [op.key] : []))).toEqual([
      "model/1.1.0",
      "model/1.2.0",
      "model/1.2.1",
    ]);
    expect(JSON.stringify(requests[1]?.messages)).toContain(words(4_000));
    expect(JSON.stringify(requests[2]?.messages)).not.toContain(words(4_000));
    expect(entriesOf(session, "llm/retry")).toEqual([]);
    expect(endsOf(session)).toEqual([{ kind: "completed" }]);
    expectSound(session, played);
  });

  test("whose request is still too large then ends with the error, as it does with a summary that changed nothing", () => {
    const session = roomFor(undefined);
    send(session, "followup", "m1");
    const played = run(session, {
      model: saying(calls("t"), tooLarge, tooLarge, text("never")),
      tools: big,
      summary: () => text("short"),
    });
    const { requests } = played;
    expect(requests).toHaveLength(3);
    expect(endsOf(session)).toEqual([
      { kind: "error", code: "CONTEXT_WINDOW_EXCEEDED", message: "too large" },
    ]);
    expectSound(session, played);
  });

  test("[harness/K7] whose request was too large with nothing to replace ends with that error", () => {
    const session = roomFor(undefined);
    send(session, "followup", "m1");
    const { requests } = run(session, { model: () => tooLarge });
    expect(requests).toHaveLength(1);
    expect(compactions(session)).toEqual([]);
    expect(endsOf(session)).toEqual([
      { kind: "error", code: "CONTEXT_WINDOW_EXCEEDED", message: "too large" },
    ]);
  });

  test("that is interrupted while it recovers makes no further request", () => {
    const session = roomFor(undefined);
    send(session, "followup", "m1");
    const played = run(session, {
      model: saying(calls("t"), tooLarge, text("never")),
      tools: big,
      summary: () => ({ kind: "cancelled", content: [] }),
      at: once(waitingFor("summary"), () => interrupt(session, {})),
    });
    const { requests } = played;
    expect(requests).toHaveLength(2);
    expect(endsOf(session)).toEqual([{ kind: "aborted", reason: "user" }]);
    expectSound(session, played);
  });
});

/** The log keeps every rule, and says itself what each request was. */
function expectSound(session: Session, played?: PureRun): void {
  expectSoundLog(session);
  const log = JSON.parse(JSON.stringify(session.log.entries)) as typeof session.log.entries;
  expect(brokenRules(log)).toEqual([]);
  const requests = played?.requests;
  const differences = requests === undefined ? [] : compareRequests(witnessRequests(log), requests);
  expect(differences).toEqual([]);
}

const tooLarge: ModelOutcome = {
  kind: "failure",
  failure: { code: "CONTEXT_WINDOW_EXCEEDED", message: "too large" },
};

function roomFor(contextWindow: number | undefined): Session {
  const session = openSession({}, [row("t")]);
  const route = { provider: "scripted", model: "m" };
  session.routes = [contextWindow === undefined ? route : { ...route, contextWindow }];
  return session;
}

/** Calls without a result and results without a call. */
function unpaired(messages: readonly unknown[]): readonly string[] {
  const blocks = (messages as readonly Message[]).flatMap(({ content }) => [...content]);
  const made = blocks.flatMap((one) => (one.type === "tool-call" ? [one.callId] : []));
  const answered = blocks.flatMap((one) => (one.type === "tool-result" ? [one.callId] : []));
  return made.length === answered.length ? [] : [...made, ...answered];
}

describe("a configuration", () => {
  test("is whole: defaults, switches, policies of routes, either form of the retained part", () => {
    expect(loadCompactionConfig(undefined)).toEqual({ ok: true, config: defaultCompactionConfig });
    expect(loadCompactionConfig(false)).toMatchObject({ config: { auto: false } });
    const route = { provider: "p", model: "m", thresholdRatio: 0.7, retainTokens: 2_048 };
    const loaded = loadCompactionConfig({ retainRatio: 0.2, routes: [route] });
    if (!loaded.ok) throw new Error(loaded.message);
    expect(policyOf(loaded.config, { provider: "p", model: "m" })).toMatchObject({
      thresholdRatio: 0.7,
      retainTokens: 2_048,
      summaryTokens: 8_192,
    });
    const other = policyOf(loaded.config, { provider: "p", model: "n" });
    expect(budgetOf(other, 1_001)).toEqual({ threshold: 800, retain: 200 });
    expect(budgetOf({ ...other, retainTokens: 900 }, 1_000)).toBeUndefined();
    const own = {
      ...loaded.config,
      retainTokens: 5,
      routes: [{ provider: "p", model: "m", retainRatio: 0.3 }],
    };
    expect(budgetOf(policyOf(own, { provider: "p", model: "m" }), 100)).toEqual({
      threshold: 80,
      retain: 30,
    });
  });

  test.each<[unknown, string]>([
    [1, "`compaction` is true, false or an object"],
    [{ threshold: 1 }, 'no key "threshold"'],
    [{ thresholdRatio: 0 }, "`thresholdRatio`"],
    [{ thresholdRatio: Number.NaN }, "`thresholdRatio`"],
    [{ extraPasses: -1 }, "`extraPasses`"],
    [{ summaryTokens: 0 }, "`summaryTokens`"],
    [{ retainRatio: 0.1, retainTokens: 1 }, "not both"],
    [{ retainRatio: 0.9 }, "must be below"],
    [{ auto: 1 }, "`auto`"],
    [{ routes: {} }, "`routes`"],
    [{ routes: [1] }, "a route is an object"],
    [{ routes: [{ provider: "p" }] }, "provider"],
    [{ routes: [{ provider: "p", model: "m", retainRatio: 0.8 }] }, "route p/m"],
    [
      {
        routes: [
          { provider: "p", model: "m" },
          { provider: "p", model: "m" },
        ],
      },
      "twice",
    ],
    [{ routes: [{ provider: "p", model: "m", auto: true }] }, 'no key "auto"'],
  ])("that is wrong is refused with the key: %j", (given, message) => {
    expect(loadCompactionConfig(given)).toEqual({
      ok: false,
      code: "INVALID_CONFIG",
      message: expect.stringContaining(message),
    });
  });
});

test("[harness/K4] wherever calls are answered, a cut splits no pair, or there is none", () => {
  const pair = fc.array(fc.record({ calls: fc.nat(3), early: fc.boolean() }), { maxLength: 8 });
  fc.assert(
    fc.property(pair, fc.nat(60), fc.boolean(), (steps, retain, newest) => {
      const nodes: NodeMeasure[] = [];
      const owed: number[] = [];
      for (const { calls: made, early } of steps) {
        for (let left = made; left >= 0; left -= 1) {
          // Behind the reply `made` are owed, behind each result one less; some steps end before all are answered.
          if (early && left === 0 && made > 0) continue;
          nodes.push({ seq: nodes.length, tokens: 10, settled: left === 0 });
          owed.push(left);
        }
      }
      const hidden = { length: 0, tokens: 0, settled: true };
      const span = planSpan({ hidden, nodes }, newest ? "newest" : retain);
      const cuts = owed.flatMap((left, at) => (left === 0 ? [at + 1] : []));
      const most = newest ? nodes.length - 1 : nodes.length - Math.floor(retain / 10);
      expect(span?.end).toBe(cuts.filter((cut) => cut <= most).at(-1));
    }),
  );
});

test("a compacted session goes on with the model seeing the new surface, and its next request told by its usage", () => {
  const bench = new Bench(10_000)
    .talk("m1", 100, 100, { inputTokens: 9_000, outputTokens: 100 })
    .talk("m2")
    .openTurn();
  // The provider counted more than the estimate did.
  expect(bench.size).toBeGreaterThan(9_100);
  expect(bench.relieve()).toEqual({ changed: true });
  expect(bench.requests).toHaveLength(1);
});
