import {
  QueryNotRegisteredError,
  type Client,
  type WorkflowExecutionInfo,
} from "@temporalio/client";
import type { Archive, ArchivedSession } from "../contracts/archive.js";
import { askAgain, workflowTypes } from "../contracts/names.js";
import { archiveEnded, type EndedRun } from "./archive-ended.js";

export interface SweepEndedDeps {
  readonly client: Client;
  readonly archive: Archive;
  /** Only sessions of this queue: others are answered by other workers. */
  readonly taskQueue: string;
  /** What keeps a session from being archived; said once of each. */
  readonly warn: (message: string) => void;
}

export type EndedSweep = (signal: AbortSignal) => Promise<void>;

/** Visibility lags behind, and the clocks of servers differ. */
const overlapMs = 5 * 60_000;
const firstRetryMs = 1_000;
const lastRetryMs = 3_600_000;
/** What waits to be tried again: so many at most, and so many in one sweep, because each may cost its whole deadline. */
const maxWaiting = 1_000;
const retriesASweep = 10;

interface Waiting {
  readonly ended: EndedRun;
  readonly waitMs: number;
  readonly at: number;
}

/**
 * Archives the sessions that have ended: the first sweep all that Temporal still knows, each later one those that are new (design
 * D8). One session after the other, so that the worker's own do not wait; what fails is tried again ever more rarely. Never run two
 * at a time; several processes may.
 */
export function createEndedSweep({ client, archive, taskQueue, warn }: SweepEndedDeps): EndedSweep {
  /** Runs that need no further look, and when they closed. */
  const done = new Map<string, number>();
  const waiting = new Map<string, Waiting>();
  let since: number | undefined;

  async function attempt(ended: EndedRun, signal: AbortSignal): Promise<void> {
    const { session, run, closedAt } = ended;
    const before = waiting.get(run);
    try {
      await archiveEnded({ client, archive, signal }, ended);
    } catch (error) {
      if (signal.aborted) return;
      // It failed before it had a log: there is nothing to keep, and never will be.
      const empty = error instanceof QueryNotRegisteredError && !error.message.includes(askAgain);
      if (before === undefined)
        warn(
          `session ${session} (${ended.status}) is not archived${empty ? "" : " yet"}: ${empty ? "it has no log" : reason(error)}`,
        );
      if (!empty) {
        if (before === undefined && waiting.size >= maxWaiting) return;
        const waitMs = Math.min((before?.waitMs ?? firstRetryMs / 2) * 2, lastRetryMs);
        waiting.set(run, { ended, waitMs, at: Date.now() + waitMs });
        return;
      }
    }
    waiting.delete(run);
    done.set(run, closedAt);
  }

  return async (signal) => {
    let newest = since;
    const query = endedQuery(taskQueue, since === undefined ? undefined : since - overlapMs);
    for await (const info of client.workflow.list({ query, pageSize: 200 })) {
      if (signal.aborted) return;
      const ended = endedOf(info);
      if (ended === undefined) continue;
      newest = Math.max(newest ?? 0, ended.closedAt);
      if (!done.has(ended.run) && !waiting.has(ended.run)) await attempt(ended, signal);
    }
    const due = [...waiting.values()].filter(({ at }) => at <= Date.now());
    for (const { ended } of due.slice(0, retriesASweep)) {
      if (signal.aborted) return;
      await attempt(ended, signal);
    }
    since = newest;
    for (const [run, closedAt] of done)
      if (closedAt < (since ?? 0) - 2 * overlapMs) done.delete(run);
  };
}

/** Sessions of a queue that have ended; those that go on in a new run have not. Exported for tests. */
export function endedQuery(taskQueue: string, closedSince: number | undefined): string {
  return [
    `WorkflowType = '${workflowTypes.session}'`,
    `TaskQueue = '${taskQueue.replaceAll("'", String.raw`\'`)}'`,
    "ExecutionStatus IN ('Completed', 'Failed', 'Terminated', 'Canceled', 'TimedOut')",
    ...(closedSince === undefined ? [] : [`CloseTime >= '${new Date(closedSince).toISOString()}'`]),
  ].join(" AND ");
}

function endedOf(info: WorkflowExecutionInfo): EndedRun | undefined {
  const status = statuses[info.status.name];
  if (status === undefined || info.closeTime === undefined) return undefined;
  const { workflowId: session, runId: run } = info;
  return { session, run, status, closedAt: info.closeTime.getTime() };
}

const statuses: { readonly [name: string]: ArchivedSession["status"] } = {
  COMPLETED: "completed",
  FAILED: "failed",
  TERMINATED: "terminated",
  CANCELLED: "cancelled",
  TIMED_OUT: "timed-out",
};

function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] ?? "";
}
