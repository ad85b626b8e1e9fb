import type { JobSnapshot, JobStatus } from "../contracts/jobs.js";

/** Fixed texts of background jobs (spec/jobs §§4, 7, 9, 10, 14, 18): what models and people read. */

export function statusLine({
  status,
  detail,
}: {
  readonly status: JobStatus;
  readonly detail?: string;
}): string {
  return detail === undefined ? `[status: ${status}]` : `[status: ${status}, ${detail}]`;
}

export const outputMark = "\n[output truncated]";
export const resultMark = "\n[result truncated]";
export const noticeMark = "\n[notice truncated]";

export const noOutput = "(no new output)";
export const noJobs = "(no background jobs)";
export const incompleteOutput = "[output may be incomplete: worker lost]";

export function listLine({ id, kind, status, label }: JobSnapshot): string {
  return `${id} [${kind}] ${status} — ${label}`;
}

export function killRequested(id: string): string {
  return `requested cancellation of job ${id}`;
}

export function killTooLate(job: JobSnapshot): string {
  return `job ${job.id} had already finished ${statusLine(job)}`;
}

/** What a producer's tool answers once its job has an id. @public */
export function startedText(id: string, kind: string): string {
  return kind === "subagent"
    ? `started background subagent job ${id}`
    : `started background job ${id}`;
}

/** The line of a read that skips bytes the readable tail no longer holds. */
export function droppedOutput(locators: readonly string[]): string {
  const where = locators.length === 0 ? "(unavailable)" : locators.join(", ");
  return `[some output was dropped from memory; full output: ${where}]`;
}

export const noController =
  "background jobs unavailable: no job controller serves this agent (load the longhaul job tools in its composition)";
/** What a producer's tool says where there are no jobs. @public */
export const noRegistry =
  "background jobs unavailable: load the longhaul job registry and the longhaul job tools";
export const noOwnerRegistry =
  "background job ownership requires the agent registry (load longhaul sessions)";
/** What a producer's tool says where background jobs are switched off. @public */
export const backgroundDisabled =
  "run_in_background is disabled for this deployment (enableRunInBackground: false)";

export function strangeOwner(session: string): string {
  return `agent "${session}" is not the registered agent instance (background job owner must be live)`;
}

export function limitReached(limit: number): string {
  return `background job limit reached for this owner (limit: ${limit}); use job_kill to stop an unneeded job, wait for it to finish, then retry`;
}

export const ownerDisposed = "owner disposed";
export const serviceDisposed = "jobs service disposed";

/** Details of outcomes that no producer gives (spec/jobs §18). */
export const jobDetails = {
  stopOverdue: "stop overdue",
  startLost: "spawn failed: start lost",
  unconfirmedAtClose: "the session closed before its end was confirmed; work may be orphaned",
  cancelFailed: (message: string) => `cancel failed: ${message}`,
  cancelThrew: (message: string) =>
    `cancel threw during teardown; work may be orphaned: ${message}`,
  spawnFailed: (message: string) => `spawn failed: ${message}`,
  hostEnded: (why: string) => `job host ended: ${why}`,
  workerLost: (host: string, seconds: number) =>
    `worker lost: no worker on ${host} for ${seconds}s; work may be orphaned`,
  workerShutdown: (host: string) => `worker shutdown on ${host}`,
  notStarted: (host: string, seconds: number) =>
    `not started: no worker on ${host} within ${seconds}s`,
  hostFull: (host: string, jobs: number) => `not started: ${host} is full (${jobs} jobs)`,
  strangeOutcome: (status: string) => `producer contract violation: outcome status ${status}`,
} as const;

/** Section of the system prompt, present whenever the job tools are offered (spec/jobs §14). @public */
export const jobsPromptSection = {
  name: "tool:jobs",
  order: 106,
  text: "Remember the id of each background job you launch. Its completion is announced in this session, so never poll or sleep for it: carry on with work that does not depend on it and do not repeat what a live job is already doing. Before your final answer, read every job that still matters with job_output (use wait: true only when you cannot go on without it) and stop the ones that no longer matter with job_kill.",
} as const;

/** JSON of any value, for a message; NaN prints `null`. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value === "bigint" ? `${value}` : "an object";
  }
}
