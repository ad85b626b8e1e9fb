import {
  ActivityCancellationType,
  patched,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
  type ActivityOptions,
} from "@temporalio/workflow";
import type {
  ArchiveActivities,
  HostActivities,
  SessionActivities,
  SessionRef,
  ZoneActivities,
} from "../contracts/activities.js";
import { hostControlQueue, hostQueue, queues } from "../contracts/names.js";
import { oneLine } from "../domain/details.js";

/** Which session and run asks; the reader of the surface queries exactly this run (design D2). */
export function sessionRef(): SessionRef {
  const { workflowId, runId } = workflowInfo();
  return { v: 1, sessionId: workflowId, runId };
}

interface CallOptions {
  /** One line for Temporal UI. */
  readonly summary: string;
  readonly activityId?: string;
}

const common = {
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
} satisfies ActivityOptions;

/** A lost worker is noticed after this long without a heartbeat (design D16). */
const heartbeatTimeout = "10s";

/** On the session workers: the model. Only a lost worker makes Temporal run it again; provider failures are values. */
export function modelCalls(
  options: CallOptions & { readonly timeoutMs: number },
): SessionActivities {
  return proxyActivities<SessionActivities>({
    ...common,
    ...describe(options),
    taskQueue: workflowInfo().taskQueue,
    startToCloseTimeout: options.timeoutMs + 60_000,
    heartbeatTimeout,
    retry: { initialInterval: "1s", backoffCoefficient: 2, maximumInterval: "10s" },
  });
}

/** On the session workers: short questions. */
export function sessionCalls(options: CallOptions): SessionActivities {
  return proxyActivities<SessionActivities>({
    ...common,
    ...describe(options),
    taskQueue: workflowInfo().taskQueue,
    startToCloseTimeout: "10s",
    retry: { initialInterval: "1s", backoffCoefficient: 2, maximumInterval: "10s" },
  });
}

/** Reads a job's output; waits for a store that cannot be read, and gives up at once when it is cancelled. */
export function readCalls(summary: string): Pick<SessionActivities, "job.read"> {
  return proxyActivities<SessionActivities>({
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    ...describe({ summary }),
    taskQueue: workflowInfo().taskQueue,
    startToCloseTimeout: "60s",
    retry: { initialInterval: "500ms", backoffCoefficient: 2, maximumInterval: "5s" },
  });
}

/** Are these workflows still open? One that cannot be asked soon is not waited for. */
export function lookCalls(summary: string): Pick<SessionActivities, "job.look"> {
  return proxyActivities<SessionActivities>({
    ...common,
    ...describe({ summary }),
    taskQueue: workflowInfo().taskQueue,
    scheduleToCloseTimeout: "30s",
    startToCloseTimeout: "10s",
    retry: { initialInterval: "1s", maximumAttempts: 3 },
  });
}

const archiving = {
  ...common,
  startToCloseTimeout: "5m",
  heartbeatTimeout,
} satisfies ActivityOptions;
const archiveRetry = {
  initialInterval: "1s",
  backoffCoefficient: 2,
  maximumInterval: "10s",
} as const;

/** Writes to the archive; one that fails is tried again at a later edge. */
export function archiveCalls(summary: string): Pick<ArchiveActivities, "log.archive"> {
  return proxyActivities<ArchiveActivities>({
    ...archiving,
    ...describe({ summary }),
    taskQueue: workflowInfo().taskQueue,
    retry: { ...archiveRetry, maximumAttempts: 3 },
  });
}

/** Reads from the archive, and waits for it. */
export function bodiesCalls(summary: string): Pick<ArchiveActivities, "log.bodies"> {
  return proxyActivities<ArchiveActivities>({
    ...archiving,
    ...describe({ summary }),
    taskQueue: workflowInfo().taskQueue,
    retry: archiveRetry,
  });
}

/** A tool body: once, unless the tool is idempotent. */
export function toolCalls(
  options: CallOptions & {
    readonly host: string | undefined;
    readonly deadlineMs: number | undefined;
    readonly idempotent: boolean;
  },
): Pick<HostActivities, "tool.run"> {
  return proxyActivities<HostActivities>({
    ...common,
    ...describe(options),
    taskQueue: options.host === undefined ? workflowInfo().taskQueue : hostQueue(options.host),
    scheduleToStartTimeout: "30s",
    startToCloseTimeout: options.deadlineMs === undefined ? "24h" : options.deadlineMs + 60_000,
    heartbeatTimeout,
    retry: {
      initialInterval: "1s",
      maximumInterval: "10s",
      maximumAttempts: options.idempotent ? 5 : 1,
    },
  });
}

/** One question to a host that must answer within 30 s; without a host, to whichever answers. */
export function hostCalls(
  options: CallOptions & { readonly host: string | undefined },
): HostActivities {
  return proxyActivities<HostActivities>({
    ...common,
    ...describe(options),
    taskQueue: options.host === undefined ? queues.hosts : hostControlQueue(options.host),
    scheduleToStartTimeout: "30s",
    startToCloseTimeout: "10s",
    retry: { initialInterval: "1s", maximumAttempts: 3 },
  });
}

/** A question that waits in a host's queue until the host is back (design D5). */
export function standingHostCalls(
  options: CallOptions & { readonly host: string },
): HostActivities {
  return proxyActivities<HostActivities>({
    ...common,
    ...describe(options),
    taskQueue: hostControlQueue(options.host),
    startToCloseTimeout: "10s",
    retry: { initialInterval: "1s", backoffCoefficient: 2, maximumInterval: "10s" },
  });
}

/** Is a host there? One attempt, which waits 60 s in its queue (design D5). */
export function presenceCalls(
  options: CallOptions & { readonly host: string },
): Pick<HostActivities, "host.present"> {
  return proxyActivities<HostActivities>({
    ...common,
    ...describe(options),
    taskQueue: hostControlQueue(options.host),
    scheduleToStartTimeout: "60s",
    startToCloseTimeout: "10s",
    retry: { maximumAttempts: 1 },
  });
}

/**
 * On the session workers: what depends on zone data (design D11). Tasks as any other: what a local activity answers may come
 * after what a replay puts behind it (facts §0.33). Runs that were begun with local ones go on with them.
 */
export function zoneCalls(options: CallOptions): ZoneActivities {
  const short = { startToCloseTimeout: "5s", retry: { maximumAttempts: 3 } } as const;
  return patched("zone-tasks")
    ? proxyActivities<ZoneActivities>({
        ...describe(options),
        taskQueue: workflowInfo().taskQueue,
        ...short,
      })
    : proxyLocalActivities<ZoneActivities>(short);
}

/** Ends and seals a claim after its worker was lost (design D6). */
export function sealCalls(options: CallOptions & { readonly host: string }): HostActivities {
  return proxyActivities<HostActivities>({
    ...common,
    ...describe(options),
    taskQueue: hostControlQueue(options.host),
    scheduleToStartTimeout: "10s",
    startToCloseTimeout: "10s",
    retry: { maximumAttempts: 1 },
  });
}

function describe(options: CallOptions): Pick<ActivityOptions, "summary" | "activityId"> {
  const { summary, activityId } = options;
  return { summary: oneLine(summary), ...(activityId === undefined ? {} : { activityId }) };
}
