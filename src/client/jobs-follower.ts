import type { JobsFrame } from "../contracts/jobs.js";
import type { LogPage, Projections } from "../contracts/session.js";

/**
 * The set of a session's jobs as its watchers are shown it (spec/jobs §15). It is asked for when the log says, or could say,
 * that it has changed: a session whose log was read from its beginning and names no job is never asked.
 */
export class JobsFollower {
  readonly #sessionId: string;
  readonly #ask: () => Promise<Projections>;
  #frame: JobsFrame | undefined;
  /** Entries up to here were looked at. */
  #seen = -1;
  /** The newest entry that may have changed the set. */
  #changed = -1;
  #asOf = -1;

  constructor(sessionId: string, ask: () => Promise<Projections>) {
    this.#sessionId = sessionId;
    this.#ask = ask;
  }

  /** Takes notice of a page of the log. */
  note(after: number, { entries, lastSeq }: LogPage): void {
    const skipped = after > this.#seen && lastSeq > this.#seen;
    if (skipped) this.#changed = Math.max(this.#changed, Math.min(after, lastSeq));
    for (const { type, seq } of entries)
      if (changing.has(type)) this.#changed = Math.max(this.#changed, seq);
    this.#seen = Math.max(this.#seen, entries.at(-1)?.seq ?? Math.min(after, lastSeq));
  }

  /** The set as it is now; undefined while there never was a job. */
  async read(): Promise<JobsFrame | undefined> {
    if (this.#asOf >= this.#changed) return this.#frame;
    const { asOfSeq, values } = await this.#ask();
    this.#asOf = asOfSeq;
    const { jobs } = values;
    this.#frame =
      jobs === undefined ? undefined : { type: "session/jobs", sessionId: this.#sessionId, jobs };
    return this.#frame;
  }
}

const changing: ReadonlySet<string> = new Set([
  "job/start",
  "job/stopping",
  "job/settled",
  "job/removed",
]);
