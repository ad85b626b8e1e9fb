import type { Message } from "../contracts/content.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { queries } from "../contracts/names.js";
import type {
  LogPage,
  Projections,
  SessionView,
  SurfaceNode,
  SurfacePage,
  SurfaceQuery,
} from "../contracts/session.js";
import type { TodoItem } from "../contracts/todo.js";
import { foldOutcome, type Outcome } from "../domain/outcome.js";
import { presentNodes } from "../domain/archived-nodes.js";
import { deriveMessages } from "../domain/surface.js";
import type {
  ReadOptions,
  SessionRecord,
  WaitIdleOptions,
  WatchEvent,
  WatchOptions,
} from "./types.js";
import { waitUntilQuiet } from "./wait.js";
import type { Watchers } from "./watch.js";
import type { Wire } from "./wire.js";

/** What can be read of a session; SessionClient adds what can be asked of it. */
export class SessionReader {
  readonly id: string;
  readonly #wire: Wire;
  readonly #watchers: Watchers;

  constructor(id: string, wire: Wire, watchers: Watchers) {
    this.id = id;
    this.#wire = wire;
    this.#watchers = watchers;
  }

  view(options: ReadOptions = {}): Promise<SessionView> {
    return this.#wire.query<SessionView>(this.id, queries.view, {}, options);
  }

  /** The todo list; null before the first of the turn. */
  async todos(): Promise<readonly TodoItem[] | null> {
    return (await this.view()).todos;
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
    for (let tries = 1; ; tries++) {
      try {
        return deriveMessages(await this.#surfaceNodes());
      } catch (error) {
        // A summary has taken the place of what was being read: it is read again.
        const changed = error instanceof LonghaulError && error.code === "INVALID_INPUT";
        if (!changed || tries === surfaceTries) throw error;
      }
    }
  }

  async #surfaceNodes(): Promise<readonly SurfaceNode[]> {
    const nodes: SurfaceNode[] = [];
    let page = await this.#wire.query<SurfacePage>(this.id, queries.surface, null);
    for (
      nodes.push(...presentNodes(page));
      page.nodes.length > 0 && nodes.length < page.length;
      nodes.push(...presentNodes(page))
    ) {
      page = await this.surface({ from: nodes.length, to: page.length });
    }
    return nodes;
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

/** Summaries are rare: one may come while the surface is read. */
const surfaceTries = 3;
