import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { SessionConfig } from "../../src/contracts/config.js";
import { readIdentity } from "../../src/process/jobs/job-identity.js";
import { listSpools, spoolDirectory } from "../../src/process/jobs/spool.js";

export interface FleetJob {
  readonly session: SessionClient;
  readonly id: string;
  readonly pid: number;
}

export interface Fleet {
  readonly running: readonly FleetJob[];
  /** Why others did not start. */
  readonly unstarted: readonly string[];
}

/** Real shell jobs of many sessions, which print a line a second and end by TERM. */
export class JobFleet {
  readonly #client: LonghaulClient;
  readonly #config: SessionConfig;
  /** Where each command notes its process id. */
  readonly #notes: string;
  readonly sessions: SessionClient[] = [];
  readonly #started: {
    readonly session: SessionClient;
    readonly id: string;
    readonly note: string;
  }[] = [];

  constructor(client: LonghaulClient, config: SessionConfig, notes: string) {
    this.#client = client;
    this.#config = config;
    this.#notes = notes;
  }

  async open(sessions: number): Promise<void> {
    const open = async (): Promise<void> => {
      while (this.sessions.length + opening < sessions) {
        opening++;
        const session = await this.#client.createSession({ config: this.#config });
        opening--;
        this.sessions.push(session);
      }
    };
    let opening = 0;
    await Promise.all(Array.from({ length: 8 }, open));
  }

  /** Starts jobs in all sessions at once. Resolves when every command runs, or its job has ended without. */
  async start(jobs: number): Promise<Fleet> {
    await Promise.all(
      Array.from({ length: jobs }, async (_, index) => {
        const session = this.sessions[index % this.sessions.length];
        if (session === undefined) throw new Error("there are no sessions");
        const note = `job-${index}`;
        const command = `echo $$ >'${join(this.#notes, note)}'; exec 3<> <(:); while :; do echo "line $((n += 1))"; read -r -t 1 -u 3; done`;
        const { id } = await session.startJob({ kind: "bash", input: { command } });
        this.#started.push({ session, id, note });
      }),
    );
    let unstarted: readonly string[] = [];
    for (let looks = 1; (await readdir(this.#notes)).length + unstarted.length < jobs; looks++) {
      await sleep(20);
      if (looks % 250 === 0) unstarted = await this.#ended();
    }
    const notes = new Set(await readdir(this.#notes));
    const running = this.#started.filter(({ note }) => notes.has(note));
    return {
      unstarted,
      running: await Promise.all(
        running.map(async ({ session, id, note }) => ({
          session,
          id,
          pid: await this.#pid(note),
        })),
      ),
    };
  }

  /** How jobs ended before they ran. */
  async #ended(): Promise<readonly string[]> {
    const views = await Promise.all(this.sessions.map((session) => session.jobs()));
    return views.flatMap(({ jobs }) =>
      jobs.flatMap(({ status, detail }) => (status === "failed" ? [detail ?? status] : [])),
    );
  }

  /** Ends what still runs. */
  async close(): Promise<void> {
    await Promise.all(this.sessions.map((session) => session.close()));
  }

  async #pid(note: string): Promise<number> {
    for (;;) {
      const text = await readFile(join(this.#notes, note), "utf8");
      if (text.endsWith("\n")) return Number(text);
      await sleep(10);
    }
  }
}

/** From the kill to the process gone, ms. */
export async function killAndWait({ session, id, pid }: FleetJob): Promise<number> {
  const asked = performance.now();
  const killed = session.killJob(id);
  while (isThere(pid)) await sleep(5);
  const took = performance.now() - asked;
  await killed;
  return took;
}

/** Memory of the supervisors of this host's jobs, without their commands: a proportional share of shared pages. */
export async function supervisorBytes(home: string): Promise<number> {
  const supervisors = new Set<string>();
  const commands = new Set<string>();
  for (const { job } of await listSpools(home)) {
    const identity = await readIdentity(spoolDirectory(job));
    if (identity === undefined) continue;
    supervisors.add(String(identity.supervisor.pid));
    commands.add(String(identity.pid));
  }
  let bytes = 0;
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
    const [, , group = "", session = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (!supervisors.has(session) || commands.has(group)) continue;
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
    bytes += Number(/^Pss:\s+(\d+) kB/mu.exec(rollup)?.[1] ?? 0) * 1024;
  }
  return bytes;
}

/** A process that nobody has collected yet is gone. */
function isThere(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !/^\) [ZX]/u.test(stat.slice(stat.lastIndexOf(")")));
  } catch {
    return false;
  }
}
