import { setTimeout as delay } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import { createRandom, type Random } from "../chaos/random.js";
import { gatedJob } from "../support/gated-job.js";
import { jobProcesses } from "../support/job-processes.js";
import { readJobEnds } from "../support/job-ends.js";
import type { ScenarioInput } from "../support/scenario-input.js";
import { seededRandom } from "../support/seeded.js";
import { cacheSize, test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const gate = gatedJob("gate");
const test = base.extend({
  workerOptions: [{ jobKinds: [gate.kind] }, { scope: "file" as const }],
});

/** A worker without a cache replays a whole session for each of its tasks. */
const size = cacheSize === 0 ? { sessions: 4, jobs: 8 } : { sessions: 8, jobs: 25 };

/** `calm`: nothing but prompts beside the jobs, and wakes enough, so nothing may be left untold at rest. */
type Weather = "calm" | "rough";

describe.concurrent(
  "ends of background jobs at random moments of turns",
  { timeout: 900_000 },
  () => {
    test("are each told exactly once, and none is left behind in an idle session", async ({
      lab,
    }) => {
      const { seed } = seededRandom();
      const played = await Promise.all(
        Array.from({ length: size.sessions }, (_, index) =>
          play(lab, createRandom(seed * 100 + index), index % 2 === 0 ? "calm" : "rough"),
        ),
      );
      const counts: Record<string, number> = {};
      for (const kind of played.flat()) counts[kind] = (counts[kind] ?? 0) + 1;
      console.info(`${played.flat().length} ends: ${JSON.stringify(counts)}`);
      expect(played.flat()).toHaveLength(size.sessions * size.jobs);
      // Both sides of the window between "queue empty" and "idle" were met.
      expect(Object.keys(counts)).toEqual(expect.arrayContaining(["wake", "inject"]));
    });

    test("of a session whose host is away open no turn, and one that claims all when it is back", async ({
      lab,
    }) => {
      const { seed } = seededRandom();
      const random = createRandom(seed);
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const session = await lab.session(
        { turns: [{ repeat: 10, steps: [{ text: "noted", repeat: 10 }] }] },
        { at: place, config: { jobs: { maxConsecutiveWakes: 1 } } },
      );
      expect((await session.view()).state).toBe("cold");
      const start = async (command: string): Promise<string> =>
        (await session.startJob({ kind: "bash", input: { command } })).id;
      await expect(start("true")).rejects.toMatchObject({ code: "INVALID_INPUT" });
      const host = await place.start({ roles: ["host"] });
      await eventually(async () => expect((await session.view()).state).toBe("idle"));
      const running = [];
      for (let n = 0; n < 4; n += 1) running.push(await start("sleep 300"));
      await eventually(async () => {
        for (const { workflowId } of (await session.jobs()).jobs)
          expect(await isFollowed(lab, workflowId)).toBe(true);
      });
      await host.stop();
      const never = [await start("true"), await start("true")];
      for (const id of never)
        expect(await session.waitJob(id)).toMatchObject({
          status: "failed",
          detail: `not started: no worker on ${place.hostId} within 30s`,
        });
      expect((await session.view()).state).toBe("cold");
      for (const id of random.shuffle(running)) {
        await delay(random.between(0, 200));
        const job = (await session.jobs()).jobs.find((one) => one.id === id);
        await lab.handle(job?.workflowId ?? "").terminate("by an operator");
      }
      for (const id of running)
        expect(await session.waitJob(id)).toMatchObject({ detail: "job host ended: terminated" });
      expect((await session.view()).turn.number).toBe(0);
      await place.start({ roles: ["host"] });
      await eventually(async () =>
        expect((await session.view()).turn).toMatchObject({ number: 1, open: false }),
      );
      await session.waitIdle();
      const log = await lab.entries(session);
      const { told, problems } = readJobEnds(log, 1);
      expect(problems).toEqual([]);
      expect([...told.values()]).toEqual([...running, ...never].map(() => "owed"));
      expect(log.filter(({ type }) => type === "turn/start")).toHaveLength(1);
      expect(log.filter(({ type }) => type === "step/start")).toHaveLength(1);
      // Its sweep ends what the terminated workflows left.
      await eventually(async () => expect(await jobProcesses(place.home)).toEqual([]));
    });
  },
);

async function isFollowed(lab: Lab, workflowId: string): Promise<boolean> {
  const { raw } = await lab.handle(workflowId).describe();
  const [pending] = raw.pendingActivities ?? [];
  return pending?.activityType?.name === "job.follow" && pending.lastHeartbeatTime !== null;
}

async function play(lab: Lab, random: Random, weather: Weather): Promise<readonly string[]> {
  const maxConsecutiveWakes = weather === "calm" ? 1_000 : random.between(1, 3);
  const session = await lab.session(scenario(random, weather), {
    config: { jobs: { maxConcurrentJobsPerOwner: size.jobs, maxConsecutiveWakes } },
  });
  const shut: string[] = [];
  let left = size.jobs;
  while (left > 0 || shut.length > 0) {
    await delay(random.between(0, 120));
    const what = random.between(1, 10);
    if (left > 0 && what <= 4) {
      for (let more = random.between(1, Math.min(4, left)); more > 0; more -= 1) {
        left -= 1;
        shut.push((await session.startJob({ kind: "gate", input: {} })).id);
      }
    } else if (what <= 8) {
      // From rest the first one opens a short turn, and the others come about when it ends.
      if (random.between(0, 2) > 0) await session.waitIdle();
      const ending = random.shuffle(shut).slice(0, random.between(1, 3));
      for (const id of ending) {
        shut.splice(shut.indexOf(id), 1);
        gate.open(session.id, id);
        await delay(random.between(0, 150));
      }
    } else if (what === 9) await send(session, random);
    else if (weather === "rough") await session.interrupt();
  }
  await eventually(async () => {
    const { jobs } = await session.jobs();
    expect(jobs.filter(({ status }) => status === "running" || status === "stopping")).toEqual([]);
  });
  await session.waitIdle();
  if (weather === "calm") {
    const { inbox } = await session.view();
    expect([inbox.nextTurn, inbox.nextStep]).toEqual([[], []]);
  }
  // Claims what an interrupt parked or the budget left.
  await session.followup("and the rest?");
  await session.waitIdle();
  const { inbox } = await session.view();
  expect([inbox.nextTurn, inbox.nextStep]).toEqual([[], []]);
  const { told, problems } = readJobEnds(await lab.entries(session), maxConsecutiveWakes);
  expect(problems).toEqual([]);
  return [...told.values()];
}

async function send(session: SessionClient, random: Random): Promise<void> {
  if (random.between(0, 2) === 0) await session.steer("look here");
  else await session.followup("go on");
}

/** Turns of one to four steps that look at jobs, wait for them and kill some, whether they are there or not. */
function scenario(random: Random, weather: Weather): ScenarioInput {
  // About those that are there by then.
  const job = (turn: number): string => `gate-${random.between(1, Math.min(turn + 4, size.jobs))}`;
  const call = (
    turn: number,
  ): { tool: string; args: Record<string, string | number | boolean | []> } => {
    const what = random.between(1, 10);
    if (what <= 3)
      return {
        tool: "job_output",
        args: { job_id: job(turn), wait: true, timeout_ms: random.between(50, 1_000) },
      };
    if (what <= 6) return { tool: "job_output", args: { job_id: job(turn) } };
    if (what === 7) return { tool: "job_list", args: {} };
    if (what === 8 && weather === "rough") return { tool: "job_kill", args: { job_id: job(turn) } };
    return { tool: "todo_write", args: { todos: [] } };
  };
  const turns = Array.from({ length: 100 }, (_, index) => ({
    steps: [
      ...Array.from({ length: random.between(0, 3) }, () => ({
        firstDelayMs: random.pick([0, random.between(0, 40)]),
        calls: Array.from({ length: random.between(1, 2) }, () => call(index + 1)),
      })),
      // What is injected at the end costs a step more.
      { firstDelayMs: random.pick([0, random.between(0, 40)]), text: "done", repeat: 60 },
    ],
  }));
  return { turns: [...turns, { repeat: 1_000, steps: [{ text: "done", repeat: 60 }] }] };
}
