import { describe, expect, it } from "vitest";
import type { WorkerRequest } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { runCli } from "../../src/cli/run.js";
import { fakeBackend, fakeIo, fakeSession } from "../support/fake-cli.js";

/** One `worker` command line; its worker ends at once. */
async function worker(argv: readonly string[], env: Record<string, string> = {}) {
  const io = fakeIo({ env: { LONGHAUL_HOST_ID: "me", ...env } });
  const started: WorkerRequest[] = [];
  const code = await runCli(["worker", ...argv], io, {
    commands,
    version: "0",
    openBackend: () =>
      Promise.resolve(
        fakeBackend(fakeSession({}), {
          startWorker(request) {
            started.push(request);
            return Promise.resolve({ stop: () => Promise.resolve(), done: Promise.resolve() });
          },
        }),
      ),
  });
  return { code, started, out: io.out.text, err: io.err.text };
}

const named = ["--deployment", "prod", "--build-id", "1.2.0"];
const ready = "worker ready: role both, host me, Temporal 127.0.0.1:7233, namespace default";

describe("a worker's build", () => {
  it("is none where none is named, also by empty variables", async () => {
    const { started, out } = await worker([], { LONGHAUL_DEPLOYMENT: "", LONGHAUL_BUILD_ID: " " });
    expect(started).toHaveLength(1);
    expect(started[0]).not.toHaveProperty("deployment");
    expect(out).toBe(`${ready}\n`);
  });

  it.each([
    ["flags", named, {}],
    ["variables", [], { LONGHAUL_DEPLOYMENT: "prod", LONGHAUL_BUILD_ID: "1.2.0" }],
    [
      "a flag that wins over its variable",
      named.slice(2),
      { LONGHAUL_DEPLOYMENT: "prod", LONGHAUL_BUILD_ID: "1.1.0" },
    ],
  ])("is named by %s", async (_how, argv, env) => {
    const { started, out, code } = await worker(argv, env);
    expect(code).toBe(0);
    expect(started[0]?.deployment).toEqual({ name: "prod", buildId: "1.2.0" });
    expect(out).toBe(`${ready}, build 1.2.0 of deployment prod\n`);
  });

  it.each([
    [["--deployment", "prod"], {}, 2, /^error: USAGE: .*got a deployment alone; give --build-id /],
    [["--build-id", "1"], {}, 2, /^error: USAGE: .*got a build id alone; give --deployment /],
    [[], { LONGHAUL_BUILD_ID: "1" }, 1, /^error: INVALID_CONFIG: .*got a build id alone/],
    [
      ["--deployment", "a.b", "--build-id", "1"],
      {},
      2,
      /^error: USAGE: --deployment expected .*"a\.b"/,
    ],
    [
      [],
      { LONGHAUL_DEPLOYMENT: "p", LONGHAUL_BUILD_ID: "a b" },
      1,
      /^error: INVALID_CONFIG: LONGHAUL_BUILD_ID expected .*"a b"/,
    ],
  ] as const)("%j %j is refused in one line", async (argv, env, exit, message) => {
    const { code, started, err } = await worker(argv, env);
    expect(code).toBe(exit);
    expect(started).toEqual([]);
    expect(err).toMatch(message);
    expect(err.trimEnd()).not.toContain("\n");
  });
});
