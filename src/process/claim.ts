import { createHash, randomUUID } from "node:crypto";
import {
  mkdir,
  open,
  readFile,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";

import type { ToolOutcome } from "../contracts/tools.js";
import { endProcesses } from "./end-group.js";
import { type CallMarks, markVariables } from "./environment.js";
import { type ProcessIdentity, parseIdentity } from "./identity.js";
import { type ProcessTable, processTable } from "./process-table.js";

/**
 * One directory per tool call that must not run twice (design D6), `<home>/host/claims/<session>/<claim>/`:
 * `identity.json` (the command's process), `result.json` (its outcome), `sealed` (it may not start any more).
 */
export interface Claim {
  readonly directory: string;
}

export type OpenedClaim =
  | { readonly kind: "new"; readonly claim: Claim }
  /** An earlier start finished: its outcome, not a second run. */
  | { readonly kind: "recorded"; readonly outcome: ToolOutcome }
  /** An earlier start is lost or still at it, or the claim was sealed. */
  | { readonly kind: "taken" };

export function claimDirectory(marks: CallMarks): string {
  return join(claimsRoot(marks.home), escapeName(marks.sessionId), escapeName(marks.claim));
}

/** Takes the claim; only one caller ever gets `new`, also over processes and restarts. */
export async function openClaim(marks: CallMarks): Promise<OpenedClaim> {
  const directory = claimDirectory(marks);
  if (await createClaim(directory)) return { kind: "new", claim: { directory } };
  const outcome = await recordedOutcome(directory);
  return outcome === undefined ? { kind: "taken" } : { kind: "recorded", outcome };
}

/** Writes the outcome in whole or not at all; call it before the outcome is returned to anyone. */
export async function recordOutcome(claim: Claim, outcome: ToolOutcome): Promise<void> {
  await writeWhole(join(claim.directory, "result.json"), JSON.stringify(outcome), false);
}

/** Writes who runs the command. False when the claim was sealed meanwhile: then it must not run. */
export async function recordIdentity(
  directory: string,
  identity: ProcessIdentity,
): Promise<boolean> {
  await writeWhole(join(directory, "identity.json"), JSON.stringify(identity), true);
  // The sealer writes its mark first and reads the identity second, so one of the two sees the other.
  return !(await isSealed(directory));
}

/** Bars the claim from ever starting and ends what it runs. False when a process could not be ended. */
export async function sealClaim(
  marks: CallMarks,
  table: ProcessTable = processTable,
): Promise<boolean> {
  const directory = claimDirectory(marks);
  await createClaim(directory);
  await writeFile(join(directory, "sealed"), "");
  await syncPath(directory);
  const identity = await readFile(join(directory, "identity.json"), "utf8").then(
    parseIdentity,
    () => undefined,
  );
  if (identity === undefined) return await endProcesses({ marks }, undefined, table);
  const ours = await groupIsOurs(identity, marks, table);
  return await endProcesses(ours ? { group: identity.pid, marks } : { marks }, undefined, table);
}

const day = 24 * 3_600_000;
const week = 7 * day;

/** Removes claims that are finished or sealed and older than `maxAgeMs`; returns how many. */
export async function sweepClaims(
  home: string,
  maxAgeMs: number = week,
  now: number = Date.now(),
): Promise<number> {
  let removed = 0;
  for (const session of await entries(claimsRoot(home))) {
    const sessionDirectory = join(claimsRoot(home), session);
    for (const name of await entries(sessionDirectory)) {
      const closedAt = await closedSince(join(sessionDirectory, name));
      if (closedAt === undefined || now - closedAt <= maxAgeMs) continue;
      await rm(join(sessionDirectory, name), { recursive: true, force: true });
      removed += 1;
    }
    await rmdir(sessionDirectory).catch(ignore);
  }
  return removed;
}

/** Sweeps a home when it is called first, and then no more often than once a day: for a worker that runs for months. */
export function createClaimSweep(
  home: string,
  clock: () => number = Date.now,
): () => Promise<void> {
  let sweptAt = -Infinity;
  return async () => {
    const now = clock();
    if (now - sweptAt < day) return;
    sweptAt = now;
    await sweepClaims(home, week, now);
  };
}

function claimsRoot(home: string): string {
  return join(home, "host", "claims");
}

/** Readable, and never the same for two ids, also where names ignore case. */
export function escapeName(id: string): string {
  const readable = id.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 80);
  return `${readable}~${createHash("sha256").update(id).digest("hex").slice(0, 16)}`;
}

/** Makes a claim's directory; true for the one caller that made it. */
export async function createClaim(directory: string): Promise<boolean> {
  const session = join(directory, "..");
  for (let attempt = 0; ; attempt += 1) {
    await mkdir(session, { recursive: true, mode: 0o700 });
    try {
      await mkdir(directory, { mode: 0o700 });
      // Else a power cut could forget the claim, and the call would run again.
      await syncPath(session);
      return true;
    } catch (error) {
      if (hasCode(error, "EEXIST")) return false;
      // A sweep took the emptied session directory in between.
      if (!hasCode(error, "ENOENT") || attempt >= 10) throw error;
    }
  }
}

async function groupIsOurs(
  identity: ProcessIdentity,
  marks: CallMarks,
  table: ProcessTable,
): Promise<boolean> {
  if ((await table.bootId()) !== identity.bootId) return false;
  const startTime = await table.startTime(identity.pid);
  if (startTime !== undefined) return startTime === identity.startTime;
  const members = new Set(await table.members(identity.pid));
  return (await table.carrying(markVariables(marks))).some((pid) => members.has(pid));
}

async function recordedOutcome(directory: string): Promise<ToolOutcome | undefined> {
  try {
    const value: ToolOutcome = JSON.parse(await readFile(join(directory, "result.json"), "utf8"));
    return Array.isArray(value.content) ? value : undefined;
  } catch {
    return undefined;
  }
}

async function isSealed(directory: string): Promise<boolean> {
  return await stat(join(directory, "sealed")).then(
    () => true,
    () => false,
  );
}

async function closedSince(directory: string): Promise<number | undefined> {
  for (const name of ["result.json", "sealed"]) {
    const facts = await stat(join(directory, name)).catch(ignore);
    if (facts !== undefined) return facts.mtimeMs;
  }
  return undefined;
}

/** Replaces a file in whole or not at all. */
export async function writeWhole(path: string, text: string, durable: boolean): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    if (durable) await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function entries(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch(() => []);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function ignore(): undefined {
  return undefined;
}
