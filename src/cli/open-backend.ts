import { join } from "node:path";
import { Connection, type ConnectionOptions } from "@temporalio/client";
import { LonghaulClient } from "../client/index.js";
import type { Store } from "../contracts/store.js";
import { queues, searchAttributes, type SearchAttributeName } from "../contracts/names.js";
import { acquireServer } from "../server/index.js";
import { openDirectoryStore } from "../store/directory.js";
import type { Backend, RunningWorker } from "./backend.js";
import type { BackendRequest } from "./command.js";
import type { Io } from "./io.js";
import { keepServer } from "./keep-server.js";
import { serverLeftBehind } from "./left-behind.js";

/** Finds or starts the Temporal server of the data directory, or joins the cluster the environment names, and connects. */
export async function openBackend(request: BackendRequest, io: Io): Promise<Backend> {
  const { home, report = () => {}, keep = false } = request;
  const settled = io.onForcedExit?.(() => serverLeftBehind(home));
  const server = await acquireServer({
    home,
    env: io.env,
    report,
    keep,
    ...(request.register === true ? { attributes: searchAttributes } : {}),
  }).catch((error: unknown) => {
    settled?.();
    throw error;
  });
  if (!server.owned) settled?.();
  const release = () => {
    settled?.();
    return server.release();
  };
  const { address, namespace, connection, uiUrl } = server;
  try {
    const folder = join(home, "store");
    const store = lazily(() => openDirectoryStore(folder));
    const laterStore = openedLater(folder, store);
    const attributes =
      request.register === true
        ? { attributes: wanted.filter((name) => server.attributes.has(name)) }
        : {};
    const client = await LonghaulClient.connect({
      connection,
      namespace,
      store: laterStore,
      ...attributes,
    });
    const workers: Promise<RunningWorker>[] = [];
    const closing = new AbortController();
    const lookedAfter = (worker: RunningWorker): RunningWorker => {
      const kept = keepServer(server, closing.signal).then(() => worker.done);
      return { stop: () => worker.stop(), done: Promise.race([worker.done, kept]) };
    };
    return {
      address,
      namespace,
      sessionUrl: (id) =>
        uiUrl === undefined
          ? undefined
          : `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`,
      createSession: (options) => client.createSession(options),
      session: (id) => client.session(id),
      list: (filter) => client.list(filter),
      archived: () => client.archived(),
      purge: (id, options) => client.purge(id, options),
      hosts: (also) => client.hosts(also),
      rollOut: (build, options) => client.rollOut(build, options),
      freeSessions: (build, options) => client.freeSessions(build, options),
      fork: (source, options) => client.fork(source, options),
      export: (id) => client.export(id),
      importSession: (text, options) => client.importSession(text, options),
      verify: (id) => client.verify(id),
      store: laterStore,
      workerSeen: () => workerSeen(connection, namespace),
      startWorker({ roles, hostId, models, tools = [], jobKinds = [], maxJobs, deployment }) {
        const starting = import("../worker/index.js").then(async ({ startWorker }) => {
          // Before any workflow thread starts, and after the import has seen the zone commands are to run in.
          process.env["TZ"] = "UTC";
          const opened = await store();
          return startWorker({
            connection,
            namespace,
            home,
            store: opened,
            hostId,
            roles,
            tools,
            jobKinds,
            ...(maxJobs === undefined ? {} : { maxJobs }),
            ...(deployment === undefined ? {} : { deployment }),
            ...(models === undefined ? {} : { models: await models(opened) }),
          });
        });
        workers.push(starting);
        return starting.then((worker) => (server.owned ? lookedAfter(worker) : worker));
      },
      async close() {
        closing.abort();
        try {
          for (const starting of workers) await (await starting.catch(() => undefined))?.stop();
        } finally {
          try {
            await client.close();
          } finally {
            await release();
          }
        }
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys of a literal
const wanted = Object.keys(searchAttributes) as SearchAttributeName[];

/** A broken store stops only what needs it: most of what is read of a session does not. */
function openedLater(folder: string, store: () => Promise<Store>): Store {
  return {
    append: async (...args) => (await store()).append(...args),
    read: async (...args) => (await store()).read(...args),
    size: async (...args) => (await store()).size(...args),
    sync: async (...args) => (await store()).sync(...args),
    list: async (...args) => (await store()).list(...args),
    remove: async (...args) => (await store()).remove(...args),
    check: async () => (await store()).check(),
    async *sessions() {
      yield* (await store()).sessions();
    },
    locator: (...stream) => join(folder, ...stream),
  };
}

/** Made at the first use, and again after it could not be. */
function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    if (made === undefined) {
      const making = make();
      made = making;
      making.catch(() => {
        made = undefined;
      });
    }
    return made;
  };
}

/** A poll lasts up to a minute, and its time is that of its beginning. */
const pollMs = 70_000;

async function workerSeen(options: ConnectionOptions, namespace: string): Promise<boolean> {
  const connection = await Connection.connect(options);
  try {
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: queues.sessions },
      // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum would load another package
      taskQueueType: workflowTasks,
    });
    return pollers.some(
      ({ lastAccessTime }) => Date.now() - Number(lastAccessTime?.seconds ?? 0) * 1_000 < pollMs,
    );
  } finally {
    await connection.close();
  }
}

/** `TASK_QUEUE_TYPE_WORKFLOW` of the API. */
const workflowTasks = 1;
