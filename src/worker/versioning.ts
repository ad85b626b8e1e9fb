import type { WorkerOptions } from "@temporalio/worker";

/** Names the build of a versioned worker (design D16). */
export interface WorkerDeployment {
  /** Of all builds together. */
  readonly name: string;
  readonly buildId: string;
}

/** What makes a worker versioned. Jobs move to the current build by themselves; the session declares its own behaviour. */
export function versionedBy(
  deployment: WorkerDeployment | undefined,
): Pick<WorkerOptions, "workerDeploymentOptions"> {
  if (deployment === undefined) return {};
  return {
    workerDeploymentOptions: {
      useWorkerVersioning: true,
      version: { deploymentName: deployment.name, buildId: deployment.buildId },
      defaultVersioningBehavior: "AUTO_UPGRADE",
    },
  };
}
