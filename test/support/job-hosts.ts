import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

import { Program } from "../chaos/processes.js";
import { userEnvironment } from "./cli-process.js";
import { jobProcesses } from "./job-processes.js";
import { eventually } from "./until.js";
import { test as base, type Lab } from "./temporal.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A host worker as users run it, a process of its own that can be killed and frozen. */
export interface HostWorker extends Pick<Program, "kill" | "freeze" | "thaw" | "pid" | "running"> {
  /** Starts it, again after a kill, and waits until it is ready. */
  start(): Promise<void>;
}

/** A machine with a data directory, whose workers are processes. */
export interface ProcessHost {
  readonly hostId: string;
  readonly home: string;
  /** Not started yet. `from`: root of the build it runs, default this one. */
  worker(from?: string): HostWorker;
}

/** Tests with hosts whose workers are processes of their own; the sessions' worker is the file's. Nothing of a job may be left. */
export const test = base.extend<{ host: () => Promise<ProcessHost> }>({
  host: async ({ lab }, use) => {
    const programs: Program[] = [];
    const homes: string[] = [];
    await use(async () => {
      const { home, hostId } = await lab.emptyPlace();
      homes.push(home);
      await symlink(join(dirname(home), "store"), join(home, "store"));
      return {
        home,
        hostId,
        worker(from = root) {
          const log = join(home, `worker-${programs.length}.log`);
          const program = new Program(
            [process.execPath, join(from, "dist/cli/main.js"), "worker"].concat([
              "--role",
              "host",
              "--host-id",
              hostId,
            ]) as [string, ...string[]],
            userEnvironment({ LONGHAUL_HOME: home, TEMPORAL_ADDRESS: lab.address }),
            log,
          );
          programs.push(program);
          return readyWorker(program);
        },
      };
    });
    for (const program of programs) await program.kill();
    const left: string[] = [];
    for (const home of homes) {
      for (const { pid, command } of await jobProcesses(home)) {
        left.push(`pid ${pid}: ${command}`);
        process.kill(pid, "SIGKILL");
      }
    }
    expect(programs.flatMap(({ surprises }) => surprises)).toEqual([]);
    expect(left, "the test left processes running").toEqual([]);
  },
});

function readyWorker(program: Program): HostWorker {
  return {
    get pid() {
      return program.pid;
    },
    get running() {
      return program.running;
    },
    kill: () => program.kill(),
    freeze: () => program.freeze(),
    thaw: () => program.thaw(),
    async start() {
      const before = program.said("worker ready");
      program.start();
      await eventually(() => {
        if (!program.running) throw new Error(`the worker ended: ${program.lastLines(5)}`);
        expect(program.said("worker ready")).toBeGreaterThan(before);
      });
    },
  };
}

/** A copy of this build that calls itself another version. */
export async function newerBuild(lab: Lab): Promise<string> {
  const copy = join(await lab.workspace(), "newer");
  await mkdir(copy);
  await cp(join(root, "dist"), join(copy, "dist"), { recursive: true });
  const manifest: object = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  await writeFile(join(copy, "package.json"), JSON.stringify({ ...manifest, version: "99.0.0" }));
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}
