import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { link, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { JsonObject } from "../contracts/header.js";
import type { JobOutcome } from "../contracts/jobs.js";
import { createClaim, escapeName, writeWhole } from "../process/claim.js";
import { identityOf, parseIdentity } from "../process/identity.js";
import type { JobKey } from "../process/jobs/spool.js";
import { processTable } from "../process/process-table.js";

/**
 * `<home>/host/bodies/<session>/<jobId>-<nonce>`: what is known on disk of one job whose body runs in a worker process.
 * `runner.<n>.json` are made exclusively: whoever makes the next one runs the body, or settles the job without it.
 */
export function bodyDirectory({ home, sessionId, jobId, nonce }: JobKey): string {
  return join(bodiesRoot(home), escapeName(sessionId), escapeName(`${jobId}-${nonce}`));
}

/** What was begun; written in whole, and never changed. */
export interface BodyJob extends Omit<JobKey, "home"> {
  readonly kind: string;
  readonly token: string;
  readonly input: JsonObject;
  readonly cwd?: string;
  readonly outsideWorkspace: boolean;
}

const names = { job: "job.json", outcome: "outcome.json", sealed: "sealed", kill: "kill.json" };

export function bodyHas(directory: string, file: keyof typeof names): boolean {
  return existsSync(join(directory, names[file]));
}

/** False: an earlier call has the claim. */
export async function claimBody(home: string, job: BodyJob): Promise<boolean> {
  const directory = bodyDirectory({ ...job, home });
  if (!(await createClaim(directory))) return false;
  await writeWhole(join(directory, names.job), JSON.stringify(job), true);
  return true;
}

/** Bars a claim that was never finished; makes it when there is none. */
export async function sealBody(directory: string): Promise<void> {
  await createClaim(directory);
  await writeFile(join(directory, names.sealed), "");
}

export async function readBodyJob(directory: string): Promise<BodyJob | undefined> {
  const value = await readJson(join(directory, names.job));
  if (typeof value !== "object" || value === null) return undefined;
  // It is this module's own record, written in whole.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return value as BodyJob;
}

export async function readBodyOutcome(directory: string): Promise<JobOutcome | undefined> {
  const value = await readJson(join(directory, names.outcome));
  if (typeof value !== "object" || value === null) return undefined;
  // It is this module's own record, written in whole.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return value as JobOutcome;
}

export async function writeBodyOutcome(directory: string, outcome: JobOutcome): Promise<void> {
  await writeWhole(join(directory, names.outcome), JSON.stringify(outcome), true);
}

/** When it was settled or sealed, epoch ms; undefined while it is open. */
export async function bodyFinishedAt(directory: string): Promise<number | undefined> {
  for (const name of [names.outcome, names.sealed]) {
    const facts = await stat(join(directory, name)).catch(() => undefined);
    if (facts !== undefined) return facts.mtimeMs;
  }
  return undefined;
}

/** Asks the process that runs the body to end it. */
export async function requestBodyKill(directory: string, reason?: string): Promise<void> {
  if (bodyHas(directory, "kill")) return;
  await writeWhole(join(directory, names.kill), JSON.stringify({ reason }), false);
}

export async function readBodyKill(directory: string): Promise<{ readonly reason?: string }> {
  const value = await readJson(join(directory, names.kill));
  const reason =
    typeof value === "object" && value !== null && "reason" in value ? value.reason : undefined;
  return typeof reason === "string" ? { reason } : {};
}

/** Who runs the body, or ran it last. */
export interface Runner {
  /** 0 when nobody ever did. */
  readonly turn: number;
  /** `mine`: this process; `alive`: another one. */
  readonly state: "none" | "mine" | "alive" | "gone";
}

export async function lastRunner(directory: string): Promise<Runner> {
  const turn = Math.max(0, ...turns(directory));
  if (turn === 0) return { turn, state: "none" };
  const text = await readFile(runnerPath(directory, turn), "utf8").catch(() => "");
  const identity = parseIdentity(text);
  const here =
    identity !== undefined &&
    identity.bootId === (await processTable.bootId()) &&
    JSON.parse(text).pidNamespace === (await pidNamespace()) &&
    identity.startTime === (await processTable.startTime(identity.pid));
  if (!here) return { turn, state: "gone" };
  return { turn, state: identity.pid === process.pid ? "mine" : "alive" };
}

/** Takes the turn after `turn`; true for one caller only, over all processes. */
export async function takeTurn(directory: string, turn: number): Promise<boolean> {
  const identity = await identityOf(process.pid);
  const temporary = join(directory, `runner.${randomUUID()}`);
  await writeFile(temporary, JSON.stringify({ ...identity, pidNamespace: await pidNamespace() }), {
    mode: 0o600,
  });
  try {
    await link(temporary, runnerPath(directory, turn + 1));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}

export interface BodySpool {
  readonly directory: string;
  /** Undefined while it is being claimed, or when the claim was left unfinished. */
  readonly job: BodyJob | undefined;
}

export async function listBodies(home: string): Promise<readonly BodySpool[]> {
  const found: BodySpool[] = [];
  for (const directory of await directories(home))
    found.push({ directory, job: await readBodyJob(directory) });
  return found;
}

/** Jobs that hold a place on this host: begun and not settled, whether their body runs right now or is still to be taken up. */
export async function countLiveBodies(home: string): Promise<number> {
  const all = await directories(home);
  return all.filter((one) => !bodyHas(one, "outcome") && !bodyHas(one, "sealed")).length;
}

async function directories(home: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const session of await entries(bodiesRoot(home)))
    for (const name of await entries(join(bodiesRoot(home), session)))
      found.push(join(bodiesRoot(home), session, name));
  return found;
}

function bodiesRoot(home: string): string {
  return join(home, "host", "bodies");
}

function runnerPath(directory: string, turn: number): string {
  return join(directory, `runner.${turn}.json`);
}

function turns(directory: string): readonly number[] {
  let files: string[];
  try {
    files = readdirSync(directory);
  } catch {
    return [];
  }
  return files.flatMap((name) => {
    const match = /^runner\.(\d{1,9})\.json$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
}

async function pidNamespace(): Promise<string> {
  return await readlink("/proc/self/ns/pid").catch(() => "");
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined;
  }
}

async function entries(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch(() => []);
}
