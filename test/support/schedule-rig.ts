import { expect } from "vitest";
import type { UserMessage } from "../../src/contracts/content.js";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import {
  defaultScheduleConfig,
  type LocalTime,
  type ScheduleChangeResult,
  type ScheduleConfig,
  type ScheduleEntry,
  type ScheduleLogEntry,
  type ZoneAnswer,
} from "../../src/contracts/schedule.js";
import {
  decideClaim,
  emptyInbox,
  foldInbox,
  type InboxState,
  pendingCount,
} from "../../src/domain/inbox.js";
import { checkLossless } from "../../src/domain/lossless.js";
import { decideScheduleChange } from "../../src/domain/schedule-change.js";
import { decideDrive, type Drive, type DriveView } from "../../src/domain/schedule-drive.js";
import {
  finishScheduleCreate,
  planScheduleCreate,
  runScheduleDelete,
  runScheduleList,
  type ScheduleToolResult,
} from "../../src/domain/schedule-tools.js";
import { emptySchedule, foldSchedule, type ScheduleState } from "../../src/domain/schedule.js";
import { resolveLocalTime } from "../../src/time/resolve-zone.js";

export const N0 = at("2026-08-05T12:00:00.000Z");

/** Epoch ms. */
export function at(text: string): number {
  return Date.parse(text);
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** A session reduced to its reminders: log, clock, inbox, timer and a turn that takes one message at a time. */
export class ScheduleRig {
  now = N0;
  config: ScheduleConfig = defaultScheduleConfig;
  presence: DriveView["presence"] = "live";
  busy = false;
  armedFor: number | undefined;
  state: ScheduleState = emptySchedule;
  inbox: InboxState = emptyInbox;
  readonly log: (LogEntry | ScheduleLogEntry)[] = [];
  /** Messages that had a turn, in order. */
  readonly turns: UserMessage[] = [];
  /** How often a local time was looked up. */
  lookups = 0;
  zone: (local: LocalTime) => ZoneAnswer | undefined = resolveLocalTime;

  create(args: unknown, aborted = false): ScheduleToolResult {
    const plan = planScheduleCreate(this.state, args, this.config);
    if (plan.kind === "done") return this.#checked(plan.result);
    if (plan.kind === "resolve") this.lookups += 1;
    const zone = plan.kind === "resolve" ? this.zone(plan.local) : undefined;
    const { now, config } = this;
    const context = { now, config, zone, aborted };
    return this.#checked(finishScheduleCreate(this.state, plan.request, context));
  }

  list(): ScheduleToolResult {
    return this.#checked(runScheduleList(this.state, this.now));
  }

  delete(id: unknown, aborted = false): ScheduleToolResult {
    return this.#checked(runScheduleDelete(this.state, { id }, aborted));
  }

  change(command: unknown): ScheduleChangeResult {
    const { result, events } = decideScheduleChange(this.state, command, this);
    this.append(...events);
    return result;
  }

  append(...entries: readonly (ScheduleEntry | NewEntry)[]): void {
    for (const entry of entries) {
      expect(checkLossless(entry)).toBeUndefined();
      const stored = { ...entry, seq: this.log.length, time: this.now };
      this.log.push(stored);
      this.state = foldSchedule(this.state, stored);
      this.inbox = foldInbox(this.inbox, stored);
    }
  }

  /** One drive, carried out. */
  drive(): Drive {
    const { inbox, presence, now, armedFor } = this;
    // As the session is: a turn is open, or a waking message is about to open one.
    const busy = this.busy || (inbox.wake && pendingCount(inbox) > 0);
    const drive = decideDrive(this.state, { inbox, presence, busy, now, armedFor });
    if (drive.kind === "arm") this.armedFor = drive.at;
    if (drive.kind === "disarm") this.armedFor = undefined;
    if (drive.kind === "deliver") this.append(...drive.entries);
    return drive;
  }

  /** The timer fires, at whatever the clock says. */
  fire(): Drive {
    this.armedFor = undefined;
    return this.drive();
  }

  /** Runs the turn of the first message in the inbox, if any. */
  turn(): UserMessage | undefined {
    const { messages, entries } = decideClaim(this.inbox, "turn");
    this.append(...entries);
    this.turns.push(...messages);
    return messages[0];
  }

  /** Drives and runs turns until nothing is due. */
  settle(): Drive {
    for (;;) {
      const drive = this.drive();
      if (drive.kind !== "deliver") return drive;
      this.turn();
    }
  }

  get changes(): readonly ScheduleLogEntry[] {
    return this.log.flatMap((entry) => (isChange(entry) ? [entry] : []));
  }

  #checked(result: ScheduleToolResult): ScheduleToolResult {
    const { outcome, value } = result;
    if (value !== undefined) {
      expect(outcome.isError).toBe(false);
      expect(outcome.content).toEqual([{ type: "text", text: JSON.stringify(value) }]);
    }
    this.append(...result.entries);
    return result;
  }
}

function isChange(entry: LogEntry | ScheduleLogEntry): entry is ScheduleLogEntry {
  return (entry as ScheduleLogEntry).type === "schedule/change";
}

/** Time of the reminder that a call creates, or the code it is refused with and nothing logged. */
export function targetOfCall(args: object, now = N0): string {
  const rig = new ScheduleRig();
  rig.now = now;
  const result = rig.create({ prompt: "check", ...args });
  const code = codeOf(result);
  if (code !== undefined) expect(rig.log).toEqual([]);
  return code ?? (result.value as { readonly scheduledAt: string }).scheduledAt;
}

/** The code of a refused call: of its value, or of its error. */
export function codeOf({ value, outcome }: ScheduleToolResult): string | undefined {
  const given = value as { readonly code?: string } | undefined;
  return given?.code ?? outcome.error?.code;
}

export function textOf(message: UserMessage | undefined): string {
  const block = message?.content[0];
  return block?.type === "text" ? block.text : "";
}
