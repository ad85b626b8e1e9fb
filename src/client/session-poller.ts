import { LonghaulError } from "../contracts/errors.js";
import type { EntryOf, LogEntry } from "../contracts/log.js";
import type { LogPage, Projections } from "../contracts/session.js";
import { JobsFollower } from "./jobs-follower.js";
import { pause } from "./pause.js";
import type { StreamedText, StreamFollower } from "./stream-follower.js";
import type { WatchEvent } from "./types.js";
import { awayCodes } from "./wait.js";
import type { WatchCursor } from "./watch-cursor.js";

/** What a poller reads: pages of the log, the jobs when they have changed, and whether the session's workflow still runs. */
export interface PollSource {
  readonly session: string;
  page(after: number, limit: number, signal: AbortSignal): Promise<LogPage>;
  projections(signal: AbortSignal): Promise<Projections>;
  isOpen(): Promise<boolean>;
}

/** One watcher as its poller sees it. */
export interface Feed {
  readonly cursor: WatchCursor;
  readonly intervalMs: number;
  /** Too much is waiting to be taken: nothing is pushed until the watcher calls `nudge`. */
  readonly full: boolean;
  push(events: readonly WatchEvent[]): void;
  fail(error: unknown): void;
  /** The session has ended and everything was given. */
  finish(): void;
}

/** Codes of archived entries that cannot be read, however often they are asked for. */
const lostCodes: ReadonlySet<string> = new Set(["ARCHIVE_UNAVAILABLE", "LOG_CORRUPT"]);
const pageEntries = 500;
const idleIntervalMs = 1000;
/** How often a silent session is asked whether it has ended without saying so (terminated, failed). */
const endCheckMs = 5000;
/** Entries looked at before a watcher's start; a step's message follows its start by fewer. */
const primeEntries = 64;

/**
 * Reads one session's log for all its watchers (design D10): each round asks for what the one furthest behind lacks
 * and gives every watcher what is new to it.
 */
export class SessionPoller {
  readonly #source: PollSource;
  readonly #follower: StreamFollower | undefined;
  readonly #jobs: JobsFollower;
  readonly #feeds = new Set<Feed>();
  readonly #unprimed = new Set<Feed>();
  readonly #down = new Set<Feed>();
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #quietMs = 0;
  #ended = false;
  #endCheckedAt = 0;
  #running = false;

  constructor(source: PollSource, follower?: StreamFollower) {
    this.#source = source;
    this.#follower = follower;
    this.#jobs = new JobsFollower(source.session, () => source.projections(this.#stop.signal));
  }

  get size(): number {
    return this.#feeds.size;
  }

  attach(feed: Feed): void {
    this.#feeds.add(feed);
    if (feed.cursor.position >= 0) this.#unprimed.add(feed);
    this.nudge();
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    }
  }

  /** Without watchers the poller stops for good. */
  detach(feed: Feed): void {
    this.#feeds.delete(feed);
    this.#unprimed.delete(feed);
    this.#down.delete(feed);
    if (this.#feeds.size === 0) this.#stop.abort();
  }

  /** Something may have happened: look now. */
  nudge(): void {
    this.#quietMs = 0;
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      let again = false;
      try {
        again = await this.#round();
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (!(error instanceof LonghaulError) || !awayCodes.has(error.code)) {
          this.#endAll((feed) => {
            feed.fail(error);
          });
          return;
        }
        this.#setDown(error.message);
        this.#quietMs = idleIntervalMs;
      }
      if (!again) await pause(this.#waitMs(), this.#wake.signal, this.#stop.signal);
    }
  }

  /** True when some watcher is known to lack entries. */
  async #round(): Promise<boolean> {
    for (const feed of this.#unprimed) {
      const from = Math.max(-1, feed.cursor.position - primeEntries);
      // It fails nobody: without it a step under way is told by its entries alone.
      const before = await this.#page(from, feed.cursor.position - from, []);
      feed.cursor.prime(before?.entries ?? []);
      this.#unprimed.delete(feed);
    }
    const ready = [...this.#feeds].filter((feed) => !feed.full && !this.#unprimed.has(feed));
    if (ready.length === 0) return false;
    const endedBefore = this.#ended;
    const after = Math.min(...ready.map((feed) => feed.cursor.position));
    const behind = ready.filter((feed) => feed.cursor.position === after);
    const page = await this.#page(after, pageEntries, behind);
    if (page === undefined) return this.#feeds.size > 0;
    this.#setUp();
    this.#jobs.note(after, page);
    const failed = await this.#failedAttempt(page);
    for (const feed of ready) {
      for (const entry of page.entries) {
        if (entry === failed?.entry && entry.seq > feed.cursor.position)
          feed.push(feed.cursor.streamed(failed.text));
        feed.push(feed.cursor.entry(entry));
      }
    }
    const current = ready.filter((feed) => feed.cursor.position >= page.lastSeq);
    for (const feed of current) feed.push(feed.cursor.state(page.state));
    const jobs = current.length === 0 ? undefined : await this.#jobs.read();
    if (jobs !== undefined) for (const feed of current) feed.push(feed.cursor.jobs(jobs));
    await this.#giveStreamed(current);
    if (current.length < ready.length) return true;
    if (endedBefore) {
      this.#endAll((feed) => {
        feed.finish();
      }, current);
    } else if (page.state === "closed" || page.entries.length === 0)
      await this.#checkEnd(page.state === "closed");
    this.#setPace(page.state === "running", page.entries.length > 0);
    return this.#ended && !endedBefore;
  }

  /** Undefined when what `feeds` lack is archived and not to be had: they fail, and others go on. */
  async #page(after: number, limit: number, feeds: readonly Feed[]): Promise<LogPage | undefined> {
    try {
      return await this.#source.page(after, limit, this.#stop.signal);
    } catch (error) {
      if (!(error instanceof LonghaulError) || !lostCodes.has(error.code)) throw error;
      this.#endAll((feed) => {
        feed.fail(error);
      }, feeds);
      return undefined;
    }
  }

  /**
   * What an attempt streamed before it failed, to be given before the `llm/retry` that says so. Only while the log
   * shows no further attempt, also after the text was read: it cannot be of another one then.
   */
  async #failedAttempt(
    page: LogPage,
  ): Promise<{ readonly entry: LogEntry; readonly text: StreamedText } | undefined> {
    const entry = waitingRetry(page.entries);
    if (entry === undefined || this.#follower === undefined) return undefined;
    const text = await this.#follower.read(entry.data.turn, entry.data.step);
    if (text === undefined) return undefined;
    const since = await this.#source.page(entry.seq, pageEntries, this.#stop.signal);
    const again = since.entries.some((one) => one.type === "llm/retry-started");
    return again || since.lastSeq - entry.seq > since.entries.length ? undefined : { entry, text };
  }

  async #giveStreamed(feeds: readonly Feed[]): Promise<void> {
    const step = feeds.find((feed) => feed.cursor.openStep !== undefined)?.cursor.openStep;
    if (step === undefined || this.#follower === undefined) return;
    const text = await this.#follower.read(step.turn, step.step);
    if (text !== undefined) for (const feed of feeds) feed.push(feed.cursor.streamed(text));
  }

  /** After the workflow has ended one more round reads what it logged last. */
  async #checkEnd(closing: boolean): Promise<void> {
    const now = Date.now();
    if (!closing && now - this.#endCheckedAt < endCheckMs) return;
    this.#endCheckedAt = now;
    if (!(await this.#source.isOpen())) this.#ended = true;
  }

  #setPace(running: boolean, progress: boolean): void {
    const base = this.#baseMs();
    this.#quietMs =
      running || progress
        ? base
        : Math.min(Math.max(this.#quietMs, base) * 1.5, Math.max(base, idleIntervalMs));
  }

  #waitMs(): number {
    return Math.max(this.#quietMs, this.#baseMs());
  }

  #baseMs(): number {
    return Math.min(...[...this.#feeds].map((feed) => feed.intervalMs));
  }

  #setDown(message: string): void {
    for (const feed of this.#feeds) {
      if (this.#down.has(feed)) continue;
      this.#down.add(feed);
      feed.push([{ type: "connection", up: false, message }]);
    }
  }

  #setUp(): void {
    for (const feed of this.#down)
      feed.push([{ type: "connection", up: true, message: "the session answers again" }]);
    this.#down.clear();
  }

  #endAll(end: (feed: Feed) => void, feeds: readonly Feed[] = [...this.#feeds]): void {
    for (const feed of feeds) {
      this.detach(feed);
      end(feed);
    }
  }
}

/** The page's last `llm/retry` when its next attempt has not begun there. */
function waitingRetry(entries: readonly LogEntry[]): EntryOf<"llm/retry"> | undefined {
  const last = entries.findLast(({ type }) => type === "llm/retry" || type === "llm/retry-started");
  return last?.type === "llm/retry" ? last : undefined;
}
