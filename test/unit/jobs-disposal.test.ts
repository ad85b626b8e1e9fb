import { describe, expect, it } from "vitest";
import type { JobSnapshot } from "../../src/contracts/jobs.js";
import { decideSettle } from "../../src/domain/job-settle.js";
import {
  baselineFrame,
  changedOwners,
  checkSnapshot,
  jobsFrame,
} from "../../src/domain/job-views.js";
import { JobRig } from "../support/jobs-rig.js";

const killed = { status: "killed" } as const;

describe("disposal of an owner", () => {
  it("[jobs/39] [jobs/41] cancels what is live, awaits it, announces nothing and leaves no record", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const done = rig.begin("bash", "done", { owner });
    rig.settle(done);
    const live = rig.begin("bash", "live", { owner });
    rig.notices.length = 0;
    rig.settled.length = 0;
    rig.disposeOwner(owner, (id) => {
      expect(rig.list("alice")).toHaveLength(2);
      rig.settle(id, killed);
    });
    expect(rig.cancels).toEqual([{ id: live, reason: "owner disposed" }]);
    expect(rig.settled).toMatchObject([{ id: live, status: "killed", reported: true }]);
    expect(rig.list("alice")).toEqual([]);
    expect(rig.notices).toEqual([]);
  });

  it("[jobs/40] the change is known before the end is told", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    rig.onSettled = (snapshot) => {
      expect(rig.changes).toHaveLength(2);
      expect(rig.get(snapshot.id)).toEqual(snapshot);
    };
    const { entries } = rig.settle(id);
    expect(entries.map((entry) => entry.type)).toEqual(["job/settled", "agent/inbox/spliced"]);
  });

  it("[jobs/42] in place of one attached cleanup: one teardown ends all jobs of the owner, each asked once, and nobody else's", () => {
    const rig = new JobRig();
    const alice = rig.owner("alice");
    const ids = [
      rig.begin("bash", "a", { owner: alice }),
      rig.begin("bash", "b", { owner: alice }),
    ];
    rig.begin("bash", "c", { owner: rig.owner("bob") });
    rig.begin("bash");
    rig.disposeOwner(alice, (id) => rig.settle(id, killed));
    expect(rig.cancels.map((cancel) => cancel.id)).toEqual(ids);
    expect(rig.list("bob").map((job) => job.status)).toEqual(["running", "running"]);
  });

  it("[jobs/43] only jobs of the exact owner are cancelled, not those of its replacement", () => {
    const rig = new JobRig();
    const old = rig.owner("alice");
    const first = rig.begin("bash", "x", { owner: old });
    const second = rig.begin("bash", "x", { owner: rig.owner("alice", "alice#2") });
    rig.disposeOwner(old, (id) => rig.settle(id, killed));
    expect(rig.cancels.map((cancel) => cancel.id)).toEqual([first]);
    expect(rig.list("alice").map((job) => job.id)).toEqual([second]);
  });

  it("[jobs/44] a cancel that fails gives the job up: failed at once, a late end changes nothing", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    rig.cancelErrors.set(id, "Error: gone");
    rig.onSettled = () => {
      expect(rig.get(id)).toMatchObject({
        status: "failed",
        detail: "cancel threw during teardown; work may be orphaned: Error: gone",
        reported: true,
      });
      expect(rig.report(id, { report: "settled", outcome: killed })).toMatchObject({
        why: "already-settled",
      });
    };
    rig.disposeOwner(owner, () => expect.unreachable("nothing is awaited"));
    expect(rig.settled).toHaveLength(1);
    expect(rig.notices).toEqual([]);
    expect(rig.warnings).toEqual([expect.stringContaining("work may be orphaned")]);
    expect(rig.report(id, { report: "settled", outcome: killed })).toMatchObject({
      why: "unknown-job",
    });
  });

  it("[jobs/51] observers see stopping, the end, and then nothing, however slow the producer is", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    const seen: string[] = [];
    const look = () => seen.push(rig.list("alice")[0]?.status ?? "removed");
    rig.disposeOwner(owner, () => {
      look();
      rig.settle(id, killed);
      look();
    });
    look();
    expect(seen).toEqual(["stopping", "killed", "removed"]);
  });

  it("a close that waited in vain records what it does not know", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    const detail = "the session closed before its end was confirmed; work may be orphaned";
    const given = decideSettle(
      rig.state,
      id,
      { status: "failed", detail },
      { now: 2_000, waits: rig.waits, config: rig.config },
    );
    expect(given).toMatchObject({ ok: true, snapshot: { status: "failed", detail } });
    expect(
      decideSettle(rig.state, "bash-9", killed, { now: 1, waits: rig.waits, config: rig.config }),
    ).toMatchObject({
      why: "unknown-job",
    });
  });
});

describe("disposal of the service", () => {
  it("[jobs/45] unowned jobs are cancelled and gone; observers are told thrice, owners never", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.changes.length = 0;
    rig.disposeService((live) => rig.settle(live, killed));
    expect(rig.cancels).toEqual([{ id, reason: "jobs service disposed" }]);
    expect(rig.changes).toEqual([undefined, undefined, undefined]);
    expect(rig.notices).toEqual([]);
  });

  it("[jobs/46] it ends when a cancel fails, and every owner's set is empty once", () => {
    const rig = new JobRig();
    const alice = rig.owner("alice");
    const bob = rig.owner("bob");
    rig.begin("bash", "a", { owner: alice });
    rig.begin("bash", "b", { owner: alice });
    rig.begin("bash", "c", { owner: bob });
    rig.cancelErrors.set("bash-1", "no");
    const settled: string[] = [];
    rig.disposeService((id) => {
      settled.push(id);
      rig.settle(id, killed);
    });
    expect(settled).toEqual(["bash-2", "bash-3"]);
    expect(rig.state.jobs).toEqual([]);
    expect(rig.changes.slice(-2)).toEqual([alice.id, bob.id]);
    expect(rig.notices).toEqual([]);
    expect(rig.start("bash", "again", { owner: alice })).toBe("bash-4");
  });
});

describe("changes of what is visible", () => {
  it("[jobs/48] start, kill and settlement are one change each, with the record readable at the first", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    expect(rig.list("alice")).toHaveLength(1);
    rig.kill(id, "alice");
    rig.read(id, "alice");
    rig.settle(id, killed);
    rig.read(id, "alice");
    expect(rig.changes).toEqual([owner.id, owner.id, owner.id]);
  });

  it("[jobs/49] an unowned job moves everyone's set; an owner without jobs moves none when it goes", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    rig.begin("bash");
    expect(rig.changes).toEqual([undefined]);
    rig.disposeOwner(owner, () => undefined);
    expect(rig.changes).toHaveLength(1);
  });

  it("a late end moves nobody's set", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.settle(id);
    const data = { id, status: "failed", finishedAt: 9 } as const;
    expect(changedOwners(rig.state, { type: "job/settled", seq: 9, time: 9, data })).toEqual([]);
  });

  it("[jobs/91] a user interface sees a whole lifecycle and consumes nothing", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const frames: unknown[] = [];
    const look = () => frames.push(jobsFrame(rig.state, "alice").jobs[0]);
    const id = rig.begin("bash", "pnpm test", { owner, limit: 64 });
    rig.push(id, "output");
    look();
    rig.kill(id, "alice");
    look();
    rig.settle(id, { status: "killed", detail: "signal: SIGTERM" });
    look();
    const { startedAt, finishedAt } = rig.get(id);
    const head = { id, kind: "bash", label: "pnpm test" };
    expect(frames).toStrictEqual([
      { ...head, status: "running", startedAt },
      { ...head, status: "stopping", startedAt },
      { ...head, status: "killed", detail: "signal: SIGTERM", startedAt, finishedAt },
    ]);
    expect(rig.read(id, "alice")).toMatchObject({ text: "output" });
  });

  it("[jobs/92] there is no first frame without jobs, an unowned job is in every session's, and an emptied set is a frame", () => {
    const rig = new JobRig();
    expect(baselineFrame(rig.state, "alice")).toBeUndefined();
    const owner = rig.owner("alice");
    rig.begin("bash", "x", { owner });
    expect(baselineFrame(rig.state, "bob")).toBeUndefined();
    rig.begin("bash");
    expect(baselineFrame(rig.state, "bob")?.jobs.map((job) => job.id)).toEqual(["bash-2"]);
    expect(baselineFrame(rig.state, "newcomer")?.jobs).toHaveLength(1);
    expect(baselineFrame(rig.state, "alice")?.jobs).toHaveLength(2);
    rig.disposeService((id) => rig.settle(id, killed));
    expect(jobsFrame(rig.state, "alice")).toEqual({
      type: "session/jobs",
      sessionId: "alice",
      jobs: [],
    });
  });
});

describe("snapshot invariants", () => {
  const live: JobSnapshot = {
    id: "bash-1",
    kind: "bash",
    label: "x",
    status: "running",
    startedAt: 5,
    reported: false,
  };
  const ended: JobSnapshot = { ...live, status: "completed", finishedAt: 5 };

  it("[jobs/52] each violation has its own message", () => {
    const flaws = [
      checkSnapshot({ ...live, kind: "" }, undefined),
      checkSnapshot({ ...live, id: "pwsh-1" }, undefined),
      checkSnapshot({ ...live, id: "bash-0" }, undefined),
      checkSnapshot({ ...live, label: "" }, undefined),
      checkSnapshot({ ...live, startedAt: -1 }, undefined),
      checkSnapshot({ ...live, status: "gone" }, undefined),
      checkSnapshot({ ...live, finishedAt: 6 }, undefined),
      checkSnapshot({ ...ended, finishedAt: undefined }, undefined),
      checkSnapshot({ ...ended, finishedAt: 5.5 }, undefined),
      checkSnapshot({ ...ended, finishedAt: 4 }, undefined),
      checkSnapshot(live, "alice"),
      checkSnapshot(null, undefined),
    ];
    expect(flaws).not.toContain(undefined);
    expect(new Set(flaws).size).toBe(flaws.length);
    for (const strange of [
      { ...live, id: "bash-x" },
      { ...live, id: "bash-01" },
      { ...live, id: "bash-9007199254740992" },
      { ...live, startedAt: 0.5 },
      { ...live, ownerSession: "bob" },
    ]) {
      expect(checkSnapshot(strange, undefined)).toBeDefined();
    }
    expect(checkSnapshot(live, undefined)).toBeUndefined();
    expect(checkSnapshot(ended, undefined)).toBeUndefined();
    expect(checkSnapshot({ ...live, ownerSession: "alice" }, "alice")).toBeUndefined();
  });
});
