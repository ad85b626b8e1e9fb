import { existsSync } from "node:fs";
import { Client, type ConnectionOptions } from "@temporalio/client";
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  type LogEntry,
  type NativeConnectionOptions,
  type WorkerOptions,
} from "@temporalio/worker";
import {
  createHostActivities,
  createSessionActivities,
  type ActivityDeps,
} from "../activities/index.js";
import { LonghaulError } from "../contracts/errors.js";
import type { ModelProvider } from "../contracts/model.js";
import { hostControlQueue, hostQueue, queues } from "../contracts/names.js";
import type { Store } from "../contracts/store.js";
import { createModels } from "../models/registry.js";
import { createScriptedProvider } from "../models/scripted.js";
import { builtinTools } from "../tools/builtin.js";
import type { ToolDefinition } from "../tools/define.js";
import { createToolRegistry } from "../tools/registry.js";
import { sweepClaims } from "../process/claim.js";
import { openDirectoryStore } from "../store/directory.js";
import { bundlePath } from "./bundle.js";
import { logLine } from "./log-line.js";

export { openDirectoryStore };
export { createAiSdkProvider, fromAiSdk } from "../models/ai-sdk.js";
export { providerFetch } from "../models/provider-fetch.js";
export { providersFromEnv } from "../models/providers.js";
export type { Model, ModelPart, ModelProvider, ModelRequest } from "../contracts/model.js";
export type { Store } from "../contracts/store.js";

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
  /** Default: the bundle of the build. */
  readonly workflowBundlePath?: string;
  /** Queue of the session role; default `longhaul`. */
  readonly sessionQueue?: string;
  /** Workflows kept in memory; default from the heap limit. 0: every task replays. */
  readonly maxCachedWorkflows?: number;
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
  const connection = await NativeConnection.connect(nativeOptions(options.connection));
  const workers: Worker[] = [];
  try {
    const tools = createToolRegistry([...builtinTools, ...(options.tools ?? [])]);
    const given = options.models ?? [];
    const scripted = given.some((model) => model.provider === "scripted")
      ? []
      : [createScriptedProvider()];
    const models = createModels([...scripted, ...given]);
    const deps: ActivityDeps = {
      client: new Client({ connection, namespace }),
      models,
      tools,
      store,
      home,
      host: hostId,
    };
    const common = {
      connection,
      namespace,
      shutdownGraceTime: options.shutdownGraceMs ?? 10_000,
      maxHeartbeatThrottleInterval: "2s",
      defaultHeartbeatThrottleInterval: "2s",
    } satisfies Partial<WorkerOptions>;
    if (roles.includes("session")) {
      workers.push(
        await Worker.create({
          ...common,
          taskQueue: options.sessionQueue ?? queues.sessions,
          workflowBundle: { codePath },
          activities: { ...createSessionActivities(deps) },
          stickyQueueScheduleToStartTimeout: "2s",
          ...(options.maxCachedWorkflows === undefined
            ? {}
            : { maxCachedWorkflows: options.maxCachedWorkflows }),
        }),
      );
    }
    if (roles.includes("host")) {
      const host = createHostActivities(deps);
      const { "host.tools": hostTools, "tool.run": runTool, "tool.seal": sealTool } = host;
      const queue = async (
        taskQueue: string,
        slots: number,
        activities: Record<string, unknown>,
      ): Promise<Worker> =>
        Worker.create({
          ...common,
          taskQueue,
          activities,
          maxConcurrentActivityTaskExecutions: slots,
        });
      workers.push(
        await queue(hostControlQueue(hostId), 20, {
          "host.tools": hostTools,
          "tool.seal": sealTool,
        }),
        await queue(hostQueue(hostId), 64, { "tool.run": runTool }),
        await queue(queues.hosts, 5, { "host.tools": hostTools }),
      );
      await sweepClaims(home);
    }
  } catch (error) {
    await connection.close();
    throw error;
  }
  const running = workers.map((worker) => worker.run());
  const done = Promise.all(running).then(
    () => connection.close(),
    async (error: unknown) => {
      for (const worker of workers) if (worker.getState() === "RUNNING") worker.shutdown();
      await Promise.allSettled(running);
      await connection.close();
      throw error;
    },
  );
  done.catch(() => {});
  return {
    done,
    async stop() {
      for (const worker of workers) if (worker.getState() === "RUNNING") worker.shutdown();
      await done;
    },
  };
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
