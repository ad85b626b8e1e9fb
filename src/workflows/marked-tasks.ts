import { changesState, eventsLeft, type Command, type Job } from "./event-counts.js";

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

  /** Takes the jobs of an activation, in any number of batches. What an update does shows in its own events. */
  take(jobs: readonly Job[]): void {
    if (jobs.some((job) => changesState(job) && !job.doUpdate)) this.#happened = true;
  }

  /** The commands of the activation, with a mark where it needs one. */
  conclude(commands: readonly Command[]): Command[] {
    const needed = this.#happened && eventsLeft(commands) === 0;
    this.#happened = false;
    return needed
      ? [
          ...commands,
          { modifyWorkflowProperties: { upsertedMemo: { fields: { [key]: nothing } } } },
        ]
      : [...commands];
  }
}
