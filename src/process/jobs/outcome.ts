import { constants } from "node:os";

import type { JobOutcome } from "../../contracts/jobs.js";
import { readSpoolFile } from "./spool.js";

/** How a job's processes came to their end; `status` as wait(2) has it, undefined when it cannot be known. */
export interface JobEnding {
  readonly by: "exit" | "kill" | "orphan";
  readonly status?: number;
}

/** Written by the supervisor when no process of the job is left and all its output is in the spool. */
export async function readEnding(directory: string): Promise<JobEnding | undefined> {
  const value = await readSpoolFile(directory, "end");
  if (typeof value !== "object" || value === null || !("by" in value && "status" in value))
    return undefined;
  const { by, status } = value;
  if (by !== "exit" && by !== "kill" && by !== "orphan") return undefined;
  return typeof status === "number" ? { by, status } : { by };
}

/** The outcome of spec/jobs §9, row `bash`. */
export function outcomeOf(ending: JobEnding, host: string, orphanGraceMs: number): JobOutcome {
  const { by, status } = ending;
  const signal = status === undefined ? 0 : status & 0x7f;
  if (by === "orphan") {
    const seconds = Math.round(orphanGraceMs / 1_000);
    const detail = `worker lost: no worker on ${host} for ${seconds}s; work may be orphaned`;
    return { status: "failed", detail, lost: true };
  }
  if (signal !== 0) return { status: "killed", detail: `signal: ${signalName(signal)}` };
  if (by === "kill") return { status: "killed", detail: "killed before exit" };
  const code = status === undefined ? "unknown" : String((status >> 8) & 0xff);
  return { status: "completed", detail: `exit code: ${code}` };
}

/** Its host was restarted under it: nothing of it can still run. */
export function restarted(host: string): JobOutcome {
  const detail = `worker lost: ${host} was restarted, and the job ended with it`;
  return { status: "failed", detail, lost: true };
}

/** Somebody ended the supervisor; what it watched was ended too. */
export const supervisorLost: JobOutcome = {
  status: "failed",
  detail: "supervisor lost: it was ended from outside, and the job with it",
  lost: true,
};

export const startLost: JobOutcome = { status: "failed", detail: "spawn failed: start lost" };

export const killedBeforeExit: JobOutcome = { status: "killed", detail: "killed before exit" };

function signalName(number: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  return found?.[0] ?? `SIG${number}`;
}
