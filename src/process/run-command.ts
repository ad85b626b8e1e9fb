import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import { recordIdentity } from "./claim.js";
import { endProcesses, graceMs, groupAlive } from "./end-group.js";
import type { CallMarks } from "./environment.js";
import { identityOf } from "./identity.js";
import { type CapturedOutput, captureOutput, type OutputCapture } from "./output-tail.js";
import {
  type GatedShell,
  type ShellExit,
  startShell,
  startWatch,
  type Watch,
} from "./supervise.js";

export interface CommandInput {
  readonly command: string;
  /** Absolute, existing. */
  readonly cwd: string;
  readonly marks: CallMarks;
  /** The call's claim directory; the command's identity is written there before it runs. */
  readonly directory: string;
  readonly store: Store;
  readonly signal: AbortSignal;
  /** Absent: no deadline. */
  readonly timeoutMs?: number;
}

/** Why a command was ended from outside; the first reason wins. */
export type EndedBy = "abort" | "timeout" | "lost-watch";

export interface CommandResult extends ShellExit {
  readonly endedBy?: EndedBy;
  /** Processes of the command's group outlived its shell and were ended. */
  readonly leftovers: boolean;
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
}

/**
 * Runs `bash -c <command>` tied to this process (design D6), and returns when its whole process group is gone.
 * A process that left the group by `setsid` is ended too, unless the command came to its end by itself.
 * Throws SPAWN_FAILED when it could not be started, TOOL_NOT_STARTED when the claim was sealed,
 * ABORTED_BEFORE_DISPATCH when the signal came before it ran.
 */
export async function runCommand(input: CommandInput): Promise<CommandResult> {
  if (input.signal.aborted) throw abortedBefore();
  const shell = await startShell(input.command, input.cwd, input.directory, input.marks);
  const target = { group: shell.pid, marks: input.marks };
  let watch: Watch | undefined;
  let stop: StopReasons | undefined;
  try {
    watch = await startWatch(shell.pid, input.directory, input.marks);
    const outputs = [capture(watch, "stdout", input), capture(watch, "stderr", input)] as const;
    stop = stopReasons(input.signal, watch);
    await prepare(shell, watch, input);
    if (stop.reason() !== undefined) throw abortedBefore();
    stop.startDeadline(input.timeoutMs);
    shell.openGate();

    await Promise.race([shell.exit, stop.came]);
    const allGone = stop.reason() === undefined || (await endProcesses(target));
    const exit = await (allGone ? shell.exit : Promise.race([shell.exit, unknownExit]));
    const leftovers = await endLeftovers(target, outputs, stop);
    const endedBy = stop.reason();
    await watch.finish();
    const [stdout, stderr] = await Promise.all(outputs.map((output) => output.finish()));
    if (stdout === undefined || stderr === undefined) throw new Error("both streams were captured");
    return { ...exit, leftovers, stdout, stderr, ...(endedBy === undefined ? {} : { endedBy }) };
  } finally {
    stop?.dispose();
    shell.closeGate();
    if (await groupAlive(shell.pid)) await endProcesses(target, 0);
    await watch?.finish();
    await Promise.all(
      ["stdout", "stderr"].map((name) => rm(join(input.directory, name), { force: true })),
    );
  }
}

const unknownExit = Promise.resolve<ShellExit>({ exitCode: null, signal: null });

function capture(watch: Watch, name: "stdout" | "stderr", input: CommandInput): OutputCapture {
  const stream = `spill/${input.marks.claim}.${name}`;
  return captureOutput(watch[name], { store: input.store, session: input.marks.sessionId, stream });
}

/** No watch or no identity on disk: no run. */
async function prepare(shell: GatedShell, watch: Watch, input: CommandInput): Promise<void> {
  await watch.ready;
  const identity = await identityOf(shell.pid);
  if (identity === undefined)
    throw new LonghaulError(
      "SPAWN_FAILED",
      "the command's shell ended before it could run; try again",
    );
  if (!(await recordIdentity(input.directory, identity))) {
    throw new LonghaulError(
      "TOOL_NOT_STARTED",
      "the call was given up before its command ran; nothing was executed",
    );
  }
}

/** After the shell's exit: what is left in its group gets the grace and is ended. Returns whether something was. */
async function endLeftovers(
  target: { readonly group: number; readonly marks: CallMarks },
  outputs: readonly OutputCapture[],
  stop: StopReasons,
): Promise<boolean> {
  let outputEnded = false;
  const ended = Promise.all(outputs.map((output) => output.ended)).then(() => {
    outputEnded = true;
  });
  const deadline = Date.now() + graceMs;
  let alive = await groupAlive(target.group);
  for (
    let pause = 5;
    (alive || !outputEnded) && Date.now() < deadline && stop.reason() === undefined;
  ) {
    await Promise.race([sleep(pause), stop.came, ...(alive ? [] : [ended])]);
    alive = await groupAlive(target.group);
    pause = Math.min(pause * 2, 100);
  }
  const leftovers = alive && stop.reason() === undefined;
  if (stop.reason() !== undefined) await endProcesses(target);
  else if (alive) await endProcesses({ group: target.group });
  // Its last output is on its way; a slow store may hold it back, a foreign holder of the pipe may not.
  for (let left = true; left && !outputEnded; left = outputs.some((output) => output.isStalled())) {
    await Promise.race([ended, sleep(Math.max(500, deadline - Date.now()))]);
  }
  return leftovers;
}

interface StopReasons {
  readonly came: Promise<void>;
  reason(): EndedBy | undefined;
  startDeadline(ms: number | undefined): void;
  dispose(): void;
}

function stopReasons(signal: AbortSignal, watch: Watch): StopReasons {
  let reason: EndedBy | undefined;
  let timer: NodeJS.Timeout | undefined;
  let wake = (): void => {};
  const came = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const set = (why: EndedBy): void => {
    reason ??= why;
    wake();
  };
  const onAbort = (): void => set("abort");
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  void watch.lost.then(() => set("lost-watch"));
  return {
    came,
    reason: () => reason,
    startDeadline(ms) {
      if (ms !== undefined) timer = setTimeout(() => set("timeout"), ms);
    },
    dispose() {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    },
  };
}

function abortedBefore(): LonghaulError {
  return new LonghaulError(
    "ABORTED_BEFORE_DISPATCH",
    "the call was cancelled before its command ran",
  );
}
