import type { JobKindRow } from "../contracts/jobs.js";
import type { LogEntry, NewEntry } from "../contracts/log.js";
import type { ToolRow } from "../contracts/tools.js";
import { isBusy, decideOwedWake } from "./job-notices.js";
import { decideDrive, type Drive } from "./schedule-drive.js";
import type { Session } from "./session.js";

/** Binding, liveness and the tool table (design D3, D5). */
export interface PlaceState {
  readonly host?: string;
  readonly epoch: number;
  /** Neither suspended nor cold. */
  readonly live: boolean;
  readonly suspended: boolean;
  /** The host does not answer. */
  readonly cold: boolean;
  readonly tools: readonly ToolRow[];
  readonly jobKinds: readonly JobKindRow[];
  /** The table of the host it is bound to is logged, or it is known that it does not answer. */
  readonly ready: boolean;
}

export const nowhere: PlaceState = {
  epoch: 0,
  live: true,
  suspended: false,
  cold: false,
  tools: [],
  jobKinds: [],
  ready: false,
};

export function foldPlace(place: PlaceState, entry: LogEntry): PlaceState {
  switch (entry.type) {
    case "session/bound":
      return { ...place, host: entry.data.host, epoch: entry.data.epoch, ready: false };
    case "session/live": {
      const { live, suspended = false, cold = !live && !suspended } = entry.data;
      return { ...place, live, suspended, cold };
    }
    case "session/tools":
      return { ...place, tools: entry.data.tools, jobKinds: entry.data.jobKinds, ready: true };
    default:
      return place;
  }
}

/** What a change of liveness logs; nothing when it changes nothing. */
export function livenessEntries(
  place: PlaceState,
  change: { readonly suspended?: boolean; readonly cold?: boolean },
  why: string,
): readonly NewEntry[] {
  const { suspended = place.suspended, cold = place.cold } = change;
  if (suspended === place.suspended && cold === place.cold) return [];
  return [
    {
      type: "session/live",
      data: {
        live: !suspended && !cold,
        why,
        ...(suspended ? { suspended: true as const, cold } : {}),
      },
    },
  ];
}

/** How long the answer of a host counts, ms (design D5). */
const freshMs = 30_000;

/**
 * May a reminder or a wake open a turn now? `unknown`: the host has not answered lately, and is to be asked first.
 */
export function presenceOf(session: Session): "live" | "cold" | "unknown" {
  const { place } = session.folds;
  if (!place.live) return "cold";
  if (place.host === undefined) return "live";
  const { answeredAt } = session;
  return answeredAt !== undefined && session.now - answeredAt <= freshMs ? "live" : "unknown";
}

/** What the session is to do for its reminders now (spec/schedule, workflow shape). */
export function driveReminders(session: Session, armedFor: number | undefined): Drive {
  const { schedule, inbox } = session.folds;
  const { now } = session;
  const presence = presenceOf(session);
  return decideDrive(schedule, { inbox, presence, busy: isOccupied(session), now, armedFor });
}

/** Is the host to be asked before anything can be told or paid? */
export function mustAskHost(session: Session, armedFor: number | undefined): boolean {
  if (presenceOf(session) !== "unknown" || isOccupied(session)) return false;
  const { owner, jobsConfig } = session;
  return (
    decideOwedWake({ ...owner, live: true }, jobsConfig).length > 0 ||
    driveReminders(session, armedFor).kind === "probe"
  );
}

/** Nothing can open a turn: one is open or about to open, the transcript is being compacted, the table is not known, or the session ends. */
function isOccupied(session: Session): boolean {
  const { turn, inbox, place, closed } = session.folds;
  return (
    session.compacting ||
    isBusy(turn.open, inbox) ||
    !place.ready ||
    closed ||
    session.closing !== undefined ||
    session.fault !== undefined
  );
}
