import { isOfThisBoot, type JobIdentity, readIdentity, supervisorAlive } from "./job-identity.js";
import { spoolDirectories, spoolHas } from "./spool.js";

/** By data directory and spool: who runs the job, or that it is over for good. Spools stay long after their jobs. */
const known = new Map<string, Map<string, JobIdentity | "over">>();

/** Jobs of this host that hold a place: started or being started, and not at their end. Reads each spool's identity once. */
export async function countLiveJobs(home: string): Promise<number> {
  const before = known.get(home) ?? new Map<string, JobIdentity | "over">();
  const after = new Map<string, JobIdentity | "over">();
  known.set(home, after);
  let live = 0;
  for (const directory of await spoolDirectories(home)) {
    const state = await look(directory, before.get(directory));
    if (state === undefined) continue;
    if (state !== "over") live += 1;
    if (state !== "starting") after.set(directory, state);
  }
  return live;
}

/** Undefined: nobody said yet what is to run. */
async function look(
  directory: string,
  seen: JobIdentity | "over" | undefined,
): Promise<JobIdentity | "over" | "starting" | undefined> {
  if (seen === "over" || spoolHas(directory, "end") || spoolHas(directory, "sealed")) return "over";
  const identity = seen ?? (await readIdentity(directory));
  if (identity === undefined) return spoolHas(directory, "job") ? "starting" : undefined;
  const alive =
    (seen !== undefined || (await isOfThisBoot(identity))) && (await supervisorAlive(identity));
  return alive ? identity : "over";
}
