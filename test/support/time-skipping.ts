import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { WorkflowClient } from "@temporalio/client";
import { msToTs, optionalTsToMs } from "@temporalio/common/lib/time.js";

/** Set on a server, lets the time of single workflows be skipped; the rest keep the time of the machine. */
export const timeSkipping = "frontend.WorkflowTimeSkippingEnabled=true";

const patienceMs = 300_000;

/**
 * Moves the clock of one workflow on by so many ms. The server jumps from timer to timer whenever nothing is under way, and
 * stops at the target. Needs a running worker where something is due in between.
 */
export async function fastForward(
  workflows: WorkflowClient,
  id: string,
  ms: number,
): Promise<void> {
  const target = (await virtualTime(workflows, id)) + ms;
  for (const end = Date.now() + patienceMs; ;) {
    const left = target - (await virtualTime(workflows, id));
    if (left <= 0) return;
    await workflows.workflowService.updateWorkflowExecutionOptions({
      namespace: "default",
      workflowExecution: { workflowId: id },
      identity: "test",
      updateMask: { paths: ["time_skipping_config"] },
      workflowExecutionOptions: {
        timeSkippingConfig: {
          enabled: true,
          fastForwardConfig: { id: randomUUID(), duration: msToTs(left) },
        },
      },
    });
    // It stops by itself after so many skips; then it is told again.
    while ((await skippingOf(workflows, id)).enabled) {
      if (Date.now() > end) throw new Error(`the clock of ${id} did not move on in 300 s`);
      await delay(100);
    }
  }
}

/** The time of the workflow, epoch ms. */
export async function virtualTime(workflows: WorkflowClient, id: string): Promise<number> {
  return (await skippingOf(workflows, id)).now;
}

async function skippingOf(
  workflows: WorkflowClient,
  id: string,
): Promise<{ readonly now: number; readonly enabled: boolean }> {
  const { raw } = await workflows.getHandle(id).describe();
  const info = raw.workflowExtendedInfo?.timeSkippingInfo;
  return {
    now: optionalTsToMs(info?.currentTime) ?? Date.now(),
    enabled: info?.effectiveConfig?.enabled === true,
  };
}
