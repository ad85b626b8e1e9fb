import type { Connection } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { attemptUntil, type Bounded } from "./attempts.js";
import { isDisabled, isNotFound } from "./failures.js";

/** A deployment as Temporal has it. */
export interface DeploymentState {
  /** Build that gets new sessions; undefined while none was made current. */
  readonly current?: string;
  /** All that had a worker and are not forgotten. */
  readonly builds: readonly string[];
  /** Has every task queue heard of it? */
  readonly settled: boolean;
}

export interface BuildState {
  /** Where it takes sessions from. */
  readonly queues: readonly string[];
  /** When a worker of it last asked for work, epoch ms. */
  readonly lastPoll?: number;
}

/** `TASK_QUEUE_TYPE_WORKFLOW` of the API. */
const workflowTasks = 1;

/** Temporal's worker deployments of one namespace; each call is bounded. INVALID_CONFIG on a server without them. */
export class Deployments {
  readonly #connection: Connection;
  readonly #bounds: Bounded;
  readonly #namespace: string;
  readonly #timeoutMs: number;

  constructor(connection: Connection, bounds: Bounded, namespace: string, timeoutMs: number) {
    this.#connection = connection;
    this.#bounds = bounds;
    this.#namespace = namespace;
    this.#timeoutMs = timeoutMs;
  }

  /** Their names, at most a hundred. */
  async names(): Promise<readonly string[]> {
    const { workerDeployments } = await this.#call("which deployments there are", () =>
      this.#service.listWorkerDeployments({ namespace: this.#namespace, pageSize: 100 }),
    );
    return workerDeployments.map(({ name }) => name ?? "").toSorted();
  }

  /** Undefined when no worker of it was ever seen. */
  async deployment(name: string): Promise<DeploymentState | undefined> {
    const answer = await this.#ask(`about deployment ${name}`, () =>
      this.#service.describeWorkerDeployment({ namespace: this.#namespace, deploymentName: name }),
    );
    const info = answer?.workerDeploymentInfo;
    if (info === undefined || info === null) return undefined;
    const update: number = info.routingConfigUpdateState ?? 0;
    const current = info.routingConfig?.currentDeploymentVersion?.buildId ?? "";
    return {
      ...(current === "" ? {} : { current }),
      builds: (info.versionSummaries ?? [])
        .map(({ deploymentVersion }) => deploymentVersion?.buildId ?? "")
        .filter((build) => build !== ""),
      // Older servers do not tell.
      settled: update !== updateInProgress,
    };
  }

  /** Undefined when no worker of it was ever seen. */
  async build(deployment: string, buildId: string): Promise<BuildState | undefined> {
    const answer = await this.#ask(`about build ${buildId}`, () =>
      this.#service.describeWorkerDeploymentVersion({
        namespace: this.#namespace,
        deploymentVersion: { deploymentName: deployment, buildId },
      }),
    );
    if (answer === undefined) return undefined;
    const queues = answer.versionTaskQueues
      .filter(({ type }) => Number(type) === workflowTasks)
      .map(({ name }) => name ?? "");
    const polls: number[] = [];
    for (const name of queues) {
      const { pollers } = await this.#call(`who works for ${name}`, () =>
        this.#service.describeTaskQueue({
          namespace: this.#namespace,
          taskQueue: { name },
          // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum would load another package
          taskQueueType: workflowTasks,
        }),
      );
      for (const { deploymentOptions: of, lastAccessTime } of pollers)
        if (of?.deploymentName === deployment && of.buildId === buildId)
          polls.push(Number(lastAccessTime?.seconds ?? 0) * 1_000);
    }
    return { queues, ...(polls.length === 0 ? {} : { lastPoll: Math.max(...polls) }) };
  }

  /** Idempotent. NO_WORKER when the build does not poll what the current one does. */
  async makeCurrent(deployment: string, buildId: string): Promise<void> {
    await attemptUntil(
      this.#bounds,
      {
        deadline: Date.now() + this.#timeoutMs,
        gone: () => Promise.resolve(undefined),
        late: (last) =>
          Promise.resolve(
            new LonghaulError(
              "NO_WORKER",
              `Temporal did not make build ${buildId} of deployment ${deployment} the current one within ${this.#timeoutMs / 1000} s: ${last.message}`,
            ),
          ),
      },
      () =>
        this.#service
          .setWorkerDeploymentCurrentVersion({
            namespace: this.#namespace,
            deploymentName: deployment,
            buildId,
            identity: "longhaul rollout",
          })
          .catch(explainDisabled),
    );
  }

  /**
   * Lets Temporal give a session to the current build, whatever build it is pinned to, or takes that back. False when there is no such
   * open session.
   */
  async override(sessionId: string, free: boolean): Promise<boolean> {
    const done = await this.#ask(`about session ${sessionId}`, () =>
      this.#service.updateWorkflowExecutionOptions({
        namespace: this.#namespace,
        workflowExecution: { workflowId: sessionId },
        workflowExecutionOptions: free
          ? // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum would load another package
            { versioningOverride: { autoUpgrade: true, behavior: autoUpgrade } }
          : {},
        updateMask: { paths: ["versioning_override"] },
        identity: "longhaul rollout",
      }),
    );
    return done !== undefined;
  }

  /** Is there an override on the session's current run? Undefined when there is no such open session. */
  async isOverridden(sessionId: string): Promise<boolean | undefined> {
    const answer = await this.#ask(`about session ${sessionId}`, () =>
      this.#service.describeWorkflowExecution({
        namespace: this.#namespace,
        execution: { workflowId: sessionId },
      }),
    );
    const info = answer?.workflowExecutionInfo;
    const status: number = info?.status ?? 0;
    if (status !== running) return undefined;
    const override = info?.versioningInfo?.versioningOverride;
    return override !== undefined && override !== null;
  }

  get #service(): Connection["workflowService"] {
    return this.#connection.workflowService;
  }

  /** Undefined for what is not there. */
  #ask<T>(what: string, call: () => Promise<T>): Promise<T | undefined> {
    return this.#call(what, () =>
      call().catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      }),
    );
  }

  #call<T>(what: string, call: () => Promise<T>): Promise<T> {
    return attemptUntil(
      this.#bounds,
      {
        deadline: Date.now() + this.#timeoutMs,
        gone: () => Promise.resolve(undefined),
        late: (last) =>
          Promise.resolve(
            new LonghaulError(
              "TEMPORAL_UNREACHABLE",
              `Temporal did not answer ${what} within ${this.#timeoutMs / 1000} s (${last.message})`,
            ),
          ),
      },
      () => call().catch(explainDisabled),
    );
  }
}

/** `ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS`, `VERSIONING_BEHAVIOR_AUTO_UPGRADE` and `WORKFLOW_EXECUTION_STATUS_RUNNING` of the API. */
const [updateInProgress, autoUpgrade, running] = [1, 2, 1];

function explainDisabled(error: unknown): never {
  if (!isDisabled(error)) throw error;
  throw new LonghaulError(
    "INVALID_CONFIG",
    "this Temporal server has no worker versioning (Worker Deployments) for the namespace; use a server from 1.28 with system.enableDeploymentVersions on, or run workers without --deployment",
    { cause: error },
  );
}
