import { setTimeout as delay } from "node:timers/promises";
import { isGrpcServiceError, WorkflowNotFoundError, type Client } from "@temporalio/client";
import type { Archive, ArchivedSession } from "../contracts/archive.js";
import type { LogEntry } from "../contracts/log.js";
import { queries } from "../contracts/names.js";
import type { LogPage, LogQuery, QueryOfEnded, SessionView } from "../contracts/session.js";
import { isTransient } from "./session-source.js";

/** The run in which a session ended. */
export interface EndedRun {
  readonly session: string;
  readonly run: string;
  readonly status: ArchivedSession["status"];
  /** Epoch ms. */
  readonly closedAt: number;
}

export interface ArchiveEndedDeps {
  readonly client: Client;
  readonly archive: Archive;
  readonly signal: AbortSignal;
}

/** Largest segment, UTF-8 bytes of JSON, unless one entry alone is larger. */
const segmentBytes = 4 * 1024 * 1024;
const pageEntries = 1_000;
/** Of one call: a worker that can answer runs in this process. */
const callDeadlineMs = 10_000;
/** A query may be lost with a worker, and while one evicts the run. */
const maxAttempts = 3;
const pauseMs = 200;

/**
 * Archives what is left of an ended session's log, then marks the session as archived. Whoever does the same at the same time
 * writes the same, and what an interrupted one left is completed. A run that is not the session's last one (any more), or that is
 * deleted meanwhile, is left alone.
 */
export async function archiveEnded(deps: ArchiveEndedDeps, ended: EndedRun): Promise<void> {
  const { archive } = deps;
  const { session, run, status, closedAt } = ended;
  if ((await archive.ended(session))?.run === run || !(await isLast(deps, ended))) return;
  const view = await ask<SessionView>(deps, ended, queries.view, {});
  const first = await page(deps, ended, -1);
  if (first.lastSeq < 0) return;
  const { archived } = first;
  // What the run says that is archived has to be here, else the archive has a hole.
  if (archived !== undefined) await archive.chain(session, archived.segment, archived.to);
  let segment = archived?.segment ?? "";
  for await (const entries of parts(deps, ended, first)) {
    const [from, to] = [entries[0]?.seq ?? 0, entries.at(-1)?.seq ?? 0];
    // One that was purged meanwhile is not to come back.
    if (!(await isLast(deps, ended))) return;
    segment = await archive.write({ v: 1, session, run, from, to, previous: segment }, entries);
  }
  await archive.mark({
    v: 1,
    session,
    run,
    segment,
    lastSeq: first.lastSeq,
    status,
    ...(view.title === undefined ? {} : { title: view.title }),
    startedAt: view.header.createdAt,
    closedAt,
  });
}

/** What is not archived, cut the same way whoever does it. */
async function* parts(
  deps: ArchiveEndedDeps,
  ended: EndedRun,
  first: LogPage,
): AsyncGenerator<readonly LogEntry[]> {
  let part: LogEntry[] = [];
  let bytes = 0;
  for await (const entry of entriesOf(deps, ended, first)) {
    const size = Buffer.byteLength(JSON.stringify(entry)) + 1;
    if (part.length > 0 && bytes + size > segmentBytes) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(entry);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

async function* entriesOf(
  deps: ArchiveEndedDeps,
  ended: EndedRun,
  first: LogPage,
): AsyncGenerator<LogEntry> {
  yield* first.entries;
  for (let after = first.entries.at(-1)?.seq ?? first.archived?.to ?? -1; after < first.lastSeq;) {
    const { entries } = await page(deps, ended, after);
    if (entries[0]?.seq !== after + 1)
      throw new Error(`its log has no entry ${after + 1} of ${first.lastSeq}`);
    yield* entries;
    after = entries.at(-1)?.seq ?? after;
  }
}

function page(deps: ArchiveEndedDeps, ended: EndedRun, after: number): Promise<LogPage> {
  const query: LogQuery = { after, limit: pageEntries };
  return ask<LogPage>(deps, ended, queries.log, query);
}

async function ask<T>(
  { client, signal }: ArchiveEndedDeps,
  { session, run }: EndedRun,
  name: string,
  argument: object,
): Promise<T> {
  const handle = client.workflow.getHandle(session, run);
  for (let attempt = 1; ; attempt++) {
    try {
      return await bounded(client, signal, () =>
        handle.query<T, [QueryOfEnded]>(name, { ...argument, ended: true }),
      );
    } catch (error) {
      if (signal.aborted || attempt === maxAttempts || !isTransient(error)) throw error;
      await delay(attempt * pauseMs, undefined, { signal });
    }
  }
}

async function isLast(
  { client, signal }: ArchiveEndedDeps,
  { session, run }: EndedRun,
): Promise<boolean> {
  try {
    const handle = client.workflow.getHandle(session);
    return (await bounded(client, signal, () => handle.describe())).runId === run;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

function bounded<T>(client: Client, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const forward = (): void => own.abort();
  signal.addEventListener("abort", forward, { once: true });
  return client
    .withDeadline(Date.now() + callDeadlineMs, () => client.withAbortSignal(own.signal, call))
    .finally(() => signal.removeEventListener("abort", forward));
}

/** Of google.rpc.Code. */
const missingCodes = new Set([5]);

function isNotFound(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof WorkflowNotFoundError) return true;
    if (isGrpcServiceError(cause)) return missingCodes.has(cause.code);
  }
  return false;
}
