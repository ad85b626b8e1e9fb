import { setTimeout as sleep } from "node:timers/promises";

import type { JobOutcome } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import type { JobEnvironment, JobKindDefinition } from "../tools/define-job-kind.js";
import { BodyOutput } from "./body-output.js";
import { bodyEnd, type BodyEnd, storeResult } from "./body-result.js";
import { type BodyJob, bodyHas, readBodyKill, writeBodyOutcome } from "./body-spool.js";
import type { JobProgressDetails } from "./following.js";
import { jobStart } from "../store/job-output.js";

const killPollMs = 500;
const recordTries = 60;
/** How long a body may take to give up when its worker stops; the worker's own grace has passed then, ms. */
const shutdownPatienceMs = 2_000;

export interface BodyOptions {
  readonly directory: string;
  readonly job: BodyJob;
  readonly definition: JobKindDefinition;
  readonly how: "run" | "reattach";
  readonly home: string;
  readonly host: string;
  readonly store: Store;
  readonly outputBytes: number;
}

/** A job's body in this process; it goes on whether it is followed or not. */
export class RunningBody {
  readonly #options: BodyOptions;
  readonly #output: BodyOutput;
  readonly #streams: boolean;
  readonly #stop = new AbortController();
  readonly #overdue = new AbortController();
  #asked: "kill" | "shutdown" | undefined;
  #closed = false;
  /** Rejects when its end could not be recorded. */
  readonly done: Promise<JobOutcome>;

  constructor(options: BodyOptions) {
    this.#options = options;
    const { store, job, outputBytes, definition } = options;
    this.#streams = definition.jobKind.output === "stream";
    this.#output = new BodyOutput(store, job.sessionId, jobStart(job), outputBytes);
    this.done = this.#live();
    this.done.catch(() => {});
  }

  get progress(): JobProgressDetails {
    return this.#output.progress();
  }

  kill(reason?: string): void {
    if (this.#asked !== undefined) return;
    this.#asked = "kill";
    this.#stop.abort(new Error(reason ?? "killed"));
  }

  /** Settles it `failed`, unless it comes to an end of its own in a moment (spec/jobs J21). */
  shutDown(): void {
    if (this.#asked === undefined) {
      this.#asked = "shutdown";
      this.#stop.abort(new Error(this.#shutdownText));
    }
    void sleep(shutdownPatienceMs).then(() => this.#overdue.abort());
  }

  get #shutdownText(): string {
    return `worker shutdown on ${this.#options.host}`;
  }

  async #live(): Promise<JobOutcome> {
    const { directory } = this.#options;
    const poll = setInterval(() => {
      if (!bodyHas(directory, "kill")) return;
      clearInterval(poll);
      void readBodyKill(directory).then(({ reason }) => this.kill(reason));
    }, killPollMs).unref();
    try {
      const outcome = await this.#outcome();
      await recordOutcome(directory, outcome);
      return outcome;
    } finally {
      clearInterval(poll);
    }
  }

  async #outcome(): Promise<JobOutcome> {
    const { store, job } = this.#options;
    if (!this.#streams) {
      const { output, ...end } = await this.#settle();
      if (output === undefined) return end;
      return { ...end, ...(await storeResult(store, job.sessionId, jobStart(job), output)) };
    }
    await this.#output.open();
    const { output, ...end } = await this.#settle();
    if (output !== undefined) this.#output.write(output);
    return { ...end, tails: await this.#output.finish() };
  }

  async #settle(): Promise<BodyEnd> {
    const { signal } = this.#overdue;
    let late: () => void = () => {};
    const shutDown = new Promise<BodyEnd>((resolve) => {
      late = () => resolve({ status: "failed", detail: this.#shutdownText });
      signal.addEventListener("abort", late, { once: true });
    });
    try {
      return await Promise.race([this.#run(), shutDown]);
    } finally {
      signal.removeEventListener("abort", late);
      this.#closed = true;
    }
  }

  async #run(): Promise<BodyEnd> {
    const { job, definition, how } = this.#options;
    try {
      const prepared = await definition.prepare(job.input);
      if (!prepared.ok) return { status: "failed", detail: `spawn failed: ${prepared.message}` };
      const value =
        how === "run"
          ? await prepared.run(this.#environment())
          : await prepared.reattach?.(this.#environment());
      return bodyEnd(value);
    } catch (error) {
      return this.#thrown(error);
    }
  }

  #environment(): JobEnvironment {
    const { job, home, store } = this.#options;
    const { kind, sessionId, jobId, nonce, cwd, outsideWorkspace } = job;
    return {
      sessionId,
      jobId,
      idempotencyKey: `${sessionId}/job/${jobId}/${nonce}`,
      ...(cwd === undefined ? {} : { cwd }),
      outsideWorkspace,
      signal: this.#stop.signal,
      write: (output, stream) => {
        if (!this.#streams)
          throw new Error(`jobs of the kind ${kind} have final output: return it as \`output\``);
        if (!this.#closed) this.#output.write(output, stream);
      },
      written: (stream) => this.#output.written(stream),
      store,
      home,
    };
  }

  /** A body that gave up because it was told to has no failure of its own. */
  #thrown(error: unknown): BodyEnd {
    const { signal } = this.#stop;
    const gaveUp =
      signal.aborted &&
      (error === signal.reason || (error instanceof Error && error.name === "AbortError"));
    if (!gaveUp) return { status: "failed", detail: String(error) };
    return this.#asked === "kill"
      ? { status: "killed" }
      : { status: "failed", detail: this.#shutdownText };
  }
}

/** Without its record a job that ended would count as lost, so a full disk is waited for. */
async function recordOutcome(directory: string, outcome: JobOutcome): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await writeBodyOutcome(directory, outcome);
    } catch (error) {
      if (tries === recordTries) throw error;
      await sleep(1_000);
    }
  }
}
