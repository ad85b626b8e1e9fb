import type { ActivateInput, ConcludeActivationInput } from "@temporalio/workflow";

export type Job = NonNullable<ActivateInput["activation"]["jobs"]>[number];
export type Command = ConcludeActivationInput["commands"][number];

/** Events that brought these jobs. Updates are none: they come beside the history. */
export function eventsBehind(jobs: readonly Job[]): number {
  let events = 0;
  for (const job of jobs) {
    if (job.resolveActivity) events += job.resolveActivity.isLocal ? 0 : 2;
    else if (changesState(job) && !job.doUpdate) events += 1;
  }
  return events;
}

/** May change what the workflow is, unlike a query. */
export function changesState(job: Job): boolean {
  return !(job.queryWorkflow || job.removeFromCache || job.notifyHasPatch || job.updateRandomSeed);
}

/**
 * Events that these commands of one task are certain to leave; what is taken back in the same task, or answers without an
 * event, leaves none.
 */
export function eventsLeft(commands: readonly Command[]): number {
  const started = new Set(commands.map(({ startTimer }) => startTimer?.seq));
  const stopped = new Set(commands.map(({ cancelTimer }) => cancelTimer?.seq));
  const scheduled = new Set(commands.map(({ scheduleActivity }) => scheduleActivity?.seq));
  const cancelled = new Set(commands.map((command) => command.requestCancelActivity?.seq));
  let events = 0;
  for (const { startTimer, cancelTimer, scheduleActivity, ...command } of commands) {
    const { requestCancelActivity, updateResponse, setPatchMarker } = command;
    if (startTimer) events += stopped.has(startTimer.seq) ? 0 : 1;
    else if (cancelTimer) events += started.has(cancelTimer.seq) ? 0 : 1;
    else if (scheduleActivity) events += cancelled.has(scheduleActivity.seq) ? 0 : 1;
    else if (requestCancelActivity) events += scheduled.has(requestCancelActivity.seq) ? 0 : 1;
    else if (updateResponse) events += updateResponse.rejected ? 0 : 1;
    // The marker, and the search attribute that names it.
    else if (setPatchMarker) events += 2;
    else if (leavesOne(command)) events += 1;
  }
  return events;
}

function leavesOne(command: Command): boolean {
  return Boolean(
    command.upsertWorkflowSearchAttributes ||
    command.modifyWorkflowProperties ||
    command.startChildWorkflowExecution ||
    command.signalExternalWorkflowExecution ||
    command.requestCancelExternalWorkflowExecution ||
    command.completeWorkflowExecution ||
    command.continueAsNewWorkflowExecution ||
    command.failWorkflowExecution ||
    command.cancelWorkflowExecution,
  );
}
