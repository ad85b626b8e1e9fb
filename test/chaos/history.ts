import { setTimeout as delay } from "node:timers/promises";
import type { Connection } from "@temporalio/client";
import proto, { type temporal } from "@temporalio/proto";

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;
export const EventType = proto.temporal.api.enums.v1.EventType;

/** The events of a session as they are written, by a long poll that outlives the server. */
export class History {
  readonly events: HistoryEvent[] = [];
  /** Of the poll under way: the SDK never removes its abort listeners. */
  #poll = new AbortController();
  #closed = false;
  readonly #done: Promise<void>;
  #wake: () => void = () => {};

  constructor(connection: Connection, sessionId: string) {
    this.#done = this.#follow(connection, sessionId);
  }

  /** Waits until there are events from `index` on, or the time is over. */
  async beyond(index: number, timeoutMs: number): Promise<void> {
    if (this.events.length > index) return;
    const woken = new Promise<void>((resolve) => (this.#wake = resolve));
    const timer = new AbortController();
    await Promise.race([
      woken,
      delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => {}),
    ]);
    timer.abort();
  }

  /** The type of the activity that a closing event belongs to. */
  activityType(closing: HistoryEvent): string | undefined {
    const { scheduledEventId } =
      closing.activityTaskCompletedEventAttributes ??
      closing.activityTaskFailedEventAttributes ??
      closing.activityTaskTimedOutEventAttributes ??
      {};
    const scheduled = this.events.find(
      (event) => String(event.eventId) === String(scheduledEventId),
    );
    return scheduled?.activityTaskScheduledEventAttributes?.activityType?.name ?? undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#poll.abort();
    await this.#done;
  }

  async #follow(connection: Connection, workflowId: string): Promise<void> {
    let nextPageToken: Uint8Array = new Uint8Array();
    while (!this.#closed) {
      this.#poll = new AbortController();
      try {
        const page = await connection.withAbortSignal(this.#poll.signal, () =>
          connection.withDeadline(Date.now() + 30_000, () =>
            connection.workflowService.getWorkflowExecutionHistory({
              namespace: "default",
              execution: { workflowId },
              waitNewEvent: true,
              nextPageToken,
            }),
          ),
        );
        const last = Number(this.events.at(-1)?.eventId ?? 0);
        this.events.push(
          ...(page.history?.events ?? []).filter((event) => Number(event.eventId) > last),
        );
        nextPageToken = page.nextPageToken ?? new Uint8Array();
        this.#wake();
        if (nextPageToken.length === 0) await delay(200);
      } catch {
        await delay(200);
      }
    }
  }
}

/** The whole history, read at once. */
export async function readEvents(
  connection: Connection,
  workflowId: string,
): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  let nextPageToken: Uint8Array = new Uint8Array();
  do {
    const page = await connection.workflowService.getWorkflowExecutionHistory({
      namespace: "default",
      execution: { workflowId },
      nextPageToken,
    });
    events.push(...(page.history?.events ?? []));
    nextPageToken = page.nextPageToken ?? new Uint8Array();
  } while (nextPageToken.length > 0);
  return events;
}
