import { defaultRollOverConfig, type RollOverConfig } from "../contracts/archive.js";
import { defaultCompactionConfig, type CompactionConfig } from "../contracts/compaction.js";
import type { UserMessage } from "../contracts/content.js";
import type { SessionConfig } from "../contracts/config.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import type { AbortReason, LogEntry, NewEntry, SessionHeader } from "../contracts/log.js";
import { defaultJobsConfig, type JobsConfig } from "../contracts/jobs.js";
import type { ModelRoute } from "../contracts/model.js";
import type { SessionStateName } from "../contracts/names.js";
import type { ScheduleConfig } from "../contracts/schedule.js";
import type { SessionEffect } from "./effects.js";
import { emptyInbox, foldInbox, pendingCount, type InboxState } from "./inbox.js";
import { foldWakes, freshWakes, isBusy, type OwnerView, type WakeState } from "./job-notices.js";
import { noWaits, type JobWaits } from "./job-waits.js";
import { emptyJobs, foldJobs, type JobsState } from "./jobs.js";
import { SessionLog } from "./log.js";
import { foldPlace, nowhere, presenceOf, type PlaceState } from "./place.js";
import type { HeaderState, RouteContext } from "./request.js";
import { loadCompactionConfig } from "./compaction-config.js";
import { foldCompaction, noCompaction, type CompactionState } from "./compaction-state.js";
import { loadRollOverConfig } from "./roll-over-config.js";
import { loadScheduleConfig } from "./schedule-config.js";
import { noRecall, type Recall } from "./recall.js";
import { offersReminders } from "./schedule-tool-rows.js";
import { foldTurn, noTurn, type TurnState } from "./turn-state.js";
import { applyChange, emptySchedule, foldSchedule, type ScheduleState } from "./schedule.js";
import { TokenMeter } from "./token-meter.js";
import { emptyTodoState, foldTodoState, type TodoState } from "./todo.js";

/** Folds of the log that the loop reads. Plain JSON; each entry makes a new value. */
export interface SessionFolds {
  readonly inbox: InboxState;
  readonly todo: TodoState;
  readonly jobs: JobsState;
  readonly wakes: WakeState;
  readonly schedule: ScheduleState;
  readonly turn: TurnState;
  readonly compaction: CompactionState;
  readonly place: PlaceState;
  readonly config: SessionConfig | undefined;
  readonly sessionHeader: SessionHeader | undefined;
  readonly header: HeaderState | undefined;
  readonly context: RouteContext | undefined;
  readonly closed: boolean;
}

/** Names that only the workflow can give. */
export interface SessionNames {
  /** This incarnation of the session as an owner of jobs (spec/jobs J3). */
  readonly token: string;
  /** A name that no other start of a job has, also after a reset (J2). */
  readonly nonce: () => string;
}

function plainNames(id: string): SessionNames {
  let last = 0;
  return { token: id, nonce: () => `n${(last += 1)}` };
}

/** What a session goes on from: a seed, or a checkpoint. */
export interface SessionPast {
  readonly log: SessionLog;
  readonly folds: SessionFolds;
  readonly meter?: TokenMeter;
  readonly recall?: Recall;
  /** Name of the archived segment that ends where the log begins. */
  readonly segment?: string;
}

/** The folds of an empty log. */
export const initialFolds: SessionFolds = {
  inbox: emptyInbox,
  todo: emptyTodoState,
  jobs: emptyJobs,
  wakes: freshWakes,
  schedule: emptySchedule,
  turn: noTurn,
  compaction: noCompaction,
  place: nowhere,
  config: undefined,
  sessionHeader: undefined,
  header: undefined,
  context: undefined,
  closed: false,
};

/**
 * One session: its log and the folds of it. The log is the only truth; everything here but the fields
 * that can be assigned is derived from it.
 */
export class Session {
  readonly id: string;
  readonly names: SessionNames;
  readonly log: SessionLog;
  /** Sizes of what the model sees; follows the log when it is asked (spec/harness §6). */
  readonly meter: TokenMeter;
  /** What the runs before this one had in their logs for later steps to look back at. */
  recall: Recall;
  /** Name of the archived segment the log goes on from; empty when nothing is archived. */
  readonly segment: string;
  readonly #now: () => number;
  #folds: SessionFolds;
  /** An entry was refused: a bug, never a user's mistake. The session parks as `faulted`. */
  fault: Refusal | undefined;
  /** Close was asked for; new input is refused. */
  closing: { readonly reason?: string } | undefined;
  /** The loop's own waits for jobs; never carried over a roll-over (spec/jobs J17). */
  waits: JobWaits = noWaits;
  /** Waits that a settlement released, until they resume. */
  readonly released = new Set<string>();
  /** Nodes of the surface that the process of this run was told of, or that are archived. */
  offered: number;
  /** When the host last answered, epoch ms; not known to a new run. */
  answeredAt: number | undefined;
  /** When each live job was last known to have its workflow, epoch ms; what is not here is to be looked at. */
  readonly heard = new Map<string, number>();
  /** What is to be done outside, in this order; the workflow takes it from here (design D10). */
  readonly effects: SessionEffect[] = [];
  /** Routes whose capacity and defaults are known to this run. */
  routes: readonly ModelRoute[] = [];
  /** Texts of the checkpoint that is being made, JSON by name, for the archive to fetch. */
  leaving: ReadonlyMap<string, string> | undefined;
  /** Why the last attempt to go on in a new run came to nothing. */
  stays: string | undefined;
  /** The log could not be read: nothing is added to it. */
  frozen = false;
  /** The tool table is to be asked for again before the next step. */
  refreshTools = false;

  /** `past`: what it goes on from, a seed or a checkpoint; absent: an empty log. */
  constructor(
    id: string,
    now: () => number,
    names: SessionNames = plainNames(id),
    past?: SessionPast,
  ) {
    this.id = id;
    this.names = names;
    this.#now = now;
    this.log = past?.log ?? new SessionLog();
    this.#folds = past?.folds ?? initialFolds;
    this.meter = past?.meter ?? new TokenMeter();
    this.recall = past?.recall ?? noRecall;
    this.segment = past?.segment ?? "";
    this.offered = this.log.surface.length;
  }

  /** Workflow time, epoch ms. */
  get now(): number {
    return this.#now();
  }

  get folds(): SessionFolds {
    return this.#folds;
  }

  /** Puts the same folds in place whose long texts were kept outside; only before the first turn of a run (design D8). */
  adoptFolds(folds: SessionFolds): void {
    this.#folds = folds;
  }

  get config(): SessionConfig {
    if (this.#folds.config === undefined)
      throw new Error("session/open is the first entry of a log");
    return this.#folds.config;
  }

  /**
   * Appends entries and folds them. Returns the `seq` of the last one. The first refused entry is the session's fault
   * and drops the rest of its call; later calls still append, so that what is open is closed in the log.
   */
  record(...entries: readonly NewEntry[]): number {
    if (this.frozen) return this.log.lastSeq;
    for (const entry of entries) {
      const broken = this.#breaks(entry);
      if (broken !== undefined) {
        this.fault ??= broken;
        break;
      }
      const appended = this.log.append(entry, this.#now());
      if (!appended.ok) {
        this.fault ??= appended;
        break;
      }
      this.#folds = fold(this.#folds, appended.entry);
    }
    return this.log.lastSeq;
  }

  /** A change of reminders that their fold would not take is never appended (spec/schedule §6). */
  #breaks(entry: NewEntry): Refusal | undefined {
    const { schedule } = this.#folds;
    if (entry.type !== "schedule/change" || schedule.fault !== undefined) return undefined;
    const applied = applyChange(schedule, entry.data);
    return applied.ok ? undefined : refuse("INVARIANT", `schedule/change: ${applied.problem}`);
  }

  /** The open turn, or the compaction that no turn owns, is to end: nothing new is started. */
  get aborting(): boolean {
    const { turn, compaction } = this.#folds;
    return turn.aborting !== undefined || compaction.open?.aborting === true;
  }

  /** A turn is open, or the transcript is being compacted. */
  get active(): boolean {
    return this.#folds.turn.open || this.compacting;
  }

  /** The transcript is being compacted: no turn opens, and no roll-over happens. */
  get compacting(): boolean {
    return this.#folds.compaction.open !== undefined;
  }

  /** Is there a turn to open? */
  shouldRun(): boolean {
    return !this.compacting && this.#hasWork();
  }

  #hasWork(): boolean {
    const { inbox, place, closed } = this.#folds;
    return (
      place.ready &&
      !closed &&
      this.closing === undefined &&
      this.fault === undefined &&
      !place.suspended &&
      inbox.wake &&
      pendingCount(inbox) > 0
    );
  }

  /** The first state that holds, in the order of design D5. */
  state(): SessionStateName {
    const { closed, turn, place } = this.#folds;
    if (closed) return "closed";
    if (this.fault !== undefined) return "faulted";
    if (place.suspended) return "suspended";
    if (turn.open || this.#hasWork()) return "running";
    if (place.cold) return "cold";
    return "idle";
  }

  /** The session as the owner of its jobs. */
  get owner(): OwnerView {
    const { inbox, wakes, turn, closed, place } = this.#folds;
    return {
      token: this.names.token,
      inbox,
      wakes,
      busy: isBusy(turn.open, inbox),
      live: presenceOf(this) === "live" && place.ready,
      closing: closed || this.closing !== undefined || this.fault !== undefined,
    };
  }

  get jobsConfig(): JobsConfig {
    return { ...defaultJobsConfig, ...this.config.jobs };
  }

  /** Undefined: reminders are off, as they are for a child session. */
  get scheduleConfig(): ScheduleConfig | undefined {
    const loaded = loadScheduleConfig(this.config.schedule);
    return loaded.ok && offersReminders(this.#folds.sessionHeader) ? loaded.config : undefined;
  }

  get rollOverConfig(): RollOverConfig {
    const loaded = loadRollOverConfig(this.config.rollOver);
    return loaded.ok ? loaded.config : defaultRollOverConfig;
  }

  get compactionConfig(): CompactionConfig {
    const loaded = loadCompactionConfig(this.config.compaction);
    return loaded.ok ? loaded.config : { ...defaultCompactionConfig, auto: false };
  }

  /** Requests the end of what runs, a turn or a compaction; false when nothing does or it is being aborted already. */
  requestAbort(reason: AbortReason, keepInbox: boolean): boolean {
    if (!this.active || this.aborting) return false;
    this.record({ type: "session/interrupt", data: { reason, keepInbox } });
    // An abort un-counts at once: a settlement after it sees no waiter (spec/jobs §4).
    this.waits = noWaits;
    return true;
  }
}

/** The next folds; parts that an entry does not concern stay the same reference. */
export function fold(folds: SessionFolds, entry: LogEntry): SessionFolds {
  return {
    ...folds,
    inbox: foldInbox(folds.inbox, entry),
    todo: foldTodoState(folds.todo, entry),
    jobs: foldJobs(folds.jobs, entry),
    wakes: foldWakes(folds.wakes, entry, folds.inbox),
    // Of a fork only its own suffix counts (spec/schedule §6).
    schedule:
      entry.seq < (folds.sessionHeader?.seedLength ?? 0)
        ? folds.schedule
        : foldSchedule(folds.schedule, entry),
    turn: foldTurn(folds.turn, entry),
    compaction: foldCompaction(folds.compaction, entry),
    place: foldPlace(folds.place, entry),
    ...foldConfig(entry),
  };
}

function foldConfig(entry: LogEntry): Partial<SessionFolds> {
  switch (entry.type) {
    case "session/open":
      return { config: entry.data.config, sessionHeader: entry.data.header };
    case "session/config":
      return { config: entry.data.config };
    case "request/header":
      return { header: { seq: entry.seq, header: entry.data.header } };
    case "request/context":
      return { context: entry.data };
    case "session/close":
      return { closed: true };
    default:
      return {};
  }
}

/** A message of the session's own, e.g. from a policy. */
export function pluginMessage(id: string, name: string, text: string): UserMessage {
  return { id, role: "user", content: [{ type: "text", text }], source: { kind: "plugin", name } };
}
