import {
  ActivityCancellationType,
  proxyActivities,
  type ActivityOptions,
} from "@temporalio/workflow";
import type { HostActivities } from "../contracts/activities.js";
import type { JobWorkflowInput } from "../contracts/jobs.js";
import { hostControlQueue, hostJobsQueue } from "../contracts/names.js";
import { oneLine } from "../domain/details.js";

/** Activities of the `job` workflow (spec/jobs §18, J7, J8). */

const common = {
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
} satisfies ActivityOptions;

/** Once: a start that may have happened is attached to, never repeated. */
export function beginCalls({ host, label }: JobWorkflowInput): Pick<HostActivities, "job.begin"> {
  return proxyActivities<HostActivities>({
    ...common,
    summary: oneLine(`begin ${label}`),
    taskQueue: hostControlQueue(host),
    scheduleToStartTimeout: "30s",
    startToCloseTimeout: "15s",
    retry: { maximumAttempts: 1 },
  });
}

/** As often as it takes: each attempt attaches to the running job, on any worker of its host that takes it in time. */
export function followCalls(
  input: JobWorkflowInput,
  patienceMs: number,
): Pick<HostActivities, "job.follow"> {
  return proxyActivities<HostActivities>({
    ...common,
    summary: oneLine(input.label),
    taskQueue: hostJobsQueue(input.host),
    scheduleToStartTimeout: patienceMs,
    startToCloseTimeout: "10 years",
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: "1s", backoffCoefficient: 1, maximumInterval: "1s" },
  });
}

export function endCalls(
  input: JobWorkflowInput,
  patienceMs: number,
): Pick<HostActivities, "job.end"> {
  return proxyActivities<HostActivities>({
    ...common,
    summary: oneLine(`end ${input.label}`),
    taskQueue: hostControlQueue(input.host),
    scheduleToStartTimeout: patienceMs,
    startToCloseTimeout: "2m",
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: "1s", backoffCoefficient: 1, maximumInterval: "1s" },
  });
}

/**
 * How long a host may be silent, ms, in two parts: by the end of the first the supervisors of a host without a worker have
 * ended their jobs. The second is asked when the first is known to be over, which may be much later: a worker that came back
 * together with this one still tells how the job ended.
 */
export function patienceOf({ orphanGraceMs }: JobWorkflowInput): readonly [number, number] {
  return [orphanGraceMs + 30_000, 30_000];
}
