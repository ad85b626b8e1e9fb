import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { describe, expect, inject, test as base, vi } from "vitest";
import type { SessionClient } from "../../src/client/index.js";
import { jobProcesses } from "../support/job-processes.js";
import { eventually } from "../support/until.js";
import {
  openVersionedSite,
  otherBuild,
  otherText,
  type VersionedSite,
} from "../support/versioned-site.js";

/** They wait most of the time, e.g. for a minute until a killed worker no longer counts, so two go beside each other. */
vi.setConfig({ testTimeout: 600_000, hookTimeout: 180_000, maxConcurrency: 2 });

/** `site`: an embedded server of its own. `other`: root of a second build. */
const test = base.extend<{ site: VersionedSite; other: string }>({
  other: [
    async ({}, use) => {
      const copy = await otherBuild();
      await use(copy);
      await rm(copy, { recursive: true, force: true });
    },
    { scope: "file" },
  ],
  site: async ({}, use) => {
    const site = await openVersionedSite();
    try {
      await use(site);
    } finally {
      await site.dispose();
    }
  },
});

const waiting = (gate: string): string =>
  `echo $$ > ${gate}.pid; until [ -e ${gate} ]; do sleep 0.05; done; echo ${gate} "is" open`;
const call = (gate: string, background = false) => ({
  calls: [
    {
      tool: "bash",
      args: {
        command: waiting(gate),
        description: "Wait",
        // Without one a call ends after a minute, which a roll-out may take.
        ...(background ? { run_in_background: true } : { timeoutMs: 600_000 }),
      },
    },
  ],
});

/** Its first turn starts a job that runs until the file `job` is there; other turns only answer. */
const withJob = {
  turns: [
    { steps: [call("job", true), { text: "started" }] },
    { repeat: 20, steps: [{ text: "noted" }] },
  ],
};
/** Its first turn has a tool call that runs until the file `tool` is there. */
const withTool = {
  turns: [
    { steps: [call("tool"), { text: "through" }] },
    { repeat: 20, steps: [{ text: "noted" }] },
  ],
};

const build = (id: string): readonly string[] => [
  "--role",
  "session",
  "--deployment",
  "prod",
  "--build-id",
  id,
];

async function play(session: SessionClient, text: string): Promise<void> {
  await session.followup(text);
  await session.waitIdle();
}

async function pidOf(cwd: string, gate: string): Promise<number> {
  return eventually(async () => {
    const pid = Number(await readFile(join(cwd, `${gate}.pid`), "utf8"));
    expect(pid).toBeGreaterThan(1);
    return pid;
  });
}

/** A session with a job that runs, and one in the middle of a tool call. */
async function busySessions(site: VersionedSite) {
  const [job, tool] = [await site.session(withJob), await site.session(withTool)];
  await play(job.session, "start it");
  await tool.session.followup("call it");
  return {
    job: { ...job, pid: await pidOf(job.cwd, "job") },
    tool: { ...tool, pid: await pidOf(tool.cwd, "tool") },
  };
}

/** Opens the gate of the job: the session is told once, by a turn. */
async function endJob(
  site: VersionedSite,
  { session, cwd, pid }: Awaited<ReturnType<typeof busySessions>>["job"],
) {
  expect(await pidOf(cwd, "job")).toBe(pid);
  await writeFile(join(cwd, "job"), "");
  await expect(session.waitJob("bash-1", { timeoutMs: 60_000 })).resolves.toMatchObject({
    status: "completed",
  });
  await eventually(async () => {
    const types = (await site.log(session)).map(({ type }) => type);
    const settled = types.indexOf("job/settled");
    expect(types.filter((type) => type === "job/settled")).toHaveLength(1);
    expect(types.slice(settled)).toContain("turn/end");
    expect((await session.view()).turn.open).toBe(false);
  });
}

describe.concurrent("a worker of another build", () => {
  test("without versioning takes over sessions and their jobs where they are", async ({
    site,
    other,
  }) => {
    await site.worker(["--role", "host"]);
    const old = await site.worker(["--role", "session"]);
    const { job, tool } = await busySessions(site);
    const before = await site.placeOf(job.session.id);
    expect(await site.detailsOf(job.session.id)).toContain("Host: `here`");
    await old.kill();
    await site.worker(["--role", "session"], other);
    expect(await site.detailsOf(job.session.id)).toContain(`${otherText}\`here\``);
    await writeFile(join(tool.cwd, "tool"), "");
    await tool.session.waitIdle();
    await endJob(site, job);
    await play(job.session, "and on");
    expect(await site.placeOf(job.session.id)).toEqual({
      ...before,
      build: undefined,
      pinned: false,
    });
    expect(await jobProcesses(site.home)).toEqual([]);
  });

  test("gets new sessions, and the open ones when their step ends, by a roll-out; and gives them back by another", async ({
    site,
    other,
  }) => {
    await site.worker(["--role", "host"]);
    const first = await site.worker(build("1"));
    // Gets nothing before it is the current one.
    expect(await site.cli("rollout", "1")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^build 1 of deployment prod is the current one now\n/u),
    });
    const { job, tool } = await busySessions(site);
    for (const { session } of [job, tool])
      expect(await site.placeOf(session.id)).toMatchObject({ build: "1", pinned: true });
    const over = await site.session({ turns: [{ steps: [{ text: "the end" }] }] });
    await play(over.session, "say it");
    await over.session.close();
    await site.worker(build("2"), other);

    const rollout = await site.cli("rollout", "2", "--deployment", "prod");
    expect(rollout).toMatchObject({ code: 0, stderr: "" });
    expect(rollout.stdout).toMatch(
      /^build 2 of deployment prod is the current one now; it was 1$/mu,
    );
    expect(rollout.stdout).toContain("asked 2 sessions; not moved yet: 2 sessions on build 1\n");
    // The idle one has moved, the one in a step has not.
    expect(rollout.stdout).toContain(`not moved yet: 1 session on build 1 (${tool.session.id}); `);
    expect(await site.placeOf(job.session.id)).toMatchObject({ build: "2", pinned: true });
    expect(await site.detailsOf(job.session.id)).toContain(otherText);
    expect(await site.placeOf(tool.session.id)).toMatchObject({ build: "1", pinned: true });
    expect(await site.detailsOf(tool.session.id)).not.toContain(otherText);

    const wait = site.program("rollout", "2", "--wait");
    await eventually(() => expect(wait.said("already was the current one")).toBe(1));
    await writeFile(join(tool.cwd, "tool"), "");
    await eventually(
      () => expect(wait.said("done: no open session is left on another build")).toBe(1),
      150_000,
    );
    // The old build was needed until then: nobody else can read what has ended there.
    const archived: string[] = [];
    for await (const { session } of site.client.archived()) archived.push(session);
    expect(archived).toContain(over.session.id);
    await tool.session.waitIdle();
    expect(await site.placeOf(tool.session.id)).toMatchObject({ build: "2", pinned: true });
    const results = (await site.log(tool.session)).filter(({ type }) => type === "tool/result");
    expect(results).toHaveLength(1);
    expect(JSON.stringify(results)).toContain("tool is open");

    // Back, while the job still runs.
    const back = await site.cli("rollout", "1", "--wait", "--json");
    expect(back).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(back.stdout)).toEqual({
      build: "1",
      deployment: "prod",
      previous: "2",
      asked: 2,
      done: true,
      left: [],
      ended: [],
    });
    for (const { session } of [job, tool]) {
      expect(await site.placeOf(session.id)).toMatchObject({
        build: "1",
        pinned: true,
        overridden: false,
      });
      expect(await site.detailsOf(session.id)).toContain("Host: `here`");
      await play(session, "and on");
    }
    await endJob(site, job);
    await first.kill();
    expect(JSON.stringify(await site.log(over.session))).toContain("the end");
  });

  test("that is current gets the sessions of one that is gone when they are freed", async ({
    site,
    other,
  }) => {
    await site.worker(["--role", "host"]);
    const first = await site.worker(build("1"));
    await site.cli("rollout", "1");
    const { job, tool } = await busySessions(site);
    await first.kill();
    await writeFile(join(tool.cwd, "tool"), "");

    expect(await site.cli("rollout", "--free", "1")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^error: INVALID_INPUT: .* but 1 is the current one; roll out another one first [^\n]*\n$/u,
      ),
    });
    await site.worker(build("2"), other);
    const rollout = await site.cli("rollout", "2");
    expect(rollout.stdout).toContain("not moved yet: 2 sessions on build 1 (");

    const freed = await site.cli("rollout", "--free", "1", "--wait");
    expect(freed).toMatchObject({ code: 0, stderr: "" });
    expect(freed.stdout).toMatch(/^done: no open session is held by build 1$/mu);
    await tool.session.waitIdle();
    for (const { session } of [job, tool]) {
      expect(await site.placeOf(session.id)).toMatchObject({
        build: "2",
        pinned: true,
        overridden: false,
      });
      expect(await site.detailsOf(session.id)).toContain(otherText);
      await play(session, "and on");
    }
    await endJob(site, job);
    // Nothing is left to do.
    expect(await site.cli("rollout", "--free", "1")).toMatchObject({
      code: 0,
      stdout: "done: no open session is held by build 1\n",
    });
  });
});

describe.concurrent("a roll-out", () => {
  test("of a build without a worker, or of no deployment, says so; and who is meant must be clear", async ({
    site,
  }) => {
    expect(await site.cli("rollout", "1", "--timeout", "1s")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^error: NO_WORKER: there is no deployment: [^\n]*--build-id 1\)\n$/u,
      ),
    });
    await site.worker(build("1"));
    await site.worker(["--role", "session", "--deployment", "test", "--build-id", "1"]);
    const lines = (pattern: RegExp) => ({ code: 1, stderr: expect.stringMatching(pattern) });
    expect(await site.cli("rollout", "1")).toMatchObject(
      lines(/^error: INVALID_INPUT: .*there are several: prod, test\n$/u),
    );
    expect(await site.cli("rollout", "7", "--deployment", "prod", "--timeout", "1s")).toMatchObject(
      lines(
        /^error: NO_WORKER: no worker of build 7 of deployment prod asked for work within 1 s; none was ever seen; start one [^\n]*\n$/u,
      ),
    );
    expect(await site.cli("rollout", "--free", "7", "--deployment", "prod")).toMatchObject(
      lines(/^error: INVALID_INPUT: .* no build is the current one; [^\n]*\n$/u),
    );
  });

  test("on a server without worker versioning says so", async ({ site }) => {
    const env = await TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: "existing-path", path: inject("temporalBinary") },
        log: { format: "pretty", level: "error" },
        extraArgs: ["--dynamic-config-value", "system.enableDeploymentVersions=false"],
      },
    });
    try {
      for (const free of [[], ["--free"]])
        expect(await site.at(env.address, "rollout", "1", ...free)).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(
            /^error: INVALID_CONFIG: this Temporal server has no worker versioning [^\n]*\n$/u,
          ),
        });
    } finally {
      await env.teardown();
    }
  });
});
