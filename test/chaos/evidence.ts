import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { EntryOf, EventType, LogEntry } from "../../src/contracts/log.js";
import {
  readRecorded,
  witnessRequests,
  type RecordedRequest,
  type WitnessedRequest,
} from "../support/witness.js";
import type { HistoryJson } from "../support/witness-history.js";
import { commandsUnder } from "./processes.js";
import { until } from "./site.js";
import type { Trial } from "./trial.js";

/** What a trial left behind, from everywhere it can be seen. */
export interface Evidence {
  readonly log: readonly LogEntry[];
  /** The same as a worker reads it that has to replay the whole history first. */
  readonly replayed: readonly LogEntry[];
  readonly history: HistoryJson;
  readonly witnessed: readonly WitnessedRequest[];
  readonly recorded: readonly RecordedRequest[];
  /** Lines of `runs.log`: `start <claim>` and `end <claim>`. */
  readonly runs: readonly string[];
  /** Times that each looping command appended, epoch ms. */
  readonly beats: ReadonlyMap<string, readonly number[]>;
  readonly files: readonly string[];
  /** When history had the end of each world tool call, seal included, epoch ms: no entry of it is logged before. */
  readonly settledAt: ReadonlyMap<string, number>;
  /** Commands of this site still alive after the turn. */
  readonly alive: readonly string[];
  readonly summary: string;
}

export async function collectEvidence(trial: Trial): Promise<Evidence> {
  const { site, id, session, workspace } = trial;
  // A command that was lost has its TERM and KILL first; the log must not wait for it, the check of its file says so.
  await until(
    "the commands to be gone",
    15_000,
    async () => (await commandsUnder(site.directory)).length === 0,
  ).catch(() => {});
  const log = await readLog(session);
  const history = JSON.parse(
    historyToJSON(await site.temporal.workflow.getHandle(id).fetchHistory()),
  ) as HistoryJson;
  const ndjson = await readFile(join(site.recordDir, `${id}.ndjson`), "utf8");
  const files = await readdir(workspace);
  const beats = new Map<string, number[]>();
  for (const file of files) {
    if (!file.startsWith("beats-")) continue;
    const text = await readFile(join(workspace, file), "utf8");
    beats.set(file.slice("beats-".length), text.trim().split("\n").map(Number));
  }
  const runs = (await readFile(join(workspace, "runs.log"), "utf8")).trim().split("\n");
  const recorded = readRecorded(ndjson, id);
  const witnessed = witnessRequests(log);
  const replies = log.filter((entry) => entry.type === "assistant/message").length;
  const results = log.filter((entry) => entry.type === "tool/result");
  const unknown = results.filter(
    (entry) => entry.data.error?.code === "TOOL_OUTCOME_UNKNOWN",
  ).length;
  const turns = log.filter((entry) => entry.type === "turn/end").length;
  const alive = await commandsUnder(site.directory);
  await site.worker.kill();
  await site.startWorker();
  const replayed = await readLog(session);
  return {
    log,
    replayed,
    history,
    witnessed,
    recorded,
    runs,
    beats,
    files,
    settledAt: settledAt(history),
    alive,
    summary: `${turns} turns, ${log.length} entries, ${history.events?.length ?? 0} events; ${recorded.length} model calls for ${replies} replies; ${results.length} tool results, ${unknown} of unknown outcome`,
  };
}

/** From history, which does not take the session's word for its times. */
function settledAt(history: HistoryJson): Map<string, number> {
  const claims = new Map<string, string>();
  const times = new Map<string, number>();
  for (const event of history.events ?? []) {
    const scheduled = event["activityTaskScheduledEventAttributes"] as
      | ScheduledAttributes
      | undefined;
    if (
      scheduled?.activityType.name === "tool.run" ||
      scheduled?.activityType.name === "tool.seal"
    ) {
      const data = scheduled.input?.payloads?.[0]?.data ?? "";
      const { claim } = JSON.parse(Buffer.from(data, "base64").toString("utf8")) as {
        claim: string;
      };
      claims.set(String(event["eventId"]), claim);
    }
    for (const how of ["Completed", "Failed", "TimedOut", "Canceled"]) {
      const closing = event[`activityTask${how}EventAttributes`] as
        | { scheduledEventId: unknown }
        | undefined;
      const claim = claims.get(String(closing?.scheduledEventId));
      if (claim !== undefined) times.set(claim, Date.parse(String(event["eventTime"])));
    }
  }
  return times;
}

interface ScheduledAttributes {
  readonly activityType: { readonly name: string };
  readonly input?: { readonly payloads?: readonly { readonly data: string }[] };
}

export async function readLog(session: SessionClient): Promise<LogEntry[]> {
  const log: LogEntry[] = [];
  for await (const entry of session.log()) log.push(entry);
  return log;
}

export function entriesOf<T extends EventType>(evidence: Evidence, type: T): EntryOf<T>[] {
  return evidence.log.filter((entry) => entry.type === type) as unknown as EntryOf<T>[];
}

/** Those that do not occur exactly as often as they should. */
export function notOnce(
  what: string,
  expected: readonly string[],
  found: readonly string[],
): string[] {
  const all = new Set([...expected, ...found]);
  return [...all].flatMap((one) => {
    const wanted = expected.filter((name) => name === one).length;
    const count = found.filter((name) => name === one).length;
    return wanted === count ? [] : [`${what} ${one}: expected ${wanted}, found ${count}`];
  });
}
