import { LonghaulError, type Refusal } from "../contracts/errors.js";
import { commands } from "../contracts/names.js";
import { parseInput } from "../contracts/schemas/parse.js";
import {
  closeSchema,
  configureSchema,
  sendSchema,
  todoWriteSchema,
} from "../contracts/schemas/session.js";
import type {
  CloseCommand,
  CommandResult,
  ConfigureCommand,
  InterruptResult,
  JobKillResult,
  JobsView,
  JobStartResult,
  JobView,
  SendResult,
  TodoWriteResult,
} from "../contracts/session.js";
import type { Store } from "../contracts/store.js";
import type { TodoItem } from "../contracts/todo.js";
import { canonicalZone } from "../time/zones.js";
import type { JobOutputPiece } from "./job-output.js";
import {
  SessionJobs,
  type JobOutputOptions,
  type KillJobOptions,
  type StartJobOptions,
  type WaitJobOptions,
} from "./session-jobs.js";
import {
  SessionCompaction,
  type CompactionOutcome,
  type CompactOptions,
} from "./session-compaction.js";
import { SessionPlace } from "./session-place.js";
import { SessionReader } from "./session-reader.js";
import {
  SessionReminders,
  type DeleteReminderOptions,
  type DeleteReminderResult,
  type ReminderOutcome,
  type ReminderRefusal,
  type ReminderSignal,
  type ReminderSignalled,
  type RemindersResult,
  type RemindOptions,
  type RemindResult,
} from "./session-reminders.js";
import { checkSize, SessionWriter } from "./session-write.js";
import type { ReadOptions, SendOptions } from "./types.js";
import { freshId } from "./update-id.js";
import type { Watchers } from "./watch.js";
import type { Wire } from "./wire.js";

/**
 * One session, by its id; making one costs nothing and checks nothing. Every call has a deadline and rejects with
 * LonghaulError: SESSION_NOT_FOUND, SESSION_CLOSED, NO_WORKER, TEMPORAL_UNREACHABLE, or the code of a refusal.
 */
export class SessionClient extends SessionReader {
  readonly #writer: SessionWriter;
  readonly #jobs: SessionJobs;
  readonly #place: SessionPlace;
  readonly #compaction: SessionCompaction;
  readonly #reminders: SessionReminders;
  readonly #awaitClosed: () => Promise<void>;

  constructor(
    id: string,
    wire: Wire,
    watchers: Watchers,
    awaitClosed: () => Promise<void>,
    store?: Pick<Store, "list" | "read">,
  ) {
    super(id, wire, watchers);
    this.#writer = new SessionWriter(id, wire, watchers);
    this.#jobs = new SessionJobs({
      session: id,
      wire,
      writer: this.#writer,
      store,
      log: (options) => this.log(options),
    });
    this.#place = new SessionPlace(this.#writer);
    this.#compaction = new SessionCompaction(id, this.#writer, (options) => this.watch(options));
    this.#reminders = new SessionReminders(id, wire, this.#writer);
    this.#awaitClosed = awaitClosed;
  }

  /**
   * Puts a message in the inbox. The same id is put in once: a repeat answers the first verdict, other content under
   * it is DUPLICATE_ID. INVALID_INPUT when blank and for a `timeZone` that is none, MESSAGE_TOO_LARGE above 256 KB.
   */
  async send(content: string, options: SendOptions = {}): Promise<SendResult> {
    const id = options.id ?? freshId("m", Date.now());
    const { mode = "followup", timeZone } = options;
    const given = { id, mode, content, ...(timeZone === undefined ? {} : { timeZone }) };
    const command = withKnownZone(parseInput(sendSchema, given, "message"));
    checkSize(content, "message");
    return this.#writer.write<SendResult>(commands.send, id, command);
  }

  /** Queues a prompt: it gets a turn of its own. */
  followup(content: string, options: Omit<SendOptions, "mode"> = {}): Promise<SendResult> {
    return this.send(content, { ...options, mode: "followup" });
  }

  /** Joins the running turn at its next step, or opens one. */
  steer(content: string, options: Omit<SendOptions, "mode"> = {}): Promise<SendResult> {
    return this.send(content, { ...options, mode: "steer" });
  }

  /** Adds context for the next step without waking the session. */
  inject(content: string, options: Omit<SendOptions, "mode"> = {}): Promise<SendResult> {
    return this.send(content, { ...options, mode: "inject" });
  }

  /** Aborts the running turn; what waits in the inbox stays there until the next waking send. */
  interrupt(): Promise<InterruptResult> {
    return this.#writer.write<InterruptResult>(commands.interrupt, freshId("i", Date.now()), {
      reason: "user",
    });
  }

  /** Aborts the running turn and empties the inbox. */
  cancel(): Promise<InterruptResult> {
    return this.#writer.write<InterruptResult>(commands.cancel, freshId("c", Date.now()), {
      reason: "user",
    });
  }

  /** Changes the configuration from the next step on, or asks for the tools again. */
  async configure(command: ConfigureCommand): Promise<void> {
    const checked = parseInput(configureSchema, command, "configure");
    checkSize(JSON.stringify(checked), "configuration");
    await this.#writer.write<CommandResult>(commands.configure, freshId("f", Date.now()), checked);
  }

  /** Closes the session for good and resolves when it is closed; closing a closed one is no error. */
  async close(command: CloseCommand = {}): Promise<void> {
    const checked = parseInput(closeSchema, command, "close");
    try {
      await this.#writer.write<CommandResult>(commands.close, freshId("x", Date.now()), checked);
    } catch (error) {
      if (!(error instanceof LonghaulError && error.code === "SESSION_CLOSED")) throw error;
    }
    await this.#awaitClosed();
  }

  /**
   * Replaces the todo list of the open turn (spec/todo). `turn` defaults to the open one; `opId` makes a repeat answer
   * the first verdict. INVALID_TODOS for a bad list, INVALID_INPUT when no such turn is open.
   */
  async writeTodos(write: {
    readonly opId?: string;
    readonly turn?: number;
    readonly todos: readonly TodoItem[];
  }): Promise<Exclude<TodoWriteResult, Refusal>> {
    const opId = write.opId ?? freshId("t", Date.now());
    const turn = write.turn ?? (await this.view()).turn.number;
    const command = parseInput(
      todoWriteSchema,
      { opId, turn, todos: write.todos },
      "todos",
      "INVALID_TODOS",
    );
    checkSize(JSON.stringify(command), "todo list");
    return this.#writer.write<TodoWriteResult>(commands.todoWrite, opId, command);
  }

  /**
   * Its background jobs in the order of their start, and the kinds that can be started (docs/jobs.md). Of a closed session:
   * all it ever had, by its log.
   */
  jobs(options: ReadOptions = {}): Promise<JobsView> {
    return this.#jobs.view(options);
  }

  /**
   * Starts a background job and answers its id; that it could not begin shows as its end. INVALID_INPUT, also for a kind
   * the session does not know; JOB_LIMIT, JOBS_UNAVAILABLE, MESSAGE_TOO_LARGE above 256 KB.
   */
  startJob(options: StartJobOptions): Promise<Exclude<JobStartResult, Refusal>> {
    return this.#jobs.start(options);
  }

  /** Asks for the end of a job; its processes are gone when it is `killed`. JOB_NOT_FOUND. */
  killJob(jobId: string, options: KillJobOptions = {}): Promise<Exclude<JobKillResult, Refusal>> {
    return this.#jobs.kill(jobId, options);
  }

  /**
   * Resolves with the job once it has ended, or as it is after `timeoutMs`. Nobody counts as told by it: the session still
   * gets its notice. Outlasts lost workers. JOB_NOT_FOUND, ABORTED by the signal, SESSION_CLOSED when no end is to come.
   */
  waitJob(jobId: string, options: WaitJobOptions = {}): Promise<JobView> {
    return this.#jobs.wait(jobId, options);
  }

  /**
   * What a job has printed, from the store; the model's own reading of it goes on where it was. With `follow` it ends when
   * the job has ended and all was given. JOB_NOT_FOUND, STORE_UNAVAILABLE, SESSION_CLOSED when no end is to come.
   */
  jobOutput(
    jobId: string,
    options: JobOutputOptions = {},
  ): AsyncGenerator<JobOutputPiece, void, undefined> {
    return this.#jobs.output(jobId, options);
  }

  /**
   * Sets a reminder: the session gets it as a message of its own turn when it is due. A local time is looked up here, by the
   * zone data of this machine. What the rules refuse is a value, with `code` and `message`, as is `persistence_uncertain`:
   * the call ended undecided, and the list or a repeat under the same `id` tells. Throws as every call does otherwise;
   * INVALID_INPUT too where reminders are off.
   */
  remind(options: RemindOptions): Promise<RemindResult> {
    return this.#reminders.create(options);
  }

  /** Active reminders in the order of their creation; `state` is by the clock of this machine. */
  reminders(options: ReadOptions = {}): Promise<RemindersResult> {
    return this.#reminders.list(options);
  }

  /** Deletes a reminder. `deleted: false` for one that is not active. Refused as `remind` is. */
  deleteReminder(id: string, options: DeleteReminderOptions = {}): Promise<DeleteReminderResult> {
    return this.#reminders.delete(id, options);
  }

  /** As `remind` or `deleteReminder`, but taken also while no worker runs: `reminderOutcome` tells what became of it. */
  signalReminder(change: ReminderSignal): Promise<ReminderSignalled | ReminderRefusal> {
    return this.#reminders.signal(change);
  }

  /** What became of a change, by its `requestId`; undefined when the session knows none of it (any more). */
  reminderOutcome(
    requestId: string,
    options: ReadOptions = {},
  ): Promise<ReminderOutcome | undefined> {
    return this.#reminders.outcome(requestId, options);
  }

  /** Stops the running turn and lets nothing open one until it is resumed, or somebody writes to it. Jobs run on. */
  suspend(): Promise<void> {
    return this.#place.suspend();
  }

  /** Ends a suspension: what is overdue comes now, once the host has answered. No error when it was not suspended. */
  resume(): Promise<void> {
    return this.#place.resume();
  }

  /**
   * Replaces all but the newest of an idle session's transcript by a summary its model writes (docs/compaction.md), and resolves
   * with what became of it; messages sent meanwhile wait for it. BUSY while a turn or another one runs, ABORTED by the signal.
   */
  compact(options: CompactOptions = {}): Promise<CompactionOutcome> {
    return this.#compaction.compact(options);
  }

  /** Moves the session to another host and tells it so; its jobs stay where they run. INVALID_INPUT. */
  rebind(host: string): Promise<void> {
    return this.#place.rebind(host);
  }
}

/** Zone data is known here: the session only checks the form. */
function withKnownZone<T extends { readonly timeZone?: string }>(command: T): T {
  if (command.timeZone === undefined) return command;
  const timeZone = canonicalZone(command.timeZone);
  if (timeZone !== undefined) return { ...command, timeZone };
  throw new LonghaulError(
    "INVALID_INPUT",
    `message: timeZone: expected UTC or a name of the zone database such as Europe/Berlin, got ${JSON.stringify(command.timeZone)}`,
  );
}
