import { describe, expect, it } from "vitest";
import { JobRig, messageOf } from "../support/jobs-rig.js";

describe("reading", () => {
  it("[jobs/17] [jobs/18] a stream yields what is new since the last read, and its tail after its end", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { limit: 64 });
    rig.push(id, "first");
    const first = rig.read(id);
    expect(first).toMatchObject({
      text: "first",
      snapshot: { status: "running", reported: false, outputLimitBytes: 64 },
    });
    expect(first).not.toHaveProperty("snapshot.finishedAt");
    expect(rig.read(id)).toMatchObject({ text: "" });
    rig.push(id, "r".repeat(100));
    rig.settle(id);
    expect(rig.get(id)).toMatchObject({ reported: false, outputLimitBytes: 64 });
    const { finishedAt } = rig.get(id);
    expect(rig.read(id)).toMatchObject({
      text: "r".repeat(100),
      snapshot: { status: "completed", reported: true, finishedAt },
    });
    expect(rig.read(id)).toMatchObject({ text: "" });
  });

  it("[jobs/19] [jobs/20] a final output is empty while the job is live, then the same at each read", () => {
    const rig = new JobRig();
    const id = rig.begin("subagent", "ask", { output: "final" });
    expect(rig.read(id)).toMatchObject({ text: "", snapshot: { reported: false } });
    rig.settle(id, { status: "completed", output: "final answer" });
    for (let times = 0; times < 2; times++) {
      expect(rig.read(id)).toMatchObject({ text: "final answer", snapshot: { reported: true } });
    }
    const failed = rig.begin("subagent", "ask", { output: "final" });
    rig.settle(failed, { status: "failed", detail: "no reply" });
    expect(rig.read(failed)).toMatchObject({ text: "", snapshot: { detail: "no reply" } });
    const large = rig.begin("subagent", "ask", { output: "final" });
    rig.settle(large, { status: "completed", ref: { ref: "r1", bytes: 9, digest: "d" } });
    expect(rig.read(large)).toMatchObject({ text: "<r1>" });
  });

  it("[jobs/21] an unknown id is named", () => {
    expect(messageOf(new JobRig().read("bash-99"))).toBe("unknown job bash-99");
  });

  it("a short job is read from the tail that came with its settlement, unless its cursor stands within it", () => {
    const rig = new JobRig();
    const tails = [
      { stream: "stdout", from: 0, to: 3, text: "out" },
      { stream: "stderr", from: 0, to: 3, text: "err" },
    ];
    const fresh = rig.begin("bash");
    rig.settle(fresh, { status: "completed", tails });
    expect(rig.read(fresh)).toMatchObject({ text: "out\n[stderr]\nerr" });
    expect(rig.read(fresh)).toMatchObject({ text: "" });
    const read = rig.begin("bash");
    rig.push(read, "ou");
    rig.read(read);
    rig.push(read, "t");
    rig.settle(read, { status: "completed", tails });
    expect(rig.read(read)).toMatchObject({ text: "t" });
  });

  it("a cursor never goes back", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.record({ type: "job/cursor", data: { id, offsets: { stdout: 10, stderr: 2 } } });
    const before = rig.state;
    rig.record({ type: "job/cursor", data: { id, offsets: { stdout: 4 } } });
    expect(rig.state).toBe(before);
    rig.record({ type: "job/cursor", data: { id, offsets: { stdout: 4, stderr: 5 } } });
    expect(rig.state.jobs[0]?.offsets).toEqual({ stdout: 10, stderr: 5 });
  });
});

describe("the owner fence", () => {
  it("[jobs/37] other sessions, and callers without one, reach no owned job; anyone reaches an unowned one", () => {
    const rig = new JobRig();
    const owned = rig.begin("bash", "x", { owner: rig.owner("alice") });
    const open = rig.begin("bash");
    for (const caller of ["bob", undefined]) {
      for (const result of [
        rig.read(owned, caller),
        rig.kill(owned, caller),
        rig.wait(owned, 0, caller),
      ]) {
        expect(result).toMatchObject({
          code: "JOB_FOREIGN",
          message: `job ${owned} belongs to another session`,
        });
      }
      expect(rig.read(open, caller)).toMatchObject({ text: "" });
    }
    expect(rig.cancels).toEqual([]);
  });

  it("[jobs/38] a list holds own and unowned jobs in the order of their start", () => {
    const rig = new JobRig();
    const ids = [
      rig.begin("bash", "a", { owner: rig.owner("alice") }),
      rig.begin("bash"),
      rig.begin("subagent", "b", { owner: rig.owner("bob") }),
      rig.begin("bash", "c", { owner: rig.owner("alice", "alice#2") }),
    ];
    const listed = (caller?: string) => rig.list(caller).map((job) => job.id);
    expect(listed("alice")).toEqual([ids[0], ids[1], ids[3]]);
    expect(listed("bob")).toEqual([ids[1], ids[2]]);
    expect(listed()).toEqual([ids[1]]);
  });
});
