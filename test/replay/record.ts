/**
 * Records one history per behaviour into histories/<version>/ (`npm run record-histories`, before each release).
 * A history that is there is kept, for it pins what was released; `--again` records it anew, names record only those.
 * Beside them are digests of the states they end in; `--digests` writes those of all releases anew, and records nothing.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { DefaultLogger, Runtime } from "@temporalio/worker";
import { LonghaulClient } from "../../src/client/index.js";
import { defaultLimits } from "../../src/contracts/config.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { queues, searchAttributes, type SearchAttributeName } from "../../src/contracts/names.js";
import type { SessionInput } from "../../src/contracts/session.js";
import type { Store } from "../../src/contracts/store.js";
import { findBinary } from "../../src/server/find-binary.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker, type RunningWorker } from "../../src/worker/index.js";
import { writeDigestBundle, type StateDigests } from "../support/digests.js";
import { eventsOf, runsOf, type History } from "../support/history.js";
import { gatedTool } from "../support/gated-tool.js";
import { timeSkipping } from "../support/time-skipping.js";
import { behaviours, type Site } from "./behaviours.js";
import { digestsPathOf, folderOf, namesOf, readDigests, statesIn, versions } from "./histories.js";
import { scrubHistory } from "./scrub.js";

const project = fileURLToPath(new URL("../..", import.meta.url));
/** Its paths stand in the histories. */
const root = "/var/tmp/longhaul-record";
const atOnce = 4;

const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as {
  version: string;
};
const folder = folderOf(version);
const names = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const again = process.argv.includes("--again");
const recorded = new Set<string>();
if (process.argv.includes("--digests")) {
  for (const one of versions) await writeDigests(one, namesOf(one));
  process.exit(0);
}

execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: project, stdio: "inherit" });
const bundle = join(project, "dist/workflow-bundle.js");
Runtime.install({ logger: new DefaultLogger("ERROR"), shutdownSignals: [] });
const { path } = await findBinary({ env: process.env, report: (line) => console.error(line) });
const env = await TestWorkflowEnvironment.createLocal({
  server: {
    executable: { type: "existing-path", path },
    log: { format: "pretty", level: "error" },
    extraArgs: [
      "--dynamic-config-value",
      timeSkipping,
      ...Object.entries(searchAttributes).flatMap(([name, type]) => [
        "--search-attribute",
        `${name}=${type}`,
      ]),
    ],
  },
});
try {
  await rm(root, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const store = await openDirectoryStore(join(root, "store"));
  const left = Object.keys(behaviours).filter(
    (name) =>
      (names.length === 0 || names.includes(name)) &&
      (again || !existsSync(join(folder, `${name}.json`))),
  );
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift())
        await record(name, env.address, store);
    }),
  );
  const known = readDigests(version);
  const lacking = namesOf(version).filter((name) => !(name in known) || recorded.has(name));
  await writeDigests(version, lacking);
} finally {
  await env.teardown();
  await rm(root, { recursive: true, force: true });
}

async function record(name: string, address: string, store: Store): Promise<void> {
  const opened = await openSite(name, address, store);
  try {
    await behaviours[name]?.(opened.site);
    const runs = await runsOf(opened.temporal.workflow, opened.id);
    for (const [index, history] of runs.entries())
      await keep(index === 0 ? name : `${name}.run-${index + 1}`, history);
    for (const [what, id] of opened.more)
      await keep(`${name}.${what}`, await opened.temporal.workflow.getHandle(id).fetchHistory());
    const children = runs.flatMap((history) =>
      eventsOf(history, "childWorkflowExecutionStartedEventAttributes"),
    );
    for (const { workflowExecution } of children) {
      const id = workflowExecution?.workflowId;
      if (id === undefined || id === null) continue;
      const handle = opened.temporal.workflow.getHandle(id);
      await handle.result();
      const [, , job] = id.split("/");
      await keep(`${name}.${job ?? ""}`, await handle.fetchHistory());
    }
  } finally {
    await opened.dispose();
  }
}

async function keep(name: string, history: History): Promise<void> {
  await writeFile(join(folder, `${name}.json`), scrubHistory(historyToJSON(history), project));
  recorded.add(name);
  console.log(`recorded ${name}`);
}

/** Writes the digests of histories of a release; those of the others stay. */
async function writeDigests(of: string, fresh: readonly string[]): Promise<void> {
  if (fresh.length === 0) return;
  const directory = await mkdtemp(join(tmpdir(), "longhaul-digests-"));
  try {
    const digestBundle = join(directory, "bundle.js");
    await writeDigestBundle(digestBundle);
    const { histories } = await statesIn("UTC", digestBundle, [of]);
    const known = readDigests(of);
    const digests: { [name: string]: StateDigests } = {};
    for (const name of namesOf(of).toSorted()) {
      const replayed = histories[`${of}/${name}`];
      if (replayed?.error !== undefined) throw new Error(`${name}: ${replayed.error}`);
      const digest = fresh.includes(name) ? replayed?.state : known[name];
      if (digest !== undefined) digests[name] = digest;
    }
    await writeFile(digestsPathOf(of), `${JSON.stringify(digests, undefined, 2)}\n`);
    console.log(`digests of ${fresh.length} histories of ${of} written`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function openSite(name: string, address: string, store: Store) {
  const cwd = join(root, name);
  const home = join(root, "homes", name);
  for (const one of [cwd, home, join(root, "scenarios")]) await mkdir(one, { recursive: true });
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection, identity: "recorder" });
  const client = await LonghaulClient.connect({ connection: { address }, store });
  const workers: RunningWorker[] = [];
  const kills: (() => Promise<void>)[] = [];
  const alone = gatedTool("alone");
  const overlap = gatedTool("overlap", { parallel: true });
  const id = `recorded-${name}`;
  const hostId = `host-${name}`;
  // The client starts what begins with a log on the one queue of all.
  const sessionQueue = name === "seeds" ? queues.sessions : `longhaul-${name}`;
  const more = new Map<string, string>();
  const until: Site["until"] = async (check) => {
    for (const end = Date.now() + 150_000; !(await check()); await delay(50)) {
      if (Date.now() > end) throw new Error(`${name}: waited 150 s in vain`);
    }
  };

  const site: Site = {
    client,
    keep: (what, other) => void more.set(what, other),
    alone,
    overlap,
    until,
    async start(roles = ["session", "host"]) {
      workers.push(
        await startWorker({
          connection: { address },
          home,
          store,
          hostId,
          sessionQueue,
          roles,
          tools: [alone.tool, overlap.tool],
          workflowBundlePath: bundle,
          shutdownGraceMs: 200,
        }),
      );
    },
    async stop() {
      for (const worker of workers.splice(0)) await worker.stop();
    },
    async startKillableHost() {
      const settings = JSON.stringify({
        address,
        home,
        hostId,
        store: join(root, "store"),
        bundle,
      });
      const script = fileURLToPath(new URL("./host-worker.ts", import.meta.url));
      const child = spawn(process.execPath, ["--import", "tsx", script, settings], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const gone = once(child, "exit");
      const kill = async (): Promise<void> => {
        child.kill("SIGKILL");
        await gone;
      };
      kills.push(kill);
      await once(child.stdout, "data");
      return { kill };
    },
    async open(scenario, { config, limits } = {}) {
      const model = join(root, "scenarios", `${name}.yaml`);
      await writeFile(model, JSON.stringify({ name, ...scenario }));
      const input: SessionInput = {
        v: 1,
        host: hostId,
        attributes: Object.keys(searchAttributes) as SearchAttributeName[],
        config: {
          request: { provider: "scripted", model },
          allowParallelInProgress: false,
          worldTools: true,
          cwd,
          outsideWorkspace: false,
          deny: [],
          ask: [],
          ...config,
          limits: { ...defaultLimits, ...limits },
        },
      };
      const handle = await temporal.workflow.start("session", {
        workflowId: id,
        taskQueue: sessionQueue,
        args: [input],
        staticSummary: id,
      });
      const session = client.session(id);
      await until(async () => (await session.view()).ready);
      return {
        session,
        handle,
        async play(text) {
          await session.followup(text);
          await session.waitIdle();
        },
        async last() {
          let type: LogEntry["type"] | undefined;
          for await (const entry of session.log()) type = entry.type;
          return type;
        },
      };
    },
    wrote: (file) =>
      stat(join(cwd, file)).then(
        () => true,
        () => false,
      ),
  };
  return {
    id,
    more,
    site,
    temporal,
    async dispose() {
      for (const kill of kills) await kill();
      await site.stop();
      await client.close();
      await connection.close();
    },
  };
}
