import { describe, expect, it } from "vitest";
import type { RolloutEvent, RolloutOptions } from "../../src/client/rollout.js";
import { commands } from "../../src/cli/commands/index.js";
import { stops } from "../../src/cli/io.js";
import { runCli } from "../../src/cli/run.js";
import { fakeBackend, fakeIo, fakeSession } from "../support/fake-cli.js";

const current: RolloutEvent = { type: "current", deployment: "prod", build: "2", previous: "1" };
const left = [
  { build: "1", sessions: 6, ids: ["a", "b", "c", "d", "e"] },
  { sessions: 1, ids: ["f"] },
];

/** One `rollout` command line, whose roll-out or freeing tells these events. */
async function rollout(
  argv: readonly string[],
  events: readonly RolloutEvent[] = [],
  { env = {}, hang = false }: { env?: Record<string, string>; hang?: boolean } = {},
) {
  const io = fakeIo({ env });
  const asked: {
    readonly what: string;
    readonly build: string;
    readonly options: RolloutOptions;
  }[] = [];
  const telling = (what: string) =>
    async function* (build: string, options: RolloutOptions) {
      asked.push({ what, build, options });
      yield* events;
      if (hang) {
        io.controller.abort(stops.SIGINT);
        await new Promise(() => {});
      }
    };
  const code = await runCli(["rollout", ...argv], io, {
    commands,
    version: "0",
    openBackend: () =>
      Promise.resolve(
        fakeBackend(fakeSession({}), {
          rollOut: telling("roll out"),
          freeSessions: telling("free"),
        }),
      ),
  });
  return { code, asked, out: io.out.text, err: io.err.text };
}

describe("longhaul rollout", () => {
  it("tells each step, and what to do about sessions that have not moved", async () => {
    const { code, out, err, asked } = await rollout(
      ["2"],
      [
        { type: "waiting", message: "waiting for a worker" },
        current,
        { type: "sessions", asked: 7, left },
        { type: "end", left },
      ],
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toBe(
      [
        "waiting for a worker",
        "build 2 of deployment prod is the current one now; it was 1",
        "asked 7 sessions; not moved yet: 6 sessions on build 1, 1 session without a build",
        "not moved yet: 6 sessions on build 1, 1 session without a build (a, b, c, d, e); each moves when its step ends, and needs its workers until then. Wait for them: longhaul rollout 2 --wait",
        "",
      ].join("\n"),
    );
    expect(asked).toMatchObject([{ what: "roll out", build: "2", options: { wait: false } }]);
    expect(asked[0]?.options).not.toHaveProperty("deployment");
  });

  it("says when the workers of other builds may be stopped", async () => {
    const { out } = await rollout(
      ["2"],
      [
        { ...current, previous: "2" },
        { type: "sessions", asked: 1, left: [] },
        { type: "end", left: [] },
      ],
    );
    expect(out).toBe(
      [
        "build 2 of deployment prod already was the current one",
        "asked 1 session; none is left",
        "done: no open session is left on another build; its workers may be stopped",
        "",
      ].join("\n"),
    );
  });

  it("does not let go of workers whose ended sessions are not archived", async () => {
    const ended = [{ build: "1", sessions: 1, ids: ["z"] }];
    const { out } = await rollout(
      ["2"],
      [
        { type: "sessions", asked: 0, left: [], ended },
        { type: "end", left: [], ended },
      ],
    );
    expect(out).toBe(
      [
        "asked 0 sessions; none is left, but not archived yet: 1 session that ended on build 1",
        "not archived yet: 1 session that ended on build 1; its workers do it within a minute or two, and are needed until then. Wait for them: longhaul rollout 2 --wait",
        "",
      ].join("\n"),
    );
  });

  it("frees the sessions of a build with --free", async () => {
    const { out, asked } = await rollout(
      ["1", "--free", "--wait"],
      [{ type: "end", left: left.slice(0, 1) }],
    );
    expect(asked).toMatchObject([{ what: "free", build: "1", options: { wait: true } }]);
    expect(out).toBe(
      "not moved yet: 6 sessions on build 1 (a, b, c, d, e); each moves when its step ends. Wait for them: longhaul rollout --free 1 --wait\n",
    );
  });

  it("gives one document with --json", async () => {
    const { out } = await rollout(
      ["2", "--json"],
      [current, { type: "sessions", asked: 7, left }, { type: "end", left }],
    );
    expect(JSON.parse(out)).toEqual({
      build: "2",
      deployment: "prod",
      previous: "1",
      asked: 7,
      done: false,
      left: [left[0], { build: null, ...left[1] }],
      ended: [],
    });
  });

  it("takes deployment and patience from flags, the deployment also from the environment", async () => {
    const variable = { env: { LONGHAUL_DEPLOYMENT: "test" } };
    expect((await rollout(["2"], [], variable)).asked).toMatchObject([
      { options: { deployment: "test" } },
    ]);
    const { asked } = await rollout(["2", "--deployment", "prod", "--timeout", "2m"], [], variable);
    expect(asked).toMatchObject([{ options: { deployment: "prod", patienceMs: 120_000 } }]);
  });

  it("ends at Ctrl-C", async () => {
    const { code, out, err } = await rollout(["2", "--wait"], [current], { hang: true });
    expect({ code, err }).toEqual({ code: 130, err: "" });
    expect(out).toContain("is the current one now");
  });

  it.each([
    [[], /^error: USAGE: /],
    [["a b"], /^error: USAGE: rollout <build> expected 1 to 128 letters[^\n]*"a b"/],
    [["2", "--deployment", "a.b"], /^error: USAGE: --deployment expected /],
    [["2", "--timeout", "soon"], /^error: USAGE: --timeout expected /],
  ])("%j is a mistake in the command line", async (argv, message) => {
    const { code, err, asked } = await rollout(argv);
    expect({ code, asked }).toEqual({ code: 2, asked: [] });
    expect(err).toMatch(message);
  });
});
