import type { WorkflowExecutionStatusName } from "@temporalio/client";
import type { Archive, ArchivedSession } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import { queries } from "../contracts/names.js";
import type { LogPage, SurfacePage } from "../contracts/session.js";
import { filledLogPage, filledSurfacePage } from "./archived-pages.js";
import { ArchivedViews, type QueryArgs } from "./archived-view.js";
import type { SessionRecord } from "./types.js";
import type { QueryOptions, SessionRunStatus, Wire } from "./wire.js";

/**
 * A wire whose sessions have all of their log: what has left the running history comes from the archive, and so does everything
 * that can be read of an ended session which Temporal has deleted (design D8).
 */
export class ArchivedWire implements Wire {
  readonly #wire: Wire;
  readonly #archive: Archive | undefined;
  readonly #views: ArchivedViews | undefined;

  constructor(wire: Wire, archive: Archive | undefined) {
    this.#wire = wire;
    this.#archive = archive;
    this.#views = archive && new ArchivedViews(archive);
  }

  async query<T>(
    session: string,
    name: string,
    args: unknown,
    options: QueryOptions = {},
  ): Promise<T> {
    const ask = <A>(): Promise<A> => this.#wire.query<A>(session, name, args, options);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- whoever asks knows what a query answers
    return (await this.#answer(session, name, args, ask)) as T;
  }

  async #answer(
    session: string,
    name: string,
    args: unknown,
    ask: <A>() => Promise<A>,
  ): Promise<unknown> {
    if (name === queries.log) {
      const { after = -1, limit } = readArgs(args);
      const page = await this.#orArchived(session, ask<LogPage>, (ended, views) =>
        views.logPage(ended, after, limit),
      );
      return filledLogPage(this.#archive, session, page, after, limit);
    }
    if (name === queries.surface) {
      const page = await this.#orArchived(session, ask<SurfacePage>, (ended, views) =>
        views.surface(ended, readArgs(args)),
      );
      return filledSurfacePage(this.#archive, session, page);
    }
    return this.#orArchived<unknown>(session, ask, (ended, views) =>
      views.answer(ended, name, readArgs(args)),
    );
  }

  update<T>(session: string, name: string, callerId: string, payload: unknown): Promise<T> {
    return this.#orArchived<T>(
      session,
      () => this.#wire.update(session, name, callerId, payload),
      refused,
    );
  }

  signal(session: string, name: string, payload: unknown): Promise<void> {
    return this.#orArchived(session, () => this.#wire.signal(session, name, payload), refused);
  }

  async status(session: string): Promise<SessionRunStatus | undefined> {
    const known = await this.#wire.status(session);
    if (known !== undefined) return known;
    const ended = await this.#archive?.ended(session);
    return ended && { open: false, status: statusNames[ended.status] };
  }

  record(session: string): Promise<SessionRecord> {
    return this.#orArchived(session, () => this.#wire.record(session), recordOf);
  }

  async #orArchived<T>(
    session: string,
    ask: () => Promise<T>,
    instead: (ended: ArchivedSession, views: ArchivedViews) => T | Promise<T>,
  ): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof LonghaulError)) throw error;
      if (error.code === "NO_WORKER") return this.#orUnread(session, error, instead);
      if (error.code !== "SESSION_NOT_FOUND") throw error;
      const ended = await this.#endOf(session, error);
      if (ended === undefined || this.#views === undefined) throw error;
      return instead(ended, this.#views);
    }
  }

  /** An ended session is read from the build that ended it alone, and its workers may be gone. */
  async #orUnread<T>(
    session: string,
    error: LonghaulError,
    instead: (ended: ArchivedSession, views: ArchivedViews) => T | Promise<T>,
  ): Promise<T> {
    const ended = await this.#archive?.ended(session).catch(() => undefined);
    if (ended === undefined || this.#views === undefined) throw error;
    const { closedAt } = await this.#wire.record(session);
    if (closedAt !== ended.closedAt) throw error;
    return instead(ended, this.#views);
  }

  async #endOf(session: string, missing: LonghaulError): Promise<ArchivedSession | undefined> {
    try {
      return await this.#archive?.ended(session);
    } catch (error) {
      if (!(error instanceof LonghaulError) || error.code !== "STORE_UNAVAILABLE") throw error;
      throw new LonghaulError(
        missing.code,
        `${missing.message}, and whether it is archived cannot be told: ${error.message}`,
        { cause: error },
      );
    }
  }
}

/** What Temporal would say of an archived session. */
export function recordOf(ended: ArchivedSession): SessionRecord {
  const { session: id, title, status, startedAt, closedAt } = ended;
  return {
    id,
    ...(title === undefined ? {} : { title }),
    ...ends[status],
    startedAt,
    closedAt,
    archived: true,
  };
}

const ends: {
  readonly [S in ArchivedSession["status"]]: Pick<SessionRecord, "state" | "status">;
} = {
  completed: { state: "closed", status: "closed" },
  failed: { state: "failed", status: "failed" },
  terminated: { state: "terminated", status: "terminated" },
  cancelled: { state: "terminated", status: "canceled" },
  "timed-out": { state: "failed", status: "timed-out" },
};

const statusNames: { readonly [S in ArchivedSession["status"]]: WorkflowExecutionStatusName } = {
  completed: "COMPLETED",
  failed: "FAILED",
  terminated: "TERMINATED",
  cancelled: "CANCELLED",
  "timed-out": "TIMED_OUT",
};

function refused({ session, closedAt }: ArchivedSession): never {
  throw new LonghaulError(
    "SESSION_CLOSED",
    `session ${session} has ended (${new Date(closedAt).toISOString()}) and takes nothing any more; its log can still be read, from the archive`,
  );
}

/** What queries are asked with: numbers but for the id of a change. */
function readArgs(args: unknown): QueryArgs {
  const given: object = typeof args === "object" && args !== null ? args : {};
  const read: { -readonly [K in keyof QueryArgs]: QueryArgs[K] } = {};
  for (const key of ["after", "limit", "from", "to"] as const) {
    const value: unknown = Reflect.get(given, key);
    if (typeof value === "number") read[key] = value;
  }
  const requestId: unknown = Reflect.get(given, "requestId");
  return typeof requestId === "string" ? { ...read, requestId } : read;
}
