import type { WorkflowClient } from "@temporalio/client";
import type { temporal } from "@temporalio/proto";

export type History = temporal.api.history.v1.IHistory;
type Event = temporal.api.history.v1.IHistoryEvent;
type Payloads = temporal.api.common.v1.IPayloads;

/** What a history says about its workflow tasks; empty when none ever failed because of the code. */
export function faultsOf(history: History): string[] {
  return (history.events ?? []).flatMap((event) => {
    const failed = event.workflowTaskFailedEventAttributes;
    const message = failed?.failure?.message ?? "";
    // Resets and tasks that lost the race with a newer event are the server's own.
    if (failed === undefined || failed === null || failed.baseRunId || message === "") return [];
    if (/UnhandledCommand|ForceCloseCommand|ResetSticky/u.test(message)) return [];
    return [`event ${event.eventId?.toString()}: ${message}`];
  });
}

/** Histories of all runs of a workflow, the oldest first. */
export async function runsOf(
  client: WorkflowClient,
  workflowId: string,
): Promise<readonly History[]> {
  const runs: History[] = [];
  for (let runId: string | undefined; ;) {
    const history = await client.getHandle(workflowId, runId).fetchHistory();
    runs.unshift(history);
    const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
    runId = started?.continuedExecutionRunId ?? "";
    if (runId === "") return runs;
  }
}

/** Attributes of all events of one kind, e.g. `activityTaskScheduledEventAttributes`, in order. */
export function eventsOf<K extends keyof Event & `${string}EventAttributes`>(
  history: History,
  kind: K,
): NonNullable<Event[K]>[] {
  return (history.events ?? [])
    .map((event) => event[kind])
    .filter((one) => one !== undefined && one !== null);
}

/** Scheduled activities as `type`, id, one-line summary and decoded input. */
export function scheduledOf(history: History): {
  readonly type: string;
  readonly id: string;
  readonly summary: string;
  readonly input: { readonly [key: string]: unknown };
}[] {
  return (history.events ?? []).flatMap((event) => {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled === undefined || scheduled === null) return [];
    const summary = event.userMetadata?.summary;
    const [input] = decodeAll(scheduled.input);
    return [
      {
        type: scheduled.activityType?.name ?? "",
        id: scheduled.activityId ?? "",
        summary:
          summary === undefined || summary === null
            ? ""
            : String(decodeAll({ payloads: [summary] })[0]),
        input: (input ?? {}) as { readonly [key: string]: unknown },
      },
    ];
  });
}

/** How many bytes a history's events hold, as the server stores them, approximately. */
export function bytesOf(history: History): number {
  return (history.events ?? []).reduce((sum, event) => sum + JSON.stringify(event).length, 0);
}

function decodeAll(payloads: Payloads | null | undefined): unknown[] {
  return (payloads?.payloads ?? []).map((payload) => {
    const text = Buffer.from(payload.data ?? []).toString("utf8");
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  });
}
