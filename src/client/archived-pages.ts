import type { Archive, SegmentHeader } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { ArchivedUpTo, LogPage, SurfaceNode, SurfacePage } from "../contracts/session.js";
import { isArchived } from "../domain/archived-nodes.js";
import { messageOf } from "../domain/surface.js";
import { fillPage } from "./page-fill.js";

/** The page a session answered, with what is archived of it from the archive. ARCHIVE_UNAVAILABLE, LOG_CORRUPT. */
export async function filledLogPage(
  archive: Archive | undefined,
  session: string,
  page: LogPage,
  after: number,
  limit?: number,
): Promise<LogPage> {
  const { archived, ...rest } = page;
  if (archived === undefined || page.entries.length > 0) return rest;
  const read = present(archive, session, `entries ${after + 1} to ${archived.to}`);
  return { ...rest, entries: await archivedEntries(read, session, archived, after, limit) };
}

/** At most a page of the entries after `after`, up to the end of `archived`. */
export async function archivedEntries(
  archive: Archive,
  session: string,
  { segment, to }: ArchivedUpTo,
  after: number,
  limit?: number,
): Promise<readonly LogEntry[]> {
  if (after >= to) return [];
  const entries = await fillPage(archive.entries(session, segment, after), limit);
  if (entries[0]?.seq === after + 1 && (entries.at(-1)?.seq ?? 0) <= to) return entries;
  throw new LonghaulError(
    "LOG_CORRUPT",
    `the archive of session ${session} does not have entry ${after + 1} up to ${to} as the session says; bring segment ${segment} back from a backup`,
  );
}

/** The surface page a session answered, with the messages that are archived; as many nodes as fit a page. As `filledLogPage`. */
export async function filledSurfacePage(
  archive: Archive | undefined,
  session: string,
  page: SurfacePage,
): Promise<SurfacePage> {
  const { archived, nodes, length } = page;
  const first = nodes.find(isArchived);
  if (archived === undefined || first === undefined) return { nodes, length };
  const read = present(archive, session, `the message of entry ${first.seq}`);
  const oldest = nodes.reduce(
    (least, node) => (isArchived(node) ? Math.min(least, node.seq) : least),
    Infinity,
  );
  const links = await linksOf(read, session, archived.segment, oldest);
  async function* filled(): AsyncGenerator<SurfaceNode> {
    for (const node of nodes)
      yield isArchived(node) ? await nodeOf(read, session, links, node.seq) : node;
  }
  return { nodes: await fillPage(filled()), length };
}

interface Link {
  readonly name: string;
  readonly header: SegmentHeader;
}

/** The newest first. */
async function linksOf(
  archive: Archive,
  session: string,
  segment: string,
  oldest: number,
): Promise<readonly Link[]> {
  let name = segment;
  return (await archive.chain(session, segment, oldest)).map((header) => {
    const link = { name, header };
    name = header.previous;
    return link;
  });
}

async function nodeOf(
  archive: Archive,
  session: string,
  links: readonly Link[],
  seq: number,
): Promise<SurfaceNode> {
  const link = links.find(({ header }) => header.from <= seq && seq <= header.to);
  const segment = link && (await archive.segment(session, link.name));
  const entry = segment?.entries[seq - segment.header.from];
  const message = entry && messageOf(entry);
  if (message !== undefined) return { seq, message };
  throw new LonghaulError(
    "LOG_CORRUPT",
    `the archive of session ${session} has no message as entry ${seq}; bring it back from a backup`,
  );
}

function present(archive: Archive | undefined, session: string, what: string): Archive {
  if (archive !== undefined) return archive;
  throw new LonghaulError(
    "ARCHIVE_UNAVAILABLE",
    `${what} of session ${session} are in the store, and this client was connected without one; give LonghaulClient.connect the store of the workers`,
  );
}
