import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelOutcome } from "../../src/contracts/model.js";
import {
  compact,
  cancelAll,
  changeSchedule,
  configure,
  interrupt,
  killSessionJob,
  resume,
  sendMessage,
  suspend,
  writeTodos,
} from "../../src/domain/commands.js";
import { cancelAnswered } from "../../src/domain/session-jobs.js";
import {
  bodiesToStore,
  makeCheckpoint,
  maxCheckpointBytes,
  type Checkpoint,
} from "../../src/domain/checkpoint.js";
import { packCheckpoint } from "../../src/domain/checkpoint-pack.js";
import { fillBodies, restoreSession } from "../../src/domain/checkpoint-restore.js";
import { seenWindow } from "../../src/domain/inbox.js";
import { maxUnreadRecords } from "../../src/domain/jobs.js";

import { builtinPolicy } from "../../src/domain/policy.js";
import { fold, initialFolds, type Session } from "../../src/domain/session.js";
import { chain, emptyBase, hashNode, Surface } from "../../src/domain/surface.js";
import { TokenMeter } from "../../src/domain/token-meter.js";
import { logPage, viewOf } from "../../src/domain/views.js";
import { runTurn } from "../../src/domain/turn.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import { PureRun, surfaceOf, type Script } from "../support/pure-driver.js";
import { Archive } from "../support/roll-over.js";
import type { RecordedRequest } from "../support/witness.js";
import {
  calls,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
} from "../support/session-script.js";

const long = "long text ".repeat(1_000);

const actions = [
  "nothing",
  "nothing",
  "nothing",
  "followup",
  "steer",
  "inject",
  "long",
  "repeat",
  "interrupt",
  "cancel",
  "system",
  "todo",
  "reminder",
  "forget",
  "start",
  "settle",
  "kill",
  "suspend",
  "resume",
  "fire",
  "refused",
] as const;
type Action = (typeof actions)[number];

const call = fc.record({
  type: fc.constant("tool-call" as const),
  callId: fc.constantFrom("c1", "c2", "c3"),
  name: fc.constantFrom("p", "x", "todo_write", "unknown"),
  arguments: fc.constantFrom("{}", "{broken", '{"todos":[{"content":"a","status":"pending"}]}'),
});
const reply = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .array(call, { maxLength: 3 })
      .map((content): ModelOutcome => ({ kind: "reply", content, finish: "tool-calls" })),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<ModelOutcome>(text("said"), text("cut", "max-tokens"), text(long)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("SERVER" as const, "AUTH" as const).map((code): ModelOutcome => ({
      kind: "failure",
      failure: { code, message: "no" },
    })),
  },
);

interface Plan {
  readonly actions: readonly Action[];
  readonly replies: readonly ModelOutcome[];
  /** Step edges and idle moments, counted, at which the session rolls over, and how many entries travel along. */
  readonly rolls: readonly (readonly [at: number, carry: number])[];
}

const plan: fc.Arbitrary<Plan> = fc.record({
  actions: fc.array(fc.constantFrom(...actions), { maxLength: 60, size: "max" }),
  replies: fc.array(reply, { maxLength: 15, size: "max" }),
  rolls: fc.array(fc.tuple(fc.nat(25), fc.nat(4)), { maxLength: 6 }),
});

/** Thrown to leave a turn at a step edge, as the workflow's driver would for a roll-over. */
class Left extends Error {}

/** One session through a plan, with or without its roll-overs. */
class Life {
  readonly archive: Archive;
  session: Session;
  /** What the model was shown. */
  readonly requests: RecordedRequest[] = [];
  /** Roll-overs within a turn, and with entries that travelled along. */
  inTurns = 0;
  carried = 0;
  readonly #plan: Plan;
  readonly #rolls: Map<number, number>;
  readonly #replies: ModelOutcome[];
  #now = 1_000;
  #moment = 0;
  #at = 0;
  #accepted: string[] = [];

  constructor(given: Plan, rolls: Plan["rolls"], packed = true) {
    this.archive = new Archive({ packed });
    this.#plan = given;
    this.#rolls = new Map(rolls);
    this.#replies = [...given.replies];
    const opened = openJobSession([row("p", { parallel: true }), row("x")]);
    opened.record({
      type: "session/config",
      // An archived result is not at hand to be shortened; a summary is the same with or without it.
      data: { config: { ...opened.config, schedule: true, compaction: { prune: false } } },
    });
    this.session = this.#roll(opened, 0);
    this.session.routes = [{ provider: "scripted", model: "m", contextWindow: 1_000 }];
  }

  live(): this {
    send(this.session, "followup", "first");
    for (;;) {
      this.#edge();
      while (this.session.shouldRun() || this.session.folds.turn.open) this.#turn();
      if (this.#at >= this.#plan.actions.length) return this;
      this.#act();
    }
  }

  #turn(): void {
    const script: Script = {
      archived: this.archive.entries,
      model: () => this.#replies.shift() ?? text("done"),
      tools: { p: () => output("fine"), x: () => output(long) },
      at: (effect) => {
        if (effect.kind === "settle" && this.session.folds.turn.open) this.#edge(true);
        if (effect.kind !== "settle") this.#act();
      },
    };
    const driven = new PureRun(this.session, script);
    try {
      driven.drive(runTurn(this.session, builtinPolicy, () => 0.5));
    } catch (error) {
      if (!(error instanceof Left)) throw error;
    }
    this.requests.push(...driven.requests);
  }

  /** A place where a session may roll over. The first edge of a turn that goes on is the one it was left at. */
  #edge(inTurn = false): void {
    const { lastSeq } = this.session.log;
    if (lastSeq === this.#left) return;
    const carry = this.#rolls.get(this.#moment++);
    if (carry === undefined) return;
    this.#left = lastSeq;
    this.session = this.#roll(this.session, carry);
    if (this.session.log.entries.length > 0) this.carried += 1;
    if (inTurn) this.inTurns += 1;
    if (inTurn) throw new Left();
  }

  #left = -1;

  #roll(session: Session, carry: number): Session {
    session.effects.length = 0;
    return this.archive.rollOver(session, () => (this.#now += 1), session.config, carry);
  }

  #act(): void {
    const { session } = this;
    const index = this.#at++;
    const id = `m${index}`;
    const jobs = new JobsInSession(session);
    switch (this.#plan.actions[index] ?? "nothing") {
      case "followup":
      case "steer":
      case "inject":
        this.#accepted.push(id);
        return void send(session, this.#plan.actions[index] as "steer", id);
      case "long":
        return void send(session, "inject", id, long);
      case "repeat": {
        const [again] = this.#accepted;
        if (again === undefined) return undefined;
        const before = session.log.lastSeq;
        sendMessage(session, { id: again, mode: "inject", content: "other" });
        return expect(session.log.lastSeq).toBe(before);
      }
      case "interrupt":
        return void interrupt(session, {});
      case "cancel":
        return void cancelAll(session, {});
      case "system":
        return void configure(session, { config: { system: `${long} ${index}` } });
      case "todo":
        return void writeTodos(session, {
          opId: `o${index % 3}`,
          turn: session.folds.turn.number,
          todos: [{ content: id, status: "pending" }],
        });
      case "reminder":
        return void changeSchedule(session, {
          requestId: id,
          operation: "create",
          prompt: id,
          everySeconds: index % 3 === 0 ? 100 : 600,
        });
      case "forget":
        return void changeSchedule(session, {
          requestId: id,
          operation: "delete",
          id: `schedule-${index % 4}`,
        });
      case "start":
        return void (jobs.live.length < 5 && jobs.start(index % 2 === 0 ? "bash" : "sum"));
      case "settle": {
        const [job] = jobs.live;
        return (
          job &&
          jobs.settle(job.id, {
            status: "completed",
            ...(job.form === "final" ? { output: long } : {}),
          })
        );
      }
      case "kill": {
        const job = jobs.live.at(-1);
        if (job) killSessionJob(session, { opId: id, jobId: job.id });
        for (const effect of session.effects.splice(0))
          if (effect.kind === "cancel-job") cancelAnswered(session, effect, { kind: "done" });
        return undefined;
      }
      case "suspend":
        return void suspend(session);
      case "resume":
        return void resume(session);
      case "refused":
        return void sendMessage(session, { id: "job/x", mode: "inject", content: "x" });
      default:
        return undefined;
    }
  }
}

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** What must hold of a session in any run. */
function expectWhole({ archive, session }: Life): void {
  const entries = archive.whole(session);
  expect(session.fault).toBeUndefined();
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
  expect(session.folds).toEqual(entries.reduce(fold, initialFolds));
  const surface = surfaceOf(entries);
  expect([session.log.surface.length, session.log.surface.digest()]).toEqual([
    surface.length,
    surface.digest(),
  ]);
  const meter = new TokenMeter().follow(entries);
  const own = session.meter.follow(session.log.entries);
  expect(own.hidden.length + own.nodes.length).toBe(surface.length);
  expect(own.nodes).toEqual(meter.nodes.slice(own.hidden.length));
  expect(own.total(session.folds.header)).toBe(meter.total(session.folds.header));
}

describe("[harness/K12] checkpoint then continue = continue", () => {
  test(
    "after roll-overs at any step edges and idle moments of any life the log, the folds and the surface are those of a life without",
    { timeout: 300_000 },
    () => {
      fc.assert(
        fc.property(plan, (given) => {
          const still = new Life(given, []).live();
          expectWhole(still);
          for (const packed of [false, true]) {
            const rolled = new Life(given, given.rolls, packed).live();
            expectWhole(rolled);
            expect(json(rolled.archive.whole(rolled.session))).toEqual(
              json(still.archive.whole(still.session)),
            );
            expect(rolled.requests).toEqual(still.requests);
            expect(rolled.session.folds).toEqual(still.session.folds);
            expect(rolled.session.state()).toBe(still.session.state());
            for (const size of rolled.archive.sizes)
              expect(size).toBeLessThanOrEqual(maxCheckpointBytes);
          }
        }),
        { numRuns: 100 },
      );
    },
  );

  test("the plans reach what they are about", { timeout: 300_000 }, () => {
    const reached = new Set<string>();
    for (const given of fc.sample(plan, { numRuns: 150, seed: 3 })) {
      const life = new Life(given, given.rolls).live();
      const { archive } = life;
      if (archive.sizes.length > 2) reached.add("several");
      if (archive.fetched > 0) reached.add("bodies");
      if (life.inTurns > 0) reached.add("in-turn");
      if (life.carried > 0) reached.add("carried");
      for (const { type } of archive.whole(life.session)) reached.add(type);
      if (life.session.folds.inbox.nextStep.length > 0) reached.add("pending");
    }
    const wanted =
      `several bodies in-turn carried pending job/settled job/stopping schedule/change schedule/rejected todo/write
      todo/rejected session/interrupt session/live session/config tool/result llm/retry
      compaction/summary`.split(/\s+/u);
    expect(wanted.filter((what) => !reached.has(what))).toEqual([]);
  });
});

/** A session with something in every part. */
function furnished(): Session {
  const session = openJobSession([row("p")]);
  session.record({
    type: "session/config",
    data: { config: { ...session.config, schedule: true } },
  });
  session.routes = [{ provider: "scripted", model: "m", contextWindow: 1_000 }];
  send(session, "followup", "m1");
  run(session, {
    model: saying(
      calls("p", {
        name: "todo_write",
        callId: "c9",
        arguments: '{"todos":[{"content":"a","status":"pending"}]}',
      }),
    ),
  });
  const jobs = new JobsInSession(session);
  const done = jobs.start("sum");
  jobs.start();
  jobs.settle(done, { status: "completed", output: "42" });
  changeSchedule(session, { requestId: "r", operation: "create", prompt: "p", afterSeconds: 60 });
  send(session, "inject", "waiting");
  session.effects.length = 0;
  return session;
}

interface Wire {
  [part: string]: any;
}

function checkpointOf(session: Session, to = session.log.lastSeq, packed = false): Wire {
  const stored = new Set(bodiesToStore(session, packed).keys());
  const made = makeCheckpoint(session, { to, stored, segment: "s", packed });
  if (!made.ok) throw new Error(made.message);
  return json(made.checkpoint) as Wire;
}

const context = { id: "s1", now: () => 5, config: openSession().config };

describe("a checkpoint", () => {
  const session = furnished();
  const good = checkpointOf(session, session.log.lastSeq - 2);
  const packedGood = checkpointOf(session, session.log.lastSeq - 2, true);

  test.each([1, 2])(
    "of version %i restores every part, and what the session itself must not forget",
    (v) => {
      session.closing = { reason: "enough" };
      session.refreshTools = true;
      session.heard.set("bash-1", 77);
      const wire = checkpointOf(session, session.log.lastSeq, v === 2);
      const { session: next, missing, segment } = restoreSession(wire, context);
      session.closing = undefined;
      expect(wire["v"]).toBe(v);
      expect([missing, segment]).toEqual([[], "s"]);
      expect(next.folds).toEqual(session.folds);
      expect([next.fault, next.closing, next.refreshTools, next.routes]).toEqual([
        undefined,
        { reason: "enough" },
        true,
        session.routes,
      ]);
      expect([...next.heard]).toEqual([...session.heard]);
      // These belong to a run.
      expect([next.answeredAt, next.waits.live, next.released.size, next.effects]).toEqual([
        undefined,
        [],
        0,
        [],
      ]);
      expect(next.log.lastSeq).toBe(session.log.lastSeq);
      expect(next.log.entries).toEqual([]);
      expect(next.log.at(3)).toBeUndefined();
    },
  );

  test("remembers the verdicts on ids: the same message again is a repeat, another one under its id a duplicate", () => {
    const { session: next } = restoreSession(good, context);
    const { lastSeq } = next.log;
    const first = session.folds.inbox.seen.find(({ id }) => id === "m1");
    expect(send(next, "followup", "m1")).toEqual({ ok: true, id: "m1", seq: first?.seq });
    expect(send(next, "followup", "m1", "other")).toMatchObject({ code: "DUPLICATE_ID" });
    expect(next.log.lastSeq).toBe(lastSeq);
  });

  test("is refused while work is on its way, within a step, and where the archive is behind a replacement", () => {
    const busy = furnished();
    const at = { to: busy.log.lastSeq, stored: new Set<string>(), segment: "s" };
    busy.effects.push({ kind: "bind", epoch: 1 });
    expect(makeCheckpoint(busy, at)).toMatchObject({
      code: "INVARIANT",
      message: "work of this run is still on its way",
    });
    busy.effects.length = 0;
    busy.waits = { live: [{ wait: "w", job: "j" }] };
    expect(makeCheckpoint(busy, at)).toMatchObject({ code: "INVARIANT" });
    busy.waits = { live: [] };
    expect(makeCheckpoint(busy, { ...at, to: busy.log.lastSeq + 1 })).toMatchObject({
      code: "INVARIANT",
    });
    const [node] = busy.log.surface.nodes;
    busy.record({
      type: "user/message",
      surfaceOp: { op: "replace", start: 0, end: 1 },
      sourceEventSeqs: [node?.seq ?? -1],
      data: { message: { id: "r", role: "user", content: [], source: { kind: "user" } } },
    });
    expect(makeCheckpoint(busy, at)).toMatchObject({
      message: expect.stringContaining("archive it first"),
    });
    busy.record(
      { type: "turn/start", data: { turn: 2 } },
      { type: "step/start", data: { turn: 2, step: 1 } },
    );
    expect(makeCheckpoint(busy, { ...at, to: busy.log.lastSeq })).toMatchObject({
      message: "a step is open",
    });
  });

  test("tells long texts by name: they come from the archive or travel along, and damage is refused", () => {
    const full = furnished();
    send(full, "inject", "l1", long);
    send(full, "inject", "l2", long.toUpperCase());
    const bodies = bodiesToStore(full);
    expect(bodies.size).toBe(2);
    // The second one came after the archive was made.
    const stored = new Set([...bodies.keys()].slice(0, 1));
    const made = makeCheckpoint(full, { to: full.log.lastSeq - 1, stored, segment: "s" });
    if (!made.ok) throw new Error(made.message);
    expect(JSON.stringify(made.checkpoint).split(long).length).toBe(1);
    expect(JSON.stringify(made.checkpoint).split(long.toUpperCase()).length).toBe(2);
    const { session: next, missing } = restoreSession(json(made.checkpoint), context);
    expect(missing).toEqual([...stored]);
    const [digest = ""] = missing;
    const before = next.folds;
    expect(fillBodies(next, new Map())).toMatchObject({ code: "LOG_CORRUPT" });
    expect(fillBodies(next, new Map([[digest, '"other"']]))).toMatchObject({ code: "LOG_CORRUPT" });
    expect(next.folds).toBe(before);
    expect(fillBodies(next, bodies)).toEqual({ ok: true });
    expect(next.folds).toEqual(full.folds);
  });

  test("a text that looks like a name of one is kept as it is, also half of a character", () => {
    const odd = furnished();
    for (const [index, said] of [`\u0000body:${"0".repeat(64)}`, `\ud800${long}`].entries())
      send(odd, "inject", `odd${index}`, said);
    const archive = new Archive();
    expect(archive.rollOver(odd, () => 1, odd.config).folds).toEqual(odd.folds);
    expect(archive.fetched).toBe(2);
  });

  test("that would be too large takes shorter texts out first, and is refused with its largest part", () => {
    const large = furnished();
    for (let index = 0; index < 100; index += 1)
      changeSchedule(large, {
        requestId: `r${index}`,
        operation: "create",
        prompt: `${index} ${"x".repeat(4_000)}`,
        afterSeconds: 60,
      });
    for (let index = 0; index < 2_000; index += 1)
      send(large, "inject", `${index}-${"i".repeat(190)}`, "y".repeat(300));
    const bodies = bodiesToStore(large);
    expect(bodies.size).toBeGreaterThan(90);
    const at = { to: large.log.lastSeq, segment: "s" };
    const made = makeCheckpoint(large, { ...at, stored: new Set(bodies.keys()) });
    expect(made).toMatchObject({
      ok: false,
      code: "CHECKPOINT_TOO_LARGE",
      message: expect.stringMatching(/the largest part is inbox with \d+$/u),
    });
    cancelAll(large, {});
    const smaller = makeCheckpoint(large, {
      ...at,
      to: large.log.lastSeq,
      stored: new Set(bodiesToStore(large).keys()),
    });
    expect(smaller).toMatchObject({ ok: true });
    expect(smaller.ok && smaller.bytes).toBeLessThanOrEqual(maxCheckpointBytes);
  });

  test("holds a thousand jobs that nobody read, with long labels, beside a full window of ids", () => {
    const full = openJobSession();
    for (let index = 1; index <= maxUnreadRecords; index += 1) {
      const id = `bash-${index}`;
      full.record({
        type: "job/start",
        data: {
          id,
          kind: "bash",
          label: `${index} ${"l".repeat(1_000)}`,
          startedAt: 1_796_065_780_081,
          output: "stream",
          nonce: "1a0ac58101f6",
          opId: "j-mx3nokma-0749ada1e4e0",
          owner: { session: full.id, token: `${full.id}:${"t".repeat(36)}` },
        },
      });
      full.record({
        type: "job/settled",
        data: { id, status: "completed", detail: "exit code: 0", finishedAt: 1_796_065_780_081 },
      });
    }
    cancelAll(full, {});
    for (let index = 0; index < seenWindow; index += 1) {
      send(full, "inject", `${index}-${"i".repeat(90)}`);
      if (index % 10 === 9) cancelAll(full, {});
    }
    full.effects.length = 0;
    const archive = new Archive();
    const next = archive.rollOver(full, () => 1, full.config);
    expect(archive.sizes[0]).toBeLessThanOrEqual(maxCheckpointBytes);
    expect(next.folds).toEqual(full.folds);
  });

  test("of an earlier release, whose jobs hold their owners and whose ids are objects, is read", () => {
    const { folds } = session;
    expect(folds.jobs.jobs.some(({ owner }) => owner !== undefined)).toBe(true);
    const jobs = { counters: folds.jobs.counters, jobs: folds.jobs.jobs, heard: [] };
    const earlier = set({ ...good, jobs }, "inbox", "seen", folds.inbox.seen);
    const restored = restoreSession(json(earlier), context).session;
    expect(restored.fault).toBeUndefined();
    expect([restored.folds.jobs, restored.folds.inbox]).toEqual([folds.jobs, folds.inbox]);
  });

  const damage: readonly (readonly [string, (wire: Wire) => unknown])[] = [
    ["no object", () => "x"],
    ["another version", (wire) => ({ ...wire, v: 3 })],
    ["no version", (wire) => without(wire, "v")],
    ["another session", (wire) => ({ ...wire, session: "other" })],
    ["no log", (wire) => without(wire, "log")],
    ["a negative seq", (wire) => set(wire, "log", "seq", -1)],
    [
      "a digest that is none",
      (wire) =>
        set(wire, "log", "surface", { ...wire["log"].surface, hidden: { seqs: "", digest: "x" } }),
    ],
    [
      "nodes after their log",
      (wire) =>
        set(wire, "log", "surface", { ...wire["log"].surface, stubs: [[9_999, "0".repeat(64)]] }),
    ],
    [
      "distances that are none",
      (wire) =>
        set(wire, "log", "surface", {
          ...wire["log"].surface,
          hidden: { seqs: "1 x", digest: "" },
        }),
    ],
    [
      "a carried entry too few",
      (wire) => set(wire, "log", "carried", wire["log"].carried.slice(1)),
    ],
    [
      "a carried entry that is broken",
      (wire) => set(wire, "log", "carried", [{ ...wire["log"].carried[0], data: { target: "x" } }]),
    ],
    [
      "a meter of another surface",
      (wire) => set(wire, "log", "meter", { ...wire["log"].meter, nodes: [] }),
    ],
    ["an inbox without its window", (wire) => set(wire, "inbox", "seen", undefined)],
    [
      "a message without an id",
      (wire) =>
        set(wire, "inbox", "nextStep", [{ role: "user", content: [], source: { kind: "user" } }]),
    ],
    ["wakes that are none", (wire) => set(wire, "inbox", "wakes", { spent: -1, owed: [] })],
    ["a strange key of the inbox", (wire) => set(wire, "inbox", "extra", 1)],
    [
      "a job of unknown status",
      (wire) => set(wire, "jobs", "jobs", [{ ...wire["jobs"].jobs[0], status: "lost" }]),
    ],
    ["a job of nobody's", (wire) => set(wire, "jobs", "owners", [])],
    ["jobs without counters", (wire) => set(wire, "jobs", "counters", null)],
    [
      "a todo list that is none",
      (wire) => set(wire, "todo", "todos", [{ content: "a", status: "done" }]),
    ],
    [
      "a turn without a number",
      (wire) => set(wire, "state", "turn", { ...wire["state"].turn, number: "1" }),
    ],
    [
      "a configuration that cannot be",
      (wire) => set(wire, "state", "config", { ...wire["state"].config, limits: {} }),
    ],
    [
      "tools that are none",
      (wire) => set(wire, "state", "place", { ...wire["state"].place, tools: [{ name: "t" }] }),
    ],
  ];

  const packedDamage: typeof damage = [
    ...damage.flatMap(([what, change]): typeof damage => {
      const broken = change(structuredClone(good)) as Wire;
      const isOne = broken["v"] === 1;
      return isOne
        ? [[`${what}, packed`, () => packCheckpoint(broken as unknown as Checkpoint)]]
        : [];
    }),
    ["columns of no number", () => ({ ...packedGood, log: { "\u0000": ["int", "x"] } })],
    ["a repeat that is not there", () => ({ ...packedGood, state: "\u0000=99" })],
    ["no repeats", () => without(packedGood, "repeats")],
    ["version 1 said of version 2", () => ({ ...packedGood, v: 1 })],
  ];

  test.each([...damage, ...packedDamage])(
    "that is broken parks the session, which can be looked at and takes nothing: %s",
    (_, change) => {
      const restored = restoreSession(json(change(structuredClone(good))), context);
      const next = restored.session;
      expect(next.fault).toMatchObject({
        ok: false,
        code: expect.stringMatching(/^LOG_/u),
        message: expect.not.stringContaining("\n"),
      });
      expect(next.state()).toBe("faulted");
      expect(next.shouldRun()).toBe(false);
      expect(viewOf(next, undefined)).toMatchObject({ id: "s1", state: "faulted" });
      expect(logPage(next, { after: -1, limit: 10 }).state).toBe("faulted");
      expect(send(next, "followup", "new")).toMatchObject({ code: "SESSION_FAULTED" });
      expect(json(next.folds)).toEqual(json(next.folds));
    },
  );

  test("[schedule/T18] with a broken schedule has no reminders, and all else goes on", () => {
    for (const schedule of [
      undefined,
      1,
      { ...good["schedule"], seen: { ranges: [], others: [] } },
      { ...good["schedule"], extra: 1 },
      { "\u0000": ["rows"] },
    ]) {
      const wire = schedule === undefined ? good : packedGood;
      const { session: next } = restoreSession({ ...wire, schedule }, context);
      expect(next.fault).toBeUndefined();
      expect(next.folds.schedule.fault).toMatch(/^checkpoint: /u);
      expect({ ...next.folds, schedule: 0 }).toEqual({ ...session.folds, schedule: 0 });
      send(next, "followup", "go on");
      expect(next.shouldRun()).toBe(true);
    }
  });

  test("whatever it is, restoring does not throw", () => {
    const keys = Object.keys(good);
    fc.assert(
      fc.property(
        fc.constantFrom(...keys),
        fc.anything(),
        fc.option(
          fc.constantFrom(
            "seq",
            "surface",
            "carried",
            "meter",
            "recall",
            "nextTurn",
            "seen",
            "wakes",
            "jobs",
            "counters",
            "heard",
            "todos",
            "turn",
            "place",
            "config",
            "routes",
            "header",
            "fault",
            "closing",
          ),
        ),
        (key, value, inner) => {
          const part = inner === null ? value : { ...good[key], [inner]: value };
          const { session: next } = restoreSession({ ...good, [key]: part }, context);
          expect(next.state()).toBeDefined();
          expect(viewOf(next, undefined).id).toBe("s1");
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

function without(wire: Wire, part: string): Wire {
  return Object.fromEntries(Object.entries(wire).filter(([key]) => key !== part));
}

function set(wire: Wire, part: string, key: string, value: unknown): Wire {
  return { ...wire, [part]: { ...wire[part], [key]: value } };
}

describe("a transcript longer than what is known node by node", () => {
  const opened = openSession();
  opened.routes = [{ provider: "scripted", model: "m", contextWindow: 100_000 }];
  for (let index = 0; index < 300; index += 1) {
    send(opened, "followup", `m${index}`, `message ${index}`);
    run(opened, {
      model: saying({
        ...text("reply"),
        usage: { inputTokens: 100 + index, outputTokens: 2 },
      } as ModelOutcome),
    });
  }

  test("is carried small, with the same digest and the same size, also over a second roll-over", () => {
    const archive = new Archive();
    const first = archive.rollOver(opened, () => 1, opened.config);
    send(first, "followup", "n1", "new");
    run(first, { archived: archive.entries });
    const second = archive.rollOver(first, () => 1, first.config);
    expect(Math.max(...archive.sizes)).toBeLessThan(120_000);
    expect(second.log.surface.nodes).toEqual([]);
    expect(second.meter.hidden.length).toBe(102);
    const whole = archive.whole(second);
    expect(second.log.surface.digest()).toBe(surfaceOf(whole).digest());
    const meter = new TokenMeter().follow(whole);
    expect(second.meter.total(undefined)).toBe(meter.total(undefined));
    expect(second.meter.total(second.folds.header)).toBe(meter.total(second.folds.header));
  });

  test("[harness/H9] is compacted by a run that has none of it, and the next request is the log's", () => {
    const archive = new Archive();
    const next = archive.rollOver(opened, () => 1, opened.config);
    compact(next, { opId: "now" });
    const { begun } = run(next, { summary: () => text("all of it"), archived: archive.entries });
    const before = surfaceOf(archive.entries).nodes;
    const digest = before.slice(0, 599).reduce((of, node) => chain(of, hashNode(node)), emptyBase);
    expect(begun.map(({ op }) => op)).toMatchObject([{ kind: "summary", length: 599, digest }]);
    const surface = surfaceOf(archive.whole(next));
    expect(surface.length).toBe(2);
    expect(next.log.surface.digest()).toBe(surface.digest());
    send(next, "followup", "after");
    const { requests: shown } = run(next, { archived: archive.entries });
    expect(shown[0]?.messages).toHaveLength(3);
    expect(next.fault).toBeUndefined();
  });

  test("whose compaction was asked for while it left is compacted by the next run, once", () => {
    for (const carry of [0, 1]) {
      const archive = new Archive();
      const first = archive.rollOver(opened, () => 1, opened.config);
      const asked = compact(first, { opId: "now" });
      const next = archive.rollOver(first, () => 1, opened.config, carry);
      expect(next.compacting).toBe(true);
      expect(compact(next, { opId: "now" })).toEqual(asked);
      expect(compact(next, { opId: "other" })).toMatchObject({ code: "BUSY" });
      run(next, { summary: () => text("all of it"), archived: archive.entries });
      expect(next.log.surface.length).toBe(2);
      const later = archive.rollOver(next, () => 1, opened.config);
      expect(compact(later, { opId: "now" })).toEqual(asked);
      expect(later.compacting).toBe(false);
      expect(later.fault).toBeUndefined();
    }
  });
});

describe("a surface that starts from a base", () => {
  const node = (seq: number) =>
    ({
      type: "user/message",
      seq,
      time: 0,
      surfaceOp: "append",
      data: { message: { id: `n${seq}`, role: "user", content: [], source: { kind: "user" } } },
    }) as LogEntry;
  const replace = (seq: number, start: number, end: number, cited: readonly number[]) =>
    ({
      ...node(seq),
      surfaceOp: { op: "replace", start, end },
      sourceEventSeqs: cited,
    }) as LogEntry;

  test("has the digest of the whole one, wherever it is cut and whatever is replaced after", () => {
    const action = fc.record({ start: fc.nat(20), size: fc.integer({ min: 0, max: 6 }) });
    fc.assert(
      fc.property(
        fc.array(action, { maxLength: 30 }),
        fc.nat(30),
        fc.nat(8),
        (steps, cut, stubs) => {
          const whole = new Surface();
          let based: Surface | undefined;
          for (const [seq, { start, size }] of steps.entries()) {
            if (seq === cut) based = new Surface(json(whole.baseAt(whole.length, stubs)) as never);
            const end = Math.min(whole.length, start + size);
            const entry =
              end > start ? replace(seq, start, end, whole.seqsTo(end).slice(start)) : node(seq);
            // What cuts through the hidden part is refused; the whole one then takes an append too.
            const taken = based?.check(entry) === undefined ? entry : node(seq);
            expect(whole.check(taken)).toBeUndefined();
            whole.apply(taken);
            based?.apply(taken);
          }
          if (based === undefined) return;
          expect([based.length, based.digest()]).toEqual([whole.length, whole.digest()]);
          expect(based.seqsTo(based.length)).toEqual(whole.seqsTo(whole.length));
          expect(based.digest()).toBe(
            whole.nodes.reduce((digest, one) => chain(digest, hashNode(one)), emptyBase),
          );
          for (const { seq } of based.nodes)
            expect(based.positionOf(seq)).toBe(whole.positionOf(seq));
          const again = new Surface(based.baseAt(based.length, 2));
          expect(again.digest()).toBe(whole.digest());
        },
      ),
    );
  });

  test("takes a replacement that holds all hidden nodes or none, citing each, and changes no archived result", () => {
    const whole = new Surface();
    for (let seq = 0; seq < 6; seq += 1) whole.apply(node(seq));
    const based = new Surface(whole.baseAt(6, 2));
    expect(based.check(replace(6, 0, 2, [0, 1]))).toContain("cuts through the 4 oldest nodes");
    expect(based.check(replace(6, 3, 5, [3, 4]))).toContain("cuts through");
    expect(based.check(replace(6, 0, 5, [0, 1, 2, 4]))).toContain("missing 3");
    expect(based.check(replace(6, 0, 5, [0, 1, 2, 3, 4]))).toBeUndefined();
    expect(based.check(replace(6, 4, 6, [4, 5]))).toBeUndefined();
    expect(based.check({ ...replace(6, 5, 6, [5]), type: "tool/result" } as LogEntry)).toContain(
      "only the content",
    );
    expect(based.nodes).toEqual([]);
  });
});
