import { describe, expect, it } from "vitest";
import { cancelAll, interrupt } from "../../src/domain/commands.js";
import type { ModelOutcome } from "../../src/contracts/model.js";
import type { OwnerView } from "../../src/domain/job-notices.js";
import { builtinPolicy } from "../../src/domain/policy.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import { PureRun, type Script } from "../support/pure-driver.js";
import {
  calls,
  endsOf,
  entriesOf,
  failure,
  output,
  resultTexts,
  row,
  send,
  text,
} from "../support/session-script.js";

/** A turn of some shape: what the model answers, then `ok`. */
interface Shape {
  readonly name: string;
  readonly replies: readonly (ModelOutcome | ((jobs: JobsInSession) => ModelOutcome))[];
  readonly prompts?: number;
}

const rows = [row("t"), row("p", { parallel: true })];

/** A `job_output` of the job that is live by then, or of one that is started for it. */
function reading(args: object, ...others: string[]): (jobs: JobsInSession) => ModelOutcome {
  return (jobs) => {
    const id = jobs.live.at(-1)?.id ?? jobs.start();
    return calls(
      { name: "job_output", arguments: JSON.stringify({ job_id: id, ...args }) },
      ...others,
    );
  };
}

const shapes: readonly Shape[] = [
  { name: "one reply", replies: [] },
  { name: "a tool call", replies: [calls("t")] },
  { name: "parallel calls", replies: [calls("p", "p", "t")] },
  { name: "a retry", replies: [failure("SERVER"), text("after all")] },
  { name: "a failure", replies: [failure("AUTH")] },
  { name: "two prompts", replies: [calls("t"), text("one")], prompts: 2 },
  { name: "a cut reply", replies: [text("half", "max-tokens")] },
  { name: "a waiting job_output", replies: [reading({ wait: true }, "t")] },
  { name: "a reading job_output", replies: [reading({}, "t")] },
];

type At = (point: number, world: World) => void;

/** One session that runs a shape with jobs beside it; `at` is called at every point where something can come in. */
class World {
  readonly session = openJobSession(rows, {
    maxConcurrentJobsPerOwner: 1_000,
    maxConsecutiveWakes: 1_000,
  });
  readonly jobs = new JobsInSession(this.session);
  points = 0;
  /** Nothing comes in any more. */
  over = false;
  readonly #at: At;
  readonly #script: Script;

  constructor(shape: Shape, at: At) {
    this.#at = at;
    this.jobs.start();
    const replies = [...shape.replies];
    this.#script = {
      model: (call) => {
        if (call.cancelled) return { kind: "cancelled", content: [] };
        const reply = replies.shift() ?? text("ok");
        return typeof reply === "function" ? reply(this.jobs) : reply;
      },
      tools: { t: () => output("done"), p: () => output("done") },
      jobs: ({ work, cancelled }) => {
        if (cancelled) return { kind: "failed", code: "ABORTED", message: "aborted" };
        if (work.do !== "read") return { kind: "done" };
        return { kind: "read", reads: [{ stream: "stdout", text: "x", to: 1 }], locators: [] };
      },
      at: () => this.#point(),
      // Hooks of policies are no points of a real session, but the core holds there too.
      policy: {
        ...builtinPolicy,
        preStep: (context, messages) => {
          this.#point();
          return builtinPolicy.preStep(context, messages);
        },
        turnStopping: () => {
          this.#point();
          return [];
        },
      },
    };
    this.#point();
    for (let prompt = 1; prompt <= (shape.prompts ?? 1); prompt++) {
      send(this.session, "followup", `prompt ${prompt}`);
    }
  }

  /** Until nothing is left to do, with points before and after. */
  run(): void {
    const driven = new PureRun(this.session, this.#script);
    this.#point();
    driven.untilIdle();
    this.#point();
    driven.untilIdle();
  }

  #point(): void {
    if (!this.over) this.#at(this.points++, this);
  }
}

function pointsOf(shape: Shape): number {
  const world = new World(shape, () => undefined);
  world.run();
  return world.points;
}

const normal = new Set(["completed", "max-tokens"]);

/** Every settled job: collected by a wait, or one notice; shown by now unless a turn ended otherwise. */
function problemsOf(world: World): readonly string[] {
  const { jobs, session } = world;
  const problems: string[] = [];
  const parked = endsOf(session).some((end) => !normal.has(end.kind));
  if (session.shouldRun()) problems.push("not idle");
  for (const { snapshot, collected } of jobs.settlements) {
    const { shown, pending } = jobs.told(snapshot.id);
    const total = shown + pending;
    if (total !== (snapshot.reported ? 0 : 1)) problems.push(`${snapshot.id}: told ${total} times`);
    if (pending > 0 && !parked) problems.push(`${snapshot.id}: waits in an idle session`);
    if (collected) {
      const told = resultTexts(session).filter((one) => one.includes("[status: completed"));
      if (told.length !== 1) problems.push(`${snapshot.id}: collected ${told.length} times`);
    }
  }
  return problems;
}

/** Prompts at the end claim whatever was parked, the second when the first one's turn fails: every end was shown once. */
function problemsAtTheEnd(world: World): readonly string[] {
  world.over = true;
  const parked = world.jobs.settlements.some(({ snapshot }) => {
    return world.jobs.told(snapshot.id).pending > 0;
  });
  for (const last of parked ? ["last", "very last"] : []) {
    send(world.session, "followup", last);
    world.run();
  }
  const ids = world.jobs.settlements.filter(({ snapshot }) => !snapshot.reported);
  return ids
    .map(({ snapshot }) => ({ id: snapshot.id, ...world.jobs.told(snapshot.id) }))
    .filter(({ shown, pending }) => shown !== 1 || pending !== 0)
    .map(({ id, shown, pending }) => `${id}: shown ${shown}, pending ${pending}`);
}

function settleFirst(world: World): void {
  settleOne(world, 0);
}

/** Settles a live job, if there is one; `dice` in 0..1 says which. */
function settleOne({ jobs }: World, dice: number): void {
  const { live } = jobs;
  const one = live[Math.floor(dice * live.length)];
  if (one !== undefined) jobs.settle(one.id);
}

/** Numbers in 0..1, scrambled enough that neighbouring seeds have nothing in common (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe.each(shapes)("settlements at every point of a turn with $name", (shape) => {
  it("lose no completion between the empty queue and idle", { timeout: 60_000 }, () => {
    const points = pointsOf(shape);
    const lanes = new Set<string>();
    for (let first = 0; first < points; first++) {
      for (let second = first; second < points; second++) {
        const world = new World(shape, (point, here) => {
          if (point === 0) here.jobs.start();
          if (point === first) settleFirst(here);
          if (point === second) settleFirst(here);
        });
        world.run();
        expect([first, second, problemsOf(world)]).toEqual([first, second, []]);
        expect(world.jobs.settlements).toHaveLength(2);
        for (const { lane } of world.jobs.settlements) lanes.add(lane ?? "collected");
        expect([first, second, problemsAtTheEnd(world)]).toEqual([first, second, []]);
      }
    }
    expect(lanes).toContain("wake");
    expect(lanes).toContain("inject");
  });

  it("lose none beside an interrupt at every second point either", { timeout: 60_000 }, () => {
    const points = pointsOf(shape);
    for (let settled = 0; settled < points; settled++) {
      for (let stopped = settled % 2; stopped < points; stopped += 2) {
        const world = new World(shape, (point, here) => {
          if (point === settled) settleFirst(here);
          if (point === stopped) interrupt(here.session, {});
        });
        world.run();
        expect([settled, stopped, problemsOf(world)]).toEqual([settled, stopped, []]);
        expect([settled, stopped, problemsAtTheEnd(world)]).toEqual([settled, stopped, []]);
      }
    }
  });
});

it(
  "thousands of random settlements, prompts, interrupts and outages lose and double no completion",
  { timeout: 60_000 },
  () => {
    const seed = Number(process.env["JOBS_SEED"] ?? 20_261_130);
    const lanes = new Map<string, number>();
    for (let run = 0; run < 600; run++) {
      const next = random(seed + run);
      const shape = shapes[Math.floor(next() * shapes.length)] as Shape;
      const world = new World(shape, (_, here) => {
        const dice = next();
        if (dice < 0.25) settleOne(here, next());
        else if (dice < 0.35) here.jobs.start();
        else if (dice < 0.37) interrupt(here.session, {});
        else if (dice < 0.39) send(here.session, "steer", `steer ${here.points}`);
        else if (dice < 0.45) here.jobs.setLive(!here.session.folds.place.live);
      });
      world.run();
      world.over = true;
      world.jobs.setLive(true);
      world.run();
      const found = problemsOf(world).concat(problemsAtTheEnd(world));
      expect(found, `set JOBS_SEED=${seed + run} to begin with this run`).toEqual([]);
      expect(JSON.parse(JSON.stringify(world.session.folds.jobs))).toEqual(
        world.session.folds.jobs,
      );
      for (const { lane = "collected" } of world.jobs.settlements) {
        lanes.set(lane, (lanes.get(lane) ?? 0) + 1);
      }
    }
    expect([...lanes.keys()].toSorted()).toEqual(["collected", "inject", "owed", "wake"]);
  },
);

it("a lane decided one moment before its message is queued would lose completions", () => {
  const shape = shapes[0] as Shape;
  const points = pointsOf(shape);
  const lost: number[] = [];
  for (let at = 0; at + 1 < points; at++) {
    let seen: OwnerView | undefined;
    const world = new World(shape, (point, here) => {
      if (point === at) seen = here.session.owner;
      if (point === at + 1 && seen !== undefined) {
        const { inbox } = here.session.owner;
        here.jobs.settleSeen("bash-1", { ...seen, inbox });
      }
    });
    world.run();
    if (problemsOf(world).length > 0) lost.push(at);
  }
  expect(lost).toHaveLength(1);
});

describe("several completions", () => {
  it("of a busy session cost one step", () => {
    const shape = shapes[0] as Shape;
    const points = pointsOf(shape);
    const world = new World(shape, (point, here) => {
      if (point === 0) for (let more = 0; more < 4; more++) here.jobs.start();
      if (point !== points - 3) return;
      for (let job = 0; job < 5; job++) settleFirst(here);
    });
    world.run();
    expect(world.jobs.settlements.map(({ lane }) => lane)).toEqual(
      Array.from({ length: 5 }, () => "inject"),
    );
    expect(entriesOf(world.session, "turn/start")).toHaveLength(1);
    expect(entriesOf(world.session, "step/start")).toHaveLength(2);
  });

  it("of an idle session open one turn, and the rest is claimed before the queued message", () => {
    const world = new World(shapes[0] as Shape, (point, here) => {
      if (point === 0) for (let more = 0; more < 2; more++) here.jobs.start();
    });
    world.run();
    for (let job = 0; job < 3; job++) settleFirst(world);
    world.run();
    expect(world.jobs.settlements.map(({ lane }) => lane)).toEqual(["wake", "inject", "inject"]);
    expect(world.session.folds.wakes.spent).toBe(1);
    expect(entriesOf(world.session, "turn/start")).toHaveLength(2);
    const shown = entriesOf(world.session, "user/message").slice(1);
    expect(shown.map(({ data }) => data.message.id)).toEqual([
      "job/bash-2/settled",
      "job/bash-3/settled",
      "job/bash-1/settled",
    ]);
  });

  it("a cancelled turn that has not wound down counts as busy, and is not opened again", () => {
    const points = pointsOf(shapes[1] as Shape);
    for (let at = 3; at < points - 2; at++) {
      const world = new World(shapes[1] as Shape, (point, here) => {
        if (point !== at) return;
        if (!here.session.folds.turn.open) return;
        cancelAll(here.session, {});
        settleFirst(here);
      });
      world.run();
      if (world.jobs.settlements.length === 0) continue;
      expect(world.jobs.settlements[0]?.lane).toBe("inject");
      expect(endsOf(world.session)).toEqual([{ kind: "aborted", reason: "user" }]);
      expect(world.session.folds.inbox.nextStep).toHaveLength(1);
    }
  });
});
