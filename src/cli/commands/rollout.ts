import type { RolloutEvent } from "../../client/rollout.js";
import type { BuildSessions } from "../../client/rollout-sessions.js";
import { command, homeOption, jsonOption } from "../command.js";
import { oneLine } from "../render/clean.js";
import { buildIdOf, deploymentNameOf, deploymentOption } from "./deployment.js";
import { durationOf, settingsOf } from "./settings.js";

export const rolloutCommand = command({
  name: "rollout",
  summary: "Move sessions to a build of versioned workers",
  words: "<build>",
  minWords: 1,
  options: {
    ...deploymentOption,
    wait: { type: "boolean", help: "stay until every open session has moved" },
    timeout: {
      type: "string",
      value: "time",
      help: "how long a worker of the build is waited for, like 90s (default 1m)",
    },
    free: {
      type: "boolean",
      help: "instead: free the sessions of this build, whose workers are gone for good",
    },
    ...jsonOption,
    ...homeOption,
  },
  details: [
    "Waits for a worker of the build (longhaul worker --deployment <name> --build-id <build>), gives it new sessions, and",
    "asks the open ones to move: each does at its next step, or at once when it is idle. Workers of the old build must run",
    "until none is left. Rolling back is the same with the old build. It can be ended and repeated at any time.",
  ],
  async run(context, words, options) {
    const { io } = context;
    const build = buildIdOf(words[0]?.trim() ?? "", "rollout <build>");
    const deployment = deploymentNameOf(io, options.deployment);
    const patience =
      options.timeout === undefined ? {} : { patienceMs: durationOf(options.timeout, "--timeout") };
    const { home } = settingsOf(context, options);
    const backend = await context.backend({ home });
    const free = options.free === true;
    const work = free ? backend.freeSessions.bind(backend) : backend.rollOut.bind(backend);
    const events = work(build, {
      ...(deployment === undefined ? {} : { deployment }),
      ...patience,
      wait: options.wait === true,
      signal: io.stop,
    })[Symbol.asyncIterator]();
    const told: { [Type in RolloutEvent["type"]]?: Extract<RolloutEvent, { type: Type }> } = {};
    for (;;) {
      const next = await context.orStop(events.next());
      if (next.done === true) break;
      Object.assign(told, { [next.value.type]: next.value });
      if (options.json !== true) io.stdout.write(`${oneLine(lineOf(next.value, build, free))}\n`);
    }
    if (options.json === true) {
      const { left = [], ended = [] } = told.end ?? {};
      const result = {
        build,
        ...(told.current === undefined
          ? {}
          : { deployment: told.current.deployment, previous: told.current.previous ?? null }),
        asked: told.sessions?.asked ?? 0,
        done: left.length + ended.length === 0,
        left: left.map((one) => ({ ...one, build: one.build ?? null })),
        ended,
      };
      io.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
    }
    return 0;
  },
});

function lineOf(event: RolloutEvent, build: string, free: boolean): string {
  switch (event.type) {
    case "waiting":
      return event.message;
    case "current": {
      const { deployment, previous } = event;
      const was =
        previous === event.build
          ? "already was the current one"
          : `is the current one now${previous === undefined ? "" : `; it was ${previous}`}`;
      return `build ${event.build} of deployment ${deployment} ${was}`;
    }
    case "sessions": {
      const { asked, left, ended = [] } = event;
      const text =
        left.length > 0
          ? `not moved yet: ${leftText(left)}`
          : `none is left${ended.length > 0 ? `, but not archived yet: ${endedText(ended)}` : ""}`;
      return `asked ${sessionsText(asked)}; ${text}`;
    }
    case "end": {
      const { left, ended = [] } = event;
      if (left.length > 0) return leftOverText(left, build, free);
      return ended.length > 0 ? unarchivedText(ended, build) : doneText(build, free);
    }
  }
}

function unarchivedText(ended: readonly BuildSessions[], build: string): string {
  return `not archived yet: ${endedText(ended)}; its workers do it within a minute or two, and are needed until then. Wait for them: longhaul rollout ${build} --wait`;
}

function doneText(build: string, free: boolean): string {
  return free
    ? `done: no open session is held by build ${build}`
    : "done: no open session is left on another build; its workers may be stopped";
}

function leftOverText(left: readonly BuildSessions[], build: string, free: boolean): string {
  const ids = left.flatMap((one) => one.ids).slice(0, 5);
  const again = `longhaul rollout ${free ? "--free " : ""}${build} --wait`;
  return `not moved yet: ${leftText(left)} (${ids.join(", ")}); each moves when its step ends${
    free ? "" : ", and needs its workers until then"
  }. Wait for them: ${again}`;
}

function leftText(left: readonly BuildSessions[]): string {
  return left
    .map(
      ({ build, sessions }) =>
        `${sessionsText(sessions)} ${build === undefined ? "without a build" : `on build ${build}`}`,
    )
    .join(", ");
}

function endedText(ended: readonly BuildSessions[]): string {
  return ended
    .map(({ build = "", sessions }) => `${sessionsText(sessions)} that ended on build ${build}`)
    .join(", ");
}

function sessionsText(count: number): string {
  return count === 1 ? "1 session" : `${count} sessions`;
}
