import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import * as z from "zod";
import type { EventType, LogEntry } from "../../contracts/log.js";
import { isReplacement } from "../render/notes.js";

const Seen = z.array(z.tuple([z.string(), z.int()]));
const kept = 200;

/** The last entry of a session that a chat of this data directory has shown; undefined when there was none. */
export async function lastSeen(home: string, session: string): Promise<number | undefined> {
  return (await read(home)).find(([id]) => id === session)?.[1];
}

/** Remembers it; where that is not possible coming back shows less well what is new. */
export async function rememberSeen(home: string, session: string, seq: number): Promise<void> {
  const others = (await read(home)).filter(([id]) => id !== session);
  const draft = `${fileOf(home)}.${randomUUID()}`;
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
    const text = JSON.stringify([[session, seq], ...others].slice(0, kept));
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, fileOf(home));
  } catch {
    // Only a convenience.
  }
}

export interface CatchUp {
  /** Entries from this index on are shown. */
  readonly from: number;
  /** Turns before it. */
  readonly earlierTurns: number;
  /** Index of the first entry worth showing that came while nobody looked; undefined when there is none. */
  readonly fresh: number | undefined;
}

/** What a person would miss. */
const visible: ReadonlySet<EventType> = new Set<EventType>([
  "user/message",
  "assistant/message",
  "tool/result",
  "todo/write",
  "turn/end",
  "session/close",
]);

/** Turns shown for context on coming back. */
const contextTurns = 3;

/** What of a log is shown on coming back: all that is new, and at least the last turns. */
export function catchUp(entries: readonly LogEntry[], seen: number | undefined): CatchUp {
  const starts = entries.flatMap((entry, index) => (entry.type === "turn/start" ? [index] : []));
  const fresh =
    seen === undefined
      ? -1
      : entries.findIndex(
          (entry) => entry.seq > seen && visible.has(entry.type) && !isReplacement(entry),
        );
  const context = starts.at(-contextTurns) ?? 0;
  const turnOfFresh = fresh < 0 ? context : (starts.findLast((index) => index <= fresh) ?? 0);
  const from = Math.min(context, turnOfFresh);
  return {
    from: starts.includes(from) && from !== starts[0] ? from : 0,
    earlierTurns: starts.filter((index) => index < from).length,
    fresh: fresh > 0 ? fresh : undefined,
  };
}

function fileOf(home: string): string {
  return join(home, "chat-seen.json");
}

async function read(home: string): Promise<readonly (readonly [string, number])[]> {
  try {
    return Seen.parse(JSON.parse(await readFile(fileOf(home), "utf8")));
  } catch {
    return [];
  }
}
