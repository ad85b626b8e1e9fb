import { Worker } from "@temporalio/worker";
import { expect } from "vitest";
import { eventsOf, faultsOf, type History } from "./history.js";
import { noSinks } from "./no-sinks.js";

export interface Replayer {
  /** Replays a history; a divergence, and a task that ever failed, fail the test. */
  replay(history: History, id: string): Promise<void>;
  close(): Promise<void>;
}

/** Replays histories one after the other on one worker: to start a worker for each takes longer than most replays. */
export function openReplayer(bundlePath: string): Replayer {
  let upcoming: { readonly history: History; readonly workflowId: string } | undefined;
  let results: ReturnType<typeof Worker.runReplayHistories> | undefined;
  let last: Promise<unknown> = Promise.resolve();

  function* source() {
    while (upcoming !== undefined) yield upcoming;
  }

  async function replayNext(history: History, id: string): Promise<void> {
    upcoming = { history, workflowId: id };
    results ??= Worker.runReplayHistories(
      { workflowBundle: { codePath: bundlePath }, sinks: noSinks },
      source(),
    );
    const result = await results.next().catch((error: unknown) => {
      results = undefined;
      throw error;
    });
    if (result.done === true) throw new Error(`the replay of ${id} has no result`);
    const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
    expect(result.value.runId, "the run that was replayed").toBe(started?.originalExecutionRunId);
    if (result.value.error !== undefined) throw result.value.error;
  }

  return {
    async replay(history, id) {
      expect(faultsOf(history), `workflow tasks of ${id} that failed`).toEqual([]);
      // A run whose first task is yet to come has decided nothing, and its replay would wait for it without end.
      if (eventsOf(history, "workflowTaskCompletedEventAttributes").length === 0) return;
      const replayed = last.then(() => replayNext(history, id));
      last = replayed.catch(() => {});
      await expect(replayed, `the history of ${id} replays`).resolves.toBeUndefined();
    },
    async close() {
      await last;
      upcoming = undefined;
      await results?.next();
    },
  };
}
