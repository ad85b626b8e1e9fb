import type { Client } from "@temporalio/client";
import { Worker } from "@temporalio/worker";
import type { SessionClient } from "../../src/client/session-client.js";
import type { SessionInput } from "../../src/contracts/session.js";
import { noSinks } from "../../test/support/no-sinks.js";
import { chainOf } from "./history-size.js";
import { median, round } from "./report.js";
import { workflowBundle } from "./server.js";

/** How large a session is at one moment. */
export interface SessionSize {
  /** Of its newest run that is complete; of the current one while that is its first. */
  readonly historyBytes: number;
  readonly events: number;
  /** To replay it in a new worker: median of five, ms. */
  readonly replayMs: number;
  /** CPU time of that, which says more on a busy machine. */
  readonly replayCpuMs: number;
  readonly runs: number;
  /** Bytes of JSON of what the current run goes on from. */
  readonly checkpointBytes: number;
  /** Messages that the model is shown. */
  readonly surface: number;
}

export async function sizeSession(temporal: Client, session: SessionClient): Promise<SessionSize> {
  const runs = await chainOf(temporal, session.id);
  const current = await temporal.workflow.getHandle(session.id, runs.at(-1)).fetchHistory();
  const handle = temporal.workflow.getHandle(session.id, runs.at(-2) ?? runs.at(-1));
  const history = runs.length > 1 ? await handle.fetchHistory() : current;
  const { historySize, historyLength } = await handle.describe();
  const times: number[] = [];
  const cpuTimes: number[] = [];
  for (let pass = 0; pass < 5; pass++) {
    const begun = performance.now();
    const cpuBefore = process.cpuUsage();
    await Worker.runReplayHistory(
      { workflowBundle: { codePath: workflowBundle }, sinks: noSinks },
      history,
      session.id,
    );
    times.push(performance.now() - begun);
    const { user, system } = process.cpuUsage(cpuBefore);
    cpuTimes.push((user + system) / 1_000);
  }
  return {
    historyBytes: historySize ?? 0,
    events: historyLength,
    replayMs: round(median(times), 1),
    replayCpuMs: round(median(cpuTimes), 1),
    runs: runs.length,
    checkpointBytes: checkpointBytes(current),
    surface: (await session.surface({ from: 0, to: 1 })).length,
  };
}

type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;

function checkpointBytes({ events }: History): number {
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  const [payload] = started?.input?.payloads ?? [];
  const input: SessionInput = JSON.parse(Buffer.from(payload?.data ?? []).toString("utf8"));
  return input.checkpoint === undefined ? 0 : Buffer.byteLength(JSON.stringify(input.checkpoint));
}
