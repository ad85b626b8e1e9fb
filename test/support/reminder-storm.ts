import type { WorkflowHandle } from "@temporalio/client";
import type { LogEntry } from "../../src/contracts/log.js";
import { commands } from "../../src/contracts/names.js";

/** Makes reminders that are due within `spreadMs` from now, a few at a time as a service would; some at the same second. */
export async function createStorm(
  handle: WorkflowHandle,
  count: number,
  between: (low: number, high: number) => number,
  spreadMs: number,
): Promise<void> {
  const changes = Array.from({ length: count }, (_, index) => ({
    requestId: `storm ${index + 1}`,
    operation: "create",
    prompt: `reminder ${index + 1}`,
    afterSeconds: between(1, Math.ceil(spreadMs / 1_000)),
  }));
  for (let from = 0; from < count; from += 10)
    await handle.signal(commands.scheduleChange, changes.slice(from, from + 10));
}

/** How many reminders of a log were delivered. */
export function deliveredIn(log: readonly LogEntry[]): number {
  return log.filter(
    (entry) => entry.type === "schedule/change" && entry.data.operation === "dispatch",
  ).length;
}

/** What is wrong with a log of `count` reminders that come once and were all due; empty when each came exactly once. */
export function stormProblems(log: readonly LogEntry[], count: number): string[] {
  const created = new Map<string, string>();
  const problems: string[] = [];
  const [dispatched, queued, shown] = [[], [], []] as [string[], string[], string[]];
  for (const entry of log) {
    if (entry.type === "schedule/change") {
      const { data } = entry;
      if (data.operation === "create") {
        const { id, scheduledAt } = data.schedule;
        if (created.has(id)) problems.push(`${id} was given twice`);
        created.set(id, `schedule/${id}/${scheduledAt}`);
      } else if (data.operation === "dispatch") dispatched.push(created.get(data.id) ?? data.id);
    }
    if (entry.type === "agent/inbox/spliced")
      queued.push(...entry.data.inserted.map(({ id }) => id).filter(isReminder));
    if (entry.type === "user/message" && isReminder(entry.data.message.id))
      shown.push(entry.data.message.id);
  }
  if (created.size !== count) problems.push(`${created.size} of ${count} were created`);
  for (const message of created.values()) {
    for (const [where, list] of [
      ["dispatched", dispatched],
      ["queued", queued],
      ["shown", shown],
    ] as const) {
      const times = list.filter((one) => one === message).length;
      if (times !== 1) problems.push(`${message} was ${where} ${times} times`);
    }
  }
  for (const one of new Set([...dispatched, ...queued, ...shown]))
    if (![...created.values()].includes(one)) problems.push(`${one} was never created`);
  return problems;
}

function isReminder(id: string): boolean {
  return id.startsWith("schedule/");
}
