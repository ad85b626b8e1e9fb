import type {
  CreateSessionOptions,
  ForkOptions,
  HostRecord,
  ImportNotes,
  ImportOptions,
  ListFilter,
  Outcome,
  PurgeOptions,
  PurgeResult,
  ReadOptions,
  SendOptions,
  SessionRecord,
  SessionSummary,
  WaitIdleOptions,
  WatchEvent,
  WatchOptions,
} from "../client/types.js";
import type { CompactionOutcome, CompactOptions } from "../client/session-compaction.js";
import type { VerifyReport } from "../client/verify.js";
import type { JobOutputPiece } from "../client/job-output.js";
import type {
  JobOutputOptions,
  KillJobOptions,
  StartJobOptions,
  WaitJobOptions,
} from "../client/session-jobs.js";
import type {
  DeleteReminderOptions,
  DeleteReminderResult,
  RemindersResult,
  RemindOptions,
  RemindResult,
} from "../client/session-reminders.js";
import type { ArchivedSession } from "../contracts/archive.js";
import type { RolloutEvent, RolloutOptions } from "../client/rollout.js";
import type { Refusal } from "../contracts/errors.js";
import type { ModelProvider } from "../contracts/model.js";
import type { Store } from "../contracts/store.js";
import type { LogEntry } from "../contracts/log.js";
import type {
  CloseCommand,
  InterruptResult,
  JobKillResult,
  JobsView,
  JobStartResult,
  JobView,
  Projections,
  SendResult,
  SessionView,
  TodoWriteResult,
} from "../contracts/session.js";
import type { TodoItem } from "../contracts/todo.js";
import type { JobKindDefinition, ToolDefinition } from "../tools/define.js";
import type { WorkerDeployment } from "../worker/versioning.js";

/** What commands need of a session; the client's SessionClient has it. */
export interface Session {
  readonly id: string;
  send(text: string, options?: SendOptions): Promise<SendResult>;
  interrupt(): Promise<InterruptResult>;
  cancel(): Promise<InterruptResult>;
  close(command?: CloseCommand): Promise<void>;
  todos(): Promise<readonly TodoItem[] | null>;
  writeTodos(write: {
    readonly todos: readonly TodoItem[];
  }): Promise<Exclude<TodoWriteResult, Refusal>>;
  jobs(options?: ReadOptions): Promise<JobsView>;
  startJob(options: StartJobOptions): Promise<Exclude<JobStartResult, Refusal>>;
  killJob(jobId: string, options?: KillJobOptions): Promise<Exclude<JobKillResult, Refusal>>;
  waitJob(jobId: string, options?: WaitJobOptions): Promise<JobView>;
  jobOutput(jobId: string, options?: JobOutputOptions): AsyncIterable<JobOutputPiece>;
  remind(options: RemindOptions): Promise<RemindResult>;
  reminders(options?: ReadOptions): Promise<RemindersResult>;
  deleteReminder(id: string, options?: DeleteReminderOptions): Promise<DeleteReminderResult>;
  suspend(): Promise<void>;
  resume(): Promise<void>;
  rebind(host: string): Promise<void>;
  compact(options?: CompactOptions): Promise<CompactionOutcome>;
  view(options?: ReadOptions): Promise<SessionView>;
  projections(options?: ReadOptions): Promise<Projections>;
  record(): Promise<SessionRecord>;
  log(options?: ReadOptions & { readonly after?: number }): AsyncIterable<LogEntry>;
  watch(options?: WatchOptions): AsyncIterable<WatchEvent>;
  waitIdle(options?: WaitIdleOptions): Promise<SessionView>;
  outcome(options?: { readonly after?: number }): Promise<Outcome>;
}

export interface WorkerRequest {
  readonly roles: readonly ("session" | "host")[];
  readonly hostId: string;
  /** Model providers beside the scripted one, made when a worker is. */
  readonly models?: (store: Store) => Promise<readonly ModelProvider[]>;
  /** Tools beside the built-in ones. */
  readonly tools?: readonly ToolDefinition[];
  /** Kinds of background jobs beside bash. */
  readonly jobKinds?: readonly JobKindDefinition[];
  /** Most live jobs of the host. */
  readonly maxJobs?: number;
  /** Makes the session role versioned. */
  readonly deployment?: WorkerDeployment;
}

export interface RunningWorker {
  stop(): Promise<void>;
  /** Ends with the worker; rejects when it failed. */
  readonly done: Promise<void>;
}

/** A Temporal server, a client on it, and a worker when one is asked for. */
export interface Backend {
  readonly address: string;
  readonly namespace: string;
  /** Temporal UI's page of a session, when its address is known. */
  sessionUrl(id: string): string | undefined;
  createSession(options: CreateSessionOptions): Promise<Session>;
  session(id: string): Session;
  list(filter: ListFilter): Promise<readonly SessionSummary[]>;
  /** Ended sessions that are archived, those that closed last first. */
  archived(): AsyncIterable<ArchivedSession>;
  /** Removes all that is kept of an ended session. */
  purge(id: string, options?: PurgeOptions): Promise<PurgeResult>;
  /** The hosts of open sessions, and `also`. */
  hosts(also: readonly string[]): Promise<readonly HostRecord[]>;
  /** Moves open sessions to a build of versioned workers. */
  rollOut(build: string, options: RolloutOptions): AsyncIterable<RolloutEvent>;
  /** Frees the sessions of a build whose workers are gone. */
  freeSessions(build: string, options: RolloutOptions): AsyncIterable<RolloutEvent>;
  fork(source: string, options: ForkOptions): Promise<Session>;
  /** The whole log, a line a piece. */
  export(id: string): AsyncIterable<string>;
  importSession(
    text: string,
    options: ImportOptions,
  ): Promise<{ readonly session: Session; readonly notes: ImportNotes }>;
  verify(id: string): Promise<VerifyReport>;
  readonly store: Pick<Store, "list" | "read" | "append">;
  /** Has a worker asked for sessions lately? One that was killed counts for a minute more. */
  workerSeen(): Promise<boolean>;
  startWorker(request: WorkerRequest): Promise<RunningWorker>;
  /** Stops what was started, last first. */
  close(): Promise<void>;
}
