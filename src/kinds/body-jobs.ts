import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

import type { JobOutcome } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { type FollowerLock, takeFollowerLock } from "../process/jobs/follower-lock.js";
import { killedBeforeExit, startLost } from "../process/jobs/outcome.js";
import { identityPatienceMs } from "../process/jobs/seal.js";
import { countLiveJobs } from "../process/jobs/live-jobs.js";
import type { JobKindDefinition } from "../tools/define-job-kind.js";
import {
  bodyDirectory,
  bodyHas,
  type BodyJob,
  claimBody,
  countLiveBodies,
  lastRunner,
  readBodyJob,
  readBodyOutcome,
  requestBodyKill,
  sealBody,
  takeTurn,
  writeBodyOutcome,
} from "./body-spool.js";
import type { BeginJob, BegunJob, FollowedEnd, FollowedJob, FollowKind } from "./following.js";
import { RunningBody } from "./running-body.js";

export interface BodyHost {
  readonly home: string;
  readonly host: string;
  readonly store: Store;
  readonly maxJobs: number;
  readonly kinds: ReadonlyMap<string, JobKindDefinition>;
}

/** Writes down what is to be done; the first follower runs the body (spec/jobs J6). */
export async function beginBody(
  job: BeginJob,
  { home, maxJobs }: Pick<BodyHost, "home" | "maxJobs">,
  definition: JobKindDefinition,
): Promise<BegunJob> {
  if ((await stat(bodyDirectory({ ...job, home })).catch(() => undefined)) !== undefined)
    return { kind: "begun" };
  const jobs = (await countLiveJobs(home)) + (await countLiveBodies(home));
  if (jobs >= maxJobs) return { kind: "full", jobs };
  const prepared = await definition.prepare(job.input);
  if (!prepared.ok) return { kind: "refused", reason: prepared.message };
  const { sessionId, jobId, nonce, kind, token, input, cwd, outsideWorkspace } = job;
  await claimBody(home, {
    sessionId,
    jobId,
    nonce,
    kind,
    token,
    input,
    ...(cwd === undefined ? {} : { cwd }),
    outsideWorkspace,
  });
  return { kind: "begun" };
}

/** Bodies of this process by their directory, whichever worker object of it follows them. */
const running = new Map<string, RunningBody>();
/** Directories whose next turn this process is about to take. */
const taking = new Set<string>();

/** Attaches to a job whose body runs in this process, or in another one; runs it when nobody did. */
export function followBody(job: FollowKind, host: BodyHost): FollowedJob {
  return new BodyFollower(job, host);
}

const checkEveryMs = 500;

class BodyFollower implements FollowedJob {
  readonly #job: FollowKind;
  readonly #host: BodyHost;
  readonly #directory: string;
  readonly #definition: JobKindDefinition | undefined;
  readonly outlivesWorker: boolean;
  readonly takesReason = true;
  readonly done: Promise<FollowedEnd>;
  #killing: { readonly reason?: string } | undefined;
  #detached = false;
  #shuttingDown = false;
  #wake: () => void = () => {};

  constructor(job: FollowKind, host: BodyHost) {
    this.#job = job;
    this.#host = host;
    this.#directory = bodyDirectory({ ...job, home: host.home });
    this.#definition = host.kinds.get(job.kind);
    this.outlivesWorker = this.#definition?.reattaches ?? true;
    this.done = this.#follow();
    this.done.catch(() => {});
  }

  kill(reason?: string): void {
    this.#killing ??= reason === undefined ? {} : { reason };
    this.#wake();
  }

  detach(): void {
    this.#detached = true;
    this.#wake();
  }

  shutDown(): void {
    if (this.outlivesWorker) this.detach();
    else this.#shuttingDown = true;
    this.#wake();
  }

  async #follow(): Promise<FollowedEnd> {
    const recorded = await readBodyOutcome(this.#directory);
    if (recorded !== undefined) return { kind: "ended", outcome: recorded };
    const job = await this.#claimed();
    if (job === undefined) {
      if (this.#detached) return { kind: "detached", why: "asked" };
      return {
        kind: "ended",
        outcome: this.#killing === undefined ? startLost : killedBeforeExit,
      };
    }
    const lock = await takeFollowerLock(this.#directory, this.#job.rank);
    try {
      return await this.#attend(job, lock);
    } finally {
      await lock.release();
    }
  }

  /** A claim that is not written in whole gets its 5 s; then it is barred. */
  async #claimed(): Promise<BodyJob | undefined> {
    const until = Date.now() + identityPatienceMs;
    for (;;) {
      if (this.#detached) return undefined;
      const job = await readBodyJob(this.#directory);
      if (bodyHas(this.#directory, "sealed")) return undefined;
      if (job !== undefined) return job;
      const missing = (await stat(this.#directory).catch(() => undefined)) === undefined;
      if (missing || this.#killing !== undefined || Date.now() > until) {
        await sealBody(this.#directory);
        return undefined;
      }
      await this.#pause(50);
    }
  }

  async #attend(job: BodyJob, lock: FollowerLock): Promise<FollowedEnd> {
    for (;;) {
      const outcome = await readBodyOutcome(this.#directory);
      if (outcome !== undefined) return { kind: "ended", outcome };
      if (this.#detached) return { kind: "detached", why: "asked" };
      if (await lock.isDisplaced()) return { kind: "detached", why: "displaced" };
      const body = running.get(this.#directory);
      if (body !== undefined) {
        if (this.#killing !== undefined) body.kill(this.#killing.reason);
        if (this.#shuttingDown) body.shutDown();
        // Rejects when the end could not be recorded.
        const ended = await Promise.race([body.done, this.#pause(checkEveryMs)]);
        this.#job.onProgress?.(body.progress);
        if (ended !== undefined) return { kind: "ended", outcome: ended };
        continue;
      }
      if (this.#shuttingDown) return { kind: "detached", why: "asked" };
      const { turn, state } = await lastRunner(this.#directory);
      if (state === "alive" && this.#killing !== undefined)
        await requestBodyKill(this.#directory, this.#killing.reason);
      if (state === "alive" || taking.has(this.#directory)) await this.#pause(checkEveryMs);
      else await this.#takeUp(job, turn);
    }
  }

  /** Nobody runs the body: runs it, goes on with it, or settles the job without it. */
  async #takeUp(job: BodyJob, turn: number): Promise<void> {
    const definition = this.#definition;
    const ends = this.#withoutBody(turn);
    if (ends === undefined && definition === undefined) {
      throw new Error(
        `this worker has no job kind ${job.kind}; start one on ${this.#host.host} that has it`,
      );
    }
    if (running.has(this.#directory)) return;
    taking.add(this.#directory);
    try {
      // Whoever comes second, and whoever looked before the end was recorded, looks again.
      if (!(await takeTurn(this.#directory, turn))) return;
      if (bodyHas(this.#directory, "outcome")) return;
      if (ends !== undefined) await writeBodyOutcome(this.#directory, ends);
      else if (definition !== undefined)
        this.#start(job, definition, turn === 0 ? "run" : "reattach");
    } finally {
      taking.delete(this.#directory);
    }
  }

  #start(job: BodyJob, definition: JobKindDefinition, how: "run" | "reattach"): void {
    const { home, host, store } = this.#host;
    const directory = this.#directory;
    const { outputBytes } = this.#job;
    const body = new RunningBody({
      directory,
      job,
      definition,
      how,
      home,
      host,
      store,
      outputBytes,
    });
    running.set(directory, body);
    const forget = (): void => void running.delete(directory);
    body.done.then(forget, forget);
  }

  #withoutBody(turn: number): JobOutcome | undefined {
    const reattaches = this.#definition?.reattaches ?? false;
    if (turn > 0 && reattaches) return undefined;
    if (this.#killing !== undefined) return killedBeforeExit;
    if (turn === 0) return undefined;
    if (this.#definition === undefined) return undefined;
    const detail = `worker lost: the worker on ${this.#host.host} that ran it is gone; work may be orphaned`;
    return { status: "failed", detail, lost: true };
  }

  async #pause(ms: number): Promise<undefined> {
    const over = new AbortController();
    this.#wake = () => over.abort();
    await sleep(ms, undefined, { signal: over.signal }).catch(() => {});
    return undefined;
  }
}
