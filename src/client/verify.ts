import type { Client } from "@temporalio/client";
import type { Archive, ArchivedSession, SegmentHeader } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { queries } from "../contracts/names.js";
import type { LogPage, Projections, SessionView } from "../contracts/session.js";
import { canonicalJson } from "../domain/canonical.js";
import { LogVerifier, showsOtherThan } from "../domain/verify-log.js";
import type { Bounded } from "./attempts.js";
import { runHistories, type RunHistory } from "./run-histories.js";
import type { Wire } from "./wire.js";

/** One check of a session's log, e.g. `segments`; `text` says what was counted, or the first thing that is wrong. */
export interface VerifyCheck {
  readonly name: "histories" | "segments" | "archives" | "log" | "model calls" | "session";
  readonly ok: boolean;
  readonly text: string;
}

export interface VerifyReport {
  readonly ok: boolean;
  /** In the order they were made; the last one is the first that failed. */
  readonly checks: readonly VerifyCheck[];
}

export interface VerifyDeps {
  readonly client: Client;
  readonly bounds: Bounded;
  /** Straight to Temporal: what it shows must not come from the archive. */
  readonly wire: Wire;
  /** With nothing in its memory; absent: this client has no store. */
  readonly archive: Archive | undefined;
  readonly timeoutMs: number;
}

/**
 * Holds the archive, the running session and the histories that Temporal still has against each other (design D8). Rejects for
 * what cannot be read at all (SESSION_NOT_FOUND, NO_WORKER, STORE_UNAVAILABLE); what does not fit is a check that failed.
 */
export async function verifySession(deps: VerifyDeps, session: string): Promise<VerifyReport> {
  const checks: VerifyCheck[] = [];
  try {
    for await (const check of checksOf(deps, session)) checks.push(check);
    return { ok: true, checks };
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error;
    return {
      ok: false,
      checks: [...checks, { name: error.check, ok: false, text: error.message }],
    };
  }
}

class Mismatch extends Error {
  readonly check: VerifyCheck["name"];

  constructor(check: VerifyCheck["name"], text: string) {
    super(text);
    this.check = check;
  }
}

async function* checksOf(
  deps: VerifyDeps,
  session: string,
): AsyncGenerator<VerifyCheck, void, undefined> {
  const runs: RunHistory[] = [];
  const { client, bounds, timeoutMs } = deps;
  for await (const run of runHistories(client, bounds, session, timeoutMs)) runs.push(run);
  yield passed("histories", historiesText(runs));

  const ended = await deps.archive?.ended(session);
  // Rejects: there is no such session.
  if (runs.length === 0 && ended === undefined) await deps.wire.record(session);
  const shown = runs.length === 0 ? undefined : await shownNow(deps.wire, session, ended);
  const tip =
    ended === undefined ? shown?.page.archived : { segment: ended.segment, to: ended.lastSeq };
  const chain = await readChain(deps, session, tip);
  yield passed(
    "segments",
    chain.length === 0
      ? "none: nothing of the log is archived"
      : `${chain.length}, entries 0 to ${chain.at(-1)?.header.to ?? 0}, each what its name says`,
  );
  const verifier = new LogVerifier(runs.toReversed().flatMap(({ calls }) => calls));
  const entries = entriesOf(deps, session, chain, shown?.projections.asOfSeq);
  for await (const entry of entries) {
    const taken = verifier.take(entry);
    if (!taken.ok) throw new Mismatch("log", taken.message);
  }
  if (tip !== undefined && verifier.lastSeq < tip.to)
    throw new Mismatch("log", `it ends with entry ${verifier.lastSeq}, and should with ${tip.to}`);
  yield passed("log", `entries 0 to ${verifier.lastSeq}, each appends to those before it`);
  yield passed("archives", checkArchives(runs, chain, verifier));
  if (verifier.mismatch !== undefined) throw new Mismatch("model calls", verifier.mismatch);
  yield passed("model calls", `${verifier.calls} rebuilt from the log, as the histories have them`);

  if (shown === undefined) {
    yield passed("session", "it has ended and does not answer: nothing to hold its log against");
    return;
  }
  const other = showsOtherThan(verifier.session(session), shown);
  if (other !== undefined) throw new Mismatch("session", other);
  if (ended !== undefined) await compareRun(deps.wire, session, shown, verifier);
  yield passed("session", `it shows what its log says up to entry ${verifier.lastSeq}`);
}

function passed(name: VerifyCheck["name"], text: string): VerifyCheck {
  return { name, ok: true, text };
}

function historiesText(runs: readonly RunHistory[]): string {
  const events = runs.reduce((sum, run) => sum + run.events, 0);
  const calls = runs.reduce((sum, run) => sum + run.calls.length, 0);
  const archives = runs.reduce((sum, run) => sum + run.archives.length, 0);
  return `${runs.length} in Temporal with ${events} events, ${calls} model calls, ${archives} archived segments`;
}

interface Shown {
  readonly view: SessionView;
  readonly projections: Projections;
  readonly page: LogPage;
}

/** What the session shows at one moment: it may go on between two questions. Nothing when it has ended and no worker answers for it. */
async function shownNow(
  wire: Wire,
  session: string,
  ended: ArchivedSession | undefined,
): Promise<Shown | undefined> {
  try {
    return await askAtOnce(wire, session);
  } catch (error) {
    if (ended !== undefined && error instanceof LonghaulError && error.code === "NO_WORKER")
      return undefined;
    throw error;
  }
}

async function askAtOnce(wire: Wire, session: string): Promise<Shown> {
  for (let attempt = 0; ; attempt++) {
    const view = await wire.query<SessionView>(session, queries.view, {});
    const projections = await wire.query<Projections>(session, queries.projections, {});
    const page = await wire.query<LogPage>(session, queries.log, { after: -1, limit: 1 });
    if (view.lastSeq === page.lastSeq && projections.asOfSeq === page.lastSeq)
      return { view, projections, page };
    if (attempt === 20)
      throw new LonghaulError(
        "TIMEOUT",
        `session ${session} changes faster than it can be looked at; verify it when it is idle`,
      );
  }
}

interface Tip {
  readonly segment: string;
  readonly to: number;
}

interface Link {
  readonly name: string;
  readonly header: SegmentHeader;
}

/** The chain up to its tip, the oldest first; each segment is read once, and proved by its name. */
async function readChain(
  { archive }: VerifyDeps,
  session: string,
  tip: Tip | undefined,
): Promise<readonly Link[]> {
  if (tip === undefined) return [];
  if (archive === undefined)
    throw new LonghaulError(
      "ARCHIVE_UNAVAILABLE",
      `entries 0 to ${tip.to} of session ${session} are in the store, and this client was connected without one`,
    );
  const links: Link[] = [];
  let expected = tip.to;
  for (let name = tip.segment; name !== "";) {
    const { header } = await archive.segment(session, name).catch((error: unknown) => {
      if (!(error instanceof LonghaulError)) throw error;
      if (error.code !== "LOG_CORRUPT" && error.code !== "ARCHIVE_UNAVAILABLE") throw error;
      throw new Mismatch("segments", `${name}: ${error.message}`);
    });
    if (header.to !== expected)
      throw new Mismatch("segments", `${name} ends with entry ${header.to}, not with ${expected}`);
    links.push({ name, header });
    expected = header.from - 1;
    name = header.previous;
  }
  if (expected !== -1)
    throw new Mismatch("segments", `none has the entries 0 to ${expected} of session ${session}`);
  return links.toReversed();
}

/** What a history says was archived is what the log says; the segment that a model call goes on from is one of the chain. */
function checkArchives(
  runs: readonly RunHistory[],
  chain: readonly Link[],
  log: LogVerifier,
): string {
  const names = new Set(chain.map(({ name }) => name));
  let count = 0;
  for (const { run, archives, calls } of runs.toReversed()) {
    for (const archived of archives) {
      const { from, to, digest } = archived;
      // One that a roll-over came to nothing after is no segment of the chain, and still what the log was.
      if (!names.has(digest) && log.segmentName(archived) !== digest)
        throw new Mismatch(
          "archives",
          `run ${run} archived entries ${from} to ${to} as ${digest}; neither the archive nor the log has them so`,
        );
      count += 1;
    }
    const stray = calls.find(({ base }) => base !== "" && !names.has(base));
    if (stray !== undefined)
      throw new Mismatch(
        "archives",
        `run ${run}, event ${stray.event}: the model call goes on from ${stray.base}, which is no segment of the chain`,
      );
  }
  return `${count} that the histories tell, each is what the log says`;
}

/** What the last run of an ended session still shows of its log is what is archived of it. */
async function compareRun(
  wire: Wire,
  session: string,
  { page: first }: Shown,
  log: LogVerifier,
): Promise<void> {
  for (let after = first.archived?.to ?? -1; after < first.lastSeq;) {
    const page = await wire.query<LogPage>(session, queries.log, { after, limit: 500 });
    const other = page.entries.find(
      (entry) => canonicalJson(entry) !== canonicalJson(log.at(entry.seq) ?? null),
    );
    if (other !== undefined)
      throw new Mismatch("session", `it shows another entry ${other.seq} than its archive has`);
    after = page.entries.at(-1)?.seq ?? first.lastSeq;
  }
}

/** The whole log up to `last`: the segments, then what the session still has. */
async function* entriesOf(
  { archive, wire }: VerifyDeps,
  session: string,
  chain: readonly Link[],
  last: number | undefined,
): AsyncGenerator<LogEntry, void, undefined> {
  let after = -1;
  for (const { name } of chain) {
    const segment = await archive?.segment(session, name);
    yield* segment?.entries ?? [];
    after = segment?.header.to ?? after;
  }
  while (last !== undefined && after < last) {
    const page = await wire.query<LogPage>(session, queries.log, { after, limit: 500 });
    const before = after;
    // It has rolled over since.
    const since = page.archived && archive?.entries(session, page.archived.segment, after);
    for await (const entry of since ?? page.entries) {
      if (entry.seq > last) return;
      yield entry;
      after = entry.seq;
    }
    if (after === before)
      throw new Mismatch("log", `the session does not give entry ${after + 1} of its log`);
  }
}
