import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultJobsConfig, type JobSnapshot } from "../../src/contracts/jobs.js";
import { isBusy, noticeMessage, noticeText } from "../../src/domain/job-notices.js";
import { emptyInbox } from "../../src/domain/inbox.js";
import { JobRig, noticeOf } from "../support/jobs-rig.js";
import type { RigOwner } from "../support/jobs-rig-owner.js";

const ended: JobSnapshot = {
  id: "subagent-1",
  kind: "subagent",
  label: "x".repeat(1_000),
  status: "completed",
  startedAt: 1,
  finishedAt: 2,
  reported: false,
};

function rigWith(config: Partial<JobRig["config"]> = {}): { rig: JobRig; owner: RigOwner } {
  const rig = new JobRig();
  rig.config = { ...defaultJobsConfig, ...config };
  return { rig, owner: rig.owner("alice") };
}

/** Lanes of jobs that end one after the other. */
function finish(rig: JobRig, owner: RigOwner, times = 1): readonly string[] {
  const before = rig.notices.length;
  for (let number = 0; number < times; number++) rig.settle(rig.begin("bash", "x", { owner }));
  return rig.notices.slice(before).map((notice) => notice.lane);
}

describe("the lane of a completion", () => {
  it("[jobs/70] wakes an idle owner with a message that has a turn of its own", () => {
    const { rig, owner } = rigWith();
    expect(finish(rig, owner)).toEqual(["wake"]);
    expect(owner.inbox).toMatchObject({ nextStep: [], wake: true });
    expect(owner.inbox.nextTurn.map((message) => message.id)).toEqual(["job/bash-1/settled"]);
  });

  it("[jobs/71] is injected when delivery is quiet, and costs nothing", () => {
    const { rig, owner } = rigWith({ completionDelivery: "quiet" });
    expect(finish(rig, owner)).toEqual(["inject"]);
    expect(owner.inbox).toMatchObject({ nextTurn: [], wake: false });
    expect(owner.inbox.nextStep).toHaveLength(1);
    expect(owner.wakes).toEqual({ spent: 0, owed: [] });
  });

  it("[jobs/72] is injected once the budget is spent", () => {
    const { rig, owner } = rigWith({ maxConsecutiveWakes: 2 });
    expect(finish(rig, owner, 3)).toEqual(["wake", "wake", "inject"]);
  });

  it("[jobs/73] only a claimed message of a user restores the budget", () => {
    const { rig, owner } = rigWith({ maxConsecutiveWakes: 1 });
    expect(finish(rig, owner, 2)).toEqual(["wake", "inject"]);
    owner.claim("plugin");
    expect(finish(rig, owner)).toEqual(["inject"]);
    const message = { id: "u", role: "user", content: [], source: { kind: "user" } } as const;
    const splice = { target: "next-turn", start: 1, inserted: [message] } as const;
    owner.record({ type: "agent/inbox/spliced", data: splice });
    expect(finish(rig, owner), "received, not claimed").toEqual(["inject"]);
    const canceled = { ...splice, removedCount: 1, inserted: [], outcome: "canceled" } as const;
    owner.record({ type: "agent/inbox/spliced", data: canceled });
    expect(finish(rig, owner), "cancelled, not claimed").toEqual(["inject"]);
    owner.claim("user");
    expect(finish(rig, owner, 2)).toEqual(["wake", "inject"]);
  });

  it("[jobs/74] an owner that is torn down is told nothing, whether its cancel worked or not", () => {
    const { rig, owner } = rigWith();
    rig.begin("bash", "a", { owner });
    rig.begin("bash", "b", { owner });
    rig.cancelErrors.set("bash-2", "no");
    rig.disposeOwner(owner, (id) => rig.settle(id, { status: "killed" }));
    expect(rig.settled).toHaveLength(2);
    expect(owner.inbox).toEqual(emptyInbox);
  });

  it("[jobs/75] joins the next step of a busy owner, with the whole text", () => {
    const { rig, owner } = rigWith();
    owner.busy = true;
    const id = rig.begin("bash", "pnpm test", { owner });
    rig.settle(id, { status: "completed", detail: "exit code: 0" });
    expect(owner.inbox.nextStep).toStrictEqual([
      {
        id: "job/bash-1/settled",
        role: "user",
        content: [
          {
            type: "text",
            text: "background job bash-1 (bash: pnpm test) finished [status: completed, exit code: 0]. Read its output with job_output.",
          },
        ],
        source: {
          kind: "plugin",
          plugin: "tool-jobs",
          form: "notice",
          summary: "bash pnpm test [status: completed, exit code: 0]",
        },
      },
    ]);
    expect(owner.inbox.wake).toBe(false);
    expect(rig.get(id).reported).toBe(false);
  });

  it("[jobs/80] says nothing of what was killed by the model, collected by a wait, or has no owner", () => {
    const { rig, owner } = rigWith();
    const killed = rig.begin("bash", "x", { owner });
    rig.kill(killed, "alice");
    rig.settle(killed, { status: "killed" });
    const collected = rig.begin("bash", "x", { owner });
    rig.waiting(collected, 5, "alice");
    rig.settle(collected);
    rig.settle(rig.begin("bash"));
    expect(rig.settled).toHaveLength(3);
    expect(rig.notices).toEqual([]);
  });

  it("[jobs/81] goes to the exact owner, not to its replacement", () => {
    const { rig, owner } = rigWith({ maxConsecutiveWakes: 1 });
    const id = rig.begin("bash", "x", { owner });
    expect(finish(rig, owner)).toEqual(["wake"]);
    const replacement = rig.owner("alice", "alice#2");
    rig.settle(id);
    expect(owner.inbox.nextStep.map((message) => message.id)).toEqual([`job/${id}/settled`]);
    expect(replacement.inbox).toEqual(emptyInbox);
    expect(finish(rig, replacement), "starts with a full budget").toEqual(["wake"]);
  });

  it("[jobs/82] in place of a failing delivery: an owner that is not here is not told, and the settlement stands", () => {
    const { rig, owner } = rigWith();
    const id = rig.begin("bash", "x", { owner });
    rig.known.clear();
    rig.settle(id);
    expect(rig.get(id)).toMatchObject({ status: "completed", reported: false });
    expect(rig.notices).toEqual([]);
  });

  it("[jobs/83] in place of two mounts: a settlement puts its message in once, under an id of its own", () => {
    const { rig, owner } = rigWith();
    const id = rig.begin("bash", "x", { owner });
    rig.settle(id);
    rig.report(id, { report: "settled", outcome: { status: "completed" } });
    const pending = [...owner.inbox.nextTurn, ...owner.inbox.nextStep];
    expect(pending.map((message) => message.id)).toEqual([`job/${id}/settled`]);
    const spliced = rig.notices.map((notice) => notice.message.id);
    expect(spliced).toEqual([`job/${id}/settled`]);
  });

  it("a wake whose turn has not opened yet counts as busy", () => {
    const { rig, owner } = rigWith();
    finish(rig, owner);
    expect(isBusy(false, owner.inbox)).toBe(true);
    expect(isBusy(false, emptyInbox)).toBe(false);
    expect(isBusy(true, emptyInbox)).toBe(true);
  });
});

describe("an owed wake", () => {
  it("is injected while the session is not live, and paid once for all of them", () => {
    const { rig, owner } = rigWith();
    owner.live = false;
    expect(finish(rig, owner, 3)).toEqual(["owed", "owed", "owed"]);
    expect(owner.inbox).toMatchObject({ wake: false, nextTurn: [] });
    expect(owner.inbox.nextStep).toHaveLength(3);
    expect(owner.wakes.spent).toBe(0);
    expect(rig.payOwed(owner), "not live yet").toBe(false);
    owner.live = true;
    expect(rig.payOwed(owner)).toBe(true);
    expect(owner.inbox).toMatchObject({ wake: true, nextTurn: [] });
    expect(owner.wakes).toEqual({ spent: 1, owed: [] });
    expect(rig.payOwed(owner)).toBe(false);
  });

  it("is paid by the turn that claims its notices, and by an interrupt that parks them", () => {
    const { rig, owner } = rigWith();
    owner.live = false;
    finish(rig, owner, 2);
    owner.claim("user");
    expect(owner.wakes.owed).toEqual([]);
    finish(rig, owner);
    owner.record({ type: "session/interrupt", data: { reason: "user", keepInbox: true } });
    owner.live = true;
    expect(rig.payOwed(owner)).toBe(false);
  });

  it("waits while a turn runs, and is not owed under quiet delivery or without budget", () => {
    const { rig, owner } = rigWith({ maxConsecutiveWakes: 1 });
    owner.live = false;
    finish(rig, owner);
    owner.live = true;
    owner.busy = true;
    expect(rig.payOwed(owner)).toBe(false);
    owner.busy = false;
    expect(rig.payOwed(owner)).toBe(true);
    owner.live = false;
    expect(finish(rig, owner)).toEqual(["inject"]);
    rig.config = { ...defaultJobsConfig, completionDelivery: "quiet" };
    owner.claim("user");
    expect(finish(rig, owner)).toEqual(["inject"]);
  });
});

describe("the text of a notice within a limit", () => {
  it("[jobs/76] leaves out what it is about when there is no room for the mark", () => {
    const message = noticeMessage({ ...ended, outputLimitBytes: 61 });
    expect(message.content).toEqual([
      { type: "text", text: "background job subagent-1\nDone; job_output." },
    ]);
    expect(message.source["summary"]).toBe(`subagent ${"x".repeat(110)}…`);
  });

  it("[jobs/77] fills the room before the mark", () => {
    const text = noticeText({ ...ended, id: "subagent-2", outputLimitBytes: 80 });
    expect(text).toBe(
      "background job subagent-2 (subagent: xxxxxx\n[notice truncated]\nDone; job_output.",
    );
    expect(Buffer.byteLength(text)).toBe(80);
  });

  it("[jobs/78] at 64 bytes an id of 12 keeps the mark, a longer one does not", () => {
    const at = (id: string) => noticeText({ ...ended, id, kind: "pty-send", outputLimitBytes: 64 });
    expect(at("pty-send-100")).toBe(
      "background job pty-send-100\n[notice truncated]\nDone; job_output.",
    );
    expect(at("pty-send-1000")).toBe("background job pty-send-1000\nDone; job_output.");
    expect(Buffer.byteLength(at("pty-send-1000"))).toBe(46);
  });

  it("[jobs/79] keeps the end when even that is too long", () => {
    const at = (outputLimitBytes: number) =>
      noticeText({ ...ended, id: "pty-send-1", outputLimitBytes });
    expect(at(8)).toBe("_output.");
    expect(at(32)).toBe("background job\nDone; job_output.");
  });

  it("never splits a character and never exceeds its limit", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.integer({ min: 1, max: 200 }),
        (label, limit) => {
          const text = noticeText({ ...ended, label: `l${label}`, outputLimitBytes: limit });
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limit);
          expect(Buffer.from(text).toString()).toBe(text);
          const summary = noticeMessage({ ...ended, label: `l${label}` }).source["summary"] ?? "";
          expect(summary.length).toBeLessThanOrEqual(120);
          expect(Buffer.from(summary).toString()).toBe(summary);
        },
      ),
    );
  });

  it("is the whole text when that fits exactly", () => {
    const { rig, owner } = rigWith();
    const whole = noticeText({ ...ended, id: "bash-1", kind: "bash", label: "x" });
    const limit = Buffer.byteLength(whole);
    rig.settle(rig.begin("bash", "x", { owner, limit }));
    expect(noticeOf(rig)).toBe(whole);
    rig.settle(rig.begin("bash", "x", { owner, limit: limit - 1 }));
    expect(noticeOf(rig)).toMatch(/\n\[notice truncated\]\nDone; job_output\.$/u);
  });
});
