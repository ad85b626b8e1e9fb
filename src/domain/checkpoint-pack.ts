import type { JobOwner } from "../contracts/jobs.js";
import type { SeenId } from "./inbox.js";
import type { JobRecord, JobsState } from "./jobs.js";
import { isFields, type Fields } from "./reference-entry.js";

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
