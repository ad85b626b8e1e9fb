import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

import { LonghaulError } from "../contracts/errors.js";
import { type CallMarks, commandEnvironment, markVariables } from "./environment.js";
import { graceMs } from "./end-group.js";
import { beatPatienceSeconds, gateScript, watchScript } from "./watch-script.js";

const beatMs = 1_000;

/** How long the watch may take to end, ms: its own TERM and KILL of a lost command, and some more. */
const finishPatienceMs = 2 * graceMs + 6_000;

export interface ShellExit {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A shell that waits at its gate; process group and session of its own. */
export interface GatedShell {
  readonly pid: number;
  readonly exit: Promise<ShellExit>;
  /** Lets the command run. Closing the gate instead, also by dying, makes it exit without running anything. */
  openGate(): void;
  closeGate(): void;
}

export async function startShell(
  command: string,
  cwd: string,
  directory: string,
  marks: CallMarks,
): Promise<GatedShell> {
  const args = [
    "-p",
    "-c",
    gateScript,
    "longhaul",
    command,
    join(directory, "stdout"),
    join(directory, "stderr"),
  ];
  // Else bash would name a directory behind a symlink by its real path.
  const env = { ...commandEnvironment(process.env, marks), PWD: cwd };
  const { child, pid } = await started("bash", args, {
    cwd,
    env,
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const gate = writableOf(child, 3);
  return {
    pid,
    exit: new Promise((resolve) =>
      child.once("exit", (exitCode, signal) => resolve({ exitCode, signal })),
    ),
    openGate: () => void gate.end("go\n"),
    closeGate: () => void gate.destroy(),
  };
}

/** The process that ends the group when this one is gone or frozen. */
export interface Watch {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles when it is on guard; rejects with SPAWN_FAILED when it never was. */
  readonly ready: Promise<void>;
  /** Settles when it gave this process up, or is gone itself, before `finish`. */
  readonly lost: Promise<void>;
  /** Tells it that the command is over, and waits until it is gone. */
  finish(): Promise<void>;
}

export async function startWatch(
  group: number,
  directory: string,
  marks: CallMarks,
): Promise<Watch> {
  const variables = markVariables(marks);
  const args = ["-p", "-c", watchScript, "longhaul-watch", String(group), directory];
  args.push(variables.LONGHAUL_CALL, variables.LONGHAUL_SESSION_ID, variables.LONGHAUL_HOME);
  args.push(String(beatPatienceSeconds), String(graceMs / 1_000));
  const env = { PATH: `${process.env["PATH"] ?? ""}:/usr/bin:/bin`, LC_ALL: "C" };
  const { child, pid } = await started("bash", args, {
    cwd: "/",
    env,
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  let finishing = false;
  const beat = writableOf(child, 3);
  const reports = readableOf(child, 4);
  const gone = new Promise<void>((resolve) => {
    child.once("exit", () => {
      // Killed by someone else it leaves the processes that carry the output.
      if (!finishing) killGroup(pid);
      resolve();
    });
  });
  const timer = setInterval(() => beat.write("."), beatMs);
  let said = "";
  const reported = (word: string) =>
    new Promise<void>((resolve) => {
      reports.on("data", (chunk: Buffer) => {
        said += chunk.toString("latin1");
        if (said.includes(word)) resolve();
      });
    });
  const ready = Promise.race([reported("ready"), gone]).then(() => {
    if (!said.includes("ready"))
      throw new LonghaulError(
        "SPAWN_FAILED",
        "the watch over the command did not start; check that mkfifo and cat are on PATH and the data directory takes FIFOs",
      );
  });
  ready.catch(() => {});
  const lost = new Promise<void>((resolve) => {
    void reported("lost").then(resolve);
    void gone.then(() => (finishing ? undefined : resolve()));
  });

  return {
    stdout: readableOf(child, 1),
    stderr: readableOf(child, 2),
    ready,
    lost,
    async finish() {
      finishing = true;
      clearInterval(timer);
      if (!beat.destroyed) beat.write("q");
      const late = setTimeout(() => killGroup(pid), finishPatienceMs);
      await gone;
      clearTimeout(late);
      for (const index of [1, 2, 3, 4]) child.stdio[index]?.destroy();
    },
  };
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It is gone already.
  }
}

interface Options {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly stdio: ("ignore" | "pipe")[];
}

async function started(
  file: string,
  args: readonly string[],
  options: Options,
): Promise<{ child: ChildProcess; pid: number }> {
  try {
    // `detached` is setsid: a Ctrl-C in the worker's terminal reaches neither.
    const child = spawn(file, [...args], { ...options, detached: true });
    for (const stream of child.stdio ?? []) stream?.on("error", () => {});
    const pid = await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("spawn", () => resolve(child.pid ?? 0));
    });
    return { child, pid };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const advice = reason.includes("E2BIG")
      ? "the command is too long, put it into a file"
      : "check that bash is on PATH";
    throw new LonghaulError(
      "SPAWN_FAILED",
      `the command could not be started: ${reason}; ${advice}`,
      { cause: error },
    );
  }
}

function writableOf(child: ChildProcess, index: number): Writable {
  const stream = child.stdio[index];
  if (stream === null || stream === undefined || !("write" in stream))
    throw new Error(`descriptor ${index} is no pipe`);
  return stream;
}

function readableOf(child: ChildProcess, index: number): Readable {
  const stream = child.stdio[index];
  if (stream === null || stream === undefined || !("read" in stream))
    throw new Error(`descriptor ${index} is no pipe`);
  return stream;
}
