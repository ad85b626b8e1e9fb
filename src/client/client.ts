import { setMaxListeners } from "node:events";
import type { Client, Connection } from "@temporalio/client";
import type { Archive, ArchivedSession } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import {
  queries,
  searchAttributes,
  signals,
  type SearchAttributeName,
} from "../contracts/names.js";
import { parseInput } from "../contracts/schemas/parse.js";
import { sessionIdSchema } from "../contracts/schemas/session.js";
import type { LogPage, Projections } from "../contracts/session.js";
import { openArchive } from "../store/archive.js";
import { ArchivedWire } from "./archived-wire.js";
import type { Bounded } from "./attempts.js";
import { connectTemporal, registeredAttributes } from "./connect.js";
import { startSession, type SeedSource } from "./create-session.js";
import { Deployments } from "./deployments.js";
import { findHosts } from "./hosts.js";
import { listSessions } from "./list.js";
import { overdueAmong } from "./overdue.js";
import { freeSessions } from "./rollout-free.js";
import { rollOut, type RolloutEvent, type RolloutOptions } from "./rollout.js";
import type { SessionsOnBuilds } from "./rollout-sessions.js";
import { untilClosed, untilReady, type SessionEnds } from "./session-ends.js";
import { SessionClient } from "./session-client.js";
import { purgeSession } from "./purge.js";
import { SessionLogs } from "./session-logs.js";
import type { PollSource } from "./session-poller.js";
import type {
  CreateSessionOptions,
  ForkOptions,
  HostRecord,
  ImportOptions,
  ImportResult,
  ListFilter,
  LonghaulClientOptions,
  PurgeOptions,
  PurgeResult,
  SessionSummary,
} from "./types.js";
import type { VerifyReport } from "./verify.js";
import { Watchers } from "./watch.js";
import { TemporalWire, type Wire } from "./wire.js";

/** Longest wait of one page of a watched log, ms: a worker that died while it held the session costs 2 s (facts §0.8). */
const pageTimeoutMs = 4000;

/** Sessions over Temporal. One client serves any number of sessions; close it when done. */
export class LonghaulClient implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #bounds: Bounded;
  readonly #closing = new AbortController();
  readonly #client: Client;
  readonly #namespace: string;
  readonly #timeoutMs: number;
  readonly #wire: Wire;
  readonly #watchers: Watchers;
  readonly #store: LonghaulClientOptions["store"];
  readonly #archive: Archive | undefined;
  readonly #logs: SessionLogs;
  #attributes: Promise<readonly SearchAttributeName[]> | undefined;

  /** Connects and checks the namespace: TEMPORAL_UNREACHABLE within 5 s, NAMESPACE_NOT_FOUND. */
  static async connect(options: LonghaulClientOptions): Promise<LonghaulClient> {
    const { namespace = "default" } = options;
    const { connection, client } = await connectTemporal(options.connection, namespace);
    return new LonghaulClient(options, namespace, connection, client);
  }

  private constructor(
    options: LonghaulClientOptions,
    namespace: string,
    connection: Connection,
    client: Client,
  ) {
    // One listener for each call under way: many are no leak.
    setMaxListeners(0, this.#closing.signal);
    this.#connection = connection;
    this.#bounds = {
      withDeadline: (deadline, fn) => connection.withDeadline(deadline, fn),
      withAbortSignal: (signal, fn) => connection.withAbortSignal(signal, fn),
      closed: this.#closing.signal,
    };
    this.#client = client;
    this.#namespace = namespace;
    this.#timeoutMs = options.callTimeoutMs ?? 15_000;
    this.#archive = options.store && openArchive(options.store);
    const wire = new TemporalWire(client, connection, this.#bounds, this.#timeoutMs);
    this.#wire = new ArchivedWire(wire, this.#archive);
    this.#store = options.store;
    this.#logs = new SessionLogs({
      client,
      bounds: this.#bounds,
      wire: this.#wire,
      live: wire,
      store: options.store,
      archive: this.#archive,
      timeoutMs: this.#timeoutMs,
      session: (id) => this.session(id),
    });
    this.#watchers = new Watchers((session) => this.#pollSource(session), options.store);
    if (options.attributes !== undefined) this.#attributes = Promise.resolve(options.attributes);
  }

  /**
   * Starts a session. SESSION_EXISTS for a used id, INVALID_INPUT; with `waitReady` (the default) also NO_HOST when no
   * host offered its tools, and NO_WORKER when nobody runs it: the session is then open and goes on when one comes.
   */
  async createSession(options: CreateSessionOptions): Promise<SessionClient> {
    return this.#start(options);
  }

  /**
   * Starts a session that begins with the log of another, up to an entry outside any turn (docs/logs.md); its source goes on
   * untouched. INVALID_BOUNDARY, OPEN_TURN, SESSION_NOT_FOUND, ARCHIVE_UNAVAILABLE without a store, and as `createSession`.
   */
  async fork(source: string, options: ForkOptions = {}): Promise<SessionClient> {
    const { options: creation, seed } = await this.#logs.fork(source, options);
    return this.#start(creation, seed);
  }

  /** A session's whole log as JSON lines, each with its newline, up to what was its last entry at the beginning (docs/logs.md). */
  export(id: string): AsyncGenerator<string, void, undefined> {
    return this.#logs.export(id);
  }

  /**
   * Starts a session that goes on with an exported log, also one of the reference harness (docs/logs.md). LOG_CORRUPT and
   * LOG_UNSUPPORTED name the line, ARCHIVE_UNAVAILABLE without a store, and as `createSession`.
   */
  async importSession(text: string, options: ImportOptions = {}): Promise<ImportResult> {
    const { options: creation, seed, notes } = this.#logs.import(text, options);
    return { session: await this.#start(creation, seed), notes };
  }

  /**
   * Holds a session's log against its archive, against the histories that Temporal still has, and against what the session shows
   * (docs/logs.md). What does not fit is a check that failed; rejects for what cannot be read at all.
   */
  verify(id: string): Promise<VerifyReport> {
    return this.#logs.verify(parseInput(sessionIdSchema, id, "session id"));
  }

  /** A session by its id; INVALID_INPUT for what cannot be one. Whether it exists shows with the first call. */
  session(id: string): SessionClient {
    return this.#sessionClient(parseInput(sessionIdSchema, id, "session id"));
  }

  /** Sessions of the namespace, at most `limit` (default 1,000), newest first as far as visibility allows. */
  async list(filter: ListFilter = {}): Promise<readonly SessionSummary[]> {
    const registered = await this.#registered();
    const asked = filter.overdue === true && !registered.includes("LonghaulNextReminder");
    const { limit, ...rest } = filter;
    const found = await listSessions(
      this.#client,
      this.#bounds,
      asked ? rest : filter,
      registered,
      this.#timeoutMs,
    );
    // Visibility cannot tell: each open session is asked.
    return asked ? overdueAmong(found, (id) => this.#sessionClient(id), limit) : found;
  }

  /**
   * The hosts that open sessions are bound to, and `also`: do workers of theirs ask for work now? What Temporal says without
   * a worker; one that was killed counts for a minute more.
   */
  async hosts(also: readonly string[] = []): Promise<readonly HostRecord[]> {
    return findHosts(
      this.#connection,
      this.#bounds,
      { namespace: this.#namespace, timeoutMs: this.#timeoutMs },
      await this.list({ query: "ExecutionStatus = 'Running'", limit: 100_000 }),
      also,
    );
  }

  /**
   * Ended sessions that are archived, those that closed last first, also those that Temporal has deleted. STORE_UNAVAILABLE, also
   * without a store; LOG_CORRUPT after all that can be read.
   */
  archived(): AsyncGenerator<ArchivedSession, void, undefined> {
    return (this.#archive ?? this.#noStore("archived sessions are")).list();
  }

  /**
   * Removes all that is kept of an ended session: histories of its runs and jobs, archive and outputs. Nothing brings it back.
   * SESSION_OPEN while it or one of its jobs runs, SESSION_NOT_FOUND, TIMEOUT, STORE_UNAVAILABLE also without a store. What was
   * interrupted is completed when it is purged again.
   */
  async purge(id: string, options: PurgeOptions = {}): Promise<PurgeResult> {
    const session = parseInput(sessionIdSchema, id, "session id");
    return purgeSession(
      {
        client: this.#client,
        connection: this.#connection,
        bounds: this.#bounds,
        namespace: this.#namespace,
        store: this.#store ?? this.#noStore(`what session ${session} has written is`),
        timeoutMs: this.#timeoutMs,
      },
      session,
      options,
    );
  }

  #noStore(what: string): never {
    throw new LonghaulError(
      "STORE_UNAVAILABLE",
      `${what} in the store, and this client was connected without one; give LonghaulClient.connect a store`,
    );
  }

  /** Moves all open sessions to a build of the versioned workers (docs/operations.md); tells what it does. See `rollOut`. */
  rollOut(build: string, options: RolloutOptions = {}): AsyncGenerator<RolloutEvent, void> {
    return rollOut(this.#deployments(), this.#onBuilds(), build, options);
  }

  /** Frees the sessions of a build whose workers are gone for good (docs/operations.md); tells what it does. See `freeSessions`. */
  freeSessions(build: string, options: RolloutOptions = {}): AsyncGenerator<RolloutEvent, void> {
    return freeSessions(this.#deployments(), this.#onBuilds(), build, options);
  }

  /** Ends all watchers, calls under way (ABORTED) and the connection. Sessions go on. */
  async close(): Promise<void> {
    this.#watchers.close();
    this.#closing.abort();
    await this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #deployments(): Deployments {
    return new Deployments(this.#connection, this.#bounds, this.#namespace, this.#timeoutMs);
  }

  #onBuilds(): SessionsOnBuilds {
    return {
      client: this.#client,
      bounds: this.#bounds,
      timeoutMs: this.#timeoutMs,
      rollOver: (id) => this.#wire.signal(id, signals.rollOver, {}),
      isArchived: async (id, run) =>
        this.#archive === undefined || (await this.#archive.ended(id))?.run === run,
    };
  }

  async #start(options: CreateSessionOptions, seed?: SeedSource): Promise<SessionClient> {
    const id = await startSession(
      this.#client,
      this.#bounds,
      options,
      await this.#registered(),
      this.#timeoutMs,
      seed,
    );
    if (options.waitReady !== false) await untilReady(this.#ends(), id);
    return this.#sessionClient(id);
  }

  #ends(): SessionEnds {
    return {
      client: this.#client,
      bounds: this.#bounds,
      wire: this.#wire,
      timeoutMs: this.#timeoutMs,
    };
  }

  #sessionClient(id: string): SessionClient {
    const closed = () => untilClosed(this.#ends(), id);
    return new SessionClient(id, this.#wire, this.#watchers, closed, this.#store);
  }

  /** Asked once; after a failure again. */
  async #registered(): Promise<readonly SearchAttributeName[]> {
    this.#attributes ??= registeredAttributes(this.#connection, this.#namespace);
    try {
      return (await this.#attributes).filter((name) => name in searchAttributes);
    } catch (error) {
      this.#attributes = undefined;
      throw error;
    }
  }

  #pollSource(session: string): PollSource {
    return {
      session,
      page: (after, limit, signal) =>
        this.#wire.query<LogPage>(
          session,
          queries.log,
          { after, limit },
          { signal, timeoutMs: pageTimeoutMs },
        ),
      projections: (signal) =>
        this.#wire.query<Projections>(
          session,
          queries.projections,
          {},
          { signal, timeoutMs: pageTimeoutMs },
        ),
      isOpen: async () => (await this.#wire.status(session))?.open === true,
    };
  }
}
