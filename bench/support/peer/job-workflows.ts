import {
  condition,
  defineSignal,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  proxyActivities,
  setHandler,
  startChild,
  workflowInfo,
} from "@temporalio/workflow";

export interface PeerJobActivities {
  callModel(): Promise<string>;
  useTool(): Promise<string>;
  /** Until the job has ended. */
  attend(what: PeerJob): Promise<string>;
}

/** A body in the worker, or a command. */
export type PeerJob = { readonly body: true } | { readonly command: string };

const { callModel, useTool } = proxyActivities<PeerJobActivities>({
  startToCloseTimeout: "1 minute",
});
const { attend } = proxyActivities<PeerJobActivities>({
  startToCloseTimeout: "1 hour",
  heartbeatTimeout: "1 minute",
});

export const peerReport = defineSignal<[outcome: string]>("peer.report");
export const peerWork = defineSignal("peer.work");
export const peerStart = defineSignal<[PeerJob]>("peer.start");

/** An owner of jobs as a careful person writes it on the bare SDK: a report opens a turn, or joins the one that runs. */
export async function peerOwner(): Promise<void> {
  const reports: string[] = [];
  const jobs: PeerJob[] = [];
  let work = 0;
  let number = 0;
  setHandler(peerReport, (outcome) => void reports.push(outcome));
  setHandler(peerWork, () => void work++);
  setHandler(peerStart, (job) => void jobs.push(job));
  for (;;) {
    await condition(() => reports.length + jobs.length + work > 0);
    for (const job of jobs.splice(0)) {
      await startChild(peerJob, {
        workflowId: `${workflowInfo().workflowId}/job/${(number += 1)}`,
        args: [workflowInfo().workflowId, job],
        parentClosePolicy: ParentClosePolicy.ABANDON,
      });
    }
    if (work > 0) {
      work--;
      await callModel();
      await useTool();
      reports.splice(0);
      await callModel();
    }
    if (reports.splice(0).length > 0) await callModel();
  }
}

export async function peerJob(owner: string, job: PeerJob): Promise<void> {
  const outcome = await attend(job);
  await getExternalWorkflowHandle(owner).signal(peerReport, outcome);
}
