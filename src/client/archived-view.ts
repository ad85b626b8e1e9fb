import type { Archive, ArchivedSession } from "../contracts/archive.js";
import { queries } from "../contracts/names.js";
import type {
  JobsView,
  LogPage,
  Projections,
  RemindersView,
  SessionView,
  SurfacePage,
} from "../contracts/session.js";
import type { LogEntry } from "../contracts/log.js";
import { SessionLog } from "../domain/log.js";
import { foldWhole } from "../domain/seed.js";
import { fold, initialFolds, Session } from "../domain/session.js";
import { emptySurface, Surface } from "../domain/surface.js";
import { jobsView, projectionsOf, remindersView, viewOf } from "../domain/views.js";
import { archivedEntries } from "./archived-pages.js";
import { fillPage } from "./page-fill.js";

/** Of all queries. */
export interface QueryArgs {
  readonly after?: number;
  readonly limit?: number;
  readonly from?: number;
  readonly to?: number;
  readonly requestId?: string;
}

/** A session that Temporal has forgotten, folded from its archived log. */
interface Folded {
  readonly run: string;
  readonly session: Session;
  readonly surface: Surface;
}

/** Answers the queries of sessions from their archived log alone; what was asked after last is kept folded. */
export class ArchivedViews {
  readonly #archive: Archive;
  #last: { readonly run: string; readonly folded: Promise<Folded> } | undefined;

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  /** A page of its log; the state is closed, however it ended. */
  async logPage(
    { session, segment, lastSeq }: ArchivedSession,
    after: number,
    limit?: number,
  ): Promise<LogPage> {
    const whole = { segment, to: lastSeq };
    const entries = await archivedEntries(this.#archive, session, whole, after, limit);
    return { entries, lastSeq, state };
  }

  async surface(ended: ArchivedSession, { from, to }: QueryArgs): Promise<SurfacePage> {
    const { nodes, length } = (await this.#folded(ended)).surface;
    return { nodes: await fillPage(nodes.slice(from, to)), length };
  }

  /** As the session answered when it ran, but that it is closed. */
  async answer(
    ended: ArchivedSession,
    name: string,
    { requestId }: QueryArgs,
  ): Promise<SessionView | Projections | JobsView | RemindersView> {
    const { session } = await this.#folded(ended);
    switch (name) {
      case queries.view:
        return { ...viewOf(session, ended.title), state };
      case queries.projections:
        return projectionsOf(session);
      case queries.jobs:
        return { ...jobsView(session), state };
      case queries.reminders: {
        const query = requestId === undefined ? {} : { requestId };
        return { ...remindersView(session, query), live: false };
      }
      default:
        throw new Error(`no archived session answers ${name}`);
    }
  }

  #folded(ended: ArchivedSession): Promise<Folded> {
    const { run } = ended;
    if (this.#last?.run === run) return this.#last.folded;
    const last = { run, folded: foldArchived(this.#archive, ended) };
    this.#last = last;
    last.folded.catch(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return last.folded;
  }
}

const state = "closed";

/** Keeps of the log what the views need: the folds, and what the model saw last. */
async function foldArchived(archive: Archive, ended: ArchivedSession): Promise<Folded> {
  const { session: id, run, segment, lastSeq, closedAt } = ended;
  const chain = await archive.chain(id, segment);
  const seedTo = chain.find((header) => header.run === "seed")?.to ?? -1;
  const seed: LogEntry[] = [];
  let folds = initialFolds;
  const surface = new Surface();
  for await (const entry of archive.entries(id, segment, -1)) {
    folds = entry.seq === seedTo + 1 ? foldWhole(folds, entry, seed) : fold(folds, entry);
    if (entry.seq <= seedTo) seed.push(entry);
    surface.apply(entry);
  }
  const log = new SessionLog({ seq: lastSeq + 1, turnOpen: false, surface: emptySurface });
  return { run, surface, session: new Session(id, () => closedAt, undefined, { log, folds }) };
}
