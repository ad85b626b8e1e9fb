import { randomUUID } from "node:crypto";
import { Connection } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { makeDirectory } from "../store/make-directory.js";
import { registerAttributes, type AttributeTypes } from "./attributes.js";
import {
  clusterFromEnvironment,
  verifyCluster,
  type Cluster,
  type ClusterConnection,
} from "./cluster.js";
import { setting, type Environment, type Report } from "./environment.js";
import { ownIdentity } from "./process-identity.js";
import { endProcess, ensureRunning, findServer } from "./running.js";
import {
  readState,
  serverPaths,
  sweepUsers,
  withServerLock,
  writeState,
  type ServerPaths,
  type ServerPorts,
  type ServerState,
} from "./state.js";

export interface AcquireServer {
  /** Longhaul's data directory, on this machine. */
  readonly home: string;
  readonly env?: Environment;
  readonly report?: Report;
  /** Leave the server running when the last user goes. */
  readonly keep?: boolean;
  /** Registered when missing, where that is allowed. */
  readonly attributes?: AttributeTypes;
  /** The download service, for tests and mirrors. */
  readonly downloadUrl?: string;
}

export interface ServerHandle {
  readonly address: string;
  readonly namespace: string;
  /** For `Connection.connect` and `NativeConnection.connect`: address, TLS and API key. */
  readonly connection: ClusterConnection;
  /** Temporal's web UI, known for the embedded server only. */
  readonly uiUrl?: string;
  /** True for the embedded server, which Longhaul starts and stops; false for somebody's cluster. */
  readonly owned: boolean;
  /** The wanted search attributes that can be used. */
  readonly attributes: ReadonlySet<string>;
  /**
   * To be called when connections fail: restarts the embedded server, at the same address, if it died. Throws
   * TEMPORAL_START_FAILED, or TEMPORAL_UNREACHABLE when it was stopped on purpose or is somebody's cluster.
   */
  readonly ensure: () => Promise<void>;
  /** Gives the server up; the last user out stops it. May be called again. */
  readonly release: () => Promise<void>;
}

/**
 * Gets a Temporal server to work with: the cluster that the environment names, checked, else the embedded one
 * of this data directory, started when it does not run. Throws TEMPORAL_UNREACHABLE, NAMESPACE_NOT_FOUND,
 * TEMPORAL_NOT_FOUND, TEMPORAL_START_FAILED or INVALID_CONFIG.
 */
export async function acquireServer(options: AcquireServer): Promise<ServerHandle> {
  const { env = process.env, report = () => {} } = options;
  const cluster = clusterFromEnvironment(env);
  if (cluster !== undefined) {
    await verifyCluster(cluster);
    return clusterHandle(cluster, await register(cluster.connection, cluster.namespace, options));
  }
  if (setting(env, "TEMPORAL_NAMESPACE") !== undefined) {
    report(
      'TEMPORAL_NAMESPACE is ignored without TEMPORAL_ADDRESS; the embedded server has "default"',
    );
  }
  makeDirectory(options.home);
  const paths = serverPaths(options.home);
  const run = { ...options, paths, env, report };
  const user = { ...(await ownIdentity()), id: randomUUID(), since: Date.now() };
  const ports = await withServerLock(paths, report, async () => {
    const state = await ensureRunning(run, await sweepUsers(await readState(paths)));
    const keep = state.keep || options.keep === true;
    await writeState(paths, { ...state, keep, users: [...state.users, user] });
    return state.server;
  });
  const release = once(() => releaseUser(paths, user.id, report));
  try {
    const connection = { address: `127.0.0.1:${ports.port}` };
    const attributes = await register(connection, embeddedNamespace, options);
    const ensure = () =>
      withServerLock(paths, report, async () => {
        const state = await sweepUsers(await readState(paths));
        if (state.users.some((other) => other.id === user.id)) {
          await writeState(paths, await ensureRunning(run, state));
          return;
        }
        // Stopped by force meanwhile. Only if it was also started again, at the same place, do we go on.
        if ((await findServer(paths, state))?.port !== ports.port)
          throw stoppedOnPurpose(options.home);
        const running = await ensureRunning(run, state);
        await writeState(paths, { ...running, users: [...running.users, user] });
      });
    return {
      ...addresses(ports),
      namespace: embeddedNamespace,
      connection,
      owned: true,
      attributes,
      ensure,
      release,
    };
  } catch (error) {
    await release();
    throw error;
  }
}

export const embeddedNamespace = "default";

/** Where a server with these ports is reached. */
export function addresses(ports: ServerPorts): { address: string; uiUrl: string } {
  return { address: `127.0.0.1:${ports.port}`, uiUrl: `http://127.0.0.1:${ports.uiPort}` };
}

/** Stops the server, if it runs, and forgets its users. Call under the lock. */
export async function endServer(paths: ServerPaths, state: ServerState): Promise<void> {
  const server = await findServer(paths, state);
  if (server !== undefined && !(await endProcess(server))) {
    throw new LonghaulError(
      "TEMPORAL_START_FAILED",
      `The embedded Temporal server (process ${server.pid}) does not end, not even on SIGKILL. End it by hand and try again.`,
    );
  }
  await writeState(paths, { keep: false, users: [] });
}

async function releaseUser(paths: ServerPaths, id: string, report: Report): Promise<void> {
  await withServerLock(paths, report, async () => {
    const swept = await sweepUsers(await readState(paths));
    const state = { ...swept, users: swept.users.filter((user) => user.id !== id) };
    if (state.users.length === 0 && !state.keep) {
      report("stopping the Temporal server: nobody uses it any more");
      await endServer(paths, state);
    } else {
      await writeState(paths, state);
    }
  });
}

function clusterHandle(cluster: Cluster, attributes: ReadonlySet<string>): ServerHandle {
  const { address, namespace, connection } = cluster;
  return {
    address,
    namespace,
    connection,
    owned: false,
    attributes,
    ensure: () => verifyCluster(cluster),
    release: () => Promise.resolve(),
  };
}

async function register(
  target: ClusterConnection,
  namespace: string,
  options: AcquireServer,
): Promise<ReadonlySet<string>> {
  const { attributes, report } = options;
  if (attributes === undefined) return new Set();
  const connection = await Connection.connect({ ...target });
  try {
    return await registerAttributes(connection, namespace, attributes, report);
  } finally {
    await connection.close();
  }
}

function stoppedOnPurpose(home: string): LonghaulError {
  return new LonghaulError(
    "TEMPORAL_UNREACHABLE",
    `The embedded Temporal server of ${home} was stopped while this process used it. Start this process again, or run \`longhaul server start\`.`,
  );
}

/** One run for all callers; a failed one may be tried again. */
function once(work: () => Promise<void>): () => Promise<void> {
  let run: Promise<void> | undefined;
  return () =>
    (run ??= work().catch((error: unknown) => {
      run = undefined;
      throw error;
    }));
}
