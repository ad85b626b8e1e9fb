import type { Message } from "../contracts/content.js";
import { LonghaulError, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { commands, queries } from "../contracts/names.js";
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
  LogPage,
  Projections,
  SendResult,
  SessionView,
  SurfacePage,
  SurfaceNode,
  SurfaceQuery,
  TodoWriteResult,
} from "../contracts/session.js";
import type { Store } from "../contracts/store.js";
import type { TodoItem } from "../contracts/todo.js";
import { foldOutcome, type Outcome } from "../domain/outcome.js";
import { deriveMessages } from "../domain/surface.js";
import type { JobOutputPiece } from "./job-output.js";
import {
  SessionJobs,
  type JobOutputOptions,
  type KillJobOptions,
  type StartJobOptions,
  type WaitJobOptions,
} from "./session-jobs.js";
import { checkSize, SessionWriter } from "./session-write.js";
import type {
  ReadOptions,
  SendOptions,
  SessionRecord,
  WaitIdleOptions,
  WatchEvent,
  WatchOptions,
} from "./types.js";
import { freshId } from "./update-id.js";
import { waitUntilQuiet } from "./wait.js";
import type { Watchers } from "./watch.js";
import type { Wire } from "./wire.js";

/**
 * One session, by its id; making one costs nothing and checks nothing. Every call has a deadline and rejects with
 * LonghaulError: SESSION_NOT_FOUND, SESSION_CLOSED, NO_WORKER, TEMPORAL_UNREACHABLE, or the code of a refusal.
 */
export class SessionClient {
  readonly id: string;
  readonly #wire: Wire;
  readonly #watchers: Watchers;
  readonly #writer: SessionWriter;
  readonly #jobs: SessionJobs;
  readonly #awaitClosed: () => Promise<void>;

  constructor(
    id: string,
    wire: Wire,
    watchers: Watchers,
    awaitClosed: () => Promise<void>,
    store?: Pick<Store, "list" | "read">,
  ) {
    this.id = id;
    this.#wire = wire;
    this.#watchers = watchers;
    this.#writer = new SessionWriter(id, wire, watchers);
    this.#jobs = new SessionJobs({
      session: id,
      wire,
      writer: this.#writer,
      store,
      log: () => this.log(),
    });
    this.#awaitClosed = awaitClosed;
  }

  /**
   * Puts a message in the inbox. The same id is put in once: a repeat answers the first verdict, other content under
   * it is DUPLICATE_ID. INVALID_INPUT when blank, MESSAGE_TOO_LARGE above 256 KB.
   */
  async send(content: string, options: SendOptions = {}): Promise<SendResult> {
    const id = options.id ?? freshId("m", Date.now());
    const command = parseInput(
      sendSchema,
      { id, mode: options.mode ?? "followup", content },
      "message",
    );
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

  /** The todo list; null before the first of the turn. */
  async todos(): Promise<readonly TodoItem[] | null> {
    return (await this.view()).todos;
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

  /** Its background jobs in the order of their start, and the kinds that can be started (docs/jobs.md). */
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

  view(options: ReadOptions = {}): Promise<SessionView> {
    return this.#wire.query<SessionView>(this.id, queries.view, {}, options);
  }

  /** What Temporal knows of the session without a worker: whether, when and why it ended. SESSION_NOT_FOUND. */
  record(): Promise<SessionRecord> {
    return this.#wire.record(this.id);
  }

  /** Entries after `after` (default -1: all), up to the last one at the time it is reached. */
  async *log(
    options: ReadOptions & { readonly after?: number } = {},
  ): AsyncGenerator<LogEntry, void, undefined> {
    for (let after = options.after ?? -1; ;) {
      const page = await this.logPage({ ...options, after });
      yield* page.entries;
      const last = page.entries.at(-1);
      if (last === undefined || last.seq >= page.lastSeq) return;
      after = last.seq;
    }
  }

  /** One page of the log: at most `limit` entries (default 500) and 256 KB. */
  logPage(
    options: ReadOptions & { readonly after?: number; readonly limit?: number } = {},
  ): Promise<LogPage> {
    const { after = -1, limit = 500, ...reading } = options;
    return this.#wire.query<LogPage>(this.id, queries.log, { after, limit }, reading);
  }

  /** What the model is shown: all messages derived from the surface. */
  async messages(): Promise<readonly Message[]> {
    const nodes: SurfaceNode[] = [];
    let page = await this.#wire.query<SurfacePage>(this.id, queries.surface, null);
    for (
      nodes.push(...page.nodes);
      page.nodes.length > 0 && nodes.length < page.length;
      nodes.push(...page.nodes)
    ) {
      page = await this.surface({ from: nodes.length, to: page.length });
    }
    return deriveMessages(nodes);
  }

  /** Nodes `from` up to, not including, `to`; as many as fit 256 KB. */
  surface(range: SurfaceQuery): Promise<SurfacePage> {
    return this.#wire.query<SurfacePage>(this.id, queries.surface, range);
  }

  projections(options: ReadOptions = {}): Promise<Projections> {
    return this.#wire.query<Projections>(this.id, queries.projections, {}, options);
  }

  /**
   * Follows the session from `after` until it has ended; see WatchEvent. Ends cleanly by its signal, by leaving the
   * loop, or when the client closes. Rejects only when the session does not exist or cannot be read for good.
   */
  watch(options: WatchOptions = {}): AsyncIterableIterator<WatchEvent> {
    return this.#watchers.watch(this.id, options);
  }

  /** Resolves with the view once the session is quiet; it waits as long as it takes, also for a lost worker. */
  waitIdle(options: WaitIdleOptions = {}): Promise<SessionView> {
    const source = {
      view: (signal?: AbortSignal) =>
        this.#wire.query<SessionView>(
          this.id,
          queries.view,
          {},
          signal === undefined ? {} : { signal },
        ),
      status: () => this.#wire.status(this.id),
    };
    return waitUntilQuiet(source, options.after, options.signal);
  }

  /** Did the work after `after` finish (spec/harness §2)? */
  async outcome(options: { readonly after?: number } = {}): Promise<Outcome> {
    const entries: LogEntry[] = [];
    for await (const entry of this.log(options)) entries.push(entry);
    return foldOutcome(entries);
  }
}
