import { describe, expect } from "vitest";
import { LonghaulClient } from "../../src/client/index.js";
import { openArchive } from "../../src/store/archive.js";
import { test, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const talk = { turns: [{ repeat: 100, steps: [{ text: "answer ${turn}" }] }] };
const rolling = { rollOver: { events: 1, minIntervalMs: 0 } } as const;

/** What Temporal still lists of a session and its jobs. */
async function listed(lab: Lab, session: string): Promise<string[]> {
  const query = `WorkflowId STARTS_WITH '${session}'`;
  const ids: string[] = [];
  for await (const { workflowId } of lab.temporal.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

describe.concurrent("a purge", () => {
  test("is refused while the session or one of its jobs runs; then it leaves nothing, in Temporal and in the store", async ({
    lab,
  }) => {
    const place = await lab.place({ archiveSweepMs: 50 });
    const session = await lab.session(talk, { at: place, config: rolling, unchecked: true });
    for (const question of ["one", "two"]) await lab.play(session, question);
    const { id: jobId } = await session.startJob({
      kind: "bash",
      input: { command: "echo printed; sleep 600" },
    });
    await eventually(async () => {
      const pieces: string[] = [];
      for await (const { text } of session.jobOutput(jobId)) pieces.push(text);
      expect(pieces.join("")).toBe("printed\n");
    });
    const [job] = (await session.jobs()).jobs;
    await expect(lab.client.purge(session.id)).rejects.toMatchObject({
      code: "SESSION_OPEN",
      message: `session ${session.id} has not ended; close it first (longhaul close ${session.id}); nothing was removed`,
    });
    await lab.handle(session.id).terminate("by hand");
    await expect(lab.client.purge(session.id)).rejects.toMatchObject({
      code: "SESSION_OPEN",
      message: expect.stringMatching(/^job bash-1 of session \S+ has not ended \(workflow \S+\)/u),
    });
    expect(await lab.store.list(session.id, "segment/")).not.toEqual([]);
    const jobHandle = lab.handle(job?.workflowId ?? "");
    await jobHandle.cancel();
    await jobHandle.result();
    const archive = openArchive(lab.store);
    await eventually(async () => expect(await archive.ended(session.id)).toBeDefined());
    const stored = await lab.store.list(session.id, "");
    const removed = await lab.client.purge(session.id);
    expect(removed).toEqual({
      session: session.id,
      runs: expect.any(Number),
      jobs: 1,
      streams: stored.length,
      bytes: stored.reduce((sum, { bytes }) => sum + bytes, 0),
    });
    expect(removed.runs).toBeGreaterThan(2);
    expect(await listed(lab, session.id)).toEqual([]);
    // Sweeps go on meanwhile: one that comes after it shows that they have passed by.
    const later = await lab.session(talk, { at: place, unchecked: true });
    await later.close();
    await eventually(async () => expect(await archive.ended(later.id)).toBeDefined());
    expect(await lab.store.list(session.id, "")).toEqual([]);
    await expect(session.record()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(session.logPage()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(lab.client.purge(session.id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  test("of a session whose id begins like another's leaves that one alone", async ({ lab }) => {
    const place = await lab.place({ archiveSweepMs: 50 });
    const one = await lab.session(talk, { at: place, unchecked: true });
    await lab.temporal.workflow.start("session", {
      workflowId: `${one.id}.2`,
      taskQueue: place.queue,
      args: [{ v: 0 }],
    });
    await one.close();
    const { runs } = await lab.client.purge(one.id);
    expect(runs).toBe(1);
    expect(await listed(lab, one.id)).toEqual([`${one.id}.2`]);
  });

  test("needs the store", async ({ lab }) => {
    await using client = await LonghaulClient.connect({ connection: { address: lab.address } });
    await expect(client.purge("s-1")).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });
});

describe("a reader without the store", () => {
  test("sees what runs, and is told what is archived; only the watcher that lacks it fails", async ({
    lab,
  }) => {
    const session = await lab.session(talk, { config: rolling, unchecked: true });
    await lab.play(session, "one");
    await using client = await LonghaulClient.connect({ connection: { address: lab.address } });
    const bare = client.session(session.id);
    const { lastSeq } = await bare.view();
    const behind = bare.watch();
    const current = bare.watch({ after: lastSeq });
    const next = current.next();
    const failure = {
      code: "ARCHIVE_UNAVAILABLE",
      message: expect.stringMatching(/connected without one; give LonghaulClient\.connect/u),
    };
    await expect(bare.logPage()).rejects.toMatchObject(failure);
    await expect(bare.messages()).rejects.toMatchObject(failure);
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { type } of behind) seen.push(type);
    };
    await expect(read()).rejects.toMatchObject(failure);
    // A worker that is slow to answer is told to all.
    expect(seen.filter((type) => type !== "connection")).toEqual([]);
    expect((await next).done).toBe(false);
    await current.return?.();
  });
});
