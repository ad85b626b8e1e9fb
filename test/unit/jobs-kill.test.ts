import { describe, expect, it } from "vitest";
import { decideOverdue, nextOverdueAt, stopOverdueMs } from "../../src/domain/job-kill.js";
import { JobRig, messageOf, noticeOf } from "../support/jobs-rig.js";

describe("killing", () => {
  it("[jobs/25] passes the reason on, shows stopping, and its end is announced to nobody", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    expect(rig.kill(id, "alice", "no longer needed")).toBe("requested");
    expect(rig.cancels).toEqual([{ id, reason: "no longer needed" }]);
    expect(rig.get(id)).toMatchObject({ status: "stopping", reported: true });
    rig.settle(id, { status: "killed" });
    expect(rig.settled).toMatchObject([{ status: "killed", reported: true }]);
    expect(rig.notices).toEqual([]);
  });

  it("[jobs/26] a job that has ended has finished, and counts as reported then", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.settle(id);
    expect(rig.kill(id)).toBe("already-finished");
    expect(rig.cancels).toEqual([]);
    expect(rig.get(id)).toMatchObject({ status: "completed", reported: true });
  });

  it("[jobs/27] a request that fails changes nothing: the end is announced", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    const before = rig.state;
    rig.cancelErrors.set(id, "no way in");
    expect(messageOf(rig.kill(id, "alice"))).toBe("no way in");
    expect(rig.state).toBe(before);
    rig.settle(id);
    expect(rig.settled).toMatchObject([{ reported: false }]);
    expect(rig.notices).toHaveLength(1);
    expect(rig.kill(id, "alice")).toBe("already-finished");
  });

  it("[jobs/28] a second kill asks again and is a change again", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.changes.length = 0;
    expect([rig.kill(id), rig.kill(id)]).toEqual(["requested", "requested"]);
    expect(rig.cancels).toHaveLength(2);
    expect(rig.changes).toHaveLength(2);
  });

  it("a request that fails because the job has just ended answers that it has finished", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.cancelErrors.set(id, "not found");
    const tool = rig.tool("job_kill", { job_id: "none-1" });
    expect(tool.shown).toBe("Error: unknown job none-1");
    rig.settle(id);
    expect(rig.kill(id)).toBe("already-finished");
  });

  it("a worker that cannot end a job says so; the job stays stopping and its end is told after all", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    rig.kill(id, "alice");
    rig.report(id, { report: "cancel-failed", message: "EPERM" });
    expect(rig.get(id)).toMatchObject({
      status: "stopping",
      detail: "cancel failed: EPERM",
      reported: false,
    });
    expect(decideOverdue(rig.state, rig.now + 10 * stopOverdueMs)).toEqual([]);
    rig.settle(id, { status: "completed", detail: "exit code: 0" });
    expect(noticeOf(rig)).toMatch(/finished \[status: completed, exit code: 0\]/u);
  });

  it("a stop nobody acknowledges is shown as overdue after 30 seconds, once, and its end takes the detail away", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    expect(nextOverdueAt(rig.state)).toBeUndefined();
    rig.kill(id);
    const at = rig.now + stopOverdueMs;
    expect(nextOverdueAt(rig.state)).toBe(at);
    rig.now += 1_000;
    expect(rig.kill(id), "asking again does not begin anew").toBe("requested");
    expect(nextOverdueAt(rig.state)).toBe(at);
    expect(decideOverdue(rig.state, at - 1)).toEqual([]);
    rig.record(...decideOverdue(rig.state, at));
    expect(rig.get(id)).toMatchObject({
      status: "stopping",
      detail: "stop overdue",
      reported: true,
    });
    expect(decideOverdue(rig.state, at + 1)).toEqual([]);
    expect(nextOverdueAt(rig.state)).toBeUndefined();
    rig.settle(id, { status: "killed" });
    expect(rig.get(id)).not.toHaveProperty("detail");
  });

  it("a kill that ends in a lost worker is told, with the output marked incomplete", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    rig.push(id, "partial");
    rig.kill(id, "alice");
    const detail = "worker lost: no worker on h1 for 360s; work may be orphaned";
    rig.settle(id, { status: "failed", detail, lost: true });
    expect(rig.get(id).reported).toBe(false);
    expect(rig.notices).toHaveLength(1);
    const marked = "[output may be incomplete: worker lost]";
    expect(rig.read(id, "alice")).toMatchObject({ text: `partial\n${marked}` });
    expect(rig.report(id, { report: "settled", outcome: { status: "completed" } })).toMatchObject({
      why: "already-settled",
    });
  });
});
