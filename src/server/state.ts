import { randomUUID } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import * as z from "zod";
import { LonghaulError } from "../contracts/errors.js";
import type { Report } from "./environment.js";
import { withLock } from "./lock.js";
import { isAlive, type ProcessIdentity } from "./process-identity.js";

/** The ports that users of a server know; they stay the same when it is restarted. */
export interface ServerPorts {
  readonly port: number;
  readonly uiPort: number;
}

export interface ServerRecord extends ProcessIdentity, ServerPorts {
  readonly binary: string;
  readonly version: string;
  /** Epoch ms. */
  readonly since: number;
}

/** One acquisition by a process; the server stays up while any user lives. */
export interface ServerUser extends ProcessIdentity {
  readonly id: string;
  /** Epoch ms. */
  readonly since: number;
}

/** What the processes of one data directory agree on. Read and written only under the lock. */
export interface ServerState {
  readonly server?: ServerRecord;
  /** The last one out leaves the server running. */
  readonly keep: boolean;
  readonly users: readonly ServerUser[];
}

export interface ServerPaths {
  readonly directory: string;
  readonly database: string;
  readonly log: string;
  readonly state: string;
  readonly lock: string;
}

/** One path for one directory, however it is spelled: a running server is recognised by its database's. */
export function serverPaths(home: string): ServerPaths {
  const directory = join(existsSync(home) ? realpathSync(home) : resolve(home), "temporal");
  return {
    directory,
    database: join(directory, "temporal.db"),
    log: join(directory, "server.log"),
    state: join(directory, "server.json"),
    lock: join(directory, "lock"),
  };
}

/** Runs work alone among the processes of this data directory. */
export async function withServerLock<T>(
  paths: ServerPaths,
  report: Report,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(paths.directory, { recursive: true, mode: 0o700 });
  const options = {
    waitMs: lockWaitMs,
    onWait: (holder: ProcessIdentity) =>
      report(`waiting for process ${holder.pid}, which is starting or stopping the server`),
    onTimeout: (holder: ProcessIdentity) =>
      new LonghaulError(
        "TEMPORAL_START_FAILED",
        `Process ${holder.pid} has held ${paths.lock} for over ${lockWaitMs / 60_000} minutes while starting or stopping the server. See what it is doing, or end it, and try again.`,
      ),
  };
  return withLock(paths.lock, options, work);
}

/** Fetching a binary happens under the lock, so that it is fetched once. */
const lockWaitMs = 900_000;

/** An unreadable file counts as empty: a server that runs is found again by its command line. */
export async function readState(paths: ServerPaths): Promise<ServerState> {
  try {
    return stateFile.parse(JSON.parse(await readFile(paths.state, "utf8")));
  } catch {
    return emptyState;
  }
}

const identity = { pid: z.int(), started: z.string(), since: z.number() };

const stateFile = z.object({
  server: z
    .object({
      ...identity,
      port: z.int(),
      uiPort: z.int(),
      binary: z.string(),
      version: z.string(),
    })
    .exactOptional(),
  keep: z.boolean(),
  users: z.array(z.object({ ...identity, id: z.string() })),
});

const emptyState: ServerState = { keep: false, users: [] };

export async function writeState(paths: ServerPaths, state: ServerState): Promise<void> {
  await mkdir(dirname(paths.state), { recursive: true });
  const draft = `${paths.state}.${randomUUID()}.tmp`;
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(`${JSON.stringify(state, undefined, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, paths.state);
}

/** Without the users whose process is gone. */
export async function sweepUsers(state: ServerState): Promise<ServerState> {
  const living = await Promise.all(state.users.map(isAlive));
  return { ...state, users: state.users.filter((_, index) => living[index]) };
}
