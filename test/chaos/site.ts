import { randomInt, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { defaultLimits, type SessionConfig } from "../../src/contracts/config.js";
import { findBinary } from "../../src/server/find-binary.js";
import { arePortsFree } from "../../src/server/ports.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { commandsUnder, Program } from "./processes.js";
import { givenFile, type Script } from "./script.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A Temporal server and a worker as processes of their own, in a temporary directory, and clients on them. */
export interface Site {
  readonly directory: string;
  readonly home: string;
  readonly recordDir: string;
  readonly bundlePath: string;
  readonly server: Program;
  readonly worker: Program;
  readonly client: LonghaulClient;
  readonly connection: Connection;
  readonly temporal: Client;
  startServer(): Promise<void>;
  startWorker(): Promise<void>;
  /** A session on the script, bound to this site's host, in a workspace of its own. */
  session(
    script: Pick<Script, "scenario">,
    jobs?: SessionConfig["jobs"],
    more?: Partial<SessionConfig>,
  ): Promise<{ readonly session: SessionClient; readonly workspace: string }>;
  /** Ends every process and removes the directory; what commands of it had not ended by themselves. */
  dispose(patienceMs?: number): Promise<readonly string[]>;
}

export async function openSite(): Promise<Site> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "longhaul-chaos-")));
  const home = join(directory, "home");
  const recordDir = join(directory, "requests");
  await mkdir(join(home, "store"), { recursive: true });
  const hostId = `host-${randomUUID().slice(0, 8)}`;
  const { path: binary } = await findBinary({
    env: process.env,
    report: (line) => console.error(line),
  });
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const env = plainEnvironment();
  const server = new Program(
    [binary, ...serverArguments(port, join(directory, "temporal.db"))],
    env,
    join(directory, "server.log"),
  );
  const worker = new Program(
    [process.execPath, join(root, "dist/cli/main.js"), "worker", "--host-id", hostId],
    { ...env, LONGHAUL_HOME: home, TEMPORAL_ADDRESS: address, LONGHAUL_SCRIPTED_RECORD: recordDir },
    join(directory, "worker.log"),
  );
  const connections: { close(): Promise<void> }[] = [];

  async function dispose(patienceMs = 15_000): Promise<readonly string[]> {
    for (const one of connections) await one.close().catch(() => {});
    await worker.kill();
    await server.kill();
    const left = await untilNone(() => commandsUnder(directory), patienceMs);
    for (const line of left) {
      const pid = Number(/^pid (\d+)/.exec(line)?.[1]);
      if (pid > 1) process.kill(pid, "SIGKILL");
    }
    await rm(directory, { recursive: true, force: true });
    return left;
  }

  async function startServer(): Promise<void> {
    server.start();
    await untilServing(address, server);
  }

  async function startWorker(): Promise<void> {
    const before = worker.said("worker ready");
    worker.start();
    await until(`a worker that is ready (${directory}/worker.log)`, 60_000, () => {
      if (!worker.running) throw new Error(`the worker ended: ${worker.lastLines(3)}`);
      return Promise.resolve(worker.said("worker ready") > before);
    });
  }

  try {
    await startServer();
    await startWorker();
    const store = await openDirectoryStore(join(home, "store"));
    const client = await LonghaulClient.connect({ connection: { address }, store });
    connections.push(client);
    const connection = await Connection.connect({ address });
    connections.push(connection);
    return {
      directory,
      home,
      recordDir,
      bundlePath: join(root, "dist/workflow-bundle.js"),
      server,
      worker,
      client,
      connection,
      temporal: new Client({ connection }),
      startServer,
      startWorker,
      dispose,
      async session(script, jobs = {}, more = {}) {
        const id = `chaos-${randomUUID().slice(0, 8)}`;
        const workspace = join(directory, "workspaces", id);
        await mkdir(workspace, { recursive: true });
        await writeFile(join(workspace, givenFile.name), givenFile.content);
        const scenario = join(directory, `${id}.yaml`);
        await writeFile(scenario, JSON.stringify({ name: id, ...script.scenario }));
        const session = await client.createSession({
          id,
          host: hostId,
          config: {
            request: { provider: "scripted", model: scenario },
            allowParallelInProgress: true,
            worldTools: true,
            cwd: workspace,
            outsideWorkspace: false,
            deny: [],
            ask: [],
            jobs,
            limits: defaultLimits,
            ...more,
          },
        });
        return { session, workspace };
      },
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Asks until it is so; says what it waited for when it never was. */
export async function until(
  what: string,
  timeoutMs: number,
  holds: () => Promise<boolean>,
): Promise<void> {
  for (const end = Date.now() + timeoutMs; !(await holds()); await delay(25)) {
    if (Date.now() > end) throw new Error(`waited ${timeoutMs / 1_000} s for ${what}`);
  }
}

async function untilNone(find: () => Promise<string[]>, timeoutMs: number): Promise<string[]> {
  for (const end = Date.now() + timeoutMs; ; await delay(100)) {
    const found = await find();
    if (found.length === 0 || Date.now() > end) return found;
  }
}

/**
 * The product's own settings but one: hops between tasks keep the 50 ms steps of a plain dev server, so that the
 * moments between two tasks are long enough to be met on purpose.
 */
function serverArguments(port: number, database: string): string[] {
  const args = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "warn"];
  args.push(
    "--port",
    String(port),
    "--metrics-port",
    String(port + 1),
    "--http-port",
    String(port + 2),
  );
  args.push("--db-filename", database);
  for (const value of [
    "system.enableCancelActivityWorkerCommand=true",
    "frontend.WorkerCommandsEnabled=true",
  ])
    args.push("--dynamic-config-value", value);
  return args;
}

/** Below what the system hands out by itself: nobody takes the port while the server is down. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(2_100, 3_200) * 10;
    if (
      (await arePortsFree({ port, uiPort: port + 1 })) &&
      (await arePortsFree({ port: port + 2, uiPort: port + 3 }))
    )
      return port;
  }
}

async function untilServing(address: string, server: Program): Promise<void> {
  await until(`a Temporal server at ${address}`, 60_000, async () => {
    if (!server.running) throw new Error(`the Temporal server ended: ${server.lastLines(3)}`);
    let connection: Connection | undefined;
    try {
      connection = await Connection.connect({ address, connectTimeout: 2_000 });
      const { workflowService } = connection;
      await connection.withDeadline(Date.now() + 2_000, () =>
        workflowService.describeNamespace({ namespace: "default" }),
      );
      return true;
    } catch {
      return false;
    } finally {
      await connection?.close();
    }
  });
}

/** Nothing that names another cluster, data directory or record. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:TEMPORAL|LONGHAUL)_/.test(name)),
  );
}
