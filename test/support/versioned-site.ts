import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { expect } from "vitest";
import { commandsUnder, Program } from "../chaos/processes.js";
import {
  defineSessionConfig,
  LonghaulClient,
  type LogEntry,
  type SessionClient,
} from "../../src/client/index.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { cliPath, userEnvironment, type CliResult } from "./cli-process.js";
import { brokenRules } from "./log-rules.js";
import type { ScenarioInput } from "./scenario-input.js";
import { eventually } from "./until.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

/** What a build of `otherBuild` shows in a session's details where this one shows `Host: `. */
export const otherText = "Runs on: ";

/** A second build of the whole project, whose workflow code differs in what it shows. Delete its directory in the end. */
export async function otherBuild(): Promise<string> {
  const copy = await realpath(await mkdtemp(join(tmpdir(), "longhaul-build-")));
  await mkdir(join(copy, "scripts"));
  const parts = [
    "src",
    "scripts/build.mjs",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
  ];
  for (const part of parts) await cp(join(root, part), join(copy, part), { recursive: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  const file = join(copy, "src/domain/details.ts");
  const text = await readFile(file, "utf8");
  const changed = text.replace("`Host: ", `\`${otherText}`);
  expect(changed, "the text that tells the builds apart").not.toBe(text);
  await writeFile(file, changed);
  await run(process.execPath, ["scripts/build.mjs"], { cwd: copy }).catch(
    async (error: unknown) => {
      await rm(copy, { recursive: true, force: true });
      const { stdout = "" } = error as Partial<CliResult>;
      throw new Error(`the copy does not build: ${stdout}`, { cause: error });
    },
  );
  return copy;
}

/** A machine as users have it: a data directory, its embedded server, and workers that are processes. */
export interface VersionedSite {
  readonly home: string;
  readonly client: LonghaulClient;
  /** Starts a worker and waits until it is ready. `from`: root of its build, default this one. */
  worker(args: readonly string[], from?: string): Promise<Program>;
  /** One command line. */
  cli(...args: readonly string[]): Promise<CliResult>;
  /** One command line on another cluster. */
  at(address: string, ...args: readonly string[]): Promise<CliResult>;
  /** A command line under way. */
  program(...args: readonly string[]): Program;
  session(
    scenario: ScenarioInput,
  ): Promise<{ readonly session: SessionClient; readonly cwd: string }>;
  log(session: SessionClient): Promise<readonly LogEntry[]>;
  /** What Temporal says of a session's newest run. */
  placeOf(id: string): Promise<VersionedPlace>;
  /** The current details of a session: which build shows them. */
  detailsOf(id: string): Promise<string>;
  dispose(): Promise<void>;
}

export interface VersionedPlace {
  readonly run: string;
  readonly build: string | undefined;
  readonly pinned: boolean;
  readonly overridden: boolean;
}

export async function openVersionedSite(): Promise<VersionedSite> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "longhaul-versions-")));
  const home = join(directory, "home");
  const env = userEnvironment({ LONGHAUL_HOME: home, LONGHAUL_HOST_ID: "here" });
  const programs: Program[] = [];
  const runCli = async (
    args: readonly string[],
    more: Readonly<Record<string, string>> = {},
  ): Promise<CliResult> => {
    const done = await run(process.execPath, [cliPath, ...args], {
      env: { ...env, ...more },
    }).catch((error: unknown) => error as CliResult);
    return { code: 0, ...done };
  };
  const cli = (...args: readonly string[]): Promise<CliResult> => runCli(args);
  const started = await cli("server", "start");
  expect(started).toMatchObject({ code: 0 });
  const { address } = JSON.parse((await cli("server", "status", "--json")).stdout) as {
    address: string;
  };
  const store = await openDirectoryStore(join(home, "store"));
  const client = await LonghaulClient.connect({ connection: { address }, store });
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection });
  const program = (from: string, args: readonly string[]): Program => {
    const log = join(directory, `program-${programs.length}.log`);
    const made = new Program([process.execPath, join(from, "dist/cli/main.js"), ...args], env, log);
    programs.push(made);
    made.start();
    return made;
  };
  return {
    home,
    client,
    cli,
    at: (cluster, ...args) => runCli(args, { TEMPORAL_ADDRESS: cluster }),
    program: (...args) => program(root, args),
    async worker(args, from = root) {
      const made = program(from, ["worker", ...args]);
      await eventually(() => {
        if (!made.running) throw new Error(`the worker ended: ${made.lastLines(5)}`);
        expect(made.said("worker ready")).toBe(1);
      });
      return made;
    },
    async session(scenario) {
      const cwd = join(directory, "workspaces", randomUUID());
      await mkdir(cwd, { recursive: true });
      const model = join(directory, `${randomUUID()}.yaml`);
      await writeFile(model, JSON.stringify({ name: "test", ...scenario }));
      const config = defineSessionConfig({
        model: { provider: "scripted", model },
        allowParallelInProgress: true,
        cwd,
      });
      return { session: await client.createSession({ config, host: "here" }), cwd };
    },
    async log(session) {
      const entries: LogEntry[] = [];
      for await (const entry of session.log()) entries.push(entry);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
      expect(brokenRules(entries), `the log of ${session.id} keeps its rules`).toEqual([]);
      return entries;
    },
    async placeOf(id) {
      const { workflowExecutionInfo: info } =
        await connection.workflowService.describeWorkflowExecution({
          namespace: "default",
          execution: { workflowId: id },
        });
      const versioning = info?.versioningInfo;
      return {
        run: info?.execution?.runId ?? "",
        build: versioning?.deploymentVersion?.buildId ?? undefined,
        pinned: Number(versioning?.behavior) === 1,
        overridden: (versioning?.versioningOverride ?? null) !== null,
      };
    },
    async detailsOf(id) {
      const handle = temporal.workflow.getHandle(id);
      const metadata = await handle.query<{ readonly currentDetails: string }>(
        "__temporal_workflow_metadata",
      );
      return metadata.currentDetails;
    },
    async dispose() {
      for (const one of programs) await one.kill();
      await client.close();
      await connection.close();
      await cli("server", "stop");
      const left = await commandsUnder(directory);
      for (const line of left) {
        const pid = Number(/^pid (\d+)/u.exec(line)?.[1]);
        if (pid > 1) process.kill(pid, "SIGKILL");
      }
      await rm(directory, { recursive: true, force: true });
      expect(left, "the test left processes running").toEqual([]);
    },
  };
}
