import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultCompactionConfig, type CompactionConfig } from "../../src/contracts/compaction.js";
import type { ModelOutcome } from "../../src/contracts/model.js";
import {
  compactNow,
  recoverOverflow,
  relievePressure,
  type Compaction,
  type CompactionResult,
  type SummaryRequest,
} from "../../src/domain/compaction.js";
import { budgetOf, loadCompactionConfig, policyOf } from "../../src/domain/compaction-config.js";
import { openBracket, planSpan } from "../../src/domain/compaction-plan.js";
import type { Loop } from "../../src/domain/effects.js";
import { Session } from "../../src/domain/session.js";
import { deriveMessages } from "../../src/domain/surface.js";
import { TokenMeter, type NodeMeasure } from "../../src/domain/token-meter.js";
import { digestFromScratch, PureRun } from "../support/pure-driver.js";
import {
  calls,
  entriesOf,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
  typesOf,
} from "../support/session-script.js";

const words = (count: number): string => "word".repeat(count);

/** A session and its compaction; the summariser is the test's. */
class Bench {
  readonly session: Session;
  readonly meter = new TokenMeter();
  readonly requests: SummaryRequest[] = [];
  config: CompactionConfig;
  outcome: ModelOutcome = text("what happened");
  /** What happens while the model writes. */
  during: () => void = () => {};

  constructor(contextWindow: number, config: Partial<CompactionConfig> = {}) {
    this.session = openSession({}, [row("t")]);
    this.session.routes = [{ provider: "scripted", model: "m", contextWindow }];
    this.config = { ...defaultCompactionConfig, ...config };
  }

  /** A turn of one message and one reply. */
  talk(id: string, said = 100, replied = 100, usage?: object): this {
    send(this.session, "followup", id, words(said));
    const reply = { ...text(words(replied)), ...(usage === undefined ? {} : { usage }) };
    run(this.session, { model: saying(reply) });
    return this;
  }

  /** A turn that calls a tool with a result so long. */
  work(id: string, said: string): this {
    send(this.session, "followup", id, id);
    run(this.session, {
      model: saying(calls("t")),
      tools: { t: () => output(said, { meta: { n: 1 } }) },
    });
    return this;
  }

  openTurn(): this {
    this.session.record({ type: "turn/start", data: { turn: this.session.folds.turn.number + 1 } });
    return this;
  }

  relieve(): CompactionResult {
    return this.#drive(relievePressure(this.session, this.#compaction()));
  }

  recover(tried = 0): CompactionResult {
    return this.#drive(recoverOverflow(this.session, this.#compaction(), tried));
  }

  now(): CompactionResult {
    return this.#drive(compactNow(this.session, this.#compaction()));
  }

  get messages(): readonly string[] {
    return deriveMessages(this.session.log.surface.nodes).map(({ id }) => id);
  }

  get size(): number {
    return this.meter.follow(this.session.log.entries).total(this.session.folds.header);
  }

  #compaction(): Compaction {
    const { config, meter } = this;
    return { config, meter, summarize: (request) => this.#summarize(request) };
  }

  *#summarize(request: SummaryRequest): Loop<ModelOutcome> {
    this.requests.push(request);
    expect(request.digest).toBe(digestFromScratch(this.session, request.length));
    yield { kind: "settle" };
    this.during();
    return this.outcome;
  }

  #drive(loop: Loop<CompactionResult>): CompactionResult {
    let result: CompactionResult | undefined;
    function* keep(): Loop<void> {
      result = yield* loop;
    }
    new PureRun(this.session, {}).drive(keep());
    expect(this.session.fault).toBeUndefined();
    expect(openBracket(this.session.log.entries)).toBeUndefined();
    expect(this.session.log.surface.digest()).toBe(digestFromScratch(this.session));
    // What is kept as it grows is what is measured anew.
    const fresh = new TokenMeter().follow(this.session.log.entries).state;
    expect(this.meter.follow(this.session.log.entries).state).toEqual(fresh);
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
    bench.config = defaultCompactionConfig;
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
    expect(entriesOf(bench.session, "compaction/end")[0]?.data.turn).toBe(null);
    const { lastSeq } = bench.session.log;
    expect(bench.now()).toEqual({ changed: false });
    expect(bench.session.log.lastSeq).toBe(lastSeq);
    expect(new Bench(1_000).now()).toEqual({ changed: false });
  });

  test("[harness/K10] [harness/K9] what comes in meanwhile waits, and stands behind the summary", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2");
    bench.during = () => {
      send(bench.session, "inject", "context");
      send(bench.session, "followup", "m3");
    };
    expect(bench.now()).toEqual({ changed: true });
    const [summary, kept] = bench.messages;
    const { requests } = run(bench.session);
    expect(requests[0]?.messages).toMatchObject(
      [summary, kept, "context", "m3"].map((id) => ({ id })),
    );
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

  test("one at a time, and never in a turn", () => {
    const bench = new Bench(100_000).talk("m1").talk("m2").openTurn();
    expect(bench.now()).toMatchObject({ problem: "busy" });
    const other = new Bench(100_000).talk("m1").talk("m2");
    let inner: CompactionResult | undefined;
    other.during = () => {
      other.during = () => {};
      const loop = compactNow(other.session, {
        config: other.config,
        meter: new TokenMeter(),
        summarize: () => {
          throw new Error("asked");
        },
      });
      inner = loop.next().value as CompactionResult;
    };
    expect(other.now()).toEqual({ changed: true });
    expect(inner).toMatchObject({ problem: "busy" });
  });

  test("[harness/K8] a bracket that a seed left open is dead, one that is open in this life is the lock", () => {
    const { session } = new Bench(100_000);
    session.record({ type: "compaction/start", data: { compactionId: "x", turn: null } });
    expect(openBracket(session.log.entries)).toBe("x");
    session.record({ type: "session/end-seed", data: {} });
    expect(openBracket(session.log.entries)).toBeUndefined();
  });
});

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
