import { describe, expect, it } from "vitest";
import { defaultJobsConfig } from "../../src/contracts/jobs.js";
import { loadJobsConfig } from "../../src/domain/job-config.js";
import { jobToolRows, servesJobs } from "../../src/domain/job-tool-rows.js";
import { maxRecords, maxUnreadRecords } from "../../src/domain/jobs.js";
import { JobRig, messageOf } from "../support/jobs-rig.js";

const noController =
  "background jobs unavailable: no job controller serves this agent (load the longhaul job tools in its composition)";

function limited(maxConcurrentJobsPerOwner: number): JobRig {
  const rig = new JobRig();
  rig.config = { ...defaultJobsConfig, maxConcurrentJobsPerOwner };
  return rig;
}

function limitText(limit: number): string {
  return `background job limit reached for this owner (limit: ${limit}); use job_kill to stop an unneeded job, wait for it to finish, then retry`;
}

describe("starting a job", () => {
  it("[jobs/1] is refused where no controller serves the session, and nothing is run", () => {
    const rig = new JobRig();
    rig.served = false;
    expect(rig.start("bash")).toMatchObject({ code: "JOBS_UNAVAILABLE", message: noController });
    expect(rig.started).toEqual([]);
    expect(rig.log).toEqual([]);
  });

  it("[jobs/2] [jobs/3] [jobs/47] in place of attached controllers: a table serves owned and unowned starts exactly while it holds all job tools", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const others = [{ name: "bash" }];
    rig.served = servesJobs([...others, ...jobToolRows]);
    expect(rig.begin("bash", "a", { owner })).toBe("bash-1");
    expect(rig.begin("bash")).toBe("bash-2");
    for (const left of jobToolRows) {
      rig.served = servesJobs([...others, ...jobToolRows.filter((row) => row !== left)]);
      expect(messageOf(rig.start("bash", "a", { owner }))).toBe(noController);
      expect(messageOf(rig.start("bash"))).toBe(noController);
    }
    expect(rig.list("alice").map((job) => job.status)).toEqual(["running", "running"]);
  });

  it("[jobs/4] names what is wrong with kind, label and output limit", () => {
    const rig = new JobRig();
    const kind = "invalid job kind: expected a non-empty string";
    const label = "invalid job label: expected a non-empty string";
    for (const strange of ["", 7, null]) {
      expect(messageOf(rig.start(strange))).toBe(kind);
      expect(messageOf(rig.start("bash", strange))).toBe(label);
    }
    expect(messageOf(rig.start(undefined))).toBe(kind);
    for (const [limit, printed] of [
      [0, "0"],
      [-1, "-1"],
      [1.5, "1.5"],
      [Number.NaN, "null"],
      ["9", '"9"'],
      [2 ** 53, "9007199254740992"],
      [null, "null"],
    ] as const) {
      expect(messageOf(rig.start("bash", "x", { limit }))).toBe(
        `invalid outputLimitBytes: expected a positive safe integer, got ${printed}`,
      );
    }
    expect(rig.log).toEqual([]);
    expect(rig.begin("bash", " ", { limit: 2 ** 53 - 1 })).toBe("bash-1");
  });

  it("[jobs/5] checks the controller first and the capacity last", () => {
    const rig = limited(1);
    rig.served = false;
    expect(messageOf(rig.start(""))).toBe(noController);
    rig.served = true;
    rig.begin("bash");
    expect(messageOf(rig.start(""))).toBe("invalid job kind: expected a non-empty string");
    expect(messageOf(rig.start("bash", ""))).toBe("invalid job label: expected a non-empty string");
  });

  it("refuses a kind the session's tool table does not know before an id exists", () => {
    const rig = new JobRig();
    rig.kinds = ["bash", "report"];
    expect(messageOf(rig.start("gpu"))).toBe(
      'unknown job kind "gpu"; this session knows bash, report',
    );
    expect(rig.begin("report")).toBe("report-1");
  });

  it("[jobs/12] counts each kind for itself", () => {
    const rig = new JobRig();
    const kinds = ["bash", "bash", "subagent", "workflow", "__proto__", "constructor"];
    expect(kinds.map((kind) => rig.begin(kind))).toEqual([
      "bash-1",
      "bash-2",
      "subagent-1",
      "workflow-1",
      "__proto__-1",
      "constructor-1",
    ]);
    expect(rig.begin("__proto__")).toBe("__proto__-2");
  });

  it("[jobs/13] in place of a throwing run(): a start that fails is the settlement of its id, told like any other", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "nope", { owner });
    rig.settle(id, { status: "failed", detail: "spawn failed: ENOENT" });
    expect(rig.get(id)).toMatchObject({ status: "failed", detail: "spawn failed: ENOENT" });
    expect(rig.notices).toHaveLength(1);
    expect(rig.begin("bash", "again", { owner })).toBe("bash-2");
  });
});

describe("owners", () => {
  it("[jobs/14] an owned start needs a registry of owners, an unowned one does not", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    rig.owners = undefined;
    expect(messageOf(rig.start("bash", "x", { owner }))).toBe(
      "background job ownership requires the agent registry (load longhaul sessions)",
    );
    expect(rig.begin("bash")).toBe("bash-1");
  });

  it("[jobs/15] an owner must be registered; its job is cancelled when it is disposed", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    rig.owners = {};
    expect(messageOf(rig.start("bash", "x", { owner }))).toBe(
      'agent "alice" is not the registered agent instance (background job owner must be live)',
    );
    expect(rig.log).toEqual([]);
    rig.owners = { alice: owner.token };
    expect(rig.begin("bash", "x", { owner })).toBe("bash-1");
    rig.disposeOwner(owner, (id) => rig.settle(id, { status: "killed" }));
    expect(rig.cancels).toEqual([{ id: "bash-1", reason: "owner disposed" }]);
    expect(rig.list("alice")).toEqual([]);
  });

  it("[jobs/16] a replaced owner starts nothing, and its session still sees the jobs there are", () => {
    const rig = new JobRig();
    const old = rig.owner("alice");
    const current = rig.owner("alice", "alice#2");
    const id = rig.begin("bash", "x", { owner: current });
    expect(messageOf(rig.start("bash", "x", { owner: old }))).toMatch(
      /not the registered agent instance/u,
    );
    expect(rig.started).toEqual([id]);
    expect(rig.list(old.session).map((job) => job.id)).toEqual([id]);
  });
});

describe("admission", () => {
  it("[jobs/6] [jobs/84] limits are checked when they are loaded", () => {
    const messageFor = (config: unknown) => messageOf(loadJobsConfig(config));
    for (const bad of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(messageFor({ maxConcurrentJobsPerOwner: bad })).toBe(
        `jobs.maxConcurrentJobsPerOwner expected a whole number from 1 to 9007199254740991, got ${bad}`,
      );
    }
    expect(loadJobsConfig({ maxConcurrentJobsPerOwner: 2 ** 53 - 1 })).toMatchObject({ ok: true });
    expect(messageFor({ waitTimeoutMs: 20, maxWaitTimeoutMs: 10 })).toBe(
      "tool-jobs: waitTimeoutMs (20) exceeds maxWaitTimeoutMs (10)",
    );
    expect(messageFor({ maxWaitTimeoutMs: 10 })).toBe(
      "tool-jobs: waitTimeoutMs (30000) exceeds maxWaitTimeoutMs (10)",
    );
    expect(messageFor({ completionDelivery: "loud" })).toBe(
      'jobs.completionDelivery expected "quiet" or "wakeup", got "loud"',
    );
    expect(messageFor({ maxConsecutiveWakes: 0 })).toBe(
      "jobs.maxConsecutiveWakes expected a whole number of at least 1, got 0",
    );
    for (const bad of [2.5, Number.POSITIVE_INFINITY]) {
      expect(messageFor({ maxConsecutiveWakes: bad })).toBe(
        `tool-jobs: maxConsecutiveWakes (${bad}) must be a whole number of turns`,
      );
    }
    for (const bad of [0, -1, Number.NaN, "5", null]) {
      expect(loadJobsConfig({ waitTimeoutMs: bad })).toMatchObject({ code: "INVALID_CONFIG" });
    }
    expect(loadJobsConfig({ wait: 1 })).toMatchObject({ message: 'jobs has no key "wait"' });
    expect(loadJobsConfig([])).toMatchObject({ message: "jobs expected an object, got []" });
    expect(loadJobsConfig({ maxConsecutiveWakes: 1 })).toEqual({
      ok: true,
      config: { ...defaultJobsConfig, maxConsecutiveWakes: 1 },
    });
    for (const nothing of [undefined, {}, { waitTimeoutMs: undefined }]) {
      expect(loadJobsConfig(nothing)).toEqual({ ok: true, config: defaultJobsConfig });
    }
  });

  it("[jobs/7] refuses an eleventh live unowned job by default", () => {
    const rig = new JobRig();
    for (let number = 1; number <= 10; number++) rig.begin("bash");
    expect(rig.start("bash")).toMatchObject({ code: "JOB_LIMIT", message: limitText(10) });
    expect(rig.started).toHaveLength(10);
  });

  it("[jobs/8] a refused start burns no number", () => {
    const rig = limited(1);
    expect(rig.begin("bash")).toBe("bash-1");
    expect(messageOf(rig.start("bash"))).toBe(limitText(1));
    rig.settle("bash-1");
    expect(rig.begin("bash")).toBe("bash-2");
  });

  it("[jobs/9] a job that was asked to stop holds its slot until it has settled", () => {
    const rig = limited(1);
    rig.begin("bash");
    expect(rig.kill("bash-1")).toBe("requested");
    expect(messageOf(rig.start("bash"))).toBe(limitText(1));
    rig.settle("bash-1", { status: "killed" });
    expect(rig.begin("bash")).toBe("bash-2");
  });

  it.each(["completed", "killed", "failed"] as const)(
    "[jobs/10] a job that is %s frees its slot",
    (status) => {
      const rig = limited(1);
      rig.settle(rig.begin("bash"), { status });
      expect(rig.begin("bash")).toBe("bash-2");
    },
  );

  it("[jobs/11] each owner has a bucket of its own, a replacement too, and unowned jobs share one", () => {
    const rig = limited(1);
    const x = rig.owner("x");
    const y = rig.owner("y");
    rig.begin("bash", "x", { owner: x });
    rig.begin("bash", "y", { owner: y });
    const replacement = rig.owner("x", "x#2");
    rig.begin("bash", "x2", { owner: replacement });
    rig.begin("bash");
    expect(messageOf(rig.start("bash"))).toBe(limitText(1));
    expect(messageOf(rig.start("bash", "y", { owner: y }))).toBe(limitText(1));
    expect(messageOf(rig.start("bash", "x", { owner: x }))).toMatch(/not the registered/u);
  });
});

describe("growth of the records", () => {
  it("above 500 records the oldest that ended and was reported goes, and is unknown then", () => {
    const rig = new JobRig();
    for (let number = 1; number <= maxRecords; number++) {
      const id = rig.begin("bash");
      rig.settle(id);
      if (number > 2) rig.read(id);
    }
    rig.begin("bash");
    expect(rig.list()).toHaveLength(maxRecords);
    expect(messageOf(rig.read("bash-3"))).toBe("unknown job bash-3");
    expect(rig.get("bash-1").reported).toBe(false);
    expect(rig.log.at(-2)).toMatchObject({ type: "job/removed", data: { ids: ["bash-3"] } });
  });

  it("never drops a live job, and unread ones only above 1,000", () => {
    const rig = new JobRig();
    rig.config = { ...defaultJobsConfig, maxConcurrentJobsPerOwner: 2_000 };
    rig.begin("live");
    for (let number = 1; number < maxUnreadRecords; number++) rig.settle(rig.begin("bash"));
    expect(rig.list()).toHaveLength(maxUnreadRecords);
    rig.begin("bash");
    expect(rig.list()).toHaveLength(maxUnreadRecords);
    expect(rig.list()[0]?.id).toBe("live-1");
    expect(rig.list()[1]?.id).toBe("bash-2");
  });

  it("keeps at most 1 KiB of a label in the record, and the whole label in the log", () => {
    const rig = new JobRig();
    const label = "界".repeat(1_000);
    const id = rig.begin("bash", label);
    const kept = rig.get(id).label;
    expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(1_024);
    expect(kept).toBe(`${"界".repeat(340)}…`);
    expect(rig.log[0]).toMatchObject({ data: { label } });
    const short = "x".repeat(1_024);
    expect(rig.get(rig.begin("bash", short)).label).toBe(short);
  });

  it("holds few result bodies however many jobs end unread", () => {
    const rig = new JobRig();
    for (let number = 0; number < 300; number++) {
      const stream = rig.begin("bash");
      rig.push(stream, "z".repeat(4_000));
      rig.settle(stream, {
        status: "completed",
        tails: [{ stream: "stdout", from: 0, to: 4_000, text: "z".repeat(4_000) }],
      });
      const final = rig.begin("report", "r", { output: "final" });
      rig.settle(final, {
        status: "completed",
        output: "y".repeat(number % 2 === 0 ? 60_000 : 8_000),
      });
    }
    expect(JSON.stringify(rig.state).length).toBeLessThan(400_000);
    for (const [id, text] of [
      ["report-1", "y".repeat(60_000)],
      ["report-2", "y".repeat(8_000)],
      ["report-300", "y".repeat(8_000)],
      ["bash-1", "z".repeat(4_000)],
      ["bash-300", "z".repeat(4_000)],
    ] as const) {
      expect(rig.read(id)).toMatchObject({ text });
    }
  });
});
