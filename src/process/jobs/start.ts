import { spawn } from "node:child_process";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { createClaim, writeWhole } from "../claim.js";
import { graceMs } from "../end-group.js";
import { commandEnvironment, markVariables } from "../environment.js";
import { copierScript } from "./copier-script.js";
import { type JobIdentity, readIdentity } from "./job-identity.js";
import { leaseFile } from "./lease.js";
import { countLiveJobs } from "./live-jobs.js";
import { identityPatienceMs, sealSpool } from "./seal.js";
import { jobMarks, type JobKey, type Spool, spoolDirectory, spoolFiles } from "./spool.js";
import { supervisorScript } from "./supervisor-script.js";

export interface JobLimits {
  /** Bytes of output kept on this host until they are in the store, both streams together; at least 2 MiB, default 64 MiB. */
  readonly spoolBytes?: number;
  /** How long a job lives without a worker process on its host, ms, default 300 s. */
  readonly orphanGraceMs?: number;
  /** Live jobs of this host above which none is started, default 200. */
  readonly maxJobs?: number;
}

export interface StartJobInput extends JobKey {
  readonly kind: "bash";
  /** The owner's incarnation; it stands in the identity. */
  readonly token: string;
  readonly command: string;
  /** Absolute, existing. */
  readonly cwd: string;
  /** What the command inherits, without credentials; default this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
  readonly limits?: JobLimits;
}

export type StartedJob =
  | { readonly kind: "started"; readonly identity: JobIdentity }
  /** An earlier start took the claim, also one that is still at it: success, follow it. */
  | { readonly kind: "already" }
  | { readonly kind: "full"; readonly jobs: number }
  /** Nothing ran and nothing will; `detail` begins with `spawn failed:`. */
  | { readonly kind: "failed"; readonly detail: string };

const mebibyte = 1024 * 1024;
const defaultOrphanGraceMs = 300_000;

/**
 * Starts a shell job under a supervisor that outlives this process (spec/jobs J6, J23). The spool directory is the fence: of any
 * number of calls, also after a crash, one runs the command. Returns when the supervisor has written who runs it, or after 5 s.
 * Rejects only when the data directory cannot be written.
 */
export async function startJob(input: StartJobInput): Promise<StartedJob> {
  const spool: Spool = { directory: spoolDirectory(input), job: keyOf(input) };
  const { maxJobs = 200 } = input.limits ?? {};
  const taken = await inTurn(input.home, async () => {
    if (await exists(spool.directory)) return "already";
    const jobs = await countLiveJobs(input.home);
    if (jobs >= maxJobs) return jobs;
    return (await createClaim(spool.directory)) ? "new" : "already";
  });
  if (taken === "already") return { kind: "already" };
  if (taken !== "new") return { kind: "full", jobs: taken };
  const { kind, token, command, cwd, sessionId, jobId, nonce } = input;
  const orphanGraceMs = input.limits?.orphanGraceMs ?? defaultOrphanGraceMs;
  await writeWhole(
    join(spool.directory, spoolFiles.job),
    JSON.stringify({ sessionId, jobId, nonce, kind, token, command, cwd, orphanGraceMs }),
    true,
  );
  try {
    if (!(await stat(cwd)).isDirectory()) throw new Error(`${cwd} is no directory`);
    return { kind: "started", identity: await supervise(spool, input) };
  } catch (error) {
    await sealSpool(spool);
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: "failed", detail: `spawn failed: ${reason}` };
  }
}

async function supervise(spool: Spool, input: StartJobInput): Promise<JobIdentity> {
  const { spoolBytes = 64 * mebibyte, orphanGraceMs = defaultOrphanGraceMs } = input.limits ?? {};
  const marks = markVariables(jobMarks(spool.job));
  const args = [
    input.command,
    input.cwd,
    marks.LONGHAUL_CALL,
    marks.LONGHAUL_SESSION_ID,
    marks.LONGHAUL_HOME,
    JSON.stringify(input.token),
    // The open segments of both streams come on top.
    String(Math.max(2 * mebibyte, Math.floor(spoolBytes))),
    String(Math.ceil(orphanGraceMs)),
    leaseFile(input.home),
    String(graceMs),
    copierScript,
  ];
  // Without the marks: they are for the command's processes alone.
  const env = commandEnvironment(input.env ?? process.env, jobMarks(spool.job));
  for (const name of Object.keys(marks)) delete env[name];
  const log = await open(join(spool.directory, spoolFiles.log), "w", 0o600);
  let ended = false;
  try {
    await new Promise<void>((resolve, reject) => {
      const child = spawn("bash", ["-p", "-c", supervisorScript, "longhaul-job", ...args], {
        cwd: spool.directory,
        env: { ...env, PWD: spool.directory },
        stdio: ["ignore", "ignore", log.fd],
        detached: true,
      });
      child.once("error", reject);
      child.once("spawn", resolve);
      child.once("exit", () => {
        ended = true;
      });
      child.unref();
    });
  } finally {
    await log.close();
  }
  const deadline = Date.now() + identityPatienceMs;
  for (let pause = 5; ; pause = Math.min(pause * 2, 50)) {
    const over = ended || Date.now() > deadline;
    const identity = await readIdentity(spool.directory);
    if (identity !== undefined) return identity;
    if (over) throw new Error(await whyNot(spool, ended));
    await sleep(pause);
  }
}

async function whyNot(spool: Spool, ended: boolean): Promise<string> {
  const said = await readFile(join(spool.directory, spoolFiles.log), "utf8").catch(() => "");
  const line = said.trim().split("\n")[0] ?? "";
  if (line !== "") return line.slice(0, 300);
  return ended
    ? "the job's supervisor ended at once; check that mkfifo and dd are on PATH"
    : `the job's supervisor did not begin within ${identityPatienceMs / 1_000} s`;
}

const turns = new Map<string, Promise<unknown>>();

/** One after the other within this process, so that two starts do not both take the last place. */
async function inTurn<T>(home: string, work: () => Promise<T>): Promise<T> {
  const mine = (turns.get(home) ?? Promise.resolve()).then(work, work);
  turns.set(home, mine);
  try {
    return await mine;
  } finally {
    if (turns.get(home) === mine) turns.delete(home);
  }
}

function keyOf({ home, sessionId, jobId, nonce }: JobKey): JobKey {
  return { home, sessionId, jobId, nonce };
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
