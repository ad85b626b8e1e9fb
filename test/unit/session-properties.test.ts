import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../src/contracts/config.js";
import type { AssistantBlock } from "../../src/contracts/content.js";
import type { FinishReason, ModelOutcome } from "../../src/contracts/model.js";
import type { ToolOutcome } from "../../src/contracts/tools.js";
import { cancelAll, close, configure, interrupt, writeTodos } from "../../src/domain/commands.js";
import type { ToolSettled } from "../../src/domain/effects.js";
import { builtinPolicy, type SessionPolicy } from "../../src/domain/policy.js";
import type { Session } from "../../src/domain/session.js";
import { expectSoundLog, messageFates } from "../support/log-invariants.js";
import { PureRun, type Script } from "../support/pure-driver.js";
import { entriesOf, openSession, output, row, send } from "../support/session-script.js";
import { compareRequests, witnessRequests } from "../support/witness.js";

/** What may come from outside between two effects. `settle` lets work end early. */
const action = fc.oneof(
  { weight: 12, arbitrary: fc.constant("nothing" as const) },
  {
    weight: 3,
    arbitrary: fc.constantFrom("followup" as const, "steer" as const, "inject" as const),
  },
  { weight: 2, arbitrary: fc.constant("settle" as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("interrupt", "cancel", "refresh", "system", "todo", "repeat"),
  },
);

const call = fc.record({
  type: fc.constant("tool-call" as const),
  callId: fc.constantFrom("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "odd id"),
  name: fc.constantFrom("p", "p", "p", "x", "todo_write", "unknown", "denied"),
  arguments: fc.constantFrom(
    "",
    "{}",
    "{broken",
    '{"todos":[{"content":"a","status":"pending"}]}',
    '{"todos":1}',
  ),
});
const said = fc.record({ type: fc.constant("text" as const), text: fc.string({ maxLength: 3 }) });
const content: fc.Arbitrary<AssistantBlock[]> = fc.array(
  fc.oneof({ weight: 3, arbitrary: call }, { weight: 1, arbitrary: said }),
  {
    maxLength: 7,
  },
);
const reply: fc.Arbitrary<ModelOutcome> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("reply" as const),
      content,
      finish: fc.constantFrom<FinishReason>(
        "stop",
        "tool-calls",
        "tool-calls",
        "max-tokens",
        "content-filter",
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("SERVER", "AUTH", "TIMEOUT", "SURFACE_MISMATCH").map((code) => ({
      kind: "failure" as const,
      failure: { code: code as "SERVER", message: "failed" },
    })),
  },
  {
    weight: 1,
    arbitrary: content.map((blocks) => ({ kind: "cancelled" as const, content: blocks })),
  },
);
const toolEnd: fc.Arbitrary<ToolOutcome | ToolSettled> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(output("fine", { meta: { exitCode: 0 } })) },
  { weight: 1, arbitrary: fc.constant(output("more", { additionalContexts: ["a", "b"] })) },
  { weight: 1, arbitrary: fc.constant(output("enough", { concludesTurn: true })) },
  { weight: 1, arbitrary: fc.constant({ ...output("Error: boom"), isError: true }) },
  { weight: 1, arbitrary: fc.constant({ kind: "unstarted" } as const) },
  {
    weight: 1,
    arbitrary: fc.constant({ kind: "outcome", outcome: null } as unknown as ToolSettled),
  },
);

interface Plan {
  readonly actions: readonly string[];
  readonly replies: readonly ModelOutcome[];
  readonly toolEnds: readonly (ToolOutcome | ToolSettled)[];
  readonly picks: readonly number[];
  readonly pool: number;
  readonly knownRoute: boolean;
  readonly closeAt: number;
  readonly objections: number;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  actions: fc.array(action, { maxLength: 80, size: "max" }),
  replies: fc.array(reply, { maxLength: 12, size: "max" }),
  toolEnds: fc.array(toolEnd, { maxLength: 30, size: "max" }),
  picks: fc.array(fc.nat(9), { maxLength: 60, size: "max" }),
  pool: fc.integer({ min: 1, max: 4 }),
  knownRoute: fc.boolean(),
  closeAt: fc.nat(400),
  objections: fc.nat(2),
});

/** A session with everything that can come at it from outside, in the order of a plan. */
class Storm {
  readonly session: Session;
  readonly run: PureRun;
  readonly accepted: string[] = [];
  readonly #plan: Plan;
  #boundary = 0;
  #tools = 0;
  #picks = 0;
  #objections: number;

  constructor(given: Plan) {
    this.#plan = given;
    this.#objections = given.objections;
    const limits = { ...defaultLimits, maxParallelToolCalls: given.pool, maxModelRetries: 2 };
    this.session = openSession({ limits, deny: ["denied"] }, [
      row("p", { parallel: true }),
      row("x"),
      row("denied"),
    ]);
    if (given.knownRoute) this.session.routes = [{ provider: "scripted", model: "m" }];
    const replies = [...given.replies];
    const script: Script = {
      at: () => this.step(),
      model: () => replies.shift() ?? { kind: "reply", content: [], finish: "stop" },
      tools: { p: () => this.#toolEnd(), x: () => this.#toolEnd() },
      pick: (open) => open[(given.picks[this.#picks++] ?? 0) % Math.max(1, open.length)],
      table: () => this.session.folds.place.tools.toReversed(),
      policy: this.#policy(),
    };
    this.run = new PureRun(this.session, script);
  }

  /** Lets things come in while the session is idle, and runs what they wake, until the plan is used up. */
  blow(): void {
    this.#send("followup");
    this.run.untilIdle();
    while (this.#boundary < this.#plan.actions.length) {
      this.step();
      this.run.untilIdle();
    }
  }

  step(): void {
    const { actions, closeAt } = this.#plan;
    const now = this.#boundary;
    this.#boundary += 1;
    const { session } = this;
    if (now === closeAt) close(session, {});
    switch (actions[now] ?? "nothing") {
      case "followup":
        return this.#send("followup");
      case "steer":
        return this.#send("steer");
      case "inject":
        return this.#send("inject");
      case "repeat": {
        const { lastSeq } = session.log;
        const [id] = this.accepted;
        if (id !== undefined) send(session, "followup", id, id.startsWith("bad") ? "bad" : id);
        expect(session.log.lastSeq).toBe(lastSeq);
        return undefined;
      }
      case "settle": {
        const [op] = this.run.open;
        if (op !== undefined) this.run.settle(op.key);
        return undefined;
      }
      case "interrupt":
        return void interrupt(session, {});
      case "cancel":
        return void cancelAll(session, { reason: "parent" });
      case "refresh":
        return void configure(session, { refreshTools: true });
      case "system":
        return void configure(session, { config: { system: `system ${now}` } });
      case "todo":
        return void writeTodos(session, {
          opId: `op${now}`,
          turn: session.folds.turn.number,
          todos: [],
        });
      default:
        return undefined;
    }
  }

  #send(mode: "followup" | "steer" | "inject"): void {
    const kinds = ["m", "m", "m", "m", "bad", "void"];
    const id = `${kinds[this.#boundary % kinds.length] ?? "m"}-${this.#boundary}`;
    const sent = send(this.session, mode, id);
    if (sent.ok) this.accepted.push(id);
    else expect(this.session.closing).toBeDefined();
  }

  #toolEnd(): ToolOutcome | ToolSettled {
    return this.#plan.toolEnds[this.#tools++] ?? output("done");
  }

  #policy(): SessionPolicy {
    return {
      ...builtinPolicy,
      preStep: (_, messages) =>
        messages.some(({ id }) => id.startsWith("bad"))
          ? { kind: "reject" }
          : { kind: "enter", messages: messages.filter(({ id }) => !id.startsWith("void")) },
      turnStopping: () => {
        if (this.#objections <= 0) return [];
        this.#objections -= 1;
        return ["think again"];
      },
    };
  }
}

const timeout = 120_000;

describe("whatever comes in between any two effects, with any replies, settled in any order", () => {
  test(
    "the log is sound, each message has one fate, bodies overlap as allowed, and each request is the log's",
    () => {
      fc.assert(
        fc.property(plan, (given) => {
          const storm = new Storm(given);
          storm.blow();
          expectSoundLog(storm.session);
          expectOneFateEach(storm);
          expectAllowedOverlap(storm, given.pool);
          expectWitnessedRequests(storm);
          expect(storm.session.shouldRun()).toBe(false);
        }),
        { numRuns: 300 },
      );
    },
    timeout,
  );

  test("the same plan makes the same log, byte for byte", { timeout }, () => {
    fc.assert(
      fc.property(plan, (given) => {
        const [first, second] = [new Storm(given), new Storm(given)].map((storm) => {
          storm.blow();
          return JSON.stringify(storm.session.log.entries);
        });
        expect(second).toBe(first);
      }),
      { numRuns: 50 },
    );
  });

  test("the plans reach what they are about", { timeout }, () => {
    const reached = new Set<string>();
    for (const given of fc.sample(plan, { numRuns: 300, seed: 1 })) {
      const storm = new Storm(given);
      storm.blow();
      for (const { type, data } of storm.session.log.entries) {
        reached.add(type);
        if (type === "turn/end") reached.add(data.reason.kind);
        if (type === "tool/result") reached.add(data.error?.code ?? "fine");
        if (type === "assistant/message" && data.interrupted) reached.add("interrupted-text");
      }
      if (storm.run.begun.some(({ beside }) => beside.length > 1)) reached.add("overlap");
      if (storm.session.closing !== undefined) reached.add("closing");
    }
    const wanted = `completed aborted blocked error max-tokens overlap closing fine ABORTED
      ABORTED_BEFORE_DISPATCH INVALID_TOOL_OUTPUT UNKNOWN_TOOL TOOL_DENIED INVALID_ARGS todo/write
      todo/rejected llm/retry-started session/config interrupted-text`;
    expect(wanted.split(/\s+/u).filter((what) => !reached.has(what))).toEqual([]);
  });
});

/** Each accepted message is in the transcript, or removed, or pending, or claimed by a turn that took no step for it. */
function expectOneFateEach({ session, accepted }: Storm): void {
  const { pending, canceled, claimed } = messageFates(session.log.entries);
  const shown = entriesOf(session, "user/message").map(({ data }) => data.message.id);
  const known = new Set([...pending, ...canceled, ...claimed.map(({ id }) => id)]);
  expect(known.size).toBe(pending.length + canceled.length + claimed.length);
  expect(accepted.filter((id) => !known.has(id))).toEqual([]);
  expect(new Set(shown).size).toBe(shown.length);
  const unseen = claimed.filter(({ id }) => !shown.includes(id) && !id.startsWith("void"));
  expect(unseen.filter(({ end }) => end?.kind !== "blocked")).toEqual([]);
  expect([...pending, ...canceled].filter((id) => shown.includes(id))).toEqual([]);
  const { nextStep, nextTurn } = session.folds.inbox;
  expect(pending.toSorted()).toEqual([...nextStep, ...nextTurn].map(({ id }) => id).toSorted());
}

/** At most a pool of bodies at once, an exclusive one with nothing beside it, and nothing begun after an abort. */
function expectAllowedOverlap({ run }: Storm, pool: number): void {
  const ops = new Map(run.begun.map(({ op }) => [op.key, op]));
  const parallel = (key: string): boolean => {
    const op = ops.get(key);
    return op?.kind === "tool" && op.row.parallel;
  };
  expect(run.begun.filter(({ aborting }) => aborting)).toEqual([]);
  const wrong = run.begun.filter(
    ({ op, beside }) =>
      beside.length >= pool ||
      (beside.length > 0 && ![op.key, ...beside].every((key) => parallel(key))),
  );
  expect(wrong).toEqual([]);
}

/** The witness shares no code with the session. */
function expectWitnessedRequests({ session, run }: Storm): void {
  const log = JSON.parse(JSON.stringify(session.log.entries)) as unknown[];
  expect(compareRequests(witnessRequests(log), run.requests)).toEqual([]);
}
