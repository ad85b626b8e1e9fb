import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { Worker } from "@temporalio/worker";
import { expect, inject, test as base } from "vitest";
import { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { CreateSessionOptions } from "../../src/client/types.js";
import { defaultLimits, type SessionConfig } from "../../src/contracts/config.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelRequest } from "../../src/contracts/model.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import {
  startWorker,
  type RunningWorker,
  type StartWorkerOptions,
} from "../../src/worker/index.js";
import type { ScenarioInput } from "./scenario-input.js";
import { readRecorded } from "./recorded.js";

type History = Awaited<ReturnType<WorkflowHandle["fetchHistory"]>>;

/** A worker, a client and a store on the project's Temporal server, for one test file. */
export interface Lab {
  readonly client: LonghaulClient;
  /** The plain Temporal client, for what Longhaul's own does not do. */
  readonly temporal: Client;
  readonly store: Store;
  readonly home: string;
  readonly hostId: string;
  readonly address: string;
  readonly bundlePath: string;
  /** A session on a scenario; bound to this lab's host, with a workspace of its own. */
  session(scenario: ScenarioInput, options?: SessionOptions): Promise<SessionClient>;
  /** Writes a scenario file and returns its path. */
  scenario(scenario: ScenarioInput): Promise<string>;
  workspace(): Promise<string>;
  /** A configuration for a scenario file. */
  config(model: string, change?: Partial<SessionConfig>): SessionConfig;
  /** Sends, waits until the session is idle, and returns its whole log. */
  play(session: SessionClient, text?: string): Promise<LogEntry[]>;
  entries(session: SessionClient): Promise<LogEntry[]>;
  history(id: string): Promise<History>;
  /** Every request the scripted model got for a session, in order. */
  requests(id: string): Promise<ModelRequest[]>;
  /** Another worker, stopped at the end of the test; the lab's own can be stopped with `stopWorker`. */
  worker(options?: Partial<StartWorkerOptions>): Promise<RunningWorker>;
  stopWorker(): Promise<void>;
  startOwnWorker(): Promise<void>;
  /** A session that is not to be replayed at the end (its history was tampered with on purpose). */
  skipReplay(id: string): void;
  /** Adopts a session created elsewhere: replayed and ended with the test. */
  adopt(id: string): void;
}

export interface SessionOptions extends Partial<Omit<CreateSessionOptions, "config">> {
  readonly config?: Partial<SessionConfig>;
}

export const cacheSize = Number(process.env["LONGHAUL_TEST_CACHE"] ?? 100);

interface Tracked {
  readonly ids: Set<string>;
  readonly skipped: Set<string>;
  readonly workers: Set<RunningWorker>;
}

interface Fixtures {
  readonly lab: Lab;
  readonly base: Lab & { readonly tracked: Tracked };
}

/** Every test ends by replaying the history of each session it made, and ends those that are still open. */
export const test = base.extend<Fixtures>({
  base: [
    // oxlint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const lab = await openLab();
      await use(lab);
      await lab.dispose();
    },
    { scope: "file" },
  ],
  lab: async ({ base: lab }, use) => {
    await use(lab);
    const { tracked } = lab;
    for (const worker of tracked.workers) await worker.stop();
    tracked.workers.clear();
    try {
      for (const id of tracked.ids) if (!tracked.skipped.has(id)) await replay(lab, id);
    } finally {
      for (const id of tracked.ids) await endQuietly(lab.temporal, id);
      tracked.ids.clear();
    }
  },
});

/** Replays a session's history on the bundle under test; a divergence fails. */
export async function replay(lab: Pick<Lab, "history" | "bundlePath">, id: string): Promise<void> {
  const history = await lab.history(id);
  await expect(
    Worker.runReplayHistory({ workflowBundle: { codePath: lab.bundlePath } }, history, id),
    `the history of ${id} replays`,
  ).resolves.toBeUndefined();
}

async function endQuietly(temporal: Client, id: string): Promise<void> {
  await temporal.workflow
    .getHandle(id)
    .terminate("the test has ended")
    .catch(() => {});
}

async function openLab(): Promise<Lab & { readonly tracked: Tracked; dispose(): Promise<void> }> {
  const address = inject("temporalAddress");
  const bundlePath = inject("workflowBundlePath");
  const root = await mkdtemp(join(tmpdir(), "longhaul-lab-"));
  const home = join(root, "home");
  const recordDir = join(root, "requests");
  process.env["LONGHAUL_SCRIPTED_RECORD"] = recordDir;
  await mkdir(home, { recursive: true });
  await mkdir(recordDir, { recursive: true });
  const store = await openDirectoryStore(join(home, "store"));
  const hostId = `host-${randomUUID().slice(0, 8)}`;
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection });
  const client = await LonghaulClient.connect({ connection: { address }, store });
  const tracked: Tracked = { ids: new Set(), skipped: new Set(), workers: new Set() };
  let own: RunningWorker | undefined;

  const lab: Lab & { readonly tracked: Tracked; dispose(): Promise<void> } = {
    client,
    temporal,
    store,
    home,
    hostId,
    address,
    bundlePath,
    tracked,
    async scenario(scenario) {
      const path = join(root, `${randomUUID()}.yaml`);
      await writeFile(path, JSON.stringify({ name: "test", ...scenario }));
      return path;
    },
    async workspace() {
      const path = join(root, "workspaces", randomUUID());
      await mkdir(path, { recursive: true });
      return path;
    },
    config: (model, change = {}) => ({
      request: { provider: "scripted", model },
      allowParallelInProgress: true,
      worldTools: true,
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
      ...change,
    }),
    async session(scenario, options = {}) {
      const cwd = await lab.workspace();
      const { config, ...rest } = options;
      const session = await client.createSession({
        id: `t-${randomUUID()}`,
        host: hostId,
        ...rest,
        config: lab.config(await lab.scenario(scenario), { cwd, ...config }),
      });
      tracked.ids.add(session.id);
      return session;
    },
    async play(session, text = "go") {
      await session.followup(text);
      await session.waitIdle();
      return lab.entries(session);
    },
    async entries(session) {
      const entries: LogEntry[] = [];
      for await (const entry of session.log()) entries.push(entry);
      return entries;
    },
    history: (id) => temporal.workflow.getHandle(id).fetchHistory(),
    requests: (id) => readRecorded(recordDir, id),
    async worker(options = {}) {
      const worker = await start(options);
      tracked.workers.add(worker);
      return worker;
    },
    async stopWorker() {
      await own?.stop();
      own = undefined;
    },
    async startOwnWorker() {
      own ??= await start({});
    },
    skipReplay: (id) => void tracked.skipped.add(id),
    adopt: (id) => void tracked.ids.add(id),
    async dispose() {
      await own?.stop();
      await client.close();
      await connection.close();
      await rm(root, { recursive: true, force: true });
    },
  };

  async function start(options: Partial<StartWorkerOptions>): Promise<RunningWorker> {
    return startWorker({
      connection: { address },
      home,
      store,
      hostId,
      workflowBundlePath: bundlePath,
      maxCachedWorkflows: cacheSize,
      ...options,
    });
  }

  own = await start({});
  return lab;
}
