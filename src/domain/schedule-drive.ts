import type { NewEntry } from "../contracts/log.js";
import type { ScheduleEntry } from "../contracts/schedule.js";
import { isReminder, type InboxState } from "./inbox.js";
import { decideDue, deliver } from "./schedule-delivery.js";
import { timerSummary } from "./schedule-texts.js";
import { targetOf, type ScheduleState } from "./schedule.js";

/** Longest timer: the server drops one that is due in a century. Takes part in replay (spec/schedule C4, C17). */
export const timerSegmentMs = 30 * 86_400_000;

export interface DriveView {
  readonly inbox: InboxState;
  /** May a reminder open a turn now (design D5)? `unknown`: the host has not answered lately and is to be asked first. */
  readonly presence: "live" | "cold" | "unknown";
  /** A turn is open or about to open, or maintenance runs. Background jobs do not count. */
  readonly busy: boolean;
  /** Workflow time, epoch ms. */
  readonly now: number;
  /** When the timer that is armed will fire; absent: none is. */
  readonly armedFor?: number | undefined;
}

/** What the session is to do for its reminders now. */
export type Drive =
  /** Nothing; a timer that is armed stays. */
  | { readonly kind: "keep" }
  | { readonly kind: "disarm" }
  /** In place of any timer that is armed. `at`: when it fires, for `armedFor`. */
  | { readonly kind: "arm"; readonly ms: number; readonly at: number; readonly summary: string }
  /** Something is due: ask the host, then drive again. */
  | { readonly kind: "probe" }
  /** Append in one block, which opens a turn; its end drives again. */
  | { readonly kind: "deliver"; readonly entries: readonly (ScheduleEntry | NewEntry)[] };

/**
 * One drive (spec/schedule C, workflow shape): to be asked at a run's start, after each accepted change, when liveness changes,
 * when the timer fires, and when a turn or maintenance ends. A wake that comes early only leads here again.
 */
export function decideDrive(state: ScheduleState, view: DriveView): Drive {
  const { inbox, presence, busy, now, armedFor } = view;
  if (state.fault !== undefined || presence === "cold") return disarm(armedFor);
  if (busy) return { kind: "keep" };
  if (isParkedReminder(inbox)) return { kind: "deliver", entries: [wake(inbox)] };
  const due = decideDue(state, now);
  if (due.kind !== "wait")
    return presence === "unknown"
      ? { kind: "probe" }
      : { kind: "deliver", entries: deliver(inbox, due, now) };
  if (due.next === undefined) return disarm(armedFor);
  const at = Math.min(targetOf(due.next), now + timerSegmentMs);
  // An earlier wake costs less than a new timer.
  if (armedFor !== undefined && armedFor <= at) return { kind: "keep" };
  return { kind: "arm", ms: at - now, at, summary: timerSummary(due.next) };
}

function disarm(armedFor: number | undefined): Drive {
  return armedFor === undefined ? { kind: "keep" } : { kind: "disarm" };
}

/** A stop has parked the inbox, and a reminder is first in it: it was promised, so it is not left to the next message (T15). */
function isParkedReminder(inbox: InboxState): boolean {
  const [first] = inbox.nextTurn;
  return first !== undefined && isReminder(first);
}

function wake({ nextTurn }: InboxState): NewEntry {
  return {
    type: "agent/inbox/spliced",
    data: { target: "next-turn", start: nextTurn.length, inserted: [], wake: true },
  };
}
