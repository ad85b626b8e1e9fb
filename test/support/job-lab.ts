import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client, WorkflowHandle } from "@temporalio/client";
import { expect } from "vitest";
import type { JsonObject } from "../../src/contracts/header.js";
import type { JobOutcome, JobReport, JobWorkflowInput } from "../../src/contracts/jobs.js";
import { commands, jobWorkflowId } from "../../src/contracts/names.js";
import type { JobKey } from "../../src/process/jobs/spool.js";
import { writeBundle } from "../../src/worker/bundle.js";
import type { RunningWorker, StartWorkerOptions } from "../../src/worker/index.js";
import { testKinds } from "./job-kinds.js";
import type { Lab, Place } from "./temporal.js";
import { eventually } from "./until.js";

export const namespace = "default";

/** The bundle of test/support/workflows. */
export async function bundleOfTests(): Promise<{
  readonly path: string;
  dispose(): Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-job-lab-"));
  const path = join(folder, "bundle.js");
  await writeBundle(path, fileURLToPath(new URL("workflows", import.meta.url)));
  return { path, dispose: () => rm(folder, { recursive: true, force: true }) };
}

export interface LabJob {
  readonly key: JobKey;
  readonly token: string;
  readonly handle: WorkflowHandle;
  /** The outcome its session was told. */
  settled(): Promise<JobOutcome>;
  kill(reason?: string): Promise<void>;
  /** The pending `job.follow`. */
  follower(): Promise<{
    readonly id: string;
    readonly attempt: number;
    readonly details: unknown;
    readonly paused: boolean;
  }>;
}

export interface JobLab {
  readonly place: Place;
  readonly cwd: string;
  /** Stands in for the session that owns the jobs. */
  readonly owner: WorkflowHandle;
  readonly token: string;
  hostUp(options?: Partial<StartWorkerOptions>): Promise<RunningWorker>;
  start(kind: string, input: JsonObject, changes?: Partial<JobWorkflowInput>): Promise<LabJob>;
  reports(): Promise<readonly JobReport[]>;
  /** Runs one activity on a queue of this place. */
  ask(name: string, input: unknown, queue?: string): Promise<unknown>;
  /** A file of the workspace; empty while it is not there. */
  content(name: string): Promise<string>;
  write(name: string, text?: string): Promise<void>;
  /** Waits for a whole first line of a file that a command writes its pid to. */
  pidIn(name: string): Promise<number>;
}

/**
 * A session worker that stays, a host worker that may come and go, and somebody who owns jobs; on another server than the
 * lab's when its client, and in `options` its address, are given.
 */
export async function openJobLab(
  lab: Lab,
  workflowBundlePath: string,
  options: Partial<StartWorkerOptions> = {},
  temporal: Client = lab.temporal,
): Promise<JobLab> {
  const place = await lab.emptyPlace({ workflowBundlePath, jobKinds: testKinds, ...options });
  await place.start({ roles: ["session"] });
  const session = `t-${randomUUID()}`;
  const owner = await temporal.workflow.start("listener", {
    workflowId: session,
    taskQueue: place.queue,
  });
  const token = `${session}:${owner.firstExecutionRunId}`;
  // By its id alone, whatever run it is in.
  const latest = temporal.workflow.getHandle(session);
  const cwd = await lab.workspace();
  let jobs = 0;
  const reports = async (): Promise<readonly JobReport[]> =>
    await latest.query<readonly JobReport[]>("heard");
  const jobLab: JobLab = {
    place,
    cwd,
    owner: latest,
    token,
    reports,
    hostUp: (more = {}) => place.start({ roles: ["host"], ...more }),
    async start(kind, input, changes = {}) {
      jobs += 1;
      const jobId = `${kind}-${jobs}`;
      const nonce = "n0nce";
      const given: JobWorkflowInput = {
        v: 1,
        session,
        token,
        jobId,
        nonce,
        host: place.hostId,
        kind,
        label: `a ${kind} job`,
        input,
        cwd,
        outsideWorkspace: false,
        heartbeatMs: 200,
        heartbeatTimeoutMs: 4_000,
        orphanGraceMs: 120_000,
        outputBytes: 1_000_000,
        ...changes,
      };
      const workflowId = jobWorkflowId(session, jobId, nonce);
      await temporal.workflow.start("job", {
        workflowId,
        taskQueue: place.queue,
        args: [given],
      });
      const handle = temporal.workflow.getHandle(workflowId);
      return {
        key: { home: place.home, sessionId: session, jobId, nonce },
        token: given.token,
        handle,
        async settled() {
          return await eventually(async () => {
            const report = (await reports()).find(({ id }) => id === jobId);
            if (report?.report !== "settled") throw new Error(`${jobId} has not settled`);
            expect(report).toMatchObject({ nonce, owner: given.token });
            return report.outcome;
          });
        },
        async kill(reason) {
          await handle.signal(commands.jobKill, reason === undefined ? {} : { reason });
        },
        async follower() {
          return await eventually(async () => {
            const { raw } = await handle.describe();
            const pending = raw.pendingActivities?.find(
              ({ activityType }) => activityType?.name === "job.follow",
            );
            if (pending === undefined) throw new Error("nobody follows");
            const data = pending.heartbeatDetails?.payloads?.[0]?.data;
            return {
              id: pending.activityId ?? "",
              attempt: pending.attempt ?? 0,
              details: data ? JSON.parse(Buffer.from(data).toString()) : undefined,
              paused: pending.paused === true,
            };
          });
        },
      };
    },
    async ask(name, input, queue = place.queue) {
      return await temporal.workflow.execute("ask", {
        workflowId: `ask-${randomUUID()}`,
        taskQueue: place.queue,
        args: [name, input, queue],
      });
    },
    content: async (name) => await readFile(join(cwd, name), "utf8").catch(() => ""),
    write: async (name, text = "") => await writeFile(join(cwd, name), text),
    async pidIn(name) {
      return await eventually(async () => {
        const text = await jobLab.content(name);
        expect(text).toMatch(/^\d+\n/);
        return Number.parseInt(text, 10);
      });
    },
  };
  return jobLab;
}
