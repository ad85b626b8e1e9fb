import { describe, expect, it } from "vitest";
import type { CancelJob } from "../../src/contracts/jobs.js";
import { close, killSessionJob, startSessionJob } from "../../src/domain/commands.js";
import {
  cancelAnswered,
  disposeJobs,
  killJob,
  payOwedWake,
  removeJobs,
  reportJob,
  settleJob,
  startJob,
  unheardJobs,
} from "../../src/domain/session-jobs.js";
import { jobEntries, recordOf } from "../support/job-script.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import { entriesOf, run } from "../support/session-script.js";

/** A session that is bound to a host, with one live job. */
function open() {
  const session = openJobSession();
  const { tools, jobKinds } = session.folds.place;
  session.record(
    { type: "session/bound", data: { host: "h1", epoch: 1 } },
    { type: "session/tools", data: { epoch: 1, tools, jobKinds } },
  );
  const world = new JobsInSession(session);
  const id = world.start();
  const report = (changes: object = {}): readonly string[] =>
    reportJob(session, {
      id,
      nonce: recordOf(world, id).nonce,
      owner: session.names.token,
      report: "settled",
      outcome: { status: "completed" },
      ...changes,
    });
  const cancelOf = (reason?: string): CancelJob => {
    expect(killJob(session, id, reason)).toEqual({ ok: true, result: "requested" });
    return session.effects.pop() as CancelJob;
  };
  return { session, world, id, report, cancelOf };
}

const request = { kind: "bash", label: "x", input: { command: "x" } };
const failed = { kind: "failed", code: "JOB_NOT_FOUND", message: "EPERM" } as const;

describe("a start", () => {
  it("under the operation id of an earlier one answers its job, whatever became of that", () => {
    const { session, world } = open();
    const first = startJob(session, { ...request, opId: "op" });
    expect(first).toEqual({ ok: true, id: "bash-2" });
    expect(session.effects).toHaveLength(1);
    expect(startJob(session, { ...request, label: "other", opId: "op" })).toEqual(first);
    world.settle("bash-2");
    expect(startJob(session, { ...request, opId: "op" })).toEqual(first);
    expect(session.effects).toHaveLength(1);
    expect(startJob(session, { ...request, opId: "other" })).toEqual({ ok: true, id: "bash-3" });
  });

  it("of another kind under its operation id is refused and changes nothing", () => {
    const { session } = open();
    startJob(session, { ...request, opId: "op" });
    const before = session.log.lastSeq;
    expect(startJob(session, { ...request, kind: "sum", opId: "op" })).toEqual({
      ok: false,
      code: "DUPLICATE_ID",
      message: 'operation id "op" has already started job bash-2; start this one under a new id',
    });
    expect([session.log.lastSeq, session.effects.length]).toEqual([before, 1]);
  });

  it("takes form and limit from the logged table, not from who asks", () => {
    const { session } = open();
    const asked = { ...request, kind: "sum", output: "stream", outputLimitBytes: 1 };
    expect(startJob(session, asked)).toEqual({ ok: true, id: "sum-1" });
    expect(startJob(session, { ...request, kind: "tight" })).toEqual({ ok: true, id: "tight-1" });
    expect(session.effects).toMatchObject([
      { spec: { kind: "sum", output: "final" } },
      { spec: { kind: "tight", output: "stream", outputLimitBytes: 64 } },
    ]);
    expect(session.effects[0]).not.toHaveProperty("spec.outputLimitBytes");
  });
});

describe("a kill", () => {
  it("asks, and logs that the job is stopping when the request was accepted", () => {
    const { session, world, id, cancelOf } = open();
    const effect = cancelOf("enough");
    expect(effect).toMatchObject({ kind: "cancel-job", id, by: "kill", reason: "enough" });
    expect(jobEntries(session)).toEqual(["job/start"]);
    expect(cancelAnswered(session, effect, { kind: "done" })).toBeUndefined();
    expect(recordOf(world, id)).toMatchObject({ status: "stopping", reported: true });
  });

  it("whose request fails is refused and changes nothing", () => {
    const { session, world, id, cancelOf } = open();
    expect(cancelAnswered(session, cancelOf(), failed)).toMatchObject({ message: "EPERM" });
    expect(jobEntries(session)).toEqual(["job/start"]);
    world.settle(id);
    expect(world.told(id).pending).toBe(1);
  });

  it("answered after the end of the job counts it as told, whatever the answer", () => {
    for (const answer of [failed, { kind: "done" } as const]) {
      const { session, world, id, cancelOf } = open();
      const effect = cancelOf();
      world.settle(id);
      expect(cancelAnswered(session, effect, answer)).toBeUndefined();
      expect(recordOf(world, id)).toMatchObject({ status: "completed", reported: true });
      expect(jobEntries(session)).not.toContain("job/stopping");
    }
  });

  it("of a job that has ended reports it and asks nobody; of an unknown one it is refused", () => {
    const { session, world, id } = open();
    world.settle(id);
    expect(killJob(session, id)).toEqual({ ok: true, result: "already-finished" });
    expect(recordOf(world, id).reported).toBe(true);
    expect(killJob(session, "bash-9")).toMatchObject({ code: "JOB_NOT_FOUND" });
    expect(session.effects).toEqual([]);
  });
});

describe("a report", () => {
  it.each<[string, object, RegExp]>([
    ["of another start", { nonce: "other" }, /another start or owner of bash-1/u],
    ["for another owner", { owner: "other" }, /another start or owner of bash-1/u],
    ["for no owner", { owner: undefined }, /another start or owner of bash-1/u],
    ["of an unknown job", { id: "bash-9" }, /unknown job bash-9/u],
    ["without an id", { id: 5 }, /needs id, nonce/u],
    ["of nothing known", { report: "resting" }, /needs id, nonce/u],
    ["of a failed cancel of a running job", { report: "cancel-failed", message: "no" }, /running/u],
  ])("%s changes nothing and is a line for operators", (_, changes, line) => {
    const { session, report } = open();
    const before = session.log.lastSeq;
    const lines = report(changes);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(line);
    expect(session.log.lastSeq).toBe(before);
  });

  it("after the end changes nothing: the first outcome wins", () => {
    const { session, world, id, report } = open();
    expect(report({ outcome: { status: "killed", detail: "signal: SIGTERM" } })).toEqual([]);
    const before = session.log.lastSeq;
    expect(report({ outcome: { status: "failed" } })).toEqual(["job bash-1 is killed already"]);
    settleJob(session, id, { status: "failed" });
    expect(session.log.lastSeq).toBe(before);
    expect(recordOf(world, id)).toMatchObject({ status: "killed", detail: "signal: SIGTERM" });
  });

  it("with an outcome that is none ends the job as failed, and operators are told", () => {
    const { world, id, report } = open();
    expect(report({ outcome: { status: "fine" } })).toEqual([
      'job bash-1: producer contract violation: outcome status "fine"',
    ]);
    expect(recordOf(world, id).status).toBe("failed");
  });

  it("of a failed cancel of a stopping job has its end told after all", () => {
    const { session, world, id, report, cancelOf } = open();
    cancelAnswered(session, cancelOf(), { kind: "done" });
    expect(report({ report: "cancel-failed", message: "EPERM" })).toEqual([]);
    expect(recordOf(world, id)).toMatchObject({
      status: "stopping",
      detail: "cancel failed: EPERM",
      reported: false,
    });
    report({ outcome: { status: "killed" } });
    expect(world.told(id).pending).toBe(1);
  });
});

describe("a report that the host was silent", () => {
  const silent = {
    host: "h1",
    silent: true,
    outcome: { status: "failed", detail: "worker lost", lost: true },
  };

  it("makes the session cold, and the wake it owes is paid once, when it is live again", () => {
    const { session, world, id, report } = open();
    const more = world.start();
    report(silent);
    expect(session.folds.place.live).toBe(false);
    expect(entriesOf(session, "session/live").at(-1)?.data.why).toBe("worker lost");
    world.settle(more);
    expect(entriesOf(session, "job/settled").map(({ data }) => data.lane)).toEqual([
      "owed",
      "owed",
    ]);
    expect(session.shouldRun()).toBe(false);
    payOwedWake(session);
    expect(jobEntries(session)).not.toContain("job/woken");

    world.setLive(true);
    payOwedWake(session);
    expect(entriesOf(session, "job/woken").map(({ data }) => data.ids)).toEqual([
      ["job/bash-1/settled", "job/bash-2/settled"],
    ]);
    run(session);
    payOwedWake(session);
    expect(entriesOf(session, "turn/start")).toHaveLength(1);
    for (const one of [id, more]) expect(world.told(one)).toEqual({ shown: 1, pending: 0 });
    expect(session.folds.wakes).toEqual({ spent: 1, owed: [] });
  });

  it("says so once, and makes no session cold that is bound to no host", () => {
    const { session, world, report } = open();
    const second = world.start();
    report(silent);
    report({ ...silent, id: second, nonce: recordOf(world, second).nonce });
    expect(entriesOf(session, "session/live")).toHaveLength(1);

    const unbound = openJobSession();
    const its = new JobsInSession(unbound);
    const id = its.start();
    const { nonce } = recordOf(its, id);
    reportJob(unbound, { id, nonce, owner: unbound.names.token, report: "settled", ...silent });
    expect(entriesOf(unbound, "session/live")).toEqual([]);
    expect(recordOf(its, id)).toMatchObject({ status: "failed", lost: true });
  });

  it("of a job that had ended leaves the session live", () => {
    const { session, report } = open();
    report();
    report(silent);
    expect(session.folds.place.live).toBe(true);
  });
});

describe("the end of the owner", () => {
  it("asks for the end of its live jobs, tells nobody, waits for them and removes all", () => {
    const { session, world, id, report } = open();
    const ended = world.start();
    world.settle(ended);
    disposeJobs(session);
    expect(session.effects).toMatchObject([
      { kind: "cancel-job", id, by: "teardown", reason: "owner disposed" },
    ]);
    expect(recordOf(world, id)).toMatchObject({ status: "running", reported: true });
    const effect = session.effects.pop() as CancelJob;
    expect(cancelAnswered(session, effect, { kind: "done" })).toBeUndefined();
    expect(recordOf(world, id).status).toBe("stopping");
    report({ outcome: { status: "killed" } });
    removeJobs(session);
    expect(session.folds.jobs.jobs).toEqual([]);
    expect(entriesOf(session, "job/removed").map(({ data }) => data.ids)).toEqual([[id, ended]]);
    expect(world.told(id)).toEqual({ shown: 0, pending: 0 });
  });

  it("gives up a job whose request fails, and one that never confirms its end", () => {
    const { session, world, id } = open();
    const silent = world.start();
    disposeJobs(session);
    const [first, second] = session.effects as CancelJob[];
    if (first === undefined || second === undefined) throw new Error("two were live");
    expect(cancelAnswered(session, first, failed)).toBeUndefined();
    expect(recordOf(world, id)).toMatchObject({
      status: "failed",
      detail: "cancel threw during teardown; work may be orphaned: EPERM",
    });
    cancelAnswered(session, second, { kind: "done" });
    removeJobs(session);
    expect(entriesOf(session, "job/settled").at(-1)?.data).toMatchObject({
      id: silent,
      status: "failed",
      detail: "the session closed before its end was confirmed; work may be orphaned",
    });
    expect(session.folds.jobs.jobs).toEqual([]);
  });

  it("writes nothing when there is no job, and refuses starts and kills from then on", () => {
    const session = openJobSession();
    const before = session.log.lastSeq;
    disposeJobs(session);
    removeJobs(session);
    expect([session.log.lastSeq, session.effects]).toEqual([before, []]);
    close(session, {});
    for (const answer of [
      startSessionJob(session, { opId: "a", ...request }),
      killSessionJob(session, { opId: "b", jobId: "bash-1" }),
    ]) {
      expect(answer).toMatchObject({ ok: false, code: "SESSION_CLOSED" });
    }
  });
});

describe("jobs to be looked at", () => {
  it("are the live ones of which nothing was heard for a minute, in this run or before", () => {
    const { session, world, id } = open();
    expect(unheardJobs(session)).toEqual([]);
    const ended = world.start();
    world.settle(ended);
    session.heard.delete(id);
    expect(unheardJobs(session)).toEqual([id]);
    session.heard.set(id, session.now - 59_000);
    expect(unheardJobs(session)).toEqual([]);
    session.heard.set(id, session.now - 60_001);
    expect(unheardJobs(session)).toEqual([id]);
    world.settle(id);
    expect([unheardJobs(session), [...session.heard.keys()]]).toEqual([[], []]);
  });
});
