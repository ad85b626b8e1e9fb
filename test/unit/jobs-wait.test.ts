import { describe, expect, it } from "vitest";
import { isCounted } from "../../src/domain/job-waits.js";
import { JobRig, messageOf } from "../support/jobs-rig.js";

describe("waiting", () => {
  it("[jobs/29] a settlement during a wait is delivered by it", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    const wait = rig.waiting(id, 5_000, "alice");
    rig.settle(id);
    expect(rig.settled).toMatchObject([{ reported: true }]);
    expect(rig.resume(wait)).toMatchObject({ status: "completed", reported: true });
    expect(rig.notices).toEqual([]);
  });

  it("[jobs/30] a wait that times out returns the live job and reports nothing", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    expect(rig.resume(rig.waiting(id, 5))).toMatchObject({ status: "running", reported: false });
  });

  it("[jobs/31] every way out of a wait un-counts it", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    for (let times = 0; times < 3; times++) {
      const wait = rig.waiting(id, 5);
      expect(rig.waits.live).toHaveLength(1);
      rig.resume(wait);
      expect(rig.waits.live).toHaveLength(0);
    }
    const aborted = rig.waiting(id);
    rig.abort(aborted);
    expect(rig.waits.live).toHaveLength(0);
    rig.resume(aborted);
    expect(rig.get(id)).toMatchObject({ status: "running" });
  });

  it("[jobs/32] a wait on a job that has ended answers at once, also when it is aborted", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.settle(id);
    expect(rig.wait(id, 5_000, undefined, true)).toMatchObject({
      status: "completed",
      reported: true,
    });
    expect(rig.get(id).reported).toBe(true);
  });

  it("[jobs/33] a time that is none is refused, for jobs that have ended too", () => {
    const rig = new JobRig();
    const live = rig.begin("bash");
    const ended = rig.begin("bash");
    rig.settle(ended);
    for (const id of [live, ended]) {
      for (const [ms, printed] of [
        [0, "0"],
        [-1, "-1"],
        [Number.NaN, "null"],
        [Number.POSITIVE_INFINITY, "null"],
        ["5", '"5"'],
      ] as const) {
        expect(messageOf(rig.wait(id, ms))).toBe(
          `invalid wait timeout: expected a positive number of milliseconds, got ${printed}`,
        );
      }
    }
    expect(rig.get(ended).reported).toBe(false);
    expect(rig.wait(live, 2 ** 31)).toMatchObject({ ok: false });
    expect(rig.wait(live, 2 ** 31 - 1)).toMatchObject({ cause: "timeout" });
  });

  it("[jobs/34] an aborted wait says so and leaves the job alone", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    const wait = rig.waiting(id);
    rig.abort(wait);
    expect(messageOf(rig.resume(wait))).toBe("wait aborted");
    expect(messageOf(rig.wait(id, 5_000, undefined, true))).toBe("wait aborted");
    expect(rig.get(id)).toMatchObject({ status: "running", reported: false });
  });

  it("[jobs/35] an abort that comes before the settlement leaves the notice alive", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    const wait = rig.waiting(id, 5_000, "alice");
    rig.abort(wait);
    rig.settle(id);
    expect(messageOf(rig.resume(wait))).toBe("wait aborted");
    expect(rig.settled).toMatchObject([{ reported: false }]);
    expect(rig.notices).toHaveLength(1);
  });

  it("[jobs/36] an abort within the settlement comes too late: the end is delivered", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    const wait = rig.waiting(id);
    rig.onSettled = () => {
      expect(isCounted(rig.waits, wait.wait)).toBe(false);
      rig.abort(wait);
    };
    rig.settle(id);
    expect(rig.resume(wait)).toMatchObject({ status: "completed", reported: true });
  });

  it("a settlement between the timer and the waiter's turn is still delivered by the wait", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    const fired = rig.waiting(id, 5, "alice");
    rig.settle(id);
    expect(rig.resume(fired)).toMatchObject({ status: "completed" });
    expect(rig.notices).toEqual([]);
  });
});
