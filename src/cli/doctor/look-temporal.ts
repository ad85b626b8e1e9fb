import { randomUUID } from "node:crypto";
import type { Connection } from "@temporalio/client";
import { msToTs, tsToMs } from "@temporalio/common/lib/time.js";
import proto, { type temporal } from "@temporalio/proto";
import { connectTemporal, registeredAttributes } from "../../client/connect.js";
import { hostControlQueue, hostQueue, queues, searchAttributes } from "../../contracts/names.js";
import {
  attributesRegistered,
  clusterFromEnvironment,
  embeddedNamespace,
  resolveServer,
  serverStatus,
  type ClusterConnection,
} from "../../server/index.js";
import type { Io } from "../io.js";
import { reasonOf, warn, type Check } from "./check.js";
import {
  attributeCheck,
  clockCheck,
  clockFacts,
  livePollers,
  serverCheck,
  workerCheck,
  type AttributeFacts,
  type ClockFacts,
  type Poller,
  type QueueFacts,
  type ServerFacts,
} from "./temporal.js";

/** What the Temporal server says; starts and fetches nothing. `hostId` is undefined when it cannot be read. */
export async function lookAtTemporal(
  io: Pick<Io, "env">,
  home: string,
  hostId: string | undefined,
): Promise<readonly Check[]> {
  const { facts, connection } = await findServer(io, home);
  if (connection === undefined || !("namespace" in facts)) {
    const why = "not looked at: there is no server to ask";
    const rest = ["Search attributes", "Session worker", "Host worker", "Clock"].map((name) =>
      warn(name, why, "see Temporal server"),
    );
    return [serverCheck(facts), ...rest];
  }
  const { namespace } = facts;
  try {
    const clock = await asked("Clock", async () => {
      const measured = await readClock(connection, namespace);
      return { check: clockCheck(measured), measured };
    });
    const skew = "measured" in clock ? clock.measured.skew : 0;
    const workers = (name: string, role: string, wanted: readonly QueueAsked[]) =>
      asked(name, async () => ({
        check: workerCheck({ name, role }, await readQueues(connection, namespace, wanted, skew)),
      }));
    const hostQueues: readonly QueueAsked[] =
      hostId === undefined
        ? [[queues.hosts, activityQueue]]
        : [
            [hostQueue(hostId), activityQueue],
            [hostControlQueue(hostId), activityQueue],
          ];
    const sessionQueues: readonly QueueAsked[] = [
      [queues.sessions, workflowQueue],
      [queues.sessions, activityQueue],
    ];
    return [
      serverCheck(facts),
      attributeCheck(Object.keys(searchAttributes), await readAttributes(connection, facts)),
      (await workers("Session worker", "session", sessionQueues)).check,
      (await workers("Host worker", "host", hostQueues)).check,
      clock.check,
    ];
  } finally {
    await connection.close();
  }
}

async function findServer(
  { env }: Pick<Io, "env">,
  home: string,
): Promise<{ readonly facts: ServerFacts; readonly connection?: Connection }> {
  try {
    const cluster = clusterFromEnvironment(env);
    if (cluster !== undefined) {
      const { namespace, namedBy: from } = cluster;
      return await connect(cluster.connection, { kind: "cluster", namespace, from });
    }
    const { address, server, died, log } = await serverStatus({ home });
    if (address !== undefined) {
      const from = `${server?.binary ?? "?"} (CLI ${server?.version ?? "unknown"})`;
      return await connect({ address }, { kind: "embedded", namespace: embeddedNamespace, from });
    }
    const found = await resolveServer({ env, report: () => {}, fetch: false });
    if (found.kind === "cluster") throw new Error("the environment named no cluster a moment ago");
    return { facts: { kind: "stopped", died, log, binary: found } };
  } catch (error) {
    const none = error instanceof Error && "code" in error && error.code === "TEMPORAL_NOT_FOUND";
    return { facts: { kind: none ? "no binary" : "unusable", message: reasonOf(error) } };
  }
}

async function connect(
  target: ClusterConnection,
  about: {
    readonly kind: "cluster" | "embedded";
    readonly namespace: string;
    readonly from: string;
  },
): Promise<{ readonly facts: ServerFacts; readonly connection: Connection }> {
  const { connection } = await connectTemporal({ ...target }, about.namespace);
  try {
    const { serverVersion } = await bounded(connection, () =>
      connection.workflowService.getSystemInfo({}),
    );
    const version = `server ${serverVersion === "" ? "of unknown version" : serverVersion}`;
    return { facts: { ...about, address: target.address, version }, connection };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function readAttributes(
  connection: Connection,
  { address, namespace }: Pick<AttributeFacts, "address" | "namespace">,
): Promise<AttributeFacts> {
  try {
    const present = await attributesRegistered(connection, namespace);
    const usable = new Set<string>(await registeredAttributes(connection, namespace));
    return { address, namespace, present, usable };
  } catch (error) {
    return { address, namespace, present: new Set(), usable: new Set(), refused: reasonOf(error) };
  }
}

const { TASK_QUEUE_TYPE_WORKFLOW: workflowQueue, TASK_QUEUE_TYPE_ACTIVITY: activityQueue } =
  proto.temporal.api.enums.v1.TaskQueueType;

type QueueAsked = readonly [queue: string, type: temporal.api.enums.v1.TaskQueueType];

async function readQueues(
  connection: Connection,
  namespace: string,
  wanted: readonly QueueAsked[],
  skew: number,
): Promise<QueueFacts> {
  const facts: Record<string, readonly Poller[]> = {};
  for (const [queue, taskQueueType] of wanted) {
    const answer = await bounded(connection, () =>
      connection.workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name: queue },
        taskQueueType,
      }),
    );
    const now = Date.now() + skew;
    const pollers = answer.pollers.map(({ identity, lastAccessTime }) => ({
      identity: identity ?? "",
      age: now - tsToMs(lastAccessTime),
    }));
    const name = taskQueueType === workflowQueue ? `${queue} (workflows)` : queue;
    facts[name] = livePollers(pollers);
  }
  return facts;
}

/**
 * No call tells the server's time, but a workflow has the time of its start. One is started where nobody polls, and
 * deleted at once; where that is not allowed, it is over by itself within a minute.
 */
async function readClock(connection: Connection, namespace: string): Promise<ClockFacts> {
  const { workflowService } = connection;
  const workflowId = `doctor-${randomUUID()}`;
  const sent = Date.now();
  const { runId } = await bounded(connection, () =>
    workflowService.startWorkflowExecution({
      namespace,
      workflowId,
      requestId: workflowId,
      workflowType: { name: "doctor" },
      taskQueue: { name: workflowId },
      workflowExecutionTimeout: msToTs("1m"),
    }),
  );
  const answered = Date.now();
  const execution = { workflowId, runId };
  try {
    const { workflowExecutionInfo } = await bounded(connection, () =>
      workflowService.describeWorkflowExecution({ namespace, execution }),
    );
    return clockFacts(sent, tsToMs(workflowExecutionInfo?.startTime), answered);
  } finally {
    await bounded(connection, () =>
      workflowService.deleteWorkflowExecution({ namespace, workflowExecution: execution }),
    ).catch(() => undefined);
  }
}

const callLimitMs = 10_000;

function bounded<T>(connection: Connection, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + callLimitMs, call);
}

/** A question the server may refuse to answer: then the line says so. */
async function asked<T extends { readonly check: Check }>(
  name: string,
  ask: () => Promise<T>,
): Promise<T | { readonly check: Check }> {
  try {
    return await ask();
  } catch (error) {
    const cure = "ask for the rights of a worker in this namespace, or look at the server";
    return { check: warn(name, `the server did not tell: ${reasonOf(error)}`, cure) };
  }
}
