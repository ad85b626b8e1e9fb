import type { UserMessage } from "../contracts/content.js";
import type { JobEntry, JobLane, JobLogEntry, JobSnapshot, JobsConfig } from "../contracts/jobs.js";
import type { LogEntry, NewEntry } from "../contracts/log.js";
import { headBytes, tailBytes } from "./job-bytes.js";
import { noticeMark, statusLine } from "./job-texts.js";
import { utf8Bytes } from "./guards.js";
import type { InboxState } from "./inbox.js";

/** What a completion looks at of its owner, in the step that handles the settlement (spec/jobs §12, J19). */
export interface OwnerView {
  /** Of this incarnation; a job of another one is not told here. */
  readonly token: string;
  readonly inbox: InboxState;
  readonly wakes: WakeState;
  /** A turn driver is active: a turn is open, or one is about to open. Also while a cancelled turn winds down. */
  readonly busy: boolean;
  /** The session may open a turn now: open, not suspended, and its host has answered (design D5). */
  readonly live: boolean;
  /** Nothing is told any more. */
  readonly closing: boolean;
}

/** Wake budget and owed wake of one owner: a fold of its log. */
export interface WakeState {
  /** Wakes since a user's message was last claimed. */
  readonly spent: number;
  /** Pending notices that would have opened a turn had the session been live: one wake is owed for all. */
  readonly owed: readonly string[];
}

export const freshWakes: WakeState = { spent: 0, owed: [] };

/** Is a turn driver active? A wake counts at once, although its turn opens a moment later. */
export function isBusy(turnOpen: boolean, inbox: InboxState): boolean {
  return turnOpen || (inbox.wake && inbox.nextTurn.length + inbox.nextStep.length > 0);
}

/** How an unreported completion reaches its owner. */
export function decideLane(
  owner: OwnerView,
  config: Pick<JobsConfig, "completionDelivery" | "maxConsecutiveWakes">,
): JobLane {
  if (owner.busy || !mayWake(owner, config)) return "inject";
  return owner.live ? "wake" : "owed";
}

/** Puts a notice into the inbox: `wake` as a message with a turn of its own, else into the next step. */
export function noticeEntry(inbox: InboxState, lane: JobLane, message: UserMessage): NewEntry {
  const wake = lane === "wake";
  return {
    type: "agent/inbox/spliced",
    data: {
      target: wake ? "next-turn" : "next-step",
      start: (wake ? inbox.nextTurn : inbox.nextStep).length,
      inserted: [message],
      ...(wake ? { wake: true as const } : {}),
    },
  };
}

/**
 * Pays an owed wake: entries that open one turn, which claims every pending notice. To be asked when the session becomes
 * live and when a turn ends; empty when nothing is owed or it cannot be paid now.
 */
export function decideOwedWake(
  owner: OwnerView,
  config: Pick<JobsConfig, "completionDelivery" | "maxConsecutiveWakes">,
): readonly (JobEntry | NewEntry)[] {
  const { wakes, inbox, busy, live, closing } = owner;
  if (wakes.owed.length === 0 || busy || !live || closing || !mayWake(owner, config)) return [];
  return [
    {
      type: "agent/inbox/spliced",
      data: { target: "next-step", start: inbox.nextStep.length, inserted: [], wake: true },
    },
    { type: "job/woken", data: { ids: wakes.owed } },
  ];
}

/**
 * The next wake state; `inbox` is the one before the entry. Only a claimed user message restores the budget, a message that
 * leaves the inbox is owed no more, and an interrupt parks what is owed like everything else that waits.
 */
export function foldWakes(
  wakes: WakeState,
  entry: LogEntry | JobLogEntry,
  inbox: InboxState,
): WakeState {
  switch (entry.type) {
    case "job/settled":
      if (entry.data.lane === "wake") return { ...wakes, spent: wakes.spent + 1 };
      return entry.data.lane === "owed"
        ? { ...wakes, owed: [...wakes.owed, noticeId(entry.data.id)] }
        : wakes;
    case "job/woken":
      return { spent: wakes.spent + 1, owed: [] };
    case "session/interrupt":
      return wakes.owed.length === 0 ? wakes : { ...wakes, owed: [] };
    case "agent/inbox/spliced": {
      const { target, start, removedCount = 0, outcome } = entry.data;
      if (removedCount === 0) return wakes;
      const list = target === "next-turn" ? inbox.nextTurn : inbox.nextStep;
      const removed = list.slice(start, start + removedCount);
      const restored =
        outcome === undefined && removed.some((message) => message.source.kind === "user");
      const owed = wakes.owed.filter((id) => !removed.some((message) => message.id === id));
      return restored || owed.length < wakes.owed.length
        ? { spent: restored ? 0 : wakes.spent, owed }
        : wakes;
    }
    default:
      return wakes;
  }
}

export function noticeId(jobId: string): string {
  return `job/${jobId}/settled`;
}

export function noticeMessage(job: JobSnapshot): UserMessage {
  return {
    id: noticeId(job.id),
    role: "user",
    content: [{ type: "text", text: noticeText(job) }],
    source: { kind: "plugin", plugin: "tool-jobs", form: "notice", summary: noticeSummary(job) },
  };
}

const done = "\nDone; job_output.";

/** The notice within the job's output limit, if it has one (spec/jobs §12). */
export function noticeText(job: JobSnapshot): string {
  const head = `background job ${job.id}`;
  const about = ` (${job.kind}: ${job.label}) finished ${statusLine(job)}`;
  const whole = `${head}${about}. Read its output with job_output.`;
  const limit = job.outputLimitBytes;
  if (limit === undefined || utf8Bytes(whole) <= limit) return whole;
  const fixed = utf8Bytes(head) + utf8Bytes(done);
  const marked = fixed + utf8Bytes(noticeMark);
  if (marked <= limit) return head + headBytes(about, limit - marked) + noticeMark + done;
  if (fixed <= limit) return head + done;
  const left = limit - utf8Bytes(done);
  return left <= 0 ? tailBytes(done, limit) : headBytes(head, left) + done;
}

const summaryUnits = 120;

/** One line for people: at most 120 UTF-16 units, no code point split. */
function noticeSummary(job: JobSnapshot): string {
  const summary = `${job.kind} ${job.label} ${statusLine(job)}`;
  if (summary.length <= summaryUnits) return summary;
  const cut = summary.slice(0, summaryUnits - 1);
  const last = cut.charCodeAt(cut.length - 1);
  return `${last >= 0xd800 && last <= 0xdbff ? cut.slice(0, -1) : cut}…`;
}

function mayWake(
  { wakes }: OwnerView,
  { completionDelivery, maxConsecutiveWakes }: Parameters<typeof decideLane>[1],
): boolean {
  return completionDelivery === "wakeup" && wakes.spent < maxConsecutiveWakes;
}
