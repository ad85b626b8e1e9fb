import { mkdtemp, readFile, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";

import type { Store } from "../../src/contracts/store.js";
import type { ToolOutcome } from "../../src/contracts/tools.js";
import { claimDirectory, openClaim } from "../../src/process/claim.js";
import { endProcesses } from "../../src/process/end-group.js";
import type { CallMarks } from "../../src/process/environment.js";
import { processTable } from "../../src/process/process-table.js";
import {
  type CommandInput,
  type CommandResult,
  runCommand,
} from "../../src/process/run-command.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { builtinTools } from "../../src/tools/builtin.js";
import type { ToolDefinition } from "../../src/tools/define.js";
import { createToolRegistry, type ToolCall, type ToolPorts } from "../../src/tools/registry.js";

/** Ten seconds, so that a busy machine is no failure. */
export const patience = { timeout: 10_000, interval: 20 };

export interface Bench {
  readonly home: string;
  readonly cwd: string;
  readonly store: Store;
  /** Runs a tool; each call gets a claim of its own unless one is given. */
  call(tool: string, args: unknown, changes?: Partial<ToolCall & ToolPorts>): Promise<ToolOutcome>;
  command(command: string, changes?: Partial<CommandInput>): Promise<CommandResult>;
  marks(claim: string): CallMarks;
  /** Content of a file in the workspace; empty while it is not there. */
  content(name: string): Promise<string>;
}

/** A data directory, a workspace and a store; at the end nothing of it may still run. */
export async function openBench(tools: readonly ToolDefinition[] = builtinTools): Promise<Bench> {
  const home = await realpath(await mkdtemp(join(tmpdir(), "longhaul-process-")));
  const cwd = join(home, "workspace");
  const { mkdir } = await import("node:fs/promises");
  await mkdir(cwd);
  const store = await openDirectoryStore(join(home, "store"));
  const registry = createToolRegistry(tools);
  const sessionId = "session-1";
  let calls = 0;
  const marks = (claim: string): CallMarks => ({ home, sessionId, claim });
  onTestFinished(async () => {
    const leftOver = await processTable.carrying({ LONGHAUL_HOME: home });
    for (const pid of leftOver) process.kill(pid, "SIGKILL");
    await rm(home, { recursive: true, force: true });
    expect(leftOver, "the test left processes running").toEqual([]);
  });
  return {
    home,
    cwd,
    store,
    marks,
    async call(tool, args, { store: otherStore, signal, ...changes } = {}) {
      calls += 1;
      const call: ToolCall = {
        sessionId,
        claim: `1.1.call-${calls}`,
        callId: `call-${calls}`,
        tool,
        args: typeof args === "string" ? args : JSON.stringify(args),
        cwd,
        permissions: { outsideWorkspace: false },
        maxInlineBytes: 50_000,
        ...changes,
      };
      return await registry.run(call, {
        home,
        store: otherStore ?? store,
        signal: signal ?? new AbortController().signal,
      });
    },
    async command(command, changes = {}) {
      calls += 1;
      const given = changes.marks ?? marks(`2.1.call-${calls}`);
      if (changes.directory === undefined) await openClaim(given);
      return await runCommand({
        command,
        cwd,
        marks: given,
        directory: claimDirectory(given),
        store,
        signal: new AbortController().signal,
        ...changes,
      });
    },
    content: async (name) => await readFile(join(cwd, name), "utf8").catch(() => ""),
  };
}

export function textOf(outcome: ToolOutcome): string {
  return outcome.content.map((block) => block.text).join("");
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

export async function isAlive(pid: number): Promise<boolean> {
  return (await processTable.startTime(pid)) !== undefined;
}

/** Waits until a command has written its pid to a file of the workspace. */
export async function pidFrom(bench: Bench, name: string): Promise<number> {
  await vi.waitFor(async () => expect(await bench.content(name)).toMatch(/^\d+\n$/), patience);
  return Number((await bench.content(name)).trim());
}

/** A store in which every write fails. */
export function brokenStore(store: Store): Store {
  return {
    append: () => Promise.reject(new Error("the disk is on fire")),
    read: (...args) => store.read(...args),
    size: (...args) => store.size(...args),
    sync: (...args) => store.sync(...args),
    list: (...args) => store.list(...args),
    sessions: () => store.sessions(),
    remove: (...args) => store.remove(...args),
    locator: (...args) => store.locator(...args),
    check: () => store.check(),
  };
}

export async function endAll(marks: CallMarks): Promise<void> {
  await endProcesses({ marks }, 0);
}
