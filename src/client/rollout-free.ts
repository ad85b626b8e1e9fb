import { LonghaulError } from "../contracts/errors.js";
import type { Deployments } from "./deployments.js";
import { eachOf } from "./each-of.js";
import {
  atOnce,
  awaitWorker,
  chooseDeployment,
  lookMs,
  pauseOrEnd,
  pollMs,
  polls,
  type RolloutEvent,
  type RolloutOptions,
} from "./rollout.js";
import {
  Asking,
  listVersioned,
  tallyOf,
  versionName,
  type SessionsOnBuilds,
} from "./rollout-sessions.js";

/** How long sessions that were freed are looked after when nobody waits for all. */
const graceMs = 30_000;

/**
 * Frees the sessions that are pinned to a build whose workers are gone: the current build goes on with them where they are, and they
 * are asked to go on in a new run; then nothing of it is left on them. Safe to repeat and to end at any moment.
 * INVALID_INPUT while the build is the current one or its workers poll, else as `rollOut`.
 */
export async function* freeSessions(
  deployments: Deployments,
  sessions: SessionsOnBuilds,
  build: string,
  options: RolloutOptions,
): AsyncGenerator<RolloutEvent, void, undefined> {
  const { signal, wait = false } = options;
  const deployment = yield* chooseDeployment(deployments, build, options);
  const current = (await deployments.deployment(deployment))?.current;
  if (current === undefined || current === build)
    throw new LonghaulError(
      "INVALID_INPUT",
      `expected a build of deployment ${deployment} that is not in use, but ${
        current === build ? `${build} is the current one` : "no build is the current one"
      }; roll out another one first (longhaul rollout <build>)`,
    );
  yield* awaitSilence(deployments, deployment, build, signal);
  const { queues } = yield* awaitWorker(deployments, deployment, current, options);
  const [gone, there] = [versionName(deployment, build), versionName(deployment, current)];
  const asking = new Asking(sessions);
  const end = Date.now() + graceMs;
  let told = JSON.stringify([0, []]);
  for (let empty = 0; ;) {
    const stuck = await listVersioned(
      sessions,
      queues,
      `TemporalWorkerDeploymentVersion = '${gone}'`,
    );
    await eachOf(stuck, atOnce, async (session) => {
      if (session.pinned && !(await deployments.override(session.id, true))) return;
      await asking.ask(session);
    });
    // Freed, also by a call before this one, and taken by the current build.
    const moved = await listVersioned(
      sessions,
      queues,
      `TemporalWorkerDeploymentVersion = '${there}' AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade'`,
    );
    const waiting = await eachOf(moved, atOnce, async (session) => {
      if ((await deployments.isOverridden(session.id)) !== true) return [];
      if (session.used.every((version) => version === there)) {
        await deployments.override(session.id, false);
        return [];
      }
      await asking.ask(session);
      return [{ ...session, version: gone }];
    });
    const left = tallyOf([...stuck, ...waiting.flat()]);
    empty = left.length === 0 ? empty + 1 : 0;
    if (empty === 2) return yield { type: "end", left };
    if (told !== (told = JSON.stringify([asking.count, left])))
      yield { type: "sessions", asked: asking.count, left };
    if (!wait && Date.now() >= end) return yield { type: "end", left };
    await pauseOrEnd(lookMs, signal);
  }
}

/** A build whose workers poll has no need of this: its sessions go on there. */
async function* awaitSilence(
  deployments: Deployments,
  deployment: string,
  build: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<RolloutEvent, void, undefined> {
  const end = Date.now() + pollMs + 5_000;
  for (let told = false; ; told = true) {
    const found = await deployments.build(deployment, build);
    if (found === undefined)
      throw new LonghaulError(
        "INVALID_INPUT",
        `expected a build of deployment ${deployment}, got ${build}, which never had a worker there`,
      );
    if (!polls(found)) return;
    if (Date.now() >= end)
      throw new LonghaulError(
        "INVALID_INPUT",
        `build ${build} of deployment ${deployment} is not gone: a worker of it asks for work; its sessions move by a roll-out (longhaul rollout <build>), or stop its workers first`,
      );
    if (!told)
      yield {
        type: "waiting",
        message: `waiting until the workers of build ${build} are gone; one that was killed counts for a minute more`,
      };
    await pauseOrEnd(1_000, signal);
  }
}
