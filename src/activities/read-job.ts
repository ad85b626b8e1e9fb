import { createHash } from "node:crypto";
import { Context } from "@temporalio/activity";
import type { Client } from "@temporalio/client";
import type {
  LookJobsAnswer,
  LookJobsInput,
  ReadJobAnswer,
  ReadJobInput,
} from "../contracts/activities.js";
import type { Archive } from "../contracts/archive.js";
import { LonghaulError } from "../contracts/errors.js";
import type { JobOffsets, JobStreamRead, StoredOutput } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { utf8Bytes } from "../domain/guards.js";
import { decodeChunk } from "../domain/job-bytes.js";
import { readableBytes, readJobStream } from "../process/jobs/stored-parts.js";
import { jobStart, jobStreamsOf } from "../store/job-output.js";
import { whileBeating } from "./heartbeat.js";
import { failureOf, lookAt } from "./job-calls.js";

/** Reads a job's output from the store, from any worker (spec/jobs J14, J15). */
export function createReadJob(
  store: Store,
  archive: Pick<Archive, "entry">,
): (input: ReadJobInput) => Promise<ReadJobAnswer> {
  return async function readJob({ sessionId, jobId, nonce, from }) {
    try {
      return await whileBeating(
        Context.current(),
        () => ({ jobId }),
        async () => {
          if ("ref" in from) return readOutput(store, sessionId, jobId, from.ref);
          if ("archived" in from) return readSettled(archive, sessionId, from);
          const start = jobStart({ jobId, nonce });
          return readStreams(store, sessionId, start, from.streams, from.ended);
        },
      );
    } catch (error) {
      throw failureOf(error);
    }
  };
}

/** How the workflows of jobs stand, for a session that looks after its jobs (spec/jobs J1). */
export function createLookJobs(client: Client): (input: LookJobsInput) => Promise<LookJobsAnswer> {
  return async function lookJobs({ workflowIds }) {
    const statuses: string[] = [];
    // Few at a time: it is a backstop and must not press on the server.
    for (let at = 0; at < workflowIds.length; at += 10) {
      const seen = await Promise.all(
        workflowIds.slice(at, at + 10).map((id) => lookAt(client, id)),
      );
      for (const one of seen) {
        if (one.state === "unknown") throw one.error;
        statuses.push(one.state === "open" ? "running" : statusOf(one));
      }
    }
    return { statuses };
  };
}

function statusOf(seen: { readonly state: string; readonly status?: string }): string {
  return seen.status ?? "missing";
}

/** The output that stands in an archived `job/settled`. */
async function readSettled(
  archive: Pick<Archive, "entry">,
  session: string,
  { archived, segment }: { readonly archived: number; readonly segment: string },
): Promise<ReadJobAnswer> {
  const entry = await archive.entry(session, segment, archived);
  if (entry.type !== "job/settled") {
    throw new LonghaulError(
      "LOG_CORRUPT",
      `the archived entry ${archived} of session ${session} is ${entry.type}, not the end of a job`,
    );
  }
  const text = entry.data.output ?? "";
  return { reads: [{ stream: "output", to: utf8Bytes(text), text }], locators: [] };
}

async function readStreams(
  store: Store,
  session: string,
  start: string,
  offsets: JobOffsets,
  ended: boolean,
): Promise<ReadJobAnswer> {
  const reads: JobStreamRead[] = [];
  const locators: string[] = [];
  for (const { name, id } of await jobStreamsOf(store, session, start)) {
    const offset = offsets[name] ?? 0;
    if (!Number.isSafeInteger(offset) || offset < 0) {
      throw new LonghaulError(
        "INVALID_INPUT",
        `the offset of stream ${name} of job ${start} is a whole number from 0, got ${offset}`,
      );
    }
    const { bytes, from, dropped, parts } = await readJobStream(store, session, start, id, offset);
    // What was dropped may have ended inside a character.
    const skipped = dropped ? continuation(bytes) : 0;
    const { text, consumed } = decodeChunk(bytes.subarray(skipped), ended);
    reads.push({
      stream: name,
      text: plain(text),
      to: from + skipped + consumed,
      ...(dropped ? { dropped } : {}),
    });
    if (dropped) locators.push(...parts.map(({ stream }) => store.locator(session, stream)));
  }
  return { reads, locators };
}

/** A final output in the store: proved by its digest; of a long one the readable end. */
async function readOutput(
  store: Store,
  session: string,
  jobId: string,
  { ref, bytes, digest }: StoredOutput,
): Promise<ReadJobAnswer> {
  const hash = createHash("sha256");
  let tail = Buffer.alloc(0);
  let at = 0;
  while (at < bytes) {
    const piece = await store.read(session, ref, at, Math.min(1024 * 1024, bytes - at));
    if (piece.length === 0) break;
    hash.update(piece);
    tail = Buffer.concat([tail, piece]).subarray(-readableBytes);
    at += piece.length;
  }
  if (at !== bytes || hash.digest("hex") !== digest) {
    throw new LonghaulError(
      "STORE_CONFLICT",
      `the output of job ${jobId} in the store (${ref}) is not the one that was recorded, ${bytes} bytes of digest ${digest.slice(0, 12)}`,
    );
  }
  const dropped = tail.length < bytes;
  const { text } = decodeChunk(tail.subarray(dropped ? continuation(tail) : 0), true);
  return {
    reads: [{ stream: "output", text: plain(text), to: bytes, ...(dropped ? { dropped } : {}) }],
    locators: dropped ? [store.locator(session, ref)] : [],
  };
}

/** Bytes at the start that belong to a character before it. */
function continuation(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && ((bytes[count] ?? 0) & 0xc0) === 0x80) count += 1;
  return count;
}

/** NUL is refused by some stores and providers. */
function plain(text: string): string {
  return text.replaceAll("\0", "\uFFFD");
}
