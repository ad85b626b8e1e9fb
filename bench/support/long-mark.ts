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
  /** Of the run that was asked for, which is complete. */
  readonly historyBytes: number;
  readonly events: number;
  /** To replay it in a new worker: median of five, ms. */
  readonly replayMs: number;
  /** CPU time of that, which says more on a busy machine. */
  readonly replayCpuMs: number;
  readonly runs: number;
  /** Bytes of JSON of what it hands on, which is in its history, as what it began with is. */
  readonly checkpointBytes: number;
  /** Messages that the model is shown. */
  readonly surface: number;
}

/** The run that has what the session does now. */
export async function runOf(temporal: Client, session: SessionClient): Promise<string> {
  return (await temporal.workflow.getHandle(session.id).describe()).runId;
}

/** As one of its runs shows that has gone on in another. */
export async function sizeSession(
  temporal: Client,
  session: SessionClient,
  run: string,
): Promise<SessionSize> {
  const handle = temporal.workflow.getHandle(session.id, run);
  const history = await handle.fetchHistory();
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
    runs: (await chainOf(temporal, session.id)).length,
    checkpointBytes: checkpointBytes(history),
    surface: (await session.surface({ from: 0, to: 1 })).length,
  };
}

type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;

function checkpointBytes({ events }: History): number {
  const ended = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
  const [payload] = ended?.input?.payloads ?? [];
  const input: SessionInput = JSON.parse(Buffer.from(payload?.data ?? []).toString("utf8"));
  return Buffer.byteLength(JSON.stringify(input.checkpoint));
}
