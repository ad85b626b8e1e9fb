import type { JobOwner } from "../contracts/jobs.js";
import type { SeenId } from "./inbox.js";
import type { JobRecord, JobsState } from "./jobs.js";
import { packRepeats, readRepeats, unpackRepeats } from "./pack-repeats.js";
import { packRows, unpackRows } from "./pack-rows.js";
import { isFields, type Fields } from "./reference-entry.js";

const parts = ["log", "inbox", "jobs", "schedule", "todo", "state"] as const;

/** What a run hands to the next. Plain JSON; read with `restoreSession` alone, which takes nothing for granted. */
export type Checkpoint = {
  readonly [part in (typeof parts)[number]]: unknown;
} & {
  readonly v: 1 | 2;
  readonly session: string;
  /** Of version 2: what its parts tell once. */
  readonly repeats?: unknown;
};

/** Version 2 of one of version 1: lists as columns, and what comes again told once. */
export function packCheckpoint(checkpoint: Checkpoint): Checkpoint {
  const { log, inbox, jobs, schedule, todo, state } = checkpoint;
  const packed = packRepeats({ log, inbox, jobs, schedule, todo, state });
  return {
    v: 2,
    session: checkpoint.session,
    ...(packRows(packed.value) as Omit<Checkpoint, "v" | "session">),
    repeats: packRows(packed.repeats),
  };
}

/** Of any shape. A part that is damaged is left out, which its own reader then tells. */
export function unpackCheckpoint(given: Fields): Fields {
  if (given["v"] !== 2) return given;
  const known = readRepeats(unpackRows(given["repeats"])) ?? [];
  const { v, session } = given;
  const read: { [part: string]: unknown } = { v, session };
  for (const part of parts) {
    const value = unpackRepeats(unpackRows(given[part]), known);
    if (value !== undefined) read[part] = value;
  }
  return read;
}

/** The ids of the window as rows: there are up to a thousand, and each run's history holds them twice. */
export function packSeen(seen: readonly SeenId[]): readonly (readonly [string, string, number])[] {
  return seen.map(({ id, key, seq }) => [id, key, seq]);
}

/** Also reads rows that are objects, as they were first written. */
export function unpackSeen(rows: readonly unknown[]): readonly unknown[] {
  return rows.map((row) => {
    if (!Array.isArray(row)) return row;
    const [id, key, seq] = row;
    return { id, key, seq };
  });
}

/** Each owner told once: a session has up to a thousand jobs, and nearly all are its own. */
export function packJobs({ counters, jobs }: JobsState): object {
  const places = new Map<string, number>();
  const owners: JobOwner[] = [];
  const placeOf = (owner: JobOwner): number => {
    const key = JSON.stringify([owner.session, owner.token]);
    const place = places.get(key) ?? owners.push(owner) - 1;
    places.set(key, place);
    return place;
  };
  const packed = jobs.map((job: JobRecord) =>
    job.owner === undefined ? job : { ...job, owner: placeOf(job.owner) },
  );
  return { counters, owners, jobs: packed };
}

/** Of the right shape; undefined when a job names an owner that is not there. Also reads jobs that hold their owner themselves. */
export function unpackJobs({ owners = [], jobs, ...rest }: Fields): Fields | undefined {
  const known = owners as readonly unknown[];
  const all = (jobs as readonly Fields[]).map((job) =>
    typeof job["owner"] === "number" ? { ...job, owner: known[job["owner"]] } : job,
  );
  const lacks = all.some((job) => Object.hasOwn(job, "owner") && !isFields(job["owner"]));
  return lacks ? undefined : { ...rest, jobs: all };
}
