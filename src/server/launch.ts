import { spawn, type ChildProcess } from "node:child_process";
import { open } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { Connection } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { environmentForPrograms, type Environment } from "./environment.js";
import { lastLines } from "./log-file.js";
import { answers, anyFreePorts, ownsPort } from "./ports.js";
import { findProcess, isAlive, type ProcessIdentity } from "./process-identity.js";
import type { ServerPaths, ServerPorts } from "./state.js";

export interface LaunchedServer extends ProcessIdentity {
  /** Undefined while it runs, else how it ended. */
  readonly ending: () => string | undefined;
}

/** The arguments by which a server of this data directory is recognised, with the ports after them. */
export function serverCommand(paths: ServerPaths): string[] {
  return ["server", "start-dev", "--db-filename", paths.database, "--ip", "127.0.0.1"];
}

/** The ports in a server's command line. */
export function portsOfCommand(command: string): ServerPorts | undefined {
  const port = /--port (\d+)/.exec(command)?.[1];
  const uiPort = /--ui-port (\d+)/.exec(command)?.[1];
  if (port === undefined || uiPort === undefined) return undefined;
  return { port: Number(port), uiPort: Number(uiPort) };
}

/** Starts the server in a session of its own, so that it outlives this process and its terminal. */
export async function launchServer(
  binary: string,
  paths: ServerPaths,
  ports: ServerPorts,
  env: Environment,
): Promise<LaunchedServer> {
  const [metricsPort, httpPort] = await anyFreePorts(2);
  const args = [...serverCommand(paths), "--port", String(ports.port)];
  args.push("--ui-port", String(ports.uiPort));
  args.push("--metrics-port", String(metricsPort), "--http-port", String(httpPort));
  args.push("--log-level", "warn");
  for (const value of dynamicConfig) args.push("--dynamic-config-value", value);
  const log = await open(paths.log, "a", 0o600);
  let child: ChildProcess;
  try {
    child = spawn(binary, args, {
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
      env: environmentForPrograms(env),
    });
  } finally {
    await log.close();
  }
  child.unref();
  let ended: string | undefined;
  child.once("error", (error) => (ended = error.message));
  child.once("exit", (code, signal) => (ended = signal === null ? `exit code ${code}` : signal));
  const running = child.pid === undefined ? undefined : await findProcess(child.pid);
  if (running === undefined) {
    throw startFailed(paths, ended ?? `${binary} ended at once`, await lastLines(paths.log, 3));
  }
  return { pid: running.pid, started: running.started, ending: () => ended };
}

/**
 * Hops between workflow tasks without the default's 50 ms steps, cancels that reach an activity at once, and workflows that are
 * deleted within seconds of their end instead of minutes.
 */
export const dynamicConfig: readonly string[] = [
  "history.transferProcessorMaxPollRPS=1000",
  'history.transferProcessorUpdateAckInterval="1s"',
  'history.visibilityProcessorUpdateAckInterval="1s"',
  "system.enableCancelActivityWorkerCommand=true",
  "frontend.WorkerCommandsEnabled=true",
];

export type Readiness = "serving" | "ended" | "port taken" | "silent";

/**
 * Waits until this very process serves the port. "port taken" when another one does; "silent" when the time
 * is over.
 */
export async function waitUntilServing(
  server: ProcessIdentity,
  port: number,
  timeoutMs: number,
): Promise<Readiness> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    if (!(await isAlive(server))) return "ended";
    if ((await answers(port)) && (await serves(`127.0.0.1:${port}`, deadline))) {
      const owns = await ownsPort(server.pid, port);
      // Asked last: nothing can be told of the ports of a process that has ended meanwhile.
      if (!(await isAlive(server))) return "ended";
      return owns === false ? "port taken" : "serving";
    }
    if (Date.now() > deadline) return "silent";
    await delay(50);
  }
}

/** The default namespace can be read, which is the last thing a starting server gets ready. */
async function serves(address: string, deadline: number): Promise<boolean> {
  const until = Math.min(deadline, Date.now() + 5_000);
  let connection: Connection | undefined;
  try {
    connection = await Connection.connect({
      address,
      connectTimeout: Math.max(1, until - Date.now()),
    });
    const { workflowService } = connection;
    await connection.withDeadline(until, () =>
      workflowService.describeNamespace({ namespace: "default" }),
    );
    return true;
  } catch {
    return false;
  } finally {
    await connection?.close();
  }
}

export function startFailed(
  paths: ServerPaths,
  what: string,
  lines: readonly string[],
): LonghaulError {
  const tail = lines.length === 0 ? "it is empty" : `it ends: ${lines.join(" | ").slice(-600)}`;
  return new LonghaulError(
    "TEMPORAL_START_FAILED",
    `The embedded Temporal server did not start (${what}). Its log is ${paths.log}; ${tail}. Cure that, or set TEMPORAL_ADDRESS to a running server.`,
  );
}
