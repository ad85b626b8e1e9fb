import type { Connection } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { hostControlQueue } from "../contracts/names.js";
import { attemptUntil, type Bounded } from "./attempts.js";
import { eachOf } from "./each-of.js";
import type { HostRecord, SessionSummary } from "./types.js";

/** A poll lasts up to a minute, and its time is that of its beginning. */
const pollMs = 70_000;
/** How many queues are asked after at once. */
const atOnce = 20;
/** `TASK_QUEUE_TYPE_ACTIVITY` of the API. */
const activityTasks = 2;

/** The hosts of `sessions`, and `also`, by name, with who polls their control queues. */
export async function findHosts(
  connection: Connection,
  bounds: Bounded,
  { namespace, timeoutMs }: { readonly namespace: string; readonly timeoutMs: number },
  sessions: readonly SessionSummary[],
  also: readonly string[],
): Promise<readonly HostRecord[]> {
  const bound = new Map<string, number>(also.map((id) => [id, 0]));
  for (const { host } of sessions)
    if (host !== undefined) bound.set(host, (bound.get(host) ?? 0) + 1);
  const hosts = [...bound].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return eachOf(hosts, atOnce, async ([id, count]) => {
    const pollers = await pollersOf(id);
    const times = pollers.map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000);
    const lastSeen = times.length === 0 ? undefined : Math.max(...times);
    return {
      id,
      polling: lastSeen !== undefined && Date.now() - lastSeen < pollMs,
      ...(lastSeen === undefined ? {} : { lastSeen }),
      workers: [...new Set(pollers.map(({ identity }) => identity ?? "unknown"))].toSorted(),
      sessions: count,
    };
  });

  async function pollersOf(host: string) {
    const { pollers } = await attemptUntil(
      bounds,
      {
        deadline: Date.now() + timeoutMs,
        gone: () => Promise.resolve(undefined),
        late: (last) =>
          Promise.resolve(
            new LonghaulError(
              "TEMPORAL_UNREACHABLE",
              `Temporal did not say within ${timeoutMs / 1000} s who works for host ${host} (${last.message})`,
            ),
          ),
      },
      () =>
        connection.workflowService.describeTaskQueue({
          namespace,
          taskQueue: { name: hostControlQueue(host) },
          // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum would load another package
          taskQueueType: activityTasks,
        }),
    );
    return pollers;
  }
}
