import { makeDirectory } from "../store/make-directory.js";
import { addresses, endServer, type AcquireServer } from "./acquire.js";
import { ensureRunning, findServer } from "./running.js";
import {
  readState,
  serverPaths,
  sweepUsers,
  withServerLock,
  writeState,
  type ServerRecord,
  type ServerUser,
} from "./state.js";

/** The embedded server of a data directory, as `longhaul server status` shows it. */
export interface ServerStatus {
  readonly running: boolean;
  /** It is recorded as up, but its process is gone: killed, or the machine went down. */
  readonly died: boolean;
  readonly server?: ServerRecord;
  readonly address?: string;
  readonly uiUrl?: string;
  /** Stays up without users. */
  readonly keep: boolean;
  readonly users: readonly ServerUser[];
  readonly database: string;
  readonly log: string;
}

/** Looks, and changes nothing. */
export async function serverStatus(options: { readonly home: string }): Promise<ServerStatus> {
  const paths = serverPaths(options.home);
  const state = await sweepUsers(await readState(paths));
  const server = await findServer(paths, state);
  return {
    running: server !== undefined,
    died: server === undefined && state.server !== undefined,
    ...(server === undefined ? {} : { server, ...addresses(server) }),
    keep: state.keep,
    users: state.users,
    database: paths.database,
    log: paths.log,
  };
}

/**
 * Starts the embedded server without using it, and keeps it up until it is stopped (unless `keep` is false:
 * then the next user who goes stops it). Attaches when it runs already. Throws as `acquireServer` does.
 */
export async function startServer(
  options: Omit<AcquireServer, "attributes">,
): Promise<ServerStatus> {
  const { env = process.env, report = () => {}, keep = true } = options;
  makeDirectory(options.home);
  const paths = serverPaths(options.home);
  await withServerLock(paths, report, async () => {
    const state = await sweepUsers(await readState(paths));
    const running = await ensureRunning({ ...options, paths, env, report }, state);
    await writeState(paths, { ...running, keep });
  });
  return serverStatus(options);
}

export interface StopResult {
  /** False when users live and `force` was not given; true also when nothing ran. */
  readonly stopped: boolean;
  /** A server was running. */
  readonly wasRunning: boolean;
  /** The live users that were in the way, or that lost it by force. */
  readonly users: readonly ServerUser[];
}

/** Stops the embedded server. Sessions lose nothing; they go on when it is started again. */
export async function stopServer(options: {
  readonly home: string;
  readonly force?: boolean;
  readonly report?: AcquireServer["report"];
}): Promise<StopResult> {
  const { home, force = false, report = () => {} } = options;
  const paths = serverPaths(home);
  return withServerLock(paths, report, async () => {
    const state = await sweepUsers(await readState(paths));
    const wasRunning = (await findServer(paths, state)) !== undefined;
    if (state.users.length > 0 && !force) {
      return { stopped: false, wasRunning, users: state.users };
    }
    await endServer(paths, state);
    return { stopped: true, wasRunning, users: state.users };
  });
}
