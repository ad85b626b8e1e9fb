import type { Archive, SegmentHeader } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { Store } from "../contracts/store.js";
import { damaged, readWhole, writeWhole } from "./archive-file.js";
import { listEnded, markEnded, readEnded } from "./archived-sessions.js";
import { openSegments, streamOf } from "./segments.js";

interface Link {
  readonly name: string;
  readonly header: SegmentHeader;
}

/**
 * The archive in a store. Keeps headers and the segments used last in memory, so that a process opens one and shares it. A segment
 * is proved by its name each time it is read from the store; headers that were read alone only show the way.
 */
export function openArchive(store: Store): Archive {
  const segments = openSegments(store);

  /** Segments from `name` back to the one that has `until`; none when it is after them all. */
  async function walk(session: string, name: string, until: number): Promise<readonly Link[]> {
    const links: Link[] = [];
    try {
      for (let at = name; at !== "";) {
        const header = await segments.header(session, at);
        const after = links.at(-1);
        if (after === undefined && header.to < until) break;
        if (after !== undefined && header.to !== after.header.from - 1) {
          const problem = `it ends with entry ${header.to}, and ${streamOf(after.name)} that follows it begins with ${after.header.from}`;
          throw damaged(store, session, streamOf(at), problem);
        }
        links.push({ name: at, header });
        if (header.from <= until) break;
        at = header.previous;
      }
      return links;
    } catch (error) {
      segments.forget(session);
      // Was it led astray by a damaged header?
      for (const link of links.slice(-1)) await segments.read(session, link.name);
      throw error;
    }
  }

  /** Entries of a link, whose header is only now proved. */
  async function entriesOf(session: string, link: Link): Promise<readonly LogEntry[]> {
    try {
      const { header, entries } = await segments.read(session, link.name);
      const { from, to, previous } = link.header;
      if (header.from === from && header.to === to && header.previous === previous) return entries;
      throw damaged(store, session, streamOf(link.name), "its first line was another a moment ago");
    } catch (error) {
      segments.forget(session);
      throw error;
    }
  }

  return {
    write: (header, entries) => segments.write(header, entries),
    segment: (session, name) => segments.read(session, name),
    async *entries(session, name, after) {
      const links = await walk(session, name, Math.max(0, after + 1));
      for (const link of links.toReversed()) {
        for (const entry of await entriesOf(session, link)) if (entry.seq > after) yield entry;
      }
    },
    async entry(session, name, seq) {
      const last = (await walk(session, name, seq)).at(-1);
      const entry =
        last === undefined ? undefined : (await entriesOf(session, last))[seq - last.header.from];
      if (entry !== undefined) return entry;
      throw new LonghaulError(
        "ARCHIVE_UNAVAILABLE",
        `entry ${seq} of session ${session} is not archived up to segment ${name === "" ? "(none)" : name}; read it from the session itself`,
      );
    },
    async chain(session, name, until = 0) {
      return (await walk(session, name, until)).map(({ header }) => header);
    },
    putBody: (session, name, json) => writeWhole(store, session, bodyOf(name), json),
    async bodies(session, names) {
      const found = new Map<string, string>();
      const fetch = async (name: string): Promise<void> => {
        if ((await store.size(session, bodyOf(name))) === undefined) return;
        found.set(name, (await readWhole(store, session, bodyOf(name))).toString("utf8"));
      };
      await Promise.all(names.map(fetch));
      return found;
    },
    mark: (ended) => markEnded(store, ended),
    ended: (session) => readEnded(store, session),
    list: () => listEnded(store),
  };
}

function bodyOf(name: string): string {
  return `body/${name}`;
}
