import type { LogEntry } from "../../src/contracts/log.js";
import { stormProblems } from "../../test/support/reminder-storm.js";
import type { Asked } from "./long-drive.js";

/** What the log of a long session shows, read from its first entry to its last. */
export interface LogReading {
  readonly entries: number;
  readonly turns: number;
  readonly compactions: number;
  /** What is wrong; empty when each thing asked for came exactly once. */
  readonly problems: readonly string[];
}

export async function readLongLog(log: AsyncIterable<LogEntry>, asked: Asked): Promise<LogReading> {
  const problems: string[] = [];
  const queued = new Map<string, number>();
  const shown = new Map<string, number>();
  const settled = new Map<string, number>();
  /** Entries that tell of reminders. */
  const reminders: LogEntry[] = [];
  let next = 0;
  let turns = 0;
  let compactions = 0;
  for await (const entry of log) {
    if (entry.seq !== next) problems.push(`entry ${entry.seq} comes where ${next} is due`);
    next = entry.seq + 1;
    switch (entry.type) {
      case "agent/inbox/spliced":
        for (const { id } of entry.data.inserted) count(queued, id);
        reminders.push(entry);
        break;
      case "user/message":
        count(shown, entry.data.message.id);
        reminders.push(entry);
        break;
      case "schedule/change":
        reminders.push(entry);
        break;
      case "job/settled":
        count(settled, entry.data.id);
        break;
      case "turn/end":
        turns += 1;
        if (entry.data.reason.kind !== "completed")
          problems.push(`turn ${entry.data.turn} ended ${JSON.stringify(entry.data.reason)}`);
        break;
      case "compaction/end":
        if (entry.data.error === undefined) compactions += 1;
        else problems.push(`entry ${entry.seq}: ${entry.data.error}: ${entry.data.message ?? ""}`);
        break;
      default:
        break;
    }
  }
  problems.push(
    ...asked.messages.flatMap((id) => [...once("queued", queued, id), ...once("shown", shown, id)]),
    ...asked.jobs.flatMap((id) => [
      ...once("settled", settled, id),
      ...once("queued", queued, `job/${id}/settled`),
      ...once("shown", shown, `job/${id}/settled`),
    ]),
    ...stormProblems(reminders, asked.reminders),
  );
  return { entries: next, turns, compactions, problems };
}

function count(times: Map<string, number>, id: string): void {
  times.set(id, (times.get(id) ?? 0) + 1);
}

function once(what: string, times: ReadonlyMap<string, number>, id: string): string[] {
  const found = times.get(id) ?? 0;
  return found === 1 ? [] : [`${id} was ${what} ${found} times`];
}
