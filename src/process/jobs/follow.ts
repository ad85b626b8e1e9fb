import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { LonghaulError } from "../../contracts/errors.js";
import type { JobOutcome } from "../../contracts/jobs.js";
import type { Store } from "../../contracts/store.js";
import { writeWhole } from "../claim.js";
import { processTable } from "../process-table.js";
import { type FollowRank, type FollowerLock, takeFollowerLock } from "./follower-lock.js";
import { isOfThisBoot, readIdentity, supervisorAlive, type JobIdentity } from "./job-identity.js";
import { KillRequest, pokeSupervisor } from "./kill-request.js";
import { lastLineOf } from "./last-line.js";
import {
  killedBeforeExit,
  outcomeOf,
  readEnding,
  restarted,
  startLost,
  supervisorLost,
} from "./outcome.js";
import { endJobProcesses, isStartOverdue, sealSpool } from "./seal.js";
import {
  type JobKey,
  jobStreams,
  readSpoolFile,
  type Spool,
  spoolDirectory,
  spoolFiles,
  spoolHas,
} from "./spool.js";
import { describeStored, type JobStreamEnd, readTails } from "./stored-parts.js";
import { StreamCopy } from "./stream-copy.js";

export interface FollowInput extends JobKey {
  readonly store: Store;
  /** This host's id, for texts. */
  readonly host: string;
  readonly rank: FollowRank;
  /** Bytes of each stream that the store takes; beyond it only the last 64,000 are, at the end. Default 64 MiB. */
  readonly storeBytes?: number;
  /** At the start and whenever bytes came. */
  readonly onBytes?: (progress: JobProgress) => void;
  /** A kill could not end everything (spec/jobs J12); the job stays and is followed on. */
  readonly onKillFailed?: (message: string) => void;
}

export interface JobProgress {
  /** Bytes the command has printed to each stream. */
  readonly stdout: number;
  readonly stderr: number;
  /** The last line that has anything in it, at most 200 characters. */
  readonly lastLine: string;
}

export type FollowResult =
  | {
      readonly kind: "ended";
      readonly outcome: JobOutcome;
      readonly streams: readonly JobStreamEnd[];
    }
  /** The process was left alone: on request, or because a follower of a higher rank has the job. */
  | { readonly kind: "detached"; readonly why: "asked" | "displaced" };

export interface Following {
  /** Rejects when the store refuses the output for good; the job itself goes on. */
  readonly done: Promise<FollowResult>;
  /** Ends the job: TERM, 3 s, KILL, also of processes that left its group. It is at its end when `done` says so. */
  kill(): void;
  /** Stops following and leaves the process alone. */
  detach(): void;
}

/**
 * Attaches to a job that `startJob` claimed, carries its output to the store and waits for its end: until no process of its
 * group, and none with its marks, is left and all output is stored (spec/jobs J16). It never starts anything: a claim that is
 * absent or sealed is `failed`, `spawn failed: start lost`. Calling it again after its end gives the same result.
 */
export function followJob(input: FollowInput): Following {
  const follower = new Follower(input);
  return {
    done: follower.run(),
    kill: () => follower.kill(),
    detach: () => follower.detach(),
  };
}

/** Between two rounds at least. */
const fastestPollMs = 50;
/** Without a watch of the spool. */
const slowestPollMs = 200;
/** With one, in case it tells nothing. */
const watchedPollMs = 1_000;
/** While the store is away. */
const storePauseMs = 1_000;
/** A round that carried so much is followed by the next one at once. */
const busyBytes = 256 * 1024;
const checkEveryMs = 1_000;
class Follower {
  readonly #input: FollowInput;
  readonly #spool: Spool;
  readonly #copies: readonly StreamCopy[];
  readonly #kill: KillRequest;
  #killing = false;
  #detached = false;
  #wake: () => void = () => {};
  #onChange: () => void = () => {};
  #watcher: FSWatcher | undefined;
  /** Something in the spool is other than when the last round began. */
  #changed = false;
  #toldExit = false;

  constructor(input: FollowInput) {
    const { home, sessionId, jobId, nonce, store, storeBytes = 64 * 1024 * 1024 } = input;
    this.#input = input;
    this.#spool = { directory: spoolDirectory(input), job: { home, sessionId, jobId, nonce } };
    this.#kill = new KillRequest(this.#spool, (message) => input.onKillFailed?.(message));
    this.#copies = jobStreams.map((name) => new StreamCopy(store, this.#spool, name, storeBytes));
  }

  kill(): void {
    this.#killing = true;
    this.#wake();
  }

  detach(): void {
    this.#detached = true;
    this.#wake();
  }

  async run(): Promise<FollowResult> {
    const recorded = await readRecorded(this.#spool.directory);
    if (recorded !== undefined) return recorded;
    const identity = await this.#awaitIdentity();
    if (identity === "detached") return { kind: "detached", why: "asked" };
    if (identity === "lost") {
      return { kind: "ended", outcome: this.#killing ? killedBeforeExit : startLost, streams: [] };
    }
    const lock = await takeFollowerLock(this.#spool.directory, this.#input.rank);
    try {
      this.#watch();
      return await this.#follow(identity, lock);
    } finally {
      this.#watcher?.close();
      await lock.release();
    }
  }

  /** A claim without identity gets its 5 s; then it is barred (spec/jobs J23). */
  async #awaitIdentity(): Promise<JobIdentity | "lost" | "detached"> {
    const { directory } = this.#spool;
    while (!this.#detached) {
      const identity = await readIdentity(directory);
      if (identity !== undefined) {
        if (!spoolHas(directory, "sealed")) return identity;
        await sealSpool(this.#spool);
        return "lost";
      }
      if (this.#killing || spoolHas(directory, "sealed") || (await isStartOverdue(this.#spool))) {
        await sealSpool(this.#spool);
        return "lost";
      }
      await this.#pause(50);
    }
    return "detached";
  }

  async #follow(identity: JobIdentity, lock: FollowerLock): Promise<FollowResult> {
    const { directory } = this.#spool;
    const here = await isOfThisBoot(identity);
    let checkedAt = 0;
    let opened = false;
    for (;;) {
      if (this.#detached) return { kind: "detached", why: "asked" };
      this.#changed = false;
      // Looked at before the output is carried: then the last of it is carried too.
      let over = spoolHas(directory, "end") || !here;
      if (Date.now() - checkedAt >= checkEveryMs) {
        checkedAt = Date.now();
        if (await lock.isDisplaced()) return { kind: "detached", why: "displaced" };
        over ||= await this.#isUnsupervised(identity);
        if (!over) await this.#tellExit(identity);
      }
      if (!over && this.#killing) await this.#kill.press(identity);
      try {
        if (!opened) {
          for (const copy of this.#copies) await copy.open();
          opened = true;
          this.#report();
        }
        let moved = 0;
        for (const copy of this.#copies) moved += await copy.copy();
        if (moved > 0) this.#report();
        else if (over) return await this.#finish(identity, here);
        if (over || moved >= busyBytes) continue;
      } catch (error) {
        // The spool holds what the store cannot take; where it stands is asked again.
        if (!(error instanceof LonghaulError) || error.code !== "STORE_UNAVAILABLE") throw error;
        opened = false;
        await this.#pause(storePauseMs);
        continue;
      }
      await this.#pause(fastestPollMs);
      await this.#pause(this.#watcher === undefined ? slowestPollMs : watchedPollMs, true);
    }
  }

  /** Did the supervisor vanish without a word? Then nobody but this follower can end what it watched. */
  async #isUnsupervised(identity: JobIdentity): Promise<boolean> {
    const { directory } = this.#spool;
    if (spoolHas(directory, "end") || (await supervisorAlive(identity))) return false;
    if (spoolHas(directory, "end")) return false;
    await endJobProcesses(this.#spool);
    // Those who carry its output to the spool see its end themselves, a moment later.
    await sleep(1_000);
    return true;
  }

  /** A supervisor whose command's pipes are held by others looks only now and then whether its shell is gone. */
  async #tellExit({ pid }: JobIdentity): Promise<void> {
    if (this.#toldExit || (await processTable.startTime(pid)) !== undefined) return;
    this.#toldExit = true;
    await pokeSupervisor(this.#spool);
  }

  async #finish(identity: JobIdentity, here: boolean): Promise<FollowResult> {
    const { sessionId, store, host } = this.#input;
    // A follower that was frozen finds the end recorded and the spool emptied.
    const recorded = await readRecorded(this.#spool.directory);
    if (recorded !== undefined) return recorded;
    const streams: JobStreamEnd[] = [];
    for (const copy of this.#copies) {
      await copy.finish();
      streams.push(await describeStored(store, sessionId, copy.name, copy.total, copy.parts));
    }
    const tails = await readTails(store, sessionId, streams);
    const outcome = { ...(await this.#outcome(here, host)), tails };
    const result: FollowResult = { kind: "ended", outcome, streams };
    await writeWhole(
      join(this.#spool.directory, spoolFiles.outcome),
      JSON.stringify({ ...result, token: identity.token }),
      true,
    );
    for (const copy of this.#copies) await copy.clear();
    return result;
  }

  async #outcome(here: boolean, host: string): Promise<JobOutcome> {
    const ending = await readEnding(this.#spool.directory);
    if (ending !== undefined) return outcomeOf(ending, host, await this.#orphanGraceMs());
    if (!here) return restarted(host);
    return spoolHas(this.#spool.directory, "kill") ? killedBeforeExit : supervisorLost;
  }

  async #orphanGraceMs(): Promise<number> {
    const job = await readSpoolFile(this.#spool.directory, "job");
    const known = typeof job === "object" && job !== null && "orphanGraceMs" in job;
    return known ? Number(job.orphanGraceMs) : 0;
  }

  #report(): void {
    const [out, err] = this.#copies;
    const latest = Buffer.concat([out?.recent ?? Buffer.alloc(0), err?.recent ?? Buffer.alloc(0)]);
    this.#input.onBytes?.({
      stdout: out?.total ?? 0,
      stderr: err?.total ?? 0,
      lastLine: lastLineOf(latest),
    });
  }

  /** Ends sooner when the job is to be killed or let go, or, if so wished, by a change in the spool since the round began. */
  async #pause(ms: number, untilChange = false): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#onChange = untilChange ? resolve : () => {};
      timer = setTimeout(resolve, ms);
      const due = this.#detached || (this.#killing && !this.#kill.isMade);
      if (due || (untilChange && this.#changed)) resolve();
    });
    clearTimeout(timer);
  }

  /** One watch for the job's life: making one costs more than the rounds it saves. */
  #watch(): void {
    try {
      this.#watcher = watch(this.#spool.directory, () => {
        this.#changed = true;
        this.#onChange();
      });
    } catch {
      return;
    }
    this.#watcher.on("error", () => {
      this.#watcher?.close();
      this.#watcher = undefined;
    });
  }
}

/** How a job ended, when that was recorded. */
export async function readRecorded(directory: string): Promise<FollowResult | undefined> {
  const value = await readSpoolFile(directory, "outcome");
  if (typeof value !== "object" || value === null) return undefined;
  if (!("outcome" in value && "streams" in value)) return undefined;
  // It is this module's own record, written in whole.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { outcome, streams } = value as {
    outcome: JobOutcome;
    streams: readonly JobStreamEnd[];
  };
  return { kind: "ended", outcome, streams };
}
