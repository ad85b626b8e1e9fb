import { isErrorCode, LonghaulError, type Refusal } from "../contracts/errors.js";
import { commands, queries } from "../contracts/names.js";
import type {
  DeleteAnswer,
  InstantText,
  LocalTime,
  ScheduleChangeCommand,
  ScheduleChangeResult,
  ScheduleError,
  ScheduleView,
} from "../contracts/schedule.js";
import { parseInput } from "../contracts/schemas/parse.js";
import {
  callerIdSchema,
  deleteReminderSchema,
  remindSchema,
} from "../contracts/schemas/session.js";
import type { RemindersQuery, RemindersView } from "../contracts/session.js";
import { checkCreate } from "../domain/schedule-create.js";
import { corruptLog, persistenceUncertain } from "../domain/schedule-errors.js";
import { viewOf } from "../domain/schedule-views.js";
import { resolveLocalTime } from "../time/resolve-zone.js";
import { checkSize, type SessionWriter } from "./session-write.js";
import { UndecidedError } from "./undecided.js";
import { freshId } from "./update-id.js";
import { awayCodes } from "./wait.js";
import type { QueryOptions, Wire } from "./wire.js";

/** Exactly one of `in`, `at` and `every`. */
export interface RemindOptions {
  /** What the session is told when it is due. */
  readonly prompt: string;
  /** Once, after so many seconds from when the session takes it. */
  readonly in?: number;
  /** Once: text with its offset such as `2026-12-01T09:00:00+01:00`, or a local time with its zone. */
  readonly at?: string | LocalTime;
  /** Again and again, each so many seconds, at least 300. */
  readonly every?: number;
  /** Request id, default a fresh one. A repeat under the same id answers the first verdict. */
  readonly id?: string;
}

export interface DeleteReminderOptions {
  /** Request id, as for a new one. */
  readonly id?: string;
}

/**
 * The rules refused it, or its fate is not known: `persistence_uncertain`, with `operation` and the reminder's `id` when it
 * is known. The codes are a closed set (spec/schedule §3.4).
 */
export interface ReminderRefusal extends ScheduleError {
  readonly ok: false;
  /** Of a change: a repeat under it is safe. */
  readonly requestId?: string;
}

export interface ReminderSet {
  readonly ok: true;
  readonly requestId: string;
  readonly id: string;
  readonly scheduledAt: InstantText;
}

export type RemindResult = ReminderSet | ReminderRefusal;

export type ReminderDeleted = { readonly ok: true; readonly requestId: string } & DeleteAnswer;

export type DeleteReminderResult = ReminderDeleted | ReminderRefusal;

export type RemindersResult =
  | {
      readonly ok: true;
      /** False: the session was made without reminders. */
      readonly enabled: boolean;
      /** False: suspended or cold, so nothing is delivered now. */
      readonly live: boolean;
      readonly reminders: readonly ScheduleView[];
    }
  | ReminderRefusal;

export type ReminderOutcome = ReminderSet | ReminderDeleted | ReminderRefusal;

export interface ReminderSignalled {
  readonly ok: true;
  readonly requestId: string;
}

/** A change without waiting for its verdict. */
export type ReminderSignal =
  | ({ readonly operation: "create" } & RemindOptions)
  | {
      readonly operation: "delete";
      readonly reminder: string;
      /** Request id. */
      readonly id?: string;
    };

/** The reminders of one session, for SessionClient, which documents them (spec/schedule C1, C7, C12). */
export class SessionReminders {
  readonly #session: string;
  readonly #wire: Wire;
  readonly #writer: SessionWriter;

  constructor(session: string, wire: Wire, writer: SessionWriter) {
    this.#session = session;
    this.#wire = wire;
    this.#writer = writer;
  }

  async create(options: RemindOptions): Promise<RemindResult> {
    const command = createCommand(options);
    if ("ok" in command) return command;
    const outcome = await this.#change(command);
    if (!outcome.ok || "scheduledAt" in outcome) return outcome;
    throw usedFor("delete", command.requestId);
  }

  async delete(reminder: string, options: DeleteReminderOptions): Promise<DeleteReminderResult> {
    const command = deleteCommand(reminder, options.id);
    const outcome = await this.#change(command);
    if (!outcome.ok || "deleted" in outcome) return outcome;
    throw usedFor("create", command.requestId);
  }

  async list(options: QueryOptions): Promise<RemindersResult> {
    const view = await this.#view({}, options);
    if ("ok" in view) return view;
    if (view.fault !== undefined) return corruptLog(view.fault);
    const now = Date.now();
    const reminders = view.records.map((record) => viewOf(record, now));
    return { ok: true, enabled: view.enabled, live: view.live, reminders };
  }

  async signal(change: ReminderSignal): Promise<ReminderSignalled | ReminderRefusal> {
    const { operation } = change;
    const command =
      operation === "delete" ? deleteCommand(change.reminder, change.id) : createCommand(change);
    if ("ok" in command) return command;
    try {
      await this.#writer.tell(commands.scheduleChange, command);
      return { ok: true, requestId: command.requestId };
    } catch (error) {
      return undecided(command, error);
    }
  }

  async outcome(requestId: string, options: QueryOptions): Promise<ReminderOutcome | undefined> {
    parseInput(callerIdSchema, requestId, "request id");
    const view = await this.#view({ requestId }, options);
    if ("ok" in view) return view;
    return view.outcome === undefined ? undefined : outcomeOf(view.outcome, requestId);
  }

  async #change(command: ScheduleChangeCommand): Promise<ReminderOutcome> {
    const { requestId } = command;
    let verdict: ScheduleChangeResult;
    try {
      verdict = await this.#writer.ask(commands.scheduleChange, requestId, command);
    } catch (error) {
      return undecided(command, error);
    }
    return outcomeOf(verdict, requestId);
  }

  async #view(
    query: RemindersQuery,
    options: QueryOptions,
  ): Promise<RemindersView | ReminderRefusal> {
    try {
      return await this.#wire.query(this.#session, queries.reminders, query, options);
    } catch (error) {
      if (!(error instanceof LonghaulError && awayCodes.has(error.code))) throw error;
      const message = `the reminders could not be read: ${error.message}`;
      return { ok: false, ...persistenceUncertain("list"), message };
    }
  }
}

/** What is to be sent; a value when the rules refuse it already here, in the order of spec/schedule §3.1. */
function createCommand(options: RemindOptions): ScheduleChangeCommand | ReminderRefusal {
  const {
    prompt,
    in: after,
    at,
    every,
    id,
    ...rest
  } = parseInput(remindSchema, options, "reminder");
  const requestId = id ?? freshId("r", Date.now());
  const [strange] = Object.keys(rest).filter((key) => key !== "operation");
  const checked = checkCreate(
    {
      prompt,
      ...(after === undefined ? {} : { after }),
      ...(every === undefined ? {} : { every }),
      ...(at === undefined ? {} : { at }),
      ...(strange === undefined ? {} : { strange }),
    },
    { after: "in", every: "every" },
    // How many and how long is for the session to say.
    { maxActive: Infinity, maxPromptBytes: Infinity },
  );
  if (!checked.ok) return { ...checked, requestId };
  const { rule } = checked.request;
  const create = { requestId, operation: "create", prompt } as const;
  checkSize(prompt, "reminder");
  switch (rule.kind) {
    case "after":
      return { ...create, afterSeconds: rule.seconds };
    case "every":
      return { ...create, everySeconds: rule.seconds };
    case "at": {
      // That it is there is checked.
      if (at === undefined || typeof at === "string") return { ...create, at: at ?? "" };
      const zone = resolveLocalTime(at);
      return zone.ok ? { ...create, at: zone.scheduledAt } : { ...zone, requestId };
    }
  }
}

function deleteCommand(reminder: string, id: string | undefined): DeleteCommand {
  const given = { requestId: id ?? freshId("r", Date.now()), operation: "delete", id: reminder };
  return parseInput(deleteReminderSchema, given, "reminder");
}

type DeleteCommand = Extract<ScheduleChangeCommand, { operation: "delete" }>;

/** The session's verdict as a caller is given it. Codes that are not of this feature are thrown, as those of every call. */
function outcomeOf(verdict: ScheduleChangeResult | Refusal, requestId: string): ReminderOutcome {
  if (!verdict.ok) {
    const { code, message } = verdict;
    if (isErrorCode(code)) throw new LonghaulError(code, message);
    return { ok: false, code, message, requestId };
  }
  const { answer } = verdict;
  if (answer.operation === "create") {
    const { id, scheduledAt } = answer;
    return { ok: true, requestId, id, scheduledAt };
  }
  const { id, deleted } = answer;
  return deleted
    ? { ok: true, requestId, id, deleted }
    : { ok: true, requestId, id, deleted, code: "schedule_not_found" };
}

/** For a change that may still be carried out; what else went wrong is thrown on. */
function undecided(command: ScheduleChangeCommand, error: unknown): ReminderRefusal {
  if (!(error instanceof UndecidedError)) throw error;
  const { requestId, operation } = command;
  const known = operation === "delete" ? command.id : undefined;
  const uncertain = persistenceUncertain(operation, known);
  return { ok: false, ...uncertain, message: `${uncertain.message} (${error.message})`, requestId };
}

function usedFor(operation: string, requestId: string): LonghaulError {
  return new LonghaulError(
    "DUPLICATE_ID",
    `request id ${JSON.stringify(requestId)} was already used to ${operation} a reminder; send this change under a new id`,
  );
}
