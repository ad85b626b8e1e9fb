import { readlink } from "node:fs/promises";

import { groupAlive } from "../end-group.js";
import { markVariables } from "../environment.js";
import { type ProcessIdentity, parseIdentity } from "../identity.js";
import { processTable } from "../process-table.js";
import { jobMarks, readSpoolFile, type Spool } from "./spool.js";

/** Who runs a job, as its supervisor wrote it before the command began; `pid` leads the command's process group. */
export interface JobIdentity extends ProcessIdentity {
  readonly pidNamespace: string;
  readonly supervisor: { readonly pid: number; readonly startTime: string };
  readonly token: string;
}

/** Undefined while the supervisor has not written it, so the command has not begun. */
export async function readIdentity(directory: string): Promise<JobIdentity | undefined> {
  const value = await readSpoolFile(directory, "identity");
  if (typeof value !== "object" || value === null) return undefined;
  const own = parseIdentity(JSON.stringify(value));
  if (own === undefined || !("supervisor" in value && "pidNamespace" in value && "token" in value))
    return undefined;
  const { supervisor, pidNamespace, token } = value;
  const guard = parseIdentity(JSON.stringify({ ...Object(supervisor), bootId: own.bootId }));
  if (guard === undefined || typeof pidNamespace !== "string" || typeof token !== "string")
    return undefined;
  return {
    ...own,
    pidNamespace,
    token,
    supervisor: { pid: guard.pid, startTime: guard.startTime },
  };
}

/** Do its pids mean anything here? Not after a reboot, nor in another container: then none may be signalled. */
export async function isOfThisBoot(identity: JobIdentity): Promise<boolean> {
  return (
    identity.bootId === (await processTable.bootId()) &&
    identity.pidNamespace === (await readlink("/proc/self/ns/pid").catch(() => ""))
  );
}

/** Call it only for an identity of this boot. */
export async function supervisorAlive({ supervisor }: JobIdentity): Promise<boolean> {
  return (await processTable.startTime(supervisor.pid)) === supervisor.startTime;
}

/**
 * Is the process group still the job's? While its supervisor lives it is, because the group's number is kept from being used
 * again; without one, its leader or a member with the job's marks must be there.
 */
export async function groupIsOurs(spool: Spool, identity: JobIdentity): Promise<boolean> {
  if (!(await isOfThisBoot(identity))) return false;
  if (await supervisorAlive(identity)) return true;
  const startTime = await processTable.startTime(identity.pid);
  if (startTime !== undefined) return startTime === identity.startTime;
  if (!(await groupAlive(identity.pid))) return false;
  const members = new Set(await processTable.members(identity.pid));
  const marked = await processTable.carrying(markVariables(jobMarks(spool.job)));
  return marked.some((pid) => members.has(pid));
}
