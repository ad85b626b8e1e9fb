import { createHash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import * as z from "zod";

import { createJobHost } from "../../src/kinds/job-host.js";
import { readJobStream } from "../../src/process/jobs/stored-parts.js";
import { jobStart, jobStreamsOf } from "../../src/store/job-output.js";
import { defineJobKind, defineTool } from "../../src/tools/define.js";
import { loadToolsFile } from "../../src/tools/load.js";
import { openKindBench, outcomeOf } from "../support/kind-bench.js";
import { patience } from "../support/job-bench.js";

const quick = { timeout: 60_000 };

describe("a job with final output", quick, () => {
  it("gives what its body returned, with its detail, whenever it is asked again", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "Grüße" });
    const expected = { status: "completed", detail: "as asked", output: "Grüße" };
    expect(outcomeOf(await bench.follow(job).done)).toEqual(expected);
    expect(outcomeOf(await bench.follow(job).done)).toEqual(expected);
    expect(await bench.content("runs")).toBe(`${process.pid} session-1/job/${job.jobId}/n0nce\n`);
  });

  it("has output over 64 KB in the store, with its digest", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "ä", times: 40_000 });
    const whole = Buffer.from("ä".repeat(40_000));
    const digest = createHash("sha256").update(whole).digest("hex");
    const outcome = outcomeOf(await bench.follow(job).done);
    expect(outcome).toEqual({
      status: "completed",
      detail: "as asked",
      ref: { ref: `job/${job.jobId}/n0nce/result:${digest.slice(0, 16)}`, bytes: 80_000, digest },
    });
    const stored = await bench.store.read("session-1", outcome.ref?.ref ?? "", 0, 100_000);
    expect(Buffer.from(stored).equals(whole)).toBe(true);
    const least = await bench.begin("report", { text: "x", times: 65_536 });
    expect(outcomeOf(await bench.follow(least).done).output).toHaveLength(65_536);
  });

  it("is what its body says it is, and failed when it throws", async () => {
    const bench = await openKindBench();
    const said = await bench.begin("report", { text: "half", status: "failed" });
    expect(outcomeOf(await bench.follow(said).done)).toEqual({
      status: "failed",
      detail: "as asked",
      output: "half",
    });
    const threw = await bench.begin("report", { text: "", fails: "no such thing" });
    expect(outcomeOf(await bench.follow(threw).done)).toEqual({
      status: "failed",
      detail: "TypeError: no such thing",
    });
  });
});

describe("a streaming job", quick, () => {
  it("has its streams in the store, `output` first, and their ends in its report", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("ticker", { lines: 3 });
    const seen: unknown[] = [];
    const outcome = outcomeOf(
      await bench.follow(job, { onProgress: (progress) => seen.push(progress) }).done,
    );
    expect(outcome).toEqual({
      status: "completed",
      detail: "3 lines",
      tails: [
        { stream: "output", from: 0, to: 6, text: "1\n2\n3\n" },
        { stream: "notes", from: 0, to: 6, text: "noted\n" },
      ],
    });
    expect(seen.at(-1)).toEqual({ output: 6, notes: 6, lastLine: "noted" });
    expect(await jobStreamsOf(bench.store, "session-1", jobStart(job))).toEqual([
      { name: "output", id: "output" },
      { name: "notes", id: "notes" },
    ]);
  });

  it("that prints more than the store takes keeps its beginning and its readable end", async () => {
    const bench = await openKindBench();
    const given = { ...bench.job("ticker", { lines: 20_000, width: 9 }), outputBytes: 5_000 };
    await bench.host.begin(given);
    const { tails } = outcomeOf(await bench.follow(given).done);
    expect(tails?.[0]).toMatchObject({ to: 200_000 });
    expect(tails?.[0]?.text.endsWith("    19999\n    20000\n")).toBe(true);
    const read = await readJobStream(bench.store, "session-1", jobStart(given), "output", 0);
    expect(read).toMatchObject({ from: 136_000, to: 200_000, dropped: true });
    const head = await bench.store.read("session-1", `job/${given.jobId}/n0nce/output`, 0, 10_000);
    expect(head).toHaveLength(5_000);
    expect(Buffer.from(head).toString()).toMatch(/^ {8}1\n {8}2\n/);
  });

  it("can be read while it runs", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("ticker", { lines: 2, until: "go" });
    const following = bench.follow(job);
    await vi.waitFor(async () => {
      const read = await readJobStream(bench.store, "session-1", jobStart(job), "output", 2);
      expect(Buffer.from(read.bytes).toString()).toBe("2\n");
    }, patience);
    await bench.write("go");
    expect(outcomeOf(await following.done).status).toBe("completed");
  });
});

describe("a kill", quick, () => {
  it("reaches the body with its reason; one that gives up for it was killed", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "", until: "never" });
    const following = bench.follow(job);
    await vi.waitFor(async () => expect(await bench.content("runs")).not.toBe(""), patience);
    following.kill("not needed");
    following.kill("again");
    expect(outcomeOf(await following.done)).toEqual({ status: "killed" });
    expect(await bench.content("stops")).toBe("Error: not needed\n");
  });

  it("does not change a job that comes to its end in spite of it", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "done", until: "go", stubborn: true });
    const following = bench.follow(job);
    await vi.waitFor(async () => expect(await bench.content("runs")).not.toBe(""), patience);
    following.kill();
    await vi.waitFor(async () => expect(await bench.content("stops")).not.toBe(""), patience);
    await bench.write("go");
    expect(outcomeOf(await following.done)).toMatchObject({ status: "completed", output: "done" });
  });

  it("of a job whose body nobody has run yet settles it without running it", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "" });
    const following = bench.follow(job);
    following.kill();
    expect(outcomeOf(await following.done)).toEqual({
      status: "killed",
      detail: "killed before exit",
    });
    expect(await bench.content("runs")).toBe("");
  });

  it("reaches a body in another process", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "", until: "never" });
    const first = bench.followElsewhere(job);
    await vi.waitFor(async () => expect(await bench.content("runs")).not.toBe(""), patience);
    expect(await bench.content("runs")).toMatch(new RegExp(`^${first.pid} `));
    const following = bench.follow(job);
    following.kill("from afar");
    expect(outcomeOf(await following.done)).toEqual({ status: "killed" });
    expect(await bench.content("stops")).toBe("Error: from afar\n");
  });
});

describe("a body", quick, () => {
  it("runs once under any number of starts and followers", async () => {
    const bench = await openKindBench();
    const job = bench.job("report", { text: "one", until: "go" });
    const begun = await Promise.all(Array.from({ length: 5 }, () => bench.host.begin(job)));
    expect(begun).toEqual(Array.from({ length: 5 }, () => ({ kind: "begun" })));
    const elsewhere = bench.followElsewhere(job);
    const followers = Array.from({ length: 5 }, () => bench.follow(job).done);
    await vi.waitFor(async () => expect(await bench.content("runs")).not.toBe(""), patience);
    await bench.write("go");
    const ends = await Promise.all(followers);
    // All but the one of the highest rank may have been displaced.
    expect(outcomeOf(ends[4] as (typeof ends)[4])).toMatchObject({ output: "one" });
    await once(elsewhere, "exit");
    expect((await bench.content("runs")).trim().split("\n")).toHaveLength(1);
  });

  it("goes on unfollowed in its process, and the next attempt joins it", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "kept", until: "go" });
    const first = bench.follow(job);
    await vi.waitFor(async () => expect(await bench.content("runs")).not.toBe(""), patience);
    first.detach();
    expect(await first.done).toEqual({ kind: "detached", why: "asked" });
    const second = bench.follow(job);
    await bench.write("go");
    expect(outcomeOf(await second.done)).toMatchObject({ output: "kept" });
    expect((await bench.content("runs")).trim().split("\n")).toHaveLength(1);
    expect(await bench.content("stops")).toBe("");
  });

  it("whose worker process was killed ends failed, told as lost", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("ticker", { lines: 2, until: "never" });
    const first = bench.followElsewhere(job);
    await vi.waitFor(async () => {
      const { to } = await readJobStream(bench.store, "session-1", jobStart(job), "output", 0);
      expect(to).toBe(4);
    }, patience);
    const following = bench.follow(job);
    first.kill("SIGKILL");
    expect(outcomeOf(await following.done)).toEqual({
      status: "failed",
      detail: "worker lost: the worker on host-1 that ran it is gone; work may be orphaned",
      lost: true,
    });
  });

  it("that can re-attach is taken up by the next process without a byte lost or doubled", async () => {
    const bench = await openKindBench();
    await bench.write("log", "a\nb\n");
    const job = await bench.begin("watcher", { from: "log" });
    const first = bench.followElsewhere(job);
    await vi.waitFor(async () => {
      const { to } = await readJobStream(bench.store, "session-1", jobStart(job), "output", 0);
      expect(to).toBe(4);
    }, patience);
    first.kill("SIGKILL");
    await once(first, "exit");
    await bench.write("log", "a\nb\nc\n");
    const second = bench.followElsewhere(job);
    await vi.waitFor(async () => {
      const { to } = await readJobStream(bench.store, "session-1", jobStart(job), "output", 0);
      expect(to).toBe(6);
    }, patience);
    second.kill("SIGKILL");
    await once(second, "exit");
    await bench.write("log", "a\nb\nc\nd\n");
    const following = bench.follow(job);
    await bench.write("finish");
    expect(outcomeOf(await following.done)).toMatchObject({
      status: "completed",
      detail: "carried by reattach",
      tails: [{ stream: "output", from: 0, to: 8, text: "a\nb\nc\nd\n" }],
    });
    expect(await bench.content("runs")).toBe(
      `run ${first.pid}\nreattach ${second.pid}\nreattach ${process.pid}\n`,
    );
  });

  it("is ended by its worker's stop unless it can re-attach", async () => {
    const bench = await openKindBench();
    const job = await bench.begin("report", { text: "", until: "never" });
    const following = bench.follow(job);
    expect(following.outlivesWorker).toBe(false);
    await vi.waitFor(async () => expect(await bench.content("runs")).not.toBe(""), patience);
    following.shutDown();
    const expected = { status: "failed", detail: "worker shutdown on host-1" };
    expect(outcomeOf(await following.done)).toEqual(expected);
    expect(await bench.content("stops")).toBe("Error: worker shutdown on host-1\n");

    const deaf = await bench.begin("report", { text: "", until: "at last", stubborn: true });
    const other = bench.follow(deaf);
    await vi.waitFor(
      async () => expect((await bench.content("runs")).split("\n")).toHaveLength(3),
      patience,
    );
    other.shutDown();
    expect(outcomeOf(await other.done)).toEqual(expected);
    await bench.write("at last");

    const lasting = bench.follow(await bench.begin("watcher", { from: "log" }));
    expect(lasting.outlivesWorker).toBe(true);
    lasting.shutDown();
    expect(await lasting.done).toEqual({ kind: "detached", why: "asked" });
    await bench.write("finish");
  });
});

describe("a start", quick, () => {
  it("of an unknown kind, or with input that does not fit, is refused and leaves nothing", async () => {
    const bench = await openKindBench();
    expect(await bench.host.begin(bench.job("dream", {}))).toEqual({
      kind: "refused",
      reason: "host host-1 has no job kind dream; it has bash, report, ticker, watcher",
    });
    const job = bench.job("report", { text: 3 });
    expect(await bench.host.begin(job)).toEqual({
      kind: "refused",
      reason: "text: Invalid input: expected string, received number",
    });
    expect(outcomeOf(await bench.follow(job).done)).toEqual({
      status: "failed",
      detail: "spawn failed: start lost",
    });
    // Barred by the follower that found nothing.
    await bench.host.begin({ ...job, input: { text: "late" } });
    expect(outcomeOf(await bench.follow(job).done).detail).toBe("spawn failed: start lost");
    expect(await bench.content("runs")).toBe("");
  });

  it("beyond the host's places is refused until a job ends, shell jobs and others together", async () => {
    const bench = await openKindBench({ maxJobs: 2 });
    const [one, two] = [
      await bench.begin("report", { text: "", until: "go" }),
      await bench.begin("report", { text: "", until: "go" }),
    ];
    const more = bench.job("report", { text: "" });
    const shell = bench.job("bash", { command: "true" });
    expect(await bench.host.begin(more)).toEqual({ kind: "full", jobs: 2 });
    expect(await bench.host.begin(shell)).toEqual({ kind: "full", jobs: 2 });
    expect(await bench.host.begin(one)).toEqual({ kind: "begun" });
    await bench.write("go");
    await bench.follow(one).done;
    expect(await bench.host.begin(more)).toEqual({ kind: "begun" });
    await bench.follow(two).done;
    await bench.follow(more).done;
  });

  it("of a shell job takes the tool's arguments, and says what is wrong with them", async () => {
    const bench = await openKindBench();
    const refused = async (input: Record<string, string>): Promise<unknown> =>
      await bench.host.begin(bench.job("bash", input));
    expect(await refused({})).toMatchObject({ kind: "refused", reason: /^command: / });
    expect(await refused({ command: "true", workdir: "nowhere" })).toEqual({
      kind: "refused",
      reason: `cannot run in ${bench.cwd}/nowhere: it does not exist; give a workdir that exists`,
    });
    const { cwd: _, ...homeless } = bench.job("bash", { command: "true" });
    expect(await bench.host.begin(homeless)).toMatchObject({
      kind: "refused",
      reason: /no workspace/,
    });
    const job = await bench.begin("bash", { command: "pwd", description: "where", workdir: "." });
    expect(outcomeOf(await bench.follow(job).done)).toMatchObject({
      status: "completed",
      detail: "exit code: 0",
      tails: [{ text: `${bench.cwd}\n` }, { text: "" }],
    });
  });
});

describe("the sweep", quick, () => {
  it("ends what nobody follows and whose workflow is closed, and leaves the rest alone", async () => {
    const bench = await openKindBench();
    const [gone, open] = [
      await bench.begin("report", { text: "", until: "never" }),
      await bench.begin("report", { text: "kept", until: "go" }),
    ];
    const followed = [bench.follow(gone), bench.follow(open)];
    await vi.waitFor(
      async () => expect((await bench.content("runs")).split("\n")).toHaveLength(3),
      patience,
    );
    for (const one of followed) one.detach();
    await Promise.all(followed.map(({ done }) => done));
    const ended = await bench.host.sweep({
      isOwnerClosed: async ({ jobId }) => (jobId === gone.jobId ? "closed" : "open"),
      onTrouble: (_, error) => expect(error).toBeUndefined(),
    });
    expect(ended).toEqual([
      {
        job: expect.objectContaining({ jobId: gone.jobId }),
        token: "session-1:run-1",
        outcome: { status: "killed" },
      },
    ]);
    await bench.write("go");
    expect(outcomeOf(await bench.follow(open).done)).toMatchObject({ output: "kept" });
  });
});

describe("a tools file", quick, () => {
  it("may export job kinds: the example's runs as its page says", async () => {
    const example = fileURLToPath(new URL("../../examples/my-jobs.ts", import.meta.url));
    const { tools, jobKinds } = await loadToolsFile(example);
    expect(jobKinds.map(({ jobKind }) => jobKind)).toEqual([
      { kind: "countdown", output: "stream" },
    ]);
    expect(tools.map(({ row }) => [row.name, row.jobKind])).toEqual([["countdown", "countdown"]]);
    const bench = await openKindBench();
    const { home, store } = bench;
    const host = createJobHost({ home, host: "host-1", store, kinds: jobKinds, maxJobs: 1 });
    const job = bench.job("countdown", { seconds: 1 });
    expect(await host.begin(job)).toEqual({ kind: "begun" });
    const { sessionId, jobId, nonce, kind, outputBytes } = job;
    const rank = { scheduledAt: 1, attempt: 1 };
    const end = await host.follow({ sessionId, jobId, nonce, kind, outputBytes, rank }).done;
    expect(outcomeOf(end)).toMatchObject({
      status: "completed",
      detail: "lift-off",
      tails: [{ stream: "output", text: "1\n" }],
    });
  });
});

describe("defineJobKind", () => {
  const input = z.object({});
  const run = (): undefined => undefined;

  it("refuses what cannot be offered", () => {
    for (const kind of ["", "Bash", "a b", "1st", "end-", "x".repeat(41)])
      expect(() => defineJobKind({ kind, output: "final", input, run })).toThrow(
        `a job kind has 1 to 40 of a-z 0-9 -, from a letter to a letter or digit, got ${JSON.stringify(kind)}`,
      );
    expect(() =>
      defineJobKind({ kind: "k", output: "final", outputLimitBytes: 0, input, run }),
    ).toThrow("outputLimitBytes of job kind k expected a positive whole number, got 0");
  });

  it("gives the rows that the host offers, bash first; a name is taken once", async () => {
    const bench = await openKindBench();
    expect(bench.host.kinds).toEqual([
      { kind: "bash", output: "stream" },
      { kind: "report", output: "final", outputLimitBytes: 200 },
      { kind: "ticker", output: "stream" },
      { kind: "watcher", output: "stream" },
    ]);
    const options = { home: bench.home, host: "h", store: bench.store, maxJobs: 1 };
    const twice = defineJobKind({ kind: "twice", output: "final", input, run });
    expect(() => createJobHost({ ...options, kinds: [twice, twice] })).toThrow(
      "the job kind twice is taken by another one; choose another name",
    );
    const bash = defineJobKind({ kind: "bash", output: "final", input, run });
    expect(() => createJobHost({ ...options, kinds: [bash] })).toThrow(
      "the job kind bash is taken by the built-in one; choose another name",
    );
  });

  it("goes with a tool whose background calls start it", () => {
    const spec = {
      name: "t",
      description: "d",
      parameters: z.object({ run_in_background: z.boolean().optional() }),
      execute: () => "",
      jobKind: "report" as const,
    };
    expect(defineTool(spec).row.jobKind).toBe("report");
    expect(() => defineTool({ ...spec, workspace: false })).toThrow(
      "tool t has a jobKind, so it cannot have workspace: false",
    );
  });
});
