import { setMaxListeners } from "node:events";
import { existsSync } from "node:fs";
import { Client, type ConnectionOptions } from "@temporalio/client";
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  type InjectedSinks,
  type LogEntry,
  type NativeConnectionOptions,
  type WorkerOptions,
} from "@temporalio/worker";
import { createHostActivities, createSessionSide, type ActivityDeps } from "../activities/index.js";
import { createEndedSweep } from "../activities/sweep-ended.js";
import { sweepHostJobs } from "../activities/sweep-jobs.js";
import type { SessionSinks } from "../contracts/activities.js";
import { LonghaulError } from "../contracts/errors.js";
import type { ModelProvider } from "../contracts/model.js";
import { hostControlQueue, hostJobsQueue, hostQueue, queues } from "../contracts/names.js";
import type { Store } from "../contracts/store.js";
import { createModels } from "../models/registry.js";
import { createScriptedProvider } from "../models/scripted.js";
import { builtinTools } from "../tools/builtin.js";
import { createJobHost, type JobHost } from "../kinds/job-host.js";
import type { JobKindDefinition, ToolDefinition } from "../tools/define.js";
import { createToolRegistry, type ToolRegistry } from "../tools/registry.js";
import { createClaimSweep } from "../process/claim.js";
import { openDirectoryStore } from "../store/directory.js";
import { bundlePath } from "./bundle.js";
import { type EndedSessions, watchEndedSessions } from "./ended-sessions.js";
import { type HostJobs, watchHostJobs } from "./host-jobs.js";
import { logLine } from "./log-line.js";
import { versionedBy, type WorkerDeployment } from "./versioning.js";

export { openDirectoryStore };
export { createAiSdkProvider, fromAiSdk } from "../models/ai-sdk.js";
export { providerFetch } from "../models/provider-fetch.js";
export { providersFromEnv } from "../models/providers.js";
export type { Model, ModelPart, ModelProvider, ModelRequest } from "../contracts/model.js";
export type { Store } from "../contracts/store.js";
export type { WorkerDeployment };

export type WorkerRole = "session" | "host";

export interface StartWorkerOptions {
  readonly connection: ConnectionOptions;
  /** Default `default`. */
  readonly namespace?: string;
  /** Data directory of this machine. */
  readonly home: string;
  readonly store: Store;
  /** This machine's name as a host. */
  readonly hostId: string;
  /** Default both. */
  readonly roles?: readonly WorkerRole[];
  /** Beside the scripted one, which one of the same name replaces. */
  readonly models?: readonly ModelProvider[];
  /** Beside bash, read and write. */
  readonly tools?: readonly ToolDefinition[];
  /** Beside bash. */
  readonly jobKinds?: readonly JobKindDefinition[];
  /** Live background jobs of this host above which none is started; default 500. */
  readonly maxJobs?: number;
  /**
   * Heartbeats are sent no more often than this, default every 2 s. On a paid cluster each costs an action; where the server
   * has no worker commands, a cancel is noticed only with one.
   */
  readonly heartbeatThrottleMs?: number;
  /** How often the jobs of this host are checked for an owner that is gone; default 50 s, so that they end within a minute. */
  readonly ownerCheckMs?: number;
  /** How often the session role looks for sessions that have ended, to archive them; default 60 s. */
  readonly archiveSweepMs?: number;
  /** Default: the bundle of the build. */
  readonly workflowBundlePath?: string;
  /**
   * Makes the session role versioned: it gets work once `longhaul rollout` has made its build the current one. Default unversioned.
   * The host role never is.
   */
  readonly deployment?: WorkerDeployment;
  /** Queue of the session role; default `longhaul`. */
  readonly sessionQueue?: string;
  /** Workflows kept in memory; default from the heap limit. 0: every task replays. */
  readonly maxCachedWorkflows?: number;
  /** How long activities may go on after `stop`; default 10 s. Shell jobs are let go at once and live on. */
  readonly shutdownGraceMs?: number;
}

export interface RunningWorker {
  /** Drains: activities are told, and have the grace to report. */
  stop(): Promise<void>;
  /** Settles when the worker has stopped; rejects when it stopped by a failure. */
  readonly done: Promise<void>;
}

/** Connects and runs one worker process: the session role, the host role, or both (design §1, D16). */
export async function startWorker(options: StartWorkerOptions): Promise<RunningWorker> {
  const { namespace = "default", roles = ["session", "host"], home, store, hostId } = options;
  const codePath = options.workflowBundlePath ?? bundlePath;
  if (!existsSync(codePath)) {
    throw new LonghaulError(
      "INVALID_CONFIG",
      `the workflow bundle ${codePath} is missing; run \`npm run build\``,
    );
  }
  await store.check();
  installRuntime();
  const isHost = roles.includes("host");
  const tools = createToolRegistry([...builtinTools, ...(options.tools ?? [])]);
  const { maxJobs, throttleMs, shutdownGraceMs, ownerCheckMs, archiveSweepMs } = numbersOf(options);
  const jobs = createJobHost({ home, host: hostId, store, maxJobs, kinds: options.jobKinds ?? [] });
  checkJobKinds(tools, jobs);
  const stopping = new AbortController();
  // Each follower of a job listens.
  setMaxListeners(0, stopping.signal);
  let client: Client | undefined;
  const claimSweep = createClaimSweep(home);
  const hostJobs = isHost
    ? await watchHostJobs({
        home,
        warn,
        sweep: async (onTrouble, signal) => {
          if (client !== undefined) await sweepHostJobs({ client, jobs, onTrouble, signal });
          await claimSweep();
        },
      })
    : undefined;
  const sessionQueue = options.sessionQueue ?? queues.sessions;
  let endedSessions: EndedSessions | undefined;
  const workers: Worker[] = [];
  let connection: NativeConnection | undefined;
  try {
    connection = await NativeConnection.connect(nativeOptions(options.connection));
    client = new Client({ connection, namespace });
    const given = options.models ?? [];
    const scripted = given.some((model) => model.provider === "scripted")
      ? []
      : [createScriptedProvider()];
    const models = createModels([...scripted, ...given]);
    const deps: ActivityDeps = { client, models, tools, store, home, host: hostId };
    const common = {
      connection,
      namespace,
      shutdownGraceTime: shutdownGraceMs,
      maxHeartbeatThrottleInterval: throttleMs,
      defaultHeartbeatThrottleInterval: throttleMs,
    } satisfies Partial<WorkerOptions>;
    if (roles.includes("session")) {
      const { activities, offerSurface, archive } = createSessionSide(deps);
      workers.push(
        await Worker.create({
          ...common,
          taskQueue: sessionQueue,
          workflowBundle: { codePath },
          activities: { ...activities },
          sinks: surfaceSinks(offerSurface),
          stickyQueueScheduleToStartTimeout: "2s",
          ...(options.maxCachedWorkflows === undefined
            ? {}
            : { maxCachedWorkflows: options.maxCachedWorkflows }),
          ...versionedBy(options.deployment),
        }),
      );
      endedSessions = watchEndedSessions({
        sweep: createEndedSweep({
          client,
          archive,
          taskQueue: sessionQueue,
          warn,
        }),
        intervalMs: archiveSweepMs,
        warn,
      });
    }
    if (isHost) {
      const host = createHostActivities({
        ...deps,
        jobs,
        stopping: stopping.signal,
        shutdownGraceMs,
        ownerCheckMs,
      });
      const queue = async (
        taskQueue: string,
        slots: number,
        ...names: readonly (keyof typeof host)[]
      ): Promise<Worker> =>
        Worker.create({
          ...common,
          taskQueue,
          activities: Object.fromEntries(names.map((name) => [name, host[name]])),
          maxConcurrentActivityTaskExecutions: slots,
        });
      workers.push(
        await queue(
          hostControlQueue(hostId),
          20,
          "host.tools",
          "host.present",
          "tool.seal",
          "job.begin",
          "job.end",
        ),
        await queue(hostQueue(hostId), 64, "tool.run"),
        // A follower never waits for a place (spec/jobs J25).
        await queue(hostJobsQueue(hostId), maxJobs + 20, "job.follow"),
        await queue(queues.hosts, 5, "host.tools"),
      );
      await claimSweep();
    }
  } catch (error) {
    await connection?.close();
    await hostJobs?.stop();
    throw error;
  }
  const stop = (): void => {
    // First: nobody here answers its queries any more.
    void endedSessions?.stop();
    for (const worker of workers) if (worker.getState() === "RUNNING") worker.shutdown();
    stopping.abort();
  };
  const running = workers.map((worker) => worker.run());
  hostJobs?.beginSweeping();
  endedSessions?.begin();
  const done = Promise.all(running).then(
    () => closeAll(connection, hostJobs, endedSessions),
    async (error: unknown) => {
      stop();
      await Promise.allSettled(running);
      await closeAll(connection, hostJobs, endedSessions);
      throw error;
    },
  );
  done.catch(() => {});
  return {
    done,
    async stop() {
      stop();
      await done;
    },
  };
}

async function closeAll(
  connection: NativeConnection | undefined,
  hostJobs: HostJobs | undefined,
  endedSessions: EndedSessions | undefined,
): Promise<void> {
  await Promise.all([hostJobs?.stop(), endedSessions?.stop()]);
  await connection?.close();
}

/** INVALID_CONFIG for what is no whole number in its range. */
function numbersOf(options: StartWorkerOptions): {
  readonly maxJobs: number;
  readonly throttleMs: number;
  readonly shutdownGraceMs: number;
  readonly ownerCheckMs: number;
  readonly archiveSweepMs: number;
} {
  const whole = (name: string, given: number | undefined, standard: number, from: number) => {
    const value = given ?? standard;
    if (Number.isSafeInteger(value) && value >= from && value < 2 ** 31) return value;
    throw new LonghaulError(
      "INVALID_CONFIG",
      `${name} expected a whole number of at least ${from}, got ${value}`,
    );
  };
  return {
    maxJobs: whole("maxJobs", options.maxJobs, 500, 1),
    throttleMs: whole("heartbeatThrottleMs", options.heartbeatThrottleMs, 2_000, 100),
    shutdownGraceMs: whole("shutdownGraceMs", options.shutdownGraceMs, 10_000, 0),
    ownerCheckMs: whole("ownerCheckMs", options.ownerCheckMs, 50_000, 10),
    archiveSweepMs: whole("archiveSweepMs", options.archiveSweepMs, 60_000, 10),
  };
}

/** A tool whose background calls nobody could run is a mistake of the deployment. */
function checkJobKinds(tools: ToolRegistry, jobs: JobHost): void {
  for (const { name, jobKind } of tools.table()) {
    if (jobKind === undefined || jobs.kinds.some(({ kind }) => kind === jobKind)) continue;
    throw new LonghaulError(
      "INVALID_CONFIG",
      `tool ${name} starts jobs of the kind ${jobKind}, which this worker does not have; define it with defineJobKind`,
    );
  }
}

function surfaceSinks(
  offer: ReturnType<typeof createSessionSide>["offerSurface"],
): InjectedSinks<SessionSinks> {
  return {
    surface: {
      offer: {
        fn: ({ workflowId }, from, nodes) => offer({ sessionId: workflowId }, from, nodes),
        callDuringReplay: false,
      },
    },
  };
}

function warn(message: string): void {
  Runtime.instance().logger.warn(message);
}

let installed = false;

function writeLine(entry: LogEntry): void {
  const line = logLine(entry);
  if (line !== undefined) process.stderr.write(`${line}\n`);
}

/** One runtime a process; the SDK refuses a second. */
function installRuntime(): void {
  if (installed) return;
  installed = true;
  try {
    Runtime.install({
      logger: new DefaultLogger("WARN", writeLine),
      telemetryOptions: {
        logging: { forward: {}, filter: makeTelemetryFilterString({ core: "WARN" }) },
      },
      shutdownSignals: [],
    });
  } catch {
    // The embedding program has installed its own.
  }
}

function nativeOptions(options: ConnectionOptions): NativeConnectionOptions {
  const { address, tls, apiKey, metadata } = options;
  return {
    ...(address === undefined ? {} : { address }),
    ...(tls === undefined || tls === null ? {} : { tls }),
    ...(typeof apiKey === "string" ? { apiKey } : {}),
    ...(metadata === undefined
      ? {}
      : {
          metadata: Object.fromEntries(
            Object.entries(metadata).map(([key, value]) => [key, String(value)]),
          ),
        }),
  };
}
