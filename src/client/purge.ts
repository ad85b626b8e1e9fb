import type { Client, Connection, WorkflowExecutionInfo } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { workflowTypes } from "../contracts/names.js";
import type { Store } from "../contracts/store.js";
import { attemptUntil, type Bounded } from "./attempts.js";
import { pause } from "./pause.js";
import type { PurgeOptions, PurgeResult } from "./types.js";
import { notFound } from "./wire.js";

export interface PurgeParts {
  readonly client: Client;
  readonly connection: Connection;
  readonly bounds: Bounded;
  readonly namespace: string;
  readonly store: Pick<Store, "list" | "remove">;
  readonly timeoutMs: number;
}

/** Temporal deletes behind its answer: what ended minutes ago at once, what has just ended after minutes. */
const deletionMs = 600_000;

/**
 * Removes all that is kept of a session that has ended: the histories of its runs and of its jobs' workflows, then everything of it
 * in the store. What was interrupted is taken up by the next. SESSION_OPEN, SESSION_NOT_FOUND, TIMEOUT.
 */
export async function purgeSession(
  parts: PurgeParts,
  session: string,
  { timeoutMs = deletionMs, onWait }: PurgeOptions = {},
): Promise<PurgeResult> {
  const deleted = { runs: new Set<string>(), jobs: new Set<string>() };
  const deadline = Date.now() + timeoutMs;
  for (let waitMs = 100; ; waitMs = Math.min(waitMs * 1.5, 2_000)) {
    const left = await executionsOf(parts, session);
    const open = left.flatMap(({ workflowId, status }) =>
      status.name === "RUNNING" || status.name === "PAUSED" ? [workflowId] : [],
    );
    // In whatever order visibility knows them: to close the session ends its jobs too.
    const [blocking] = open.includes(session) ? [session] : open;
    if (blocking !== undefined) throw openError(session, blocking);
    if (left.length === 0) break;
    for (const { workflowId, runId } of left) {
      const known = workflowId === session ? deleted.runs : deleted.jobs;
      if (!known.has(runId)) await deleteExecution(parts, workflowId, runId);
      known.add(runId);
    }
    if (Date.now() > deadline) {
      throw new LonghaulError(
        "TIMEOUT",
        `Temporal has not deleted ${left.length} of session ${session}'s workflows within ${timeoutMs / 1000} s; its archive and outputs are still there; purge again`,
      );
    }
    onWait?.(left.length);
    await pause(waitMs, parts.bounds.closed);
  }
  const streams = await parts.store.list(session, "");
  await parts.store.remove(session);
  if (streams.length === 0 && deleted.runs.size === 0 && deleted.jobs.size === 0)
    throw notFound(session);
  return {
    session,
    runs: deleted.runs.size,
    jobs: deleted.jobs.size,
    streams: streams.length,
    bytes: streams.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/** By visibility, which lags behind; the session's last run as the server has it now. */
async function executionsOf(
  parts: PurgeParts,
  session: string,
): Promise<readonly Pick<WorkflowExecutionInfo, "workflowId" | "runId" | "status">[]> {
  const { workflow } = parts.client;
  const query = `(WorkflowType = '${workflowTypes.session}' AND WorkflowId = '${session}') OR (WorkflowType = '${workflowTypes.job}' AND WorkflowId STARTS_WITH '${session}/job/')`;
  const listed = await bounded(parts, async () => {
    const found: WorkflowExecutionInfo[] = [];
    for await (const info of workflow.list({ query, pageSize: 1_000 })) found.push(info);
    return found;
  });
  const found = listed ?? [];
  const last = await bounded(parts, () => workflow.getHandle(session).describe());
  return last === undefined ? found : [...found.filter(({ runId }) => runId !== last.runId), last];
}

async function deleteExecution(
  parts: PurgeParts,
  workflowId: string,
  runId: string,
): Promise<void> {
  const { connection, namespace } = parts;
  await bounded(parts, () =>
    connection.workflowService.deleteWorkflowExecution({
      namespace,
      workflowExecution: { workflowId, runId },
    }),
  );
}

/** Undefined for what the server does not know. */
async function bounded<T>(
  { bounds, timeoutMs }: PurgeParts,
  call: () => Promise<T>,
): Promise<T | undefined> {
  const missing = new LonghaulError("SESSION_NOT_FOUND", "there is no such workflow");
  try {
    return await attemptUntil(
      bounds,
      {
        deadline: Date.now() + timeoutMs,
        gone: () => Promise.resolve(missing),
        late: ({ message }) =>
          Promise.resolve(
            new LonghaulError(
              "TEMPORAL_UNREACHABLE",
              `Temporal did not answer within ${timeoutMs / 1000} s (${message}); purge again`,
            ),
          ),
      },
      call,
    );
  } catch (error) {
    if (error instanceof LonghaulError && error.code === missing.code) return undefined;
    throw error;
  }
}

function openError(session: string, workflowId: string): LonghaulError {
  const what =
    workflowId === session
      ? `session ${session} has not ended; close it first (longhaul close ${session})`
      : `job ${workflowId.split("/")[2] ?? ""} of session ${session} has not ended (workflow ${workflowId}); kill it first, or wait`;
  return new LonghaulError("SESSION_OPEN", `${what}; nothing was removed`);
}
