import type { ActivateInput, ConcludeActivationInput } from "@temporalio/workflow";
import type { QueryOfEnded } from "../contracts/session.js";
import { changesState, eventsBehind, eventsLeft, type Job } from "./event-counts.js";
import { payloadConverter } from "./payload-converter.js";

/** Events around a task that went as it should: the end of the one before, it was scheduled, it was started. */
const around = 3;
/** The SDK core's name for a query that comes without a task. */
const legacyQuery = "legacy_query";

/** `left out`: a query brought it, and it is not to be applied. `refused`: the run has to be read anew. */
export type Verdict = "taken" | "left out" | "refused";

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
  #leftOut = false;

  /**
   * Takes each batch of an activation before it is applied.
   *
   * Every task starts at a time of its own, so more history at the same time is of a query. When a task has timed out since,
   * its time is taken for that of what a query brought, and the history alone shows that it was none: it has events that
   * neither a task nor what led to it accounts for. So has a task that comes after one that timed out; a query cannot
   * tell the two apart and finds out by reading anew.
   *
   * A run that has ended can be read anew as often as one likes: it has no next task. Who knows that it has ended says so
   * (QueryOfEnded), and is answered as of the last task.
   */
  take({ activation }: ActivateInput): Verdict {
    const { timestamp, historyLength, jobs, isReplaying } = activation;
    const queries = (jobs ?? []).flatMap(({ queryWorkflow }) => queryWorkflow ?? []);
    if (queries.length > 0) {
      const isOpen = queries.some((query) => query.queryId === legacyQuery && !asksOfEnded(query));
      return isOpen && (this.#doubtful || this.#leftOut) ? "refused" : "taken";
    }
    const time = `${String(timestamp?.seconds)}.${timestamp?.nanos ?? 0}`;
    const length = historyLength ?? 0;
    if (time === this.#time && length > this.#length) {
      this.#leftOut = true;
      return "left out";
    }
    // Nothing may follow on it but another reading.
    if (this.#leftOut && jobs?.some(changesState) === true) return "refused";
    if (!this.#open) {
      this.#open = jobs?.some(changesState) === true;
      this.#lengthBefore = this.#length;
      this.#behind = 0;
    }
    this.#time = time;
    this.#length = length;
    this.#behind += eventsBehind(jobs ?? []);
    this.#live = isReplaying !== true;
    return "taken";
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

function asksOfEnded({ arguments: given }: NonNullable<Job["queryWorkflow"]>): boolean {
  const [payload] = given ?? [];
  if (payload == null) return false;
  const args = payloadConverter.fromPayload<Partial<QueryOfEnded> | null>(payload);
  return args?.ended === true;
}
