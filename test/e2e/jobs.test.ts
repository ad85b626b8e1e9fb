import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, vi } from "vitest";
import type { SessionConfig } from "../../src/contracts/config.js";
import { readLog } from "../chaos/evidence.js";
import { openSite } from "../chaos/site.js";
import { jobDetails } from "../../src/domain/job-texts.js";
import { isAlive } from "../support/job-bench.js";
import {
  newerBuild,
  test as base,
  type HostWorker,
  type ProcessHost,
} from "../support/job-hosts.js";
import { jobProcesses } from "../support/job-processes.js";
import { startCounters, type Counters } from "../support/counting-jobs.js";
import type { Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const test = base.extend({
  workerOptions: [{ roles: ["session"] as const }, { scope: "file" as const }],
});
/** Freezes and lost hosts take their time, beside other work more of it. */
vi.setConfig({ testTimeout: 300_000 });

const namespace = "default";

interface Options {
  readonly before?: string;
  readonly jobs?: SessionConfig["jobs"];
}

async function counting(
  lab: Lab,
  host: ProcessHost,
  count: number,
  { before, jobs = {} }: Options = {},
): Promise<Counters> {
  const workspace = await lab.workspace();
  const session = await lab.session(
    { turns: [{ repeat: 50, steps: [{ text: "noted" }] }] },
    { host: host.hostId, config: { cwd: workspace, jobs } },
  );
  const counters = await startCounters({
    session,
    workspace,
    home: host.home,
    count,
    ...(before === undefined ? {} : { before }),
    read: (one) => lab.entries(one),
  });
  for (const { workflowId } of (await session.jobs()).jobs) lab.adopt(workflowId);
  return counters;
}

async function started(host: ProcessHost): Promise<HostWorker> {
  const worker = host.worker();
  await worker.start();
  return worker;
}

/** Every job is followed, and by this worker alone. */
async function untilFollowedBy(counters: Counters, worker: HostWorker): Promise<void> {
  await eventually(async () => {
    for (const id of counters.ids)
      expect((await counters.followers(id)).map(({ pid }) => pid)).toEqual([worker.pid]);
  }, 90_000);
}

async function statuses(counters: Counters): Promise<readonly string[]> {
  return (await counters.finish()).map(({ status, detail }) => `${status}, ${detail}`);
}

const exits = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `completed, exit code: ${index + 1}`);

describe.concurrent("a background job of a host that stays without a worker", () => {
  test("ends after the orphan grace, and is failed once nobody answered for a minute more", async ({
    lab,
    host,
  }) => {
    const here = await host();
    const worker = await started(here);
    const jobs = { orphanGraceMs: 1_000, heartbeatMs: 500, heartbeatTimeoutMs: 2_000 };
    const counters = await counting(lab, here, 2, { jobs });
    await worker.kill();
    await eventually(async () => expect(await counters.alive()).toEqual([]));
    const lost = { status: "failed", detail: jobDetails.workerLost(here.hostId, 61) };
    for (const id of counters.ids)
      expect(await counters.session.waitJob(id, { timeoutMs: 90_000 })).toMatchObject(lost);
    await worker.start();
    // What came late changes nothing but what can be read.
    expect(await counters.finish()).toMatchObject([lost, lost]);
  });
});

describe.concurrent("a background job whose session was terminated", () => {
  test("ends within a minute", async ({ lab, host }) => {
    const here = await host();
    await started(here);
    const counters = await counting(lab, here, 2);
    const views = (await counters.session.jobs()).jobs;
    await lab.handle(counters.session.id).terminate("by an operator");
    const began = Date.now();
    await eventually(async () => expect(await counters.alive()).toEqual([]), 90_000);
    console.info(`jobs of a terminated session were gone after ${Date.now() - began} ms`);
    for (const { workflowId } of views)
      expect(await lab.handle(workflowId).result()).toMatchObject({ status: "killed" });
  });
});

describe.concurrent("a background job whose session was reset to a time before it", () => {
  test("ends within a minute, because nobody could ask for it any more; one that its session knows goes on", async ({
    lab,
    host,
  }) => {
    const here = await host();
    await started(here);
    const counters = await counting(lab, here, 2);
    const others = await counting(lab, here, 1);
    const views = (await counters.session.jobs()).jobs;
    await resetTo(lab, counters.session.id, "first");
    await resetTo(lab, others.session.id, "last");
    await eventually(async () => expect((await counters.session.jobs()).jobs).toEqual([]));
    const left = (await others.session.jobs()).jobs.map(({ id, workflowId }) => ({
      job: workflowId.slice(others.session.id.length + 1),
      id,
    }));
    await eventually(async () => {
      const living = (await jobProcesses(here.home)).map(({ job }) => job);
      expect(living).toEqual(left.map(({ job }) => job));
    }, 90_000);
    for (const { workflowId } of views)
      expect(await lab.handle(workflowId).result()).toMatchObject({ status: "killed" });
    // It is asked after a few seconds later than the others, and their end took some as well.
    await others.advance(300);
    expect(await statuses(others)).toEqual(exits(1));
  });
});

describe.concurrent("background jobs under a worker that is frozen", () => {
  test("for 40 s, with a second one attached meanwhile, and woken: same pids, nothing twice", async ({
    lab,
    host,
  }) => {
    const here = await host();
    const first = await started(here);
    const counters = await counting(lab, here, 4);
    await untilFollowedBy(counters, first);
    const frozenAt = Date.now();
    await first.freeze();
    const second = await started(here);
    await eventually(async () => {
      for (const id of counters.ids)
        expect((await counters.followers(id)).map(({ pid }) => pid)).toContain(second.pid);
    }, 120_000);
    await delay(Math.max(0, frozenAt + 40_000 - Date.now()));
    first.thaw();
    await untilFollowedBy(counters, second);
    await counters.advance(50);
    expect(await statuses(counters)).toEqual(exits(4));
  });

  test("for 12 s and woken: the same pids, nothing twice", async ({ lab, host }) => {
    const here = await host();
    const worker = await started(here);
    const counters = await counting(lab, here, 4);
    await worker.freeze();
    await delay(12_000);
    worker.thaw();
    await counters.advance(50);
    expect(await statuses(counters)).toEqual(exits(4));
  });
});

describe.concurrent("background jobs of a Temporal server that is down for longer than the orphan grace", () => {
  test("go on, and settle when it is back", async ({ onTestFinished }) => {
    const site = await openSite();
    onTestFinished(async () => {
      const left = await site.dispose();
      expect(left).toEqual([]);
    });
    const scenario = { turns: [{ repeat: 50, steps: [{ text: "noted" }] }] };
    const { session, workspace } = await site.session({ scenario }, { orphanGraceMs: 2_000 });
    const counters = await startCounters({
      session,
      workspace,
      home: site.home,
      count: 4,
      read: readLog,
    });
    const [ending = "", ...others] = counters.ids;
    await site.server.kill();
    await counters.advance(100);
    await counters.stop(ending);
    await counters.advance(100);
    await site.startServer();
    expect(await session.waitJob(ending)).toMatchObject({ status: "completed" });
    for (const id of others)
      expect((await session.jobs()).jobs.find((job) => job.id === id)?.status).toBe("running");
    expect(await statuses(counters)).toEqual(exits(4));
    expect(site.worker.surprises).toEqual([]);
  });
});

describe.concurrent("background jobs whose host worker is killed", () => {
  test("ten of them go on under their pids and lose no number when it comes back", async ({
    lab,
    host,
  }) => {
    const here = await host();
    const worker = await started(here);
    const counters = await counting(lab, here, 10);
    await worker.kill();
    // Four seconds of output, and more.
    await counters.advance(200);
    await worker.start();
    await untilFollowedBy(counters, worker);
    await counters.advance(50);
    expect(await statuses(counters)).toEqual(exits(10));
  });

  test("go on under a worker of a newer build", async ({ lab, host }) => {
    const here = await host();
    const worker = await started(here);
    const counters = await counting(lab, here, 4);
    const newer = here.worker(await newerBuild(lab));
    await worker.kill();
    await counters.advance(100);
    await newer.start();
    await untilFollowedBy(counters, newer);
    await counters.advance(50);
    expect(await statuses(counters)).toEqual(exits(4));
  });

  test("go on under the second one of the same machine", async ({ lab, host }) => {
    const here = await host();
    const workers = [await started(here), await started(here)] as const;
    const counters = await counting(lab, here, 6);
    const [followed] = await counters.followers(counters.ids[0] ?? "");
    const [gone, left] =
      followed?.pid === workers[0].pid ? workers : ([workers[1], workers[0]] as const);
    await gone.kill();
    await untilFollowedBy(counters, left);
    await counters.advance(50);
    expect(await statuses(counters)).toEqual(exits(6));
  });

  test("for longer than the orphan grace are ended, setsid children and those that ignore TERM too, and failed at its return", async ({
    lab,
    host,
  }) => {
    const here = await host();
    const worker = await started(here);
    const counters = await counting(lab, here, 3, {
      jobs: { orphanGraceMs: 3_000 },
      before: `trap '' TERM; setsid bash -c 'while :; do sleep 1; done' & echo $! >>strays`,
    });
    await worker.kill();
    expect((await counters.alive()).length).toBeGreaterThanOrEqual(6);
    await eventually(async () => expect(await counters.alive()).toEqual([]));
    await worker.start();
    const lost = { status: "failed", detail: jobDetails.workerLost(here.hostId, 3) };
    expect(await counters.finish()).toMatchObject([lost, lost, lost]);
  });

  test("and whose machine was started anew are failed, and no pid of theirs is signalled", async ({
    lab,
    host,
  }) => {
    const here = await host();
    const worker = await started(here);
    const counters = await counting(lab, here, 2, {
      before: `trap 'echo $? >>signals' TERM HUP INT`,
    });
    await worker.kill();
    for (const id of counters.ids) {
      const path = join(await counters.spool(id), "identity.json");
      const identity: object = JSON.parse(await readFile(path, "utf8"));
      await writeFile(path, JSON.stringify({ ...identity, bootId: randomUUID() }));
    }
    await worker.start();
    const restarted = {
      status: "failed",
      detail: `worker lost: ${here.hostId} was restarted, and the job ended with it`,
    };
    for (const id of counters.ids)
      expect(await counters.session.waitJob(id)).toMatchObject(restarted);
    // They were not the job's for the worker; for this test they are, and they run on.
    await counters.advance(50);
    const runs = await counters.runs();
    for (const id of counters.ids)
      for (const pid of runs.get(id) ?? []) expect(await isAlive(pid)).toBe(true);
    const cwd = (await counters.session.view()).config.cwd ?? "";
    expect(await readFile(join(cwd, "signals"), "utf8").catch(() => "")).toBe("");
    await counters.stop(...counters.ids);
  });
});

describe.concurrent("background jobs in the hands of an operator", () => {
  test("are not touched by Reset, Pause and Unpause of their follower", async ({ lab, host }) => {
    const here = await host();
    await started(here);
    const counters = await counting(lab, here, 2);
    const [reset = "", paused = ""] = counters.ids;
    const call = async (id: string) => {
      const view = (await counters.session.jobs()).jobs.find((job) => job.id === id);
      const workflowId = view?.workflowId ?? "";
      const { raw } = await lab.handle(workflowId).describe();
      const activity = raw.pendingActivities?.[0];
      return { workflowId, activity, id: activity?.activityId ?? "" };
    };
    const one = await call(reset);
    const [before] = await counters.followers(reset);
    await lab.temporal.workflowService.resetActivity({
      namespace,
      execution: { workflowId: one.workflowId },
      id: one.id,
      identity: "operator",
    });
    await eventually(async () => {
      const now = await counters.followers(reset);
      expect(now).toHaveLength(1);
      expect(now[0]?.file).not.toBe(before?.file);
    });
    const other = await call(paused);
    const request = {
      namespace,
      execution: { workflowId: other.workflowId },
      id: other.id,
      identity: "operator",
    };
    await lab.temporal.workflowService.pauseActivity(request);
    await eventually(async () => expect(await counters.followers(paused)).toEqual([]));
    await counters.advance(50);
    expect((await call(paused)).activity).toMatchObject({ paused: true });
    await lab.temporal.workflowService.unpauseActivity(request);
    await eventually(async () => expect(await counters.followers(paused)).toHaveLength(1));
    expect(await statuses(counters)).toEqual(exits(2));
  });

  test("end as their workflow does: terminated is failed, cancelled is killed, reset goes on", async ({
    lab,
    host,
  }) => {
    const here = await host();
    await started(here);
    const counters = await counting(lab, here, 4);
    const [terminated, cancelled, reset, afterReset] = (await counters.session.jobs()).jobs;
    const workflow = (job: { readonly workflowId: string } | undefined) =>
      lab.handle(job?.workflowId ?? "");
    await workflow(terminated).terminate("by an operator");
    await workflow(cancelled).cancel();
    await resetTo(lab, reset?.workflowId ?? "", "first");
    const hostEnded = { status: "failed", detail: "job host ended: terminated" };
    expect(await counters.session.waitJob(terminated?.id ?? "")).toMatchObject(hostEnded);
    expect(await counters.session.waitJob(cancelled?.id ?? "")).toMatchObject({ status: "killed" });
    await counters.session.waitIdle();
    await resetTo(lab, counters.session.id, "last");
    await eventually(async () => expect((await counters.session.view()).state).toBe("idle"));
    await workflow(afterReset).terminate("by an operator");
    expect(await counters.session.waitJob(afterReset?.id ?? "")).toMatchObject(hostEnded);
    await eventually(async () =>
      expect(new Set((await counters.alive()).map((line) => line.split("/")[1]))).toEqual(
        new Set([reset?.id]),
      ),
    );
    await counters.advance(50);
    expect(await statuses(counters)).toEqual([
      "failed, job host ended: terminated",
      "killed, signal: SIGTERM",
      "completed, exit code: 3",
      "failed, job host ended: terminated",
    ]);
  });

  test("whose workflow was terminated while their host had no worker end at its return, and the owner is told", async ({
    lab,
    host,
  }) => {
    const here = await host();
    const worker = await started(here);
    const counters = await counting(lab, here, 1);
    const [job] = (await counters.session.jobs()).jobs;
    await worker.kill();
    await resetTo(lab, counters.session.id, "last");
    await eventually(async () => expect((await counters.session.view()).state).toBe("idle"));
    await lab.handle(job?.workflowId ?? "").terminate("by an operator");
    await counters.advance(20);
    await worker.start();
    await eventually(async () => expect(await counters.alive()).toEqual([]));
    expect(await statuses(counters)).toEqual(["failed, job host ended: terminated"]);
  });
});

/** Resets a workflow to its first or last completed task. */
async function resetTo(lab: Lab, workflowId: string, which: "first" | "last"): Promise<void> {
  const { events } = await lab.history(workflowId);
  const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
  const task = which === "first" ? tasks[0] : tasks.at(-1);
  await lab.temporal.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId },
    reason: "by an operator",
    requestId: randomUUID(),
    ...(task?.eventId ? { workflowTaskFinishEventId: task.eventId } : {}),
  });
}
