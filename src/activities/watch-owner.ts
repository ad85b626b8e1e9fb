import type { Client } from "@temporalio/client";
import type { JobRef } from "../contracts/activities.js";
import { jobWorkflowId, queries } from "../contracts/names.js";
import type { JobsView } from "../contracts/session.js";
import { lookAt, unbound } from "./job-calls.js";

/**
 * Asks every so often whether a job is still somebody's (spec/jobs J3, J22); costs no history. `onGone` is called when it is
 * not, for certain: its session has ended, is another incarnation, or was reset to a time before the job and does not know it.
 */
export function watchOwner(
  client: Client,
  job: JobRef,
  everyMs: number,
  onGone: () => void,
): () => void {
  let asking = false;
  /** The run of the session that has said it knows the job. */
  let known = "";
  const timer = setInterval(() => {
    if (asking) return;
    asking = true;
    void ask()
      .then((gone) => gone && onGone())
      .finally(() => {
        asking = false;
      });
  }, everyMs);

  async function ask(): Promise<boolean> {
    const at = job.token.lastIndexOf(":");
    if (at <= 0 || at === job.token.length - 1) return false;
    const owner = await lookAt(client, job.token.slice(0, at));
    if (owner.state === "unknown") return false;
    if (owner.state !== "open") return true;
    if (owner.firstRunId !== "" && owner.firstRunId !== job.token.slice(at + 1)) return true;
    if (owner.runId === known) return false;
    const knows = await isKnown(client, job);
    if (knows === true) known = owner.runId;
    return knows === false;
  }

  return () => clearInterval(timer);
}

/** Does the session list the job? Undefined when nobody could say. */
async function isKnown(
  client: Client,
  { sessionId, jobId, nonce }: JobRef,
): Promise<boolean | undefined> {
  try {
    const handle = client.workflow.getHandle(sessionId);
    const { jobs, state } = await unbound(client, () => handle.query<JobsView>(queries.jobs));
    // A parked session may not be able to read which jobs it has.
    if (state === "faulted") return undefined;
    return jobs.some(({ workflowId }) => workflowId === jobWorkflowId(sessionId, jobId, nonce));
  } catch {
    return undefined;
  }
}
