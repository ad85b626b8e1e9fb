import { LonghaulError } from "../contracts/errors.js";
import { eachOf } from "./each-of.js";
import type { BuildState, Deployments } from "./deployments.js";
import { pause } from "./pause.js";
import {
  Asking,
  listVersioned,
  tallyOf,
  versionName,
  type BuildSessions,
  type SessionsOnBuilds,
  type VersionedSession,
} from "./rollout-sessions.js";

export interface RolloutOptions {
  /** Name of the deployment; default the only one of the namespace. */
  readonly deployment?: string;
  /** Go on until no session is left to move; else for some seconds only. */
  readonly wait?: boolean;
  /** How long a worker of the build is waited for, ms; default 60,000. */
  readonly patienceMs?: number;
  /** Ends it; what was done stays, and the same call again goes on from there. */
  readonly signal?: AbortSignal;
}

/** What a roll-out does, as it does it. */
export type RolloutEvent =
  | { readonly type: "waiting"; readonly message: string }
  | {
      readonly type: "current";
      readonly deployment: string;
      readonly build: string;
      /** Which was the current one until now; undefined for none. */
      readonly previous?: string;
    }
  | {
      readonly type: "sessions";
      /** Were asked to move, or freed, up to now. */
      readonly asked: number;
      /** Open sessions that have not moved yet, by the build they are on. */
      readonly left: readonly BuildSessions[];
      /** Once none is left: those that have ended, and can be read from their build alone until its workers have archived them. */
      readonly ended?: readonly BuildSessions[];
    }
  /** With nothing left no session needs another build any more. */
  | {
      readonly type: "end";
      readonly left: readonly BuildSessions[];
      readonly ended?: readonly BuildSessions[];
    };

/** A worker polls for a minute at most; one that was killed counts until then. */
export const pollMs = 70_000;
/** How often is looked again. */
export const lookMs = 2_000;
/** How long sessions that are asked are looked after when nobody waits for all. */
const graceMs = 10_000;
/** Sessions asked at once. */
export const atOnce = 20;

/**
 * Makes a build the current one of its deployment, and asks every open session that is on another build, or on none, to go on in a new
 * run, which that build takes. Safe to repeat and to end at any moment. NO_WORKER when no worker of the build polls,
 * INVALID_INPUT for a deployment that cannot be told, INVALID_CONFIG on a server without worker versioning.
 */
export async function* rollOut(
  deployments: Deployments,
  sessions: SessionsOnBuilds,
  build: string,
  options: RolloutOptions,
): AsyncGenerator<RolloutEvent, void, undefined> {
  const { signal, wait = false } = options;
  const deployment = yield* chooseDeployment(deployments, build, options);
  const { queues } = yield* awaitWorker(deployments, deployment, build, options);
  const before = await deployments.deployment(deployment);
  const previous = before?.current;
  if (previous !== build) await deployments.makeCurrent(deployment, build);
  yield { type: "current", deployment, build, ...(previous === undefined ? {} : { previous }) };
  yield* awaitRouting(deployments, deployment, signal);

  const there = versionName(deployment, build);
  const query = `(TemporalWorkerDeploymentVersion IS NULL OR TemporalWorkerDeploymentVersion != '${there}')`;
  const asking = new Asking(sessions);
  const unarchived = new Unarchived(deployments, sessions, { deployment, build });
  const end = Date.now() + graceMs;
  let told = JSON.stringify([0, [], []]);
  for (let empty = 0; ;) {
    const found = await listVersioned(sessions, queues, query);
    await eachOf(found, atOnce, (session) => asking.ask(session));
    const left = tallyOf(found);
    // A session that began in the last moment is not listed at once.
    empty = found.length === 0 ? empty + 1 : 0;
    const ended = empty < 2 ? undefined : tallyOf(await unarchived.find(queues));
    const state = { left, ...(ended === undefined ? {} : { ended }) };
    if (ended?.length === 0) return yield { type: "end", ...state };
    if (told !== (told = JSON.stringify([asking.count, left, ended ?? []])))
      yield { type: "sessions", asked: asking.count, ...state };
    if (!wait && Date.now() >= end) return yield { type: "end", ...state };
    await pauseOrEnd(lookMs, signal);
  }
}

/** Sessions that have ended on another build, whose workers are there and have not archived them yet. */
class Unarchived {
  readonly #deployments: Deployments;
  readonly #sessions: SessionsOnBuilds;
  readonly #there: { readonly deployment: string; readonly build: string };
  readonly #archived = new Set<string>();

  constructor(
    deployments: Deployments,
    sessions: SessionsOnBuilds,
    there: { readonly deployment: string; readonly build: string },
  ) {
    this.#deployments = deployments;
    this.#sessions = sessions;
    this.#there = there;
  }

  async find(queues: readonly string[]): Promise<readonly VersionedSession[]> {
    const { deployment, build } = this.#there;
    const { builds = [] } = (await this.#deployments.deployment(deployment)) ?? {};
    const left: VersionedSession[] = [];
    for (const other of builds) {
      if (other === build) continue;
      const state = await this.#deployments.build(deployment, other);
      if (state === undefined || !polls(state)) continue;
      const term = `TemporalWorkerDeploymentVersion = '${versionName(deployment, other)}'`;
      const ended = await listVersioned(this.#sessions, queues, term, "ended");
      await eachOf(ended, atOnce, async (session) => {
        const { id, run } = session;
        if (this.#archived.has(run)) return;
        if (await this.#sessions.isArchived(id, run)) this.#archived.add(run);
        else left.push(session);
      });
    }
    return left;
  }
}

/** The deployment that is meant; waits for the first one. INVALID_INPUT when there are several, NO_WORKER when none comes. */
export async function* chooseDeployment(
  deployments: Deployments,
  build: string,
  { deployment, patienceMs = 60_000, signal }: RolloutOptions,
): AsyncGenerator<RolloutEvent, string, undefined> {
  if (deployment !== undefined) return deployment;
  const end = Date.now() + patienceMs;
  for (let told = false; ; told = true) {
    const [only, ...others] = await deployments.names();
    if (others.length > 0)
      throw new LonghaulError(
        "INVALID_INPUT",
        `expected the name of a deployment (--deployment or LONGHAUL_DEPLOYMENT), for there are several: ${[only, ...others].join(", ")}`,
      );
    if (only !== undefined) return only;
    if (Date.now() >= end)
      throw new LonghaulError(
        "NO_WORKER",
        `there is no deployment: no versioned worker was ever started; start one (longhaul worker --deployment <name> --build-id ${build})`,
      );
    if (!told)
      yield {
        type: "waiting",
        message: `waiting up to ${patienceMs / 1000} s for a worker of build ${build}`,
      };
    await pauseOrEnd(1_000, signal);
  }
}

/** Waits for a worker of the build that asks for work. NO_WORKER after the patience. */
export async function* awaitWorker(
  deployments: Deployments,
  deployment: string,
  build: string,
  { patienceMs = 60_000, signal }: RolloutOptions,
): AsyncGenerator<RolloutEvent, BuildState, undefined> {
  const end = Date.now() + patienceMs;
  for (let told = false; ; told = true) {
    const found = await deployments.build(deployment, build);
    if (found !== undefined && polls(found)) return found;
    if (Date.now() >= end)
      throw new LonghaulError(
        "NO_WORKER",
        `no worker of build ${build} of deployment ${deployment} asked for work within ${patienceMs / 1000} s${
          found === undefined ? "; none was ever seen" : ""
        }; start one (longhaul worker --deployment ${deployment} --build-id ${build})`,
      );
    if (!told)
      yield {
        type: "waiting",
        message: `waiting up to ${patienceMs / 1000} s for a worker of build ${build} of deployment ${deployment}`,
      };
    await pauseOrEnd(1_000, signal);
  }
}

export function polls({ lastPoll }: BuildState): boolean {
  return lastPoll !== undefined && Date.now() - lastPoll < pollMs;
}

/** Sessions that move before every queue knows of the new build would begin anew on the old one. */
async function* awaitRouting(
  deployments: Deployments,
  deployment: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<RolloutEvent, void, undefined> {
  const end = Date.now() + 30_000;
  for (let told = false; Date.now() < end; told = true) {
    if ((await deployments.deployment(deployment))?.settled !== false) return;
    if (!told) yield { type: "waiting", message: "waiting for Temporal to tell every task queue" };
    await pauseOrEnd(500, signal);
  }
}

/** ABORTED when the signal ends it. */
export async function pauseOrEnd(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await pause(ms, signal);
  if (signal?.aborted === true)
    throw new LonghaulError("ABORTED", "the roll-out was ended; what was done stays");
}
