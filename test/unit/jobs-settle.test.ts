import { describe, expect, it } from "vitest";
import { foldJobs } from "../../src/domain/jobs.js";
import { JobRig } from "../support/jobs-rig.js";

describe("settling", () => {
  it("[jobs/22] [jobs/50] in place of contained listeners: an outcome is one step of the log, and repeats of its report are ignored", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    rig.settle(id);
    const settled = rig.state;
    for (let times = 0; times < 3; times++) {
      expect(rig.report(id, { report: "settled", outcome: { status: "failed" } })).toMatchObject({
        ok: false,
        why: "already-settled",
      });
    }
    expect(rig.state).toBe(settled);
    expect(rig.notices).toHaveLength(1);
    expect(owner.inbox.nextTurn).toHaveLength(1);
  });

  it("[jobs/23] in place of a rejected promise: a worker reports it as failed, and an outcome that is none is failed with a warning", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.settle(id, { status: "failed", detail: "Error: transport exploded" });
    expect(rig.get(id)).toMatchObject({ status: "failed", detail: "Error: transport exploded" });
    for (const [outcome, printed] of [
      [{ status: "paused" }, '"paused"'],
      [undefined, "undefined"],
      [{ status: "running" }, '"running"'],
    ] as const) {
      const strange = rig.begin("bash");
      rig.report(strange, { report: "settled", outcome });
      const detail = `producer contract violation: outcome status ${printed}`;
      expect(rig.get(strange)).toMatchObject({ status: "failed", detail });
      expect(rig.warnings.at(-1)).toBe(`job ${strange}: ${detail}`);
    }
  });

  it("[jobs/24] in place of disposed listeners: a closing owner is not told", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    owner.closing = true;
    rig.settle(id);
    expect(rig.notices).toEqual([]);
    expect(owner.inbox.nextStep).toEqual([]);
  });

  it("reports that do not fit change nothing and say why", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    const before = rig.state;
    const outcome = { status: "completed" };
    const job = { id, nonce: rig.state.jobs[0]?.nonce, owner: owner.token };
    for (const [payload, why] of [
      [undefined, "malformed"],
      [7, "malformed"],
      [{ ...job, nonce: 7, report: "settled", outcome }, "malformed"],
      [{ ...job, report: "done", outcome }, "malformed"],
      [{ ...job, owner: 1, report: "settled", outcome }, "malformed"],
      [{ ...job, id: "bash-9", report: "settled", outcome }, "unknown-job"],
      [{ ...job, nonce: "other", report: "settled", outcome }, "token-mismatch"],
      [{ ...job, owner: "alice#0", report: "settled", outcome }, "token-mismatch"],
      [{ id, nonce: job.nonce, report: "settled", outcome }, "token-mismatch"],
      [{ ...job, report: "cancel-failed", message: "EPERM" }, "not-stopping"],
    ] as const) {
      expect(rig.receive(payload)).toMatchObject({ ok: false, why });
      expect(rig.state).toBe(before);
    }
    expect(rig.receive({ ...job, report: "settled", outcome })).toMatchObject({ ok: true });
  });

  it("what a report holds too much of is cut, and its time never precedes the start", () => {
    const rig = new JobRig();
    const id = rig.begin("subagent", "x", { output: "final" });
    rig.now = -50;
    rig.settle(id, {
      status: "failed",
      detail: "d".repeat(9_000),
      output: `${"a".repeat(70_000)}end`,
    });
    const job = rig.get(id);
    expect(job.detail).toHaveLength(4_096);
    expect(job.finishedAt).toBe(job.startedAt);
    const read = rig.read(id) as { text: string };
    expect(Buffer.byteLength(read.text)).toBeLessThanOrEqual(65_536);
    expect(read.text).toMatch(/^\[output truncated\]\na+end$/u);
  });

  it("entries about unknown or settled jobs fold to the same state", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.settle(id);
    rig.read(id);
    for (const data of [{ id: "none-1" }, { id }]) {
      for (const entry of [
        { type: "job/stopping", data },
        { type: "job/settled", data: { ...data, status: "failed", finishedAt: 9 } },
        { type: "job/reported", data: { ...data, by: "read" } },
        { type: "job/cursor", data: { ...data, offsets: {} } },
        { type: "job/removed", data: { ids: [] } },
        { type: "job/woken", data: { ids: [] } },
      ] as const) {
        expect(foldJobs(rig.state, { ...entry, seq: 9, time: 9 })).toBe(rig.state);
      }
    }
  });
});
