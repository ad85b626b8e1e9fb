import { setTimeout as delay } from "node:timers/promises";
import { LonghaulError } from "../contracts/errors.js";
import type { Environment, Report } from "./environment.js";
import { findBinary, type FindBinary } from "./find-binary.js";
import {
  launchServer,
  portsOfCommand,
  serverCommand,
  startFailed,
  waitUntilServing,
} from "./launch.js";
import { boundLog, lastLines } from "./log-file.js";
import { arePortsFree, choosePorts } from "./ports.js";
import {
  findProcess,
  findProcessesByCommand,
  isAlive,
  signalProcess,
  type ProcessIdentity,
} from "./process-identity.js";
import type { ServerPaths, ServerPorts, ServerRecord, ServerState } from "./state.js";
import { writeState } from "./state.js";

export interface RunServer {
  readonly paths: ServerPaths;
  readonly env: Environment;
  readonly report: Report;
  readonly downloadUrl?: string;
}

/**
 * The running server of this data directory, if there is one: the recorded process when it still is our
 * server, else one found by its command line, which covers a starter that was killed before it could
 * write. Call under the lock.
 */
export async function findServer(
  paths: ServerPaths,
  state: ServerState,
): Promise<ServerRecord | undefined> {
  const mark = serverCommand(paths).join(" ");
  const recorded = state.server;
  if (recorded !== undefined) {
    const found = await findProcess(recorded.pid);
    if (found?.started === recorded.started && found.command.includes(mark)) return recorded;
  }
  for (const found of await findProcessesByCommand(`${mark} --port `)) {
    const ports = portsOfCommand(found.command);
    if (ports === undefined) continue;
    const binary = found.command.split(` ${mark}`, 1)[0] ?? "";
    const { pid, started } = found;
    return { pid, started, ...ports, binary, version: "unknown", since: Date.now() };
  }
  return undefined;
}

/**
 * Returns the state with a server that serves, starting one when there is none: on the ports it had when it
 * died, else on the usual or other free ones. Call under the lock. Throws TEMPORAL_START_FAILED or
 * TEMPORAL_NOT_FOUND.
 */
export async function ensureRunning(
  run: RunServer,
  state: ServerState,
): Promise<ServerState & { readonly server: ServerRecord }> {
  const { paths, report } = run;
  await boundLog(paths.log);
  const running = await findServer(paths, state);
  if (running !== undefined) {
    const readiness = await waitUntilServing(running, running.port, startTimeoutMs);
    if (readiness === "serving") return { ...state, server: running };
    if (readiness !== "ended") {
      const what = `process ${running.pid} runs, but does not answer on port ${running.port} (${readiness})`;
      throw startFailed(paths, what, await lastLines(paths.log, 3));
    }
  }
  const before = running ?? state.server;
  if (before !== undefined) {
    report(`the Temporal server (process ${before.pid}) is gone; starting it again`);
  }
  const server = await start(run, state, before);
  return { ...state, server };
}

/** SIGTERM, then SIGKILL. True when the process is gone. */
export async function endProcess(target: ProcessIdentity, patienceMs = 10_000): Promise<boolean> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (!(await signalProcess(target, signal))) return true;
    const deadline = Date.now() + patienceMs;
    while (Date.now() < deadline) {
      if (!(await isAlive(target))) return true;
      await delay(25);
    }
  }
  return !(await isAlive(target));
}

const startTimeoutMs = 60_000;

/** A port may outlive its dead process for a moment. */
const portGraceMs = 1_000;

async function start(
  run: RunServer,
  state: ServerState,
  before: ServerPorts | undefined,
): Promise<ServerRecord> {
  const { paths, env, report } = run;
  const request: FindBinary = {
    env,
    report,
    ...(run.downloadUrl === undefined ? {} : { downloadUrl: run.downloadUrl }),
  };
  const found = await findBinary(request);
  let ports = await portsToUse(before, state, report);
  for (let attempt = 1; ; attempt += 1) {
    report(`starting Temporal server (CLI ${found.version}) on 127.0.0.1:${ports.port}`);
    const launched = await launchServer(found.path, paths, ports, env);
    const { pid, started } = launched;
    const { path: binary, version } = found;
    const record = { pid, started, ...ports, binary, version, since: Date.now() };
    await writeState(paths, { ...state, server: record });
    const readiness = await waitUntilServing(launched, ports.port, startTimeoutMs);
    if (readiness === "serving") return record;
    await endProcess(launched);
    const lines = await lastLines(paths.log, 3);
    const taken = readiness === "port taken" || !(await arePortsFree(ports));
    if (!taken || state.users.length > 0 || attempt === 4) {
      const seconds = startTimeoutMs / 1000;
      const what =
        readiness === "ended"
          ? (launched.ending() ?? "it ended")
          : readiness === "silent"
            ? `no answer within ${seconds} s`
            : `port ${ports.port} is used by another program`;
      throw startFailed(paths, what, lines);
    }
    report(`port ${ports.port} or ${ports.uiPort} was taken meanwhile`);
    ports = await choosePorts();
  }
}

/** A server that died comes back where its users look for it. */
async function portsToUse(
  before: ServerPorts | undefined,
  state: ServerState,
  report: Report,
): Promise<ServerPorts> {
  if (before === undefined) return choosePorts();
  const { port, uiPort } = before;
  const deadline = Date.now() + portGraceMs;
  do {
    if (await arePortsFree({ port, uiPort })) return { port, uiPort };
    await delay(50);
  } while (Date.now() < deadline);
  if (state.users.length === 0) {
    report(`port ${port} or ${uiPort} is used by another program now; taking other ports`);
    return choosePorts();
  }
  const pids = [...new Set(state.users.map((user) => user.pid))].join(", ");
  throw new LonghaulError(
    "TEMPORAL_START_FAILED",
    `The embedded Temporal server must come back on ports ${port} and ${uiPort}, where processes ${pids} look for it, but another program uses one of them. End that program, or end those processes, and try again.`,
  );
}
