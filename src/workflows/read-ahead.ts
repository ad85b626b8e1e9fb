import type { ActivateInput, ConcludeActivationInput } from "@temporalio/workflow";
import { changesState, eventsBehind, eventsLeft } from "./event-counts.js";

/** Events around a task that went as it should: the end of the one before, it was scheduled, it was started. */
const around = 3;
/** The SDK core's name for a query that comes without a task. */
const legacyQuery = "legacy_query";

/**
 * Knows activations that a query brought. A query to a worker that has to read the history brings along what came after the last
 * workflow task, and the SDK applies that at once, apart from what the next task will bring. The commands that follow have
 * another order than a replay gives: the session would be stuck for good (TMPRL1100).
 */
export class ReadAhead {
  #time = "";
  #length = 0;
  /** Of the activation at hand; left by the one before. */
  #behind = 0;
  #left = 0;
  #lengthBefore = 0;
  #live = false;
  #open = false;
  #doubtful = false;

  /**
   * Takes each batch of an activation before it is applied; false: it must not be.
   *
   * Every task starts at a time of its own, so more history at the same time is of a query. When a task has timed out since,
   * its time is taken for that of what a query brought, and the history alone shows that it was none: it has events that
   * neither a task nor what led to it accounts for. So has a task that comes after one that timed out; a query cannot
   * tell the two apart and finds out by reading anew.
   */
  take({ activation }: ActivateInput): boolean {
    const { timestamp, historyLength, jobs, isReplaying } = activation;
    const queries = (jobs ?? []).flatMap(({ queryWorkflow }) => queryWorkflow ?? []);
    if (queries.length > 0)
      return !(this.#doubtful && queries.some(({ queryId }) => queryId === legacyQuery));
    const time = `${String(timestamp?.seconds)}.${timestamp?.nanos ?? 0}`;
    const length = historyLength ?? 0;
    if (time === this.#time && length > this.#length) return false;
    if (!this.#open) {
      this.#open = jobs?.some(changesState) === true;
      this.#lengthBefore = this.#length;
      this.#behind = 0;
    }
    this.#time = time;
    this.#length = length;
    this.#behind += eventsBehind(jobs ?? []);
    this.#live = isReplaying !== true;
    return true;
  }

  /** Takes what came of the activation. */
  conclude({ commands }: ConcludeActivationInput): void {
    if (!this.#open) return;
    this.#open = false;
    const first = this.#lengthBefore === 0 ? 1 : 0;
    const gap = this.#length - this.#lengthBefore - this.#left - this.#behind;
    this.#doubtful = this.#live && gap !== around - first;
    this.#left = eventsLeft(commands);
  }
}
