import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import {
  bundleWorkflowCode,
  DefaultLogger,
  Worker,
  type NativeConnection,
  type WorkerOptions,
} from "@temporalio/worker";
import type { PeerActivities } from "./activities.js";
import type { PeerJobActivities } from "./job-workflows.js";

export const peerQueue = "bench-peer";

export async function writePeerBundle(
  path: string,
  workflows: "workflows" | "job-workflows" = "workflows",
): Promise<void> {
  const file =
    workflows === "workflows"
      ? new URL("workflows.ts", import.meta.url)
      : new URL("job-workflows.ts", import.meta.url);
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(file),
    logger: new DefaultLogger("WARN"),
  });
  await writeFile(path, code);
}

/** Runs the bare workflows. Returns what stops them. */
export async function startPeer(
  connection: NativeConnection,
  codePath: string,
  activities: PeerActivities | PeerJobActivities,
  options: Pick<WorkerOptions, "maxCachedWorkflows"> = {},
): Promise<() => Promise<void>> {
  const worker = await Worker.create({
    connection,
    taskQueue: peerQueue,
    workflowBundle: { codePath },
    activities: { ...activities },
    ...options,
  });
  const running = worker.run();
  return async () => {
    worker.shutdown();
    await running;
  };
}
