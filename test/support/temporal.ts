import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { defineSearchAttributeKey, SearchAttributeType } from "@temporalio/common";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { expect, inject, test as base, vi } from "vitest";
import { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import {
  defaultLimits,
  type SessionConfig,
  type SessionLimits,
} from "../../src/contracts/config.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelRequest } from "../../src/contracts/model.js";
import { searchAttributes, type SearchAttributeName } from "../../src/contracts/names.js";
import type { SessionInput } from "../../src/contracts/session.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import {
  startWorker,
  type RunningWorker,
  type StartWorkerOptions,
} from "../../src/worker/index.js";
import { runsOf, type History } from "./history.js";
import { brokenRules } from "./log-rules.js";
import { patientHandle } from "./patient-handle.js";
import { readRecorded } from "./recorded.js";
import { openReplayer, type Replayer } from "./replayer.js";
import type { ScenarioInput } from "./scenario-input.js";
import { compareWithHistory, readHistory, type HistoryJson } from "./witness-history.js";
import { eventually } from "./until.js";
import {
  compareRequests,
  compareSummaries,
  readRecorded as parseRecorded,
  witnessRequests,
  witnessSummaries,
} from "./witness.js";

/** Other work on the machine, and a cold worker that replays all the time, must not fail a test. */
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

export const cacheSize = Number(process.env["LONGHAUL_TEST_CACHE"] ?? 100);

/** A session queue and a host of their own, so that stopping their worker disturbs nobody else. */
export interface Place {
  readonly queue: string;
  readonly hostId: string;
  readonly home: string;
  /** Starts a worker; both roles, unless told otherwise. */
  start(options?: Partial<StartWorkerOptions>): Promise<RunningWorker>;
  /** Stops all its workers. */
  stop(): Promise<void>;
}

export interface SessionOptions {
  readonly config?: Partial<Omit<SessionConfig, "limits">>;
  readonly limits?: Partial<SessionLimits>;
  /** Default: the lab's own place. */
  readonly at?: Place;
  /** `null`: whichever answers. */
  readonly host?: string | null;
  readonly title?: string;
  readonly attributes?: readonly SearchAttributeName[];
  /** Default true. */
  readonly waitReady?: boolean;
  /** Neither replayed nor checked at the end: its history was tampered with on purpose. */
  readonly unchecked?: boolean;
}

/** Sessions, workers and files of one test on the project's Temporal server. Tests may run at the same time. */
export interface Lab {
  readonly client: LonghaulClient;
  /** The plain Temporal client, for what Longhaul's own does not do. */
  readonly temporal: Client;
  readonly store: Store;
  readonly address: string;
  readonly bundlePath: string;
  /** Queue, host and home of the worker that all tests of the file share. */
  readonly own: Place;
  /** A session on a scenario, with a workspace of its own. */
  session(scenario: ScenarioInput, options?: SessionOptions): Promise<SessionClient>;
  /** A place with one worker running, stopped at the end of the test. */
  place(options?: Partial<StartWorkerOptions>): Promise<Place>;
  /** The same without a worker. */
  emptyPlace(options?: Partial<StartWorkerOptions>): Promise<Place>;
  /** Writes a scenario file and returns its path. */
  scenario(scenario: ScenarioInput): Promise<string>;
  workspace(): Promise<string>;
  /** Sends, waits until the session is idle, and returns its whole log. */
  play(session: SessionClient, text?: string): Promise<LogEntry[]>;
  /** The whole log, held against the rules that every log keeps. */
  entries(session: SessionClient): Promise<LogEntry[]>;
  /** Its updates are sent again when the server gave them up unanswered. */
  handle(id: string): WorkflowHandle;
  /** Of the newest run. */
  history(id: string): Promise<History>;
  /** Histories of all runs, the oldest first. */
  runs(id: string): Promise<readonly History[]>;
  historyIn(namespace: string, id: string): Promise<History>;
  /** Every request the scripted model got for a session, in order. */
  requests(id: string): Promise<ModelRequest[]>;
  /** Holds log, recorded requests and history against each other (test/support/witness.ts). */
  witness(session: SessionClient): Promise<void>;
  /** Replays a session now, on a bundle of its own, instead of at the end. */
  replayOn(bundlePath: string, session: SessionClient): Promise<void>;
  /** A session made elsewhere: checked and ended with the test. */
  adopt(id: string): void;
}

const stateKey = defineSearchAttributeKey("LonghaulState", SearchAttributeType.KEYWORD);

interface Shared {
  readonly client: LonghaulClient;
  readonly temporal: Client;
  readonly store: Store;
  readonly root: string;
  readonly recordDir: string;
  readonly address: string;
  readonly bundlePath: string;
  readonly own: Place;
  readonly replayer: Replayer;
}

/** Every test ends by replaying the history of each of its sessions, and ends those that are still open. */
export const test = base.extend<{
  lab: Lab;
  shared: Shared;
  /** What the worker shared by the tests of a file is started with, beside the usual. */
  workerOptions: Partial<StartWorkerOptions>;
}>({
  workerOptions: [{}, { scope: "file" }],
  shared: [
    async ({ workerOptions }, use) => {
      const opened = await openShared(workerOptions);
      await use(opened.shared);
      await opened.dispose();
    },
    { scope: "file" },
  ],
  lab: async ({ shared }, use) => {
    const opened = openLab(shared);
    try {
      await use(opened.lab);
    } finally {
      await opened.finish();
    }
  },
});

/** What Temporal UI shows a session to be at. */
export async function detailsOf(lab: Pick<Lab, "handle">, id: string): Promise<string> {
  const metadata = await lab
    .handle(id)
    .query<{ currentDetails?: string }>("__temporal_workflow_metadata");
  return metadata.currentDetails ?? "";
}

/** Replays one history on a bundle; a divergence, and a task that ever failed, fail the test. */
export async function replay(bundlePath: string, history: History, id: string): Promise<void> {
  const replayer = openReplayer(bundlePath);
  try {
    await replayer.replay(history, id);
  } finally {
    await replayer.close();
  }
}

async function openShared(
  options: Partial<StartWorkerOptions>,
): Promise<{ readonly shared: Shared; dispose(): Promise<void> }> {
  const address = inject("temporalAddress");
  const bundlePath = inject("workflowBundlePath");
  const root = await mkdtemp(join(tmpdir(), "longhaul-lab-"));
  const recordDir = join(root, "requests");
  await mkdir(recordDir);
  process.env["LONGHAUL_SCRIPTED_RECORD"] = recordDir;
  const store = await openDirectoryStore(join(root, "store"));
  const connection = await Connection.connect({ address });
  const client = await LonghaulClient.connect({
    connection: { address },
    store,
    // Other work on the machine must not fail a call; and without a cache the SDK may drop a task that comes during an
    // eviction: each costs a time-out of it.
    callTimeoutMs: 120_000,
  });
  const own = await openPlace({ address, bundlePath, root, store }, options);
  await own.start();
  const temporal = new Client({ connection });
  const replayer = openReplayer(bundlePath);
  return {
    shared: { client, temporal, store, root, recordDir, address, bundlePath, own, replayer },
    async dispose() {
      await replayer.close();
      await own.stop();
      await client.close();
      await connection.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function openPlace(
  { address, bundlePath, root, store }: Pick<Shared, "address" | "bundlePath" | "root" | "store">,
  defaults: Partial<StartWorkerOptions>,
): Promise<Place> {
  const name = randomUUID().slice(0, 8);
  const home = join(root, `home-${name}`);
  await mkdir(home);
  const { hostId = `host-${name}`, sessionQueue = `longhaul-${name}` } = defaults;
  const workers = new Set<RunningWorker>();
  return {
    queue: sessionQueue,
    hostId,
    home,
    async start(options = {}) {
      const worker = await startWorker({
        connection: { address },
        home,
        store,
        workflowBundlePath: bundlePath,
        maxCachedWorkflows: cacheSize,
        shutdownGraceMs: 200,
        ...defaults,
        hostId,
        sessionQueue,
        ...options,
      });
      workers.add(worker);
      return worker;
    },
    async stop() {
      const stopping = [...workers];
      workers.clear();
      await Promise.all(stopping.map((worker) => worker.stop()));
    },
  };
}

function openLab(shared: Shared): { readonly lab: Lab; finish(): Promise<void> } {
  const { client, temporal, root, recordDir, own, replayer } = shared;
  const ids = new Set<string>();
  const unchecked = new Set<string>();
  const places: Place[] = [];

  const lab: Lab = {
    ...shared,
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
    async emptyPlace(options = {}) {
      const place = await openPlace(shared, options);
      places.push(place);
      return place;
    },
    async place(options = {}) {
      const place = await lab.emptyPlace(options);
      await place.start();
      return place;
    },
    async session(scenario, options = {}) {
      const { at = own, host = at.hostId, waitReady = true } = options;
      const id = `t-${randomUUID()}`;
      const input: SessionInput = {
        v: 1,
        config: {
          request: { provider: "scripted", model: await lab.scenario(scenario) },
          allowParallelInProgress: true,
          worldTools: true,
          cwd: await lab.workspace(),
          outsideWorkspace: false,
          deny: [],
          ask: [],
          ...options.config,
          limits: { ...defaultLimits, ...options.limits },
        },
        attributes: options.attributes ?? (Object.keys(searchAttributes) as SearchAttributeName[]),
        ...(host === null ? {} : { host }),
        ...(options.title === undefined ? {} : { title: options.title }),
      };
      await temporal.workflow.start("session", {
        workflowId: id,
        taskQueue: at.queue,
        args: [input],
        staticSummary: options.title ?? id,
        // A cold worker drops a task that comes while it evicts the run; the server gives it again after this long.
        ...(cacheSize === 0 ? { workflowTaskTimeout: "3s" } : {}),
        typedSearchAttributes: input.attributes.includes("LonghaulState")
          ? [{ key: stateKey, value: "idle" }]
          : [],
      });
      ids.add(id);
      if (options.unchecked === true) unchecked.add(id);
      const session = client.session(id);
      if (waitReady) {
        await eventually(async () => expect((await session.view()).ready).toBe(true));
      }
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
      expect(brokenRules(entries), `the log of ${session.id} keeps its rules`).toEqual([]);
      return entries;
    },
    handle: (id) => patientHandle(temporal.workflow.getHandle(id)),
    history: (id) => temporal.workflow.getHandle(id).fetchHistory(),
    runs: (id) => runsOf(temporal.workflow, id),
    historyIn: (namespace, id) =>
      new Client({ connection: temporal.connection, namespace }).workflow
        .getHandle(id)
        .fetchHistory(),
    requests: (id) => readRecorded(recordDir, id),
    async witness(session) {
      const log = JSON.parse(JSON.stringify(await lab.entries(session))) as unknown[];
      const requests = (await lab.requests(session.id))
        .map((one) => JSON.stringify(one))
        .join("\n");
      const recorded = parseRecorded(requests, session.id);
      expect(compareRequests(witnessRequests(log), recorded)).toEqual([]);
      expect(compareSummaries(witnessSummaries(log), recorded)).toEqual([]);
      const runs = (await lab.runs(session.id)).map(
        (history) => JSON.parse(historyToJSON(history)) as HistoryJson,
      );
      expect(compareWithHistory(log, readHistory(runs))).toEqual([]);
    },
    async replayOn(path, { id }) {
      for (const history of await lab.runs(id)) await replay(path, history, id);
      unchecked.add(id);
    },
    adopt: (id) => void ids.add(id),
  };

  return {
    lab,
    async finish() {
      try {
        for (const id of ids) {
          if (unchecked.has(id)) continue;
          for (const history of await lab.runs(id)) await replayer.replay(history, id);
        }
      } finally {
        for (const id of ids) await endQuietly(temporal, id);
        for (const place of places) await place.stop();
      }
    },
  };
}

async function endQuietly(temporal: Client, id: string): Promise<void> {
  await temporal.workflow
    .getHandle(id)
    .terminate("the test has ended")
    .catch(() => {});
}
