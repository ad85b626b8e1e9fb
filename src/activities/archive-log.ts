import { Context } from "@temporalio/activity";
import type {
  ArchiveActivities,
  ArchiveLogInput,
  FetchBodiesAnswer,
  FetchBodiesInput,
} from "../contracts/activities.js";
import type { Archive, SegmentHeader } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import { readBody } from "../domain/checkpoint-bodies.js";
import { segmentName, segmentText } from "../domain/segment.js";
import { whileBeating } from "./heartbeat.js";
import { failureOf } from "./job-calls.js";
import type { SessionSource } from "./session-source.js";

/** Largest answer with texts, bytes of JSON: the server refuses payloads over 2 MB. */
const maxAnswerBytes = 1_500_000;

export interface ArchiveDeps {
  readonly source: Pick<SessionSource, "log" | "bodies">;
  readonly archive: Archive;
}

/** What leaves history and comes back (design D8). A store that is away is tried again; what is not what its name says, never. */
export function createArchiveActivities(deps: ArchiveDeps): ArchiveActivities {
  return {
    async "log.archive"(input) {
      const context = Context.current();
      let seq = input.from;
      await mapped(() =>
        whileBeating(
          context,
          () => ({ seq }),
          () => archiveLog(deps, input, context.cancellationSignal, (reached) => (seq = reached)),
        ),
      );
      return { segment: input.digest };
    },
    async "log.bodies"(input) {
      return await mapped(() =>
        whileBeating(
          Context.current(),
          () => ({ bodies: input.names.length }),
          () => fetchBodies(deps.archive, input),
        ),
      );
    },
  };
}

/** Pulls what is to be archived of exactly the run that asked, proves it, and writes it. LOG_CORRUPT. */
export async function archiveLog(
  { source, archive }: ArchiveDeps,
  input: ArchiveLogInput,
  signal: AbortSignal,
  reached: (seq: number) => void = () => {},
): Promise<void> {
  const { sessionId, runId, from, to, previous, digest } = input;
  const header: SegmentHeader = { v: 1, session: sessionId, run: runId, from, to, previous };
  // Nothing new: the texts alone.
  if (from <= to) {
    const entries =
      (await writtenEntries(archive, header, digest)) ??
      (await pullEntries(source, input, signal, reached));
    const name = segmentName(segmentText(header, entries));
    if (name !== digest) {
      throw new LonghaulError(
        "LOG_CORRUPT",
        `entries ${from} to ${to} of session ${sessionId} are to have the digest ${digest}, what it shows has ${name}; nothing was archived`,
      );
    }
    // Also of what is there: it may have been in memory only, or not yet flushed.
    await archive.write(header, entries);
  }
  await keepBodies({ source, archive }, input, signal);
}

/** As many as fit an answer, at least one of those that are there. */
export async function fetchBodies(
  archive: Archive,
  { sessionId, names }: FetchBodiesInput,
): Promise<FetchBodiesAnswer> {
  const bodies: Record<string, string> = {};
  let bytes = 0;
  for (const name of names) {
    const json = (await archive.bodies(sessionId, [name])).get(name);
    if (json === undefined) continue;
    bytes += Buffer.byteLength(JSON.stringify({ [name]: json }));
    if (bytes > maxAnswerBytes && Object.keys(bodies).length > 0) break;
    bodies[name] = json;
  }
  return { bodies };
}

/** An attempt before this one, or another worker, may have written all of them. */
async function writtenEntries(
  archive: Archive,
  { session, run, from, to, previous }: SegmentHeader,
  name: string,
): Promise<readonly LogEntry[] | undefined> {
  try {
    const { header, entries } = await archive.segment(session, name);
    const same = header.run === run && header.from === from && header.to === to;
    return same && header.previous === previous ? entries : undefined;
  } catch (error) {
    // Not there, or half of it: writing it says which.
    if (!(error instanceof LonghaulError)) throw error;
    if (error.code !== "ARCHIVE_UNAVAILABLE" && error.code !== "LOG_CORRUPT") throw error;
    return undefined;
  }
}

async function pullEntries(
  source: Pick<SessionSource, "log">,
  input: ArchiveLogInput,
  signal: AbortSignal,
  reached: (seq: number) => void,
): Promise<readonly LogEntry[]> {
  const { from, to } = input;
  const entries: LogEntry[] = [];
  for (let next = from; next <= to; next = from + entries.length) {
    reached(next);
    const page = await source.log(input, { after: next - 1, limit: to - next + 1 }, signal);
    if (page.entries.length === 0) {
      throw new LonghaulError(
        "LOG_CORRUPT",
        `session ${input.sessionId} does not show entry ${next} in run ${input.runId}, which is to be archived`,
      );
    }
    entries.push(...page.entries);
  }
  return entries;
}

async function keepBodies(
  { source, archive }: ArchiveDeps,
  input: ArchiveLogInput,
  signal: AbortSignal,
): Promise<void> {
  const { sessionId } = input;
  const kept = await archive.bodies(sessionId, input.bodies);
  let left = input.bodies.filter((name) => readBody(name, kept.get(name) ?? "") === undefined);
  while (left.length > 0) {
    const page = await source.bodies(input, left, signal);
    for (const [name, json] of Object.entries(page.bodies)) {
      if (!left.includes(name) || readBody(name, json) === undefined) {
        throw new LonghaulError(
          "LOG_CORRUPT",
          `the text ${name} of session ${sessionId} is not what its name says; nothing goes on from it`,
        );
      }
      await archive.putBody(sessionId, name, json);
    }
    const missing = left.filter((name) => page.bodies[name] === undefined);
    const told = new Set(page.left);
    const lost = missing.find((name) => !told.has(name));
    if (lost !== undefined || missing.length === left.length) {
      throw new LonghaulError(
        "LOG_CORRUPT",
        `session ${sessionId} does not show the text ${lost ?? missing[0] ?? ""} in run ${input.runId}, which is to be archived`,
      );
    }
    left = missing;
  }
}

async function mapped<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failureOf(error);
  }
}
