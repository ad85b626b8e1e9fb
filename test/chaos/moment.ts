import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import proto from "@temporalio/proto";
import { EventType, readEvents, type HistoryEvent } from "./history.js";
import type { Site } from "./site.js";

/** The windows that a run must hit (docs/design.md §4), and what else a moment can be. */
export const windows = [
  "model running, no token yet",
  "model result reported, not processed",
  "tool running",
  "between two tools of a step",
  "streaming",
] as const;

export type Window = (typeof windows)[number];

/** What a session was doing at a moment, seen from outside while its worker stood still. */
export interface Moment {
  readonly window: Window | "other";
  /** For people: activity, step, bytes. */
  readonly detail: string;
  /** Claims of the tool calls under way. */
  readonly claims: readonly string[];
}

interface Pending {
  readonly type: string;
  readonly id: string;
  readonly started: boolean;
  /** Its worker is gone; the server does not know yet. */
  readonly lost: boolean;
  /** Epoch ms of the start of the attempt. */
  readonly since: number;
}

export interface Looked {
  readonly id: string;
  readonly workspace: string;
}

const started = proto.temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_STARTED;

export async function pendingActivities(site: Site, id: string): Promise<Pending[]> {
  const { raw } = await site.temporal.workflow.getHandle(id).describe();
  return (raw.pendingActivities ?? []).map((one) => ({
    type: one.activityType?.name ?? "",
    id: one.activityId ?? "",
    started: one.state === started,
    lost:
      one.state === started && one.lastWorkerIdentity?.split("@")[0] !== String(site.worker.pid),
    since:
      Number(one.lastStartedTime?.seconds ?? 0) * 1_000 +
      Math.floor((one.lastStartedTime?.nanos ?? 0) / 1e6),
  }));
}

/** Reads the history, the pending activities and the files. The worker should stand still meanwhile. */
export async function look(site: Site, session: Looked): Promise<Moment> {
  const events = await readEvents(site.connection, session.id);
  const pending = await pendingActivities(site, session.id);
  const claims = pending
    .filter((one) => one.type === "tool.run")
    .map((one) => one.id.replace(/^tool\//, ""));
  const moment = (window: Moment["window"], detail: string): Moment => ({ window, detail, claims });

  const unprocessed = unprocessedResults(events);
  const reply = unprocessed.find((one) => one.type === "callModel");
  if (reply !== undefined) return moment("model result reported, not processed", reply.id);
  const model = pending.find((one) => one.type === "callModel");
  if (model !== undefined) {
    if (model.lost) return moment("other", `${model.id} is lost, not missed yet`);
    if (!model.started) return moment("other", `${model.id} waits for a worker`);
    const bytes = await streamedSince(site, session.id, model);
    if (bytes > 0) return moment("streaming", `${model.id}, ${bytes} bytes streamed`);
    return (await requestedSince(site, session.id, model))
      ? moment("model running, no token yet", `${model.id}, request recorded, nothing streamed`)
      : moment("other", `${model.id} begins`);
  }
  const result = unprocessed.find((one) => one.type === "tool.run");
  const tools = pending.filter((one) => one.type === "tool.run");
  const running = tools.filter((one) => one.started);
  if (running.length === 0) {
    const last = result ?? lastResult(events);
    const next = tools[0];
    if (last?.type === "tool.run" && next !== undefined && stepOf(next.id) === stepOf(last.id))
      return moment(
        "between two tools of a step",
        `${last.id} done, ${next.id} waits for a worker`,
      );
    if (result !== undefined && !isLastOfStep(result.id))
      return moment(
        "between two tools of a step",
        `${result.id} reported, its result not processed`,
      );
    if (result !== undefined)
      return moment("other", `${result.id}, the last of its step, reported`);
    if (next !== undefined) return moment("other", `${next.id} waits for a worker`);
    return moment("other", pending.map((one) => one.type).join(", ") || "no activity under way");
  }
  for (const one of running) {
    if (one.lost) return moment("other", `${one.id} is lost, not missed yet`);
    const size = await beatsOf(session.workspace, one.id.replace(/^tool\//, ""));
    if (size > 0) return moment("tool running", `${one.id}, ${size} bytes appended`);
  }
  return moment("other", `${running.map((one) => one.id).join(", ")} begins or ends`);
}

/** How much a looping command has appended. */
export async function beatsOf(workspace: string, claim: string): Promise<number> {
  return await stat(join(workspace, `beats-${claim}`)).then(
    ({ size }) => size,
    () => 0,
  );
}

/**
 * Whether every looping command among those that were just told to hold has seen it: it appends once more. One that had
 * counted to its end before ends instead, and one that does neither for seconds is not known to.
 */
export async function areHeld(workspace: string, claims: readonly string[]): Promise<boolean> {
  const held = async (claim: string): Promise<boolean> => {
    const before = await beatsOf(workspace, claim);
    if (before === 0) return true;
    const ended = async (): Promise<boolean> =>
      (await readFile(join(workspace, "runs.log"), "utf8")).split("\n").includes(`end ${claim}`);
    for (const last = Date.now() + 3_000; Date.now() < last; await delay(20)) {
      if ((await beatsOf(workspace, claim)) > before) return true;
      if (await ended()) return false;
    }
    return false;
  };
  return (await Promise.all(claims.map(held))).every(Boolean);
}

interface Result {
  readonly type: string;
  readonly id: string;
}

/** Results of activities that no completed workflow task has seen. */
function unprocessedResults(events: readonly HistoryEvent[]): Result[] {
  const seen = events.findLastIndex(
    (event) => event.eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
  );
  return results(events, seen + 1);
}

function lastResult(events: readonly HistoryEvent[]): Result | undefined {
  return results(events, 0).at(-1);
}

function results(events: readonly HistoryEvent[], from: number): Result[] {
  return events.slice(from).flatMap((event) => {
    const id = event.activityTaskCompletedEventAttributes?.scheduledEventId;
    if (id === undefined || id === null) return [];
    const scheduled = events.find((one) => String(one.eventId) === String(id));
    const { activityId, activityType } = scheduled?.activityTaskScheduledEventAttributes ?? {};
    return [{ type: activityType?.name ?? "", id: activityId ?? "" }];
  });
}

/** `tool/<turn>.<step>.call-…` */
function stepOf(id: string): string {
  return id.split("/")[1]?.split(".").slice(0, 2).join(".") ?? "";
}

/** Odd steps of the script have three calls, even ones five. */
function isLastOfStep(id: string): boolean {
  const [, step = "", index = ""] = /-(\d+)-(\d+)$/.exec(id) ?? [];
  return Number(index) === (Number(step) % 2 === 1 ? 3 : 5);
}

/** Bytes in the streams of this execution: the name of a stream begins with the time of its execution, in base 36. */
async function streamedSince(site: Site, id: string, model: Pending): Promise<number> {
  const folder = join(site.home, "store", id);
  const place = model.id
    .replace(/^model\//, "")
    .split(".")
    .slice(0, 2)
    .join(".");
  const names = await readdir(folder).catch(() => []);
  let bytes = 0;
  for (const name of names) {
    const [, nonce] =
      new RegExp(`^model\\+${place.replace(".", "\\.")}\\.([0-9a-z]+)$`).exec(name) ?? [];
    if (nonce === undefined || Number.parseInt(nonce.slice(0, 9), 36) < model.since) continue;
    bytes += (await stat(join(folder, name))).size;
  }
  return bytes;
}

async function requestedSince(site: Site, id: string, model: Pending): Promise<boolean> {
  const path = join(site.recordDir, `${id}.ndjson`);
  try {
    if ((await stat(path)).mtimeMs < model.since) return false;
    const last: { turn: number; step: number; retry: number } = JSON.parse(
      (await readFile(path, "utf8")).trimEnd().split("\n").at(-1) ?? "{}",
    );
    return model.id === `model/${last.turn}.${last.step}.${last.retry}`;
  } catch {
    return false;
  }
}
