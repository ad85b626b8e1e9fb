import type { ActivateInput, ConcludeActivationInput } from "@temporalio/workflow";

type Job = NonNullable<ActivateInput["activation"]["jobs"]>[number];
type Command = ConcludeActivationInput["commands"][number];

/** Memo key of a mark; it never holds anything. */
const key = "LonghaulTask";
const nothing = { metadata: { encoding: new TextEncoder().encode("binary/null") } };

/**
 * Sees to it that every workflow task in which something happened leaves an event. A task that leaves none and is followed at
 * once by another (an update's) is taken for a heartbeat by a worker that has to read the history, and both are handed over as
 * one, at the time of the second; a later reading may tell them apart again, by what the second left. Entries of the log would
 * change their times, and commands their order (facts §0.34). The mark is a change of the memo that changes nothing: 1 event of
 * about 100 bytes, in a task that has no other.
 */
export class MarkedTasks {
  #happened = false;

  /** Takes the jobs of an activation, in any number of batches. */
  take(jobs: readonly Job[]): void {
    if (jobs.some(leavesTrace)) this.#happened = true;
  }

  /** The commands of the activation, with a mark where it needs one. */
  conclude(commands: readonly Command[]): Command[] {
    const needed = this.#happened && !leaveEvents(commands);
    this.#happened = false;
    return needed
      ? [
          ...commands,
          { modifyWorkflowProperties: { upsertedMemo: { fields: { [key]: nothing } } } },
        ]
      : [...commands];
  }
}

/** Comes from an event, and may change the workflow's state. What an update does shows in its own events. */
function leavesTrace(job: Job): boolean {
  return !(
    job.queryWorkflow ||
    job.doUpdate ||
    job.removeFromCache ||
    job.notifyHasPatch ||
    job.updateRandomSeed
  );
}

/** Certainly: a command that is taken back in the same task, or answers without an event, does not count. */
function leaveEvents(commands: readonly Command[]): boolean {
  const started = new Set(commands.map(({ startTimer }) => startTimer?.seq));
  const stopped = new Set(commands.map(({ cancelTimer }) => cancelTimer?.seq));
  const cancelled = new Set(commands.map((command) => command.requestCancelActivity?.seq));
  return commands.some(
    ({ startTimer, cancelTimer, scheduleActivity, updateResponse, ...command }) =>
      (startTimer && !stopped.has(startTimer.seq)) ||
      (cancelTimer && !started.has(cancelTimer.seq)) ||
      (scheduleActivity && !cancelled.has(scheduleActivity.seq)) ||
      updateResponse?.accepted ||
      updateResponse?.completed ||
      command.upsertWorkflowSearchAttributes ||
      command.modifyWorkflowProperties ||
      command.completeWorkflowExecution ||
      command.continueAsNewWorkflowExecution ||
      command.failWorkflowExecution ||
      command.cancelWorkflowExecution,
  );
}
