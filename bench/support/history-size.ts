import type { Client } from "@temporalio/client";
import proto from "@temporalio/proto";
import { activityTypes } from "../../src/contracts/names.js";

const { EventType } = proto.temporal.api.enums.v1;
const { HistoryEvent: codec } = proto.temporal.api.history.v1;

type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;

/** A workflow's history over all its runs. */
export interface HistorySize {
  readonly bytes: number;
  readonly events: number;
}

/** What the server counts against its limits, summed over the chain of runs that ends in the current one. */
export async function historySize(client: Client, workflowId: string): Promise<HistorySize> {
  let bytes = 0;
  let events = 0;
  for (const run of await chainOf(client, workflowId)) {
    const description = await client.workflow.getHandle(workflowId, run).describe();
    bytes += description.historySize ?? 0;
    events += description.historyLength;
  }
  return { bytes, events };
}

export interface EventShare {
  readonly event: string;
  readonly count: number;
  readonly bytes: number;
}

/** Encoded bytes by event type (and activity type), of all events after the first `skip`. */
export async function historyBreakdown(
  client: Client,
  workflowId: string,
  skip: number,
): Promise<readonly EventShare[]> {
  const shares = new Map<string, { count: number; bytes: number }>();
  let position = 0;
  for (const run of await chainOf(client, workflowId)) {
    const { events } = await client.workflow.getHandle(workflowId, run).fetchHistory();
    const activities = new Map<string, string>();
    for (const event of events ?? []) {
      const name = nameOf(event, activities);
      if (position++ < skip) continue;
      const bytes = codec.encode(event).finish().length;
      const share = shares.get(name) ?? { count: 0, bytes: 0 };
      shares.set(name, { count: share.count + 1, bytes: share.bytes + bytes });
    }
  }
  return [...shares]
    .map(([event, share]) => ({ event, ...share }))
    .toSorted((a, b) => b.bytes - a.bytes);
}

/**
 * The part of a turn's history that is no step's: its update, search attributes, first workflow task, and what each roll-over
 * takes (archiving with a task of its own, and the next run's first).
 * Encoded bytes, of the events after the first `skip`.
 */
export async function turnShare(
  client: Client,
  workflowId: string,
  skip: number,
): Promise<HistorySize> {
  const shares = await historyBreakdown(client, workflowId, skip);
  let bytes = 0;
  let events = 0;
  const runs = shares.find((share) => share.event === "workflow execution started")?.count ?? 0;
  for (const share of shares) {
    const archiving = share.event.endsWith(`(${activityTypes.archiveLog})`);
    if (share.event.startsWith("activity ") && !archiving) continue;
    const mine = share.event.startsWith("workflow task ") ? 1 + 2 * runs : share.count;
    bytes += (share.bytes / share.count) * mine;
    events += mine;
  }
  return { bytes: Math.round(bytes), events };
}

function nameOf(event: HistoryEvent, activities: Map<string, string>): string {
  const type = EventType[event.eventType ?? 0] ?? "";
  const name = type.replace("EVENT_TYPE_", "").toLowerCase().replaceAll("_", " ");
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled) activities.set(String(event.eventId), scheduled.activityType?.name ?? "");
  const of =
    event.activityTaskStartedEventAttributes ??
    event.activityTaskCompletedEventAttributes ??
    event.activityTaskFailedEventAttributes;
  const activity = activities.get(String(of?.scheduledEventId ?? event.eventId));
  return activity === undefined ? name : `${name} (${activity})`;
}

/** Run ids, the first run of the chain first. */
export async function chainOf(client: Client, workflowId: string): Promise<readonly string[]> {
  const { runId } = await client.workflow.getHandle(workflowId).describe();
  const chain: string[] = [];
  for (let run = runId; run !== ""; run = await runBefore(client, workflowId, run)) {
    chain.unshift(run);
  }
  return chain;
}

async function runBefore(client: Client, workflowId: string, runId: string): Promise<string> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace: client.options.namespace,
    execution: { workflowId, runId },
    maximumPageSize: 1,
  });
  const [first] = history?.events ?? [];
  return first?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? "";
}
