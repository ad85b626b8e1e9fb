import { Buffer } from "node:buffer";
import { LonghaulError, type Refusal } from "../contracts/errors.js";
import type { JsonObject } from "../contracts/header.js";
import type { JobOffsets } from "../contracts/jobs.js";
import type { EntryOf, LogEntry } from "../contracts/log.js";
import { commands, jobWorkflowId, queries } from "../contracts/names.js";
import { parseInput } from "../contracts/schemas/parse.js";
import { jobIdSchema, jobKillSchema, jobStartSchema } from "../contracts/schemas/session.js";
import type { JobKillResult, JobStartResult, JobsView, JobView } from "../contracts/session.js";
import type { Store } from "../contracts/store.js";
import { publicJob, snapshotOf } from "../domain/job-views.js";
import { utf8Bytes } from "../domain/guards.js";
import { headBytes } from "../domain/job-bytes.js";
import {
  emptyJobs,
  foldJobs,
  isEnd,
  jobOf,
  maxLabelBytes,
  type JobRecord,
  type JobsState,
} from "../domain/jobs.js";
import { readStream } from "../store/stream-reader.js";
import { JobOutputReader, type JobOutputPiece } from "./job-output.js";
import { pause } from "./pause.js";
import { checkSize, type SessionWriter } from "./session-write.js";
import { freshId } from "./update-id.js";
import { awayCodes } from "./wait.js";
import type { QueryOptions, Wire } from "./wire.js";
import { jobStart } from "../store/job-output.js";

export interface StartJobOptions {
  /** One of `JobsView.kinds`. */
  readonly kind: string;
  /** One line; default the first line of `input.command`, cut to 1 KiB, else the kind. */
  readonly label?: string;
  /** What the kind is to do, e.g. `{command}` of `bash`; the host checks it. */
  readonly input: JsonObject;
  /** Operation id, default a fresh one. A repeat under the same id answers the job of the first. */
  readonly id?: string;
}

export interface KillJobOptions {
  readonly reason?: string;
  readonly id?: string;
}

export interface WaitJobOptions {
  /** Return the live job after so long; default: as long as it takes. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface JobOutputOptions {
  /** Go on until the job has ended (default false: what there is now). */
  readonly follow?: boolean;
  /** First byte wanted of each stream, e.g. `{stdout: 120}`; default all. */
  readonly from?: JobOffsets;
  /** Ends the reading cleanly. */
  readonly signal?: AbortSignal;
}

export interface SessionJobsParts {
  readonly session: string;
  readonly wire: Wire;
  readonly writer: SessionWriter;
  readonly store: Pick<Store, "list" | "read"> | undefined;
  log(options?: QueryOptions): AsyncIterable<LogEntry>;
}

/** How often a followed job's output is looked for, ms. */
const outputPollMs = 100;
/** How often a job that is waited for or followed is asked after, ms. */
const jobPollMs = 1_000;
/** Once in so many looks: is the session still there? */
const looksPerCheck = 10;

/** The background jobs of one session, for SessionClient, which documents them. */
export class SessionJobs {
  readonly #parts: SessionJobsParts;

  constructor(parts: SessionJobsParts) {
    this.#parts = parts;
  }

  async view(options: QueryOptions = {}): Promise<JobsView> {
    const view = await this.#ask(options);
    if (view.state !== "closed" || view.jobs.length > 0) return view;
    const { jobs } = await this.#recorded(options);
    return { ...view, jobs: jobs.map((record) => viewOf(this.#parts.session, record)) };
  }

  async start(options: StartJobOptions): Promise<Exclude<JobStartResult, Refusal>> {
    const { kind, input, label = defaultLabel(kind, input), id } = options;
    const opId = id ?? freshId("j", Date.now());
    const command = parseInput(jobStartSchema, { opId, kind, label, input }, "job");
    checkSize(JSON.stringify(command), "job");
    return this.#parts.writer.write<JobStartResult>(commands.jobStart, opId, command);
  }

  async kill(
    jobId: string,
    { reason, id }: KillJobOptions,
  ): Promise<Exclude<JobKillResult, Refusal>> {
    const opId = id ?? freshId("k", Date.now());
    const given = { opId, jobId, ...(reason === undefined ? {} : { reason }) };
    const command = parseInput(jobKillSchema, given, "job kill");
    return this.#parts.writer.write<JobKillResult>(commands.jobKill, opId, command);
  }

  async wait(jobId: string, { timeoutMs, signal }: WaitJobOptions): Promise<JobView> {
    const began = Date.now();
    let job = await this.#find(jobId);
    if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
      throw new LonghaulError(
        "INVALID_INPUT",
        `invalid wait timeout: expected a positive number of milliseconds, got ${JSON.stringify(timeoutMs)}`,
      );
    }
    const left = () => (timeoutMs === undefined ? jobPollMs : began + timeoutMs - Date.now());
    let waitMs = 100;
    for (let round = 1; !isEnd(job.status) && left() > 0; round++) {
      if (signal?.aborted !== true) await pause(Math.min(waitMs, left()), signal);
      if (signal?.aborted === true) throw new LonghaulError("ABORTED", "wait aborted");
      waitMs = Math.min(waitMs * 1.5, jobPollMs);
      // The time-out is the caller's, whether or not somebody answers by then.
      const timeout = timeoutMs === undefined ? {} : { timeoutMs: Math.max(left(), jobPollMs) };
      job = await this.#lookAgain(job, round, { ...timeout, ...(signal && { signal }) });
    }
    return job;
  }

  async *output(
    jobId: string,
    { follow = false, from = {}, signal }: JobOutputOptions,
  ): AsyncGenerator<JobOutputPiece, void, undefined> {
    const first = await this.#find(jobId);
    const reader =
      first.output === "final" ? undefined : new JobOutputReader(...this.#stored(first), from);
    const watched = this.#watch(first);
    const aborted = () => signal?.aborted === true;
    try {
      while (!aborted()) {
        // What an ended job printed is all in the store (spec/jobs J16), so its state is taken first.
        const ended = isEnd(watched.job().status);
        for await (const piece of reader?.read(ended || !follow) ?? none) {
          yield piece;
          if (aborted()) return;
        }
        if (ended && reader === undefined) yield* this.#result(first, from);
        if (ended || !follow) return;
        await pause(outputPollMs, signal);
      }
    } finally {
      watched.stop();
    }
  }

  /** Asks after a job beside the reading of its output, which a lost worker must not hold up. */
  #watch(first: JobView): { job(): JobView; stop(): void } {
    const stop = new AbortController();
    let job = first;
    let failure: { readonly cause: unknown } | undefined;
    let [round, lookedAt, looking] = [1, Date.now(), false];
    const look = async () => {
      try {
        job = await this.#lookAgain(job, round++, { signal: stop.signal });
      } catch (error) {
        failure = { cause: error };
      }
      [lookedAt, looking] = [Date.now(), false];
    };
    return {
      job: () => {
        if (failure !== undefined) throw failure.cause;
        if (!looking && !isEnd(job.status) && Date.now() - lookedAt >= jobPollMs) {
          looking = true;
          void look();
        }
        return job;
      },
      stop: () => {
        stop.abort();
      },
    };
  }

  #ask(options: QueryOptions): Promise<JobsView> {
    return this.#parts.wire.query<JobsView>(this.#parts.session, queries.jobs, {}, options);
  }

  /** By the session, else by its log: a session that has closed keeps no record of its jobs. JOB_NOT_FOUND. */
  async #find(jobId: string, options: QueryOptions = {}): Promise<JobView> {
    parseInput(jobIdSchema, jobId, "job id");
    const { jobs } = await this.#ask(options);
    const known = jobs.find((job) => job.id === jobId);
    if (known !== undefined) return known;
    const { record } = await this.#fromLog(jobId);
    if (record === undefined) throw new LonghaulError("JOB_NOT_FOUND", `unknown job ${jobId}`);
    return viewOf(this.#parts.session, record);
  }

  /** The job as it is now; as it was while nobody answers. SESSION_CLOSED when its session can never tell its end. */
  async #lookAgain(job: JobView, round: number, options: QueryOptions): Promise<JobView> {
    const { session, wire } = this.#parts;
    try {
      const now = await this.#find(job.id, options);
      if (isEnd(now.status) || round % looksPerCheck > 0) return now;
      if ((await wire.status(session))?.open !== false) return now;
      const last = await this.#find(job.id, options);
      if (isEnd(last.status)) return last;
      throw new LonghaulError(
        "SESSION_CLOSED",
        `session ${session} has ended while job ${job.id} was ${last.status}, so nobody records its end`,
      );
    } catch (error) {
      if (options.signal?.aborted === true) return job;
      if (error instanceof LonghaulError && awayCodes.has(error.code)) return job;
      throw error;
    }
  }

  async #fromLog(
    jobId: string,
  ): Promise<{ readonly record?: JobRecord; readonly settled?: EntryOf<"job/settled"> }> {
    let settled: EntryOf<"job/settled"> | undefined;
    const record = jobOf(
      await this.#recorded({}, (entry) => {
        if (entry.type === "job/settled" && entry.data.id === jobId) settled ??= entry;
      }),
      jobId,
    );
    return { ...(record && { record }), ...(settled && { settled }) };
  }

  /** All jobs the session ever had: its log keeps also what the session has dropped. */
  async #recorded(
    options: QueryOptions = {},
    visit: (entry: LogEntry) => void = () => undefined,
  ): Promise<JobsState> {
    let jobs = emptyJobs;
    for await (const entry of this.#parts.log(options)) {
      if (entry.type !== "job/removed") jobs = foldJobs(jobs, entry);
      visit(entry);
    }
    return jobs;
  }

  /** The one result of a final-output job. */
  async *#result(job: JobView, from: JobOffsets): AsyncGenerator<JobOutputPiece, void, undefined> {
    const { settled } = await this.#fromLog(job.id);
    if (settled === undefined) return;
    const { output, ref } = settled.data;
    const pieces: Uint8Array[] = [];
    if (output !== undefined) pieces.push(Buffer.from(output, "utf8"));
    else if (ref !== undefined) {
      const [store, session] = this.#stored(job);
      for await (const piece of readStream(store, session, ref.ref)) pieces.push(piece);
    }
    const offset = from["output"] ?? 0;
    const bytes = Buffer.concat(pieces).subarray(offset);
    if (bytes.length > 0) yield { stream: "output", offset, text: bytes.toString("utf8"), bytes };
  }

  #stored({ id: jobId, workflowId }: JobView): [Pick<Store, "list" | "read">, string, string] {
    const { store, session } = this.#parts;
    const nonce = workflowId.split("/").at(-1) ?? "";
    if (store !== undefined) return [store, session, jobStart({ jobId, nonce })];
    throw new LonghaulError(
      "STORE_UNAVAILABLE",
      `the output of job ${jobId} lies in the store, and this client was connected without one; give LonghaulClient.connect a store`,
    );
  }
}

const none: readonly JobOutputPiece[] = [];

function defaultLabel(kind: string, input: JsonObject): string {
  const command: unknown =
    typeof input === "object" && input !== null ? input["command"] : undefined;
  if (typeof command !== "string") return kind;
  const line = command
    .split(/\r\n|[\n\r\u2028\u2029]/u)
    .find((text) => text.trim() !== "")
    ?.trim();
  if (line === undefined || utf8Bytes(line) <= maxLabelBytes) return line ?? kind;
  return `${headBytes(line, maxLabelBytes - utf8Bytes("…"))}…`;
}

function viewOf(session: string, record: JobRecord): JobView {
  return {
    ...publicJob(snapshotOf(record)),
    output: record.form,
    reported: record.reported,
    workflowId: jobWorkflowId(session, record.id, record.nonce),
  };
}
