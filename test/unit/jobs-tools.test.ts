import { describe, expect, it } from "vitest";
import { defaultJobsConfig } from "../../src/contracts/jobs.js";
import type { ToolOutcome } from "../../src/contracts/tools.js";
import { boundJobResult } from "../../src/domain/job-bound.js";
import { joinStreams } from "../../src/domain/job-output.js";
import { statusLine } from "../../src/domain/job-texts.js";
import { jobCallCard, jobToolRows } from "../../src/domain/job-tool-rows.js";
import { planJobKill, planJobOutput } from "../../src/domain/job-tools.js";
import { errorOutcome } from "../../src/domain/tool-outcome.js";
import { JobRig } from "../support/jobs-rig.js";

const bytes = (text: string) => Buffer.byteLength(text);

function textOutcome(...texts: readonly string[]): ToolOutcome {
  return { content: texts.map((text) => ({ type: "text", text })), isError: false };
}

describe("the job tools", () => {
  it("are exclusive, run in the session, have no generic deadline, and say what they do", () => {
    expect(jobToolRows.map((row) => row.name)).toEqual(["job_output", "job_list", "job_kill"]);
    for (const row of jobToolRows) {
      expect(row).toMatchObject({ where: "state", parallel: false, idempotent: false });
      expect(row).not.toHaveProperty("timeoutMs");
      expect(row.description.length).toBeGreaterThan(40);
    }
  });

  it("[jobs/69] have call cards with the id as the model gave it", () => {
    const card = { card: "generic" };
    expect(jobCallCard("job_output", { job_id: "bash-1", wait: true })).toEqual({
      ...card,
      title: "Read output from background job bash-1",
      kind: "read",
      rawInput: "bash-1",
    });
    expect(jobCallCard("job_list", {})).toStrictEqual({
      ...card,
      title: "List background jobs",
      kind: "read",
    });
    expect(jobCallCard("job_kill", { job_id: "bash-1" })).toEqual({
      ...card,
      title: "Kill background job bash-1",
      kind: "execute",
      rawInput: "bash-1",
    });
    expect(jobCallCard("bash", {})).toBeUndefined();
    expect(jobCallCard("job_kill", "{")).toMatchObject({ title: "Kill background job " });
  });

  it("[jobs/62] refuse an id that is empty, missing or unknown; extra arguments are tolerated", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    for (const tool of ["job_output", "job_kill"]) {
      const shown = (args: unknown) => rig.tool(tool, args).shown;
      expect(shown({ job_id: "" })).toBe(
        'Error: invalid job_id: expected a non-empty string, got ""',
      );
      expect(shown({})).toBe('Error: invalid arguments: missing required property "job_id"');
      expect(shown("{")).toBe("Error: invalid arguments: arguments must be an object");
      expect(rig.tool(tool, { job_id: "bash-99" }).outcome).toMatchObject({
        isError: true,
        error: { code: "JOB_NOT_FOUND" },
        content: [{ text: "Error: unknown job bash-99" }],
      });
    }
    expect(rig.tool("job_output", { job_id: id, colour: "red" }).outcome.isError).toBe(false);
    expect(rig.tool("job_list", { any: 1 }).outcome.isError).toBe(false);
  });
});

describe("job_output", () => {
  it("[jobs/53] closes with a status line", () => {
    expect(statusLine({ status: "running" })).toBe("[status: running]");
    expect(statusLine({ status: "completed", detail: "exit code: 0" })).toBe(
      "[status: completed, exit code: 0]",
    );
  });

  it("[jobs/54] shows what is new, then that there is nothing; its value holds no inner field", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { owner: rig.owner("alice") });
    rig.push(id, "line one\n");
    const first = rig.tool("job_output", { job_id: id }, { caller: "alice" });
    expect(first.shown).toBe("line one\n[status: running]");
    expect(first.value).toStrictEqual({
      text: "line one\n",
      job: { id, kind: "bash", label: "x", status: "running", startedAt: rig.get(id).startedAt },
    });
    expect(rig.tool("job_output", { job_id: id }, { caller: "alice" }).shown).toBe(
      "(no new output)\n[status: running]",
    );
  });

  it("[jobs/55] shows a final output with its detail", () => {
    const rig = new JobRig();
    const id = rig.begin("subagent", "ask", { output: "final" });
    rig.settle(id, { status: "completed", detail: "completed", output: "the answer" });
    expect(rig.tool("job_output", { job_id: id }).shown).toBe(
      "the answer\n[status: completed, completed]",
    );
  });

  it("[jobs/56] [jobs/57] keeps the end of a long output, whole characters, and its status line", () => {
    const rig = new JobRig();
    const small = rig.begin("bash", "x", { limit: 48 });
    rig.push(small, "界".repeat(100));
    const { shown } = rig.tool("job_output", { job_id: small });
    expect(shown).toBe("界界界\n[output truncated]\n[status: running]");
    expect(bytes(shown)).toBe(46);
    for (const text of ["", "ok", "ok\n", "a\n\n"]) {
      const [bounded, free] = [rig.begin("bash", "x", { limit: 64 }), rig.begin("bash")].map(
        (id) => {
          if (text !== "") rig.push(id, text);
          return rig.tool("job_output", { job_id: id }).shown;
        },
      );
      expect(bounded).toBe(free);
    }
  });

  it("[jobs/58] what a policy made of it is cut as a whole, without the status line", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { limit: 64 });
    const policy = () => textOutcome("p".repeat(1_000));
    expect(rig.tool("job_output", { job_id: id }, { policy }).shown).toBe(
      `${"p".repeat(45)}\n[result truncated]`,
    );
  });

  it("[jobs/59] in place of short circuits: errors, denials and replacements fit the limit, and only the default text keeps the status", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { limit: 64 });
    const long = "e".repeat(500);
    const shown = [
      rig.tool("job_output", { job_id: id }, { readError: long }).shown,
      rig.tool("job_output", { job_id: id }, { policy: () => errorOutcome("TOOL_DENIED", long) })
        .shown,
      rig.tool(
        "job_output",
        { job_id: id },
        { policy: () => errorOutcome("TOOL_FAILED", `a tool policy failed: ${long}`) },
      ).shown,
    ];
    for (const text of shown) {
      expect(bytes(text)).toBe(64);
      expect(text.endsWith("\n[result truncated]")).toBe(true);
    }
    rig.push(id, long);
    const policy = (outcome: ToolOutcome) => ({ ...outcome, meta: { seen: true } });
    const whole = rig.tool("job_output", { job_id: id }, { policy }).shown;
    expect(bytes(whole)).toBe(64);
    expect(whole.endsWith("\n[output truncated]\n[status: running]")).toBe(true);
  });

  it("[jobs/60] a settlement during its wait is in the same reply, and there is no notice", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { owner: rig.owner("alice") });
    const { shown } = rig.tool(
      "job_output",
      { job_id: id, wait: true },
      {
        caller: "alice",
        during: () => {
          rig.push(id, "done");
          rig.settle(id, { status: "completed", detail: "exit code: 0" });
        },
      },
    );
    expect(shown).toBe("done\n[status: completed, exit code: 0]");
    expect(rig.notices).toEqual([]);
    expect(rig.get(id).reported).toBe(true);
  });

  it("[jobs/61] its wait is capped, and running out of time is no error", () => {
    const rig = new JobRig();
    rig.config = { ...defaultJobsConfig, waitTimeoutMs: 10, maxWaitTimeoutMs: 20 };
    const id = rig.begin("bash");
    for (const [timeout, ms] of [
      [{ timeout_ms: 600_000 }, 20],
      [{ timeout_ms: 15 }, 15],
      [{}, 10],
    ] as const) {
      const args = { job_id: id, wait: true, ...timeout };
      expect(planJobOutput(rig.state, args, undefined, rig.config)).toEqual({
        kind: "wait",
        id,
        ms,
      });
      expect(rig.tool("job_output", args).shown).toBe("(no new output)\n[status: running]");
    }
    expect(
      planJobOutput(rig.state, { job_id: id, wait: true }, undefined, rig.config, true),
    ).toMatchObject({
      result: {
        outcome: { error: { code: "ABORTED" }, content: [{ text: "Error: wait aborted" }] },
      },
    });
    expect(rig.tool("job_output", { job_id: id, wait: true, timeout_ms: 0 }).shown).toBe(
      "Error: invalid wait timeout: expected a positive number of milliseconds, got 0",
    );
    expect(rig.tool("job_output", { job_id: id, timeout_ms: 0 }).outcome.isError).toBe(false);
  });

  it("a result that is not logged consumes nothing", () => {
    const rig = new JobRig();
    const owner = rig.owner("alice");
    const id = rig.begin("bash", "x", { owner });
    rig.push(id, "kept");
    rig.settle(id);
    const policy = () => errorOutcome("TOOL_DENIED", "no");
    rig.tool("job_output", { job_id: id }, { caller: "alice", policy });
    expect(rig.get(id).reported).toBe(false);
    expect(rig.tool("job_output", { job_id: id }, { caller: "alice" }).shown).toBe(
      "kept\n[status: completed]",
    );
  });

  it("a mark the producer made already is not made twice", () => {
    const rig = new JobRig();
    const id = rig.begin("pty-send", "t1: (input)", { limit: 64 });
    rig.push(id, `${"o".repeat(100)}\n[output truncated]`);
    const { shown } = rig.tool("job_output", { job_id: id });
    expect(shown).toMatch(/^o+\n\[output truncated\]\n\[status: running\]$/u);
    expect(bytes(shown)).toBeLessThanOrEqual(64);
  });

  it("[jobs/93] skips what the readable tail no longer holds, with one line that says so", () => {
    const tail = { stream: "stdout", text: "tail", to: 70_000 };
    const line = "[some output was dropped from memory; full output: job/bash-1/stdout]";
    const rig = new JobRig();
    const id = rig.begin("bash");
    const delta = joinStreams([{ ...tail, dropped: true }], { locators: ["job/bash-1/stdout"] });
    expect(delta).toEqual({ text: `tail\n${line}`, offsets: { stdout: 70_000 } });
    rig.record({ type: "job/cursor", data: { id, offsets: delta.offsets ?? {} } });
    expect(rig.state.jobs[0]?.offsets).toEqual({ stdout: 70_000 });
    expect(joinStreams([{ ...tail, text: "more\n" }]).text).toBe("more\n");
    expect(joinStreams([{ ...tail, text: "", dropped: true }]).text).toBe(
      "[some output was dropped from memory; full output: (unavailable)]",
    );
  });

  it("puts new stderr under a line of its own, and the host's notes last", () => {
    const out = { stream: "stdout", text: "a", to: 1 };
    const err = { stream: "stderr", text: "b\n", to: 2 };
    expect(joinStreams([out, err])).toEqual({
      text: "a\n[stderr]\nb\n",
      offsets: { stdout: 1, stderr: 2 },
    });
    expect(joinStreams([{ ...out, text: "" }, err]).text).toBe("[stderr]\nb\n");
    expect(joinStreams([out, { ...err, text: "" }], { notes: ["sandbox: denied"] }).text).toBe(
      "a\nsandbox: denied",
    );
  });
});

describe("job_list", () => {
  it("[jobs/63] shows the caller's jobs and unowned ones, or that there are none", () => {
    const rig = new JobRig();
    expect(rig.tool("job_list", {}).shown).toBe("(no background jobs)");
    const owner = rig.owner("alice");
    rig.begin("bash", "pnpm test", { owner });
    const ended = rig.begin("subagent", "look", { output: "final" });
    rig.settle(ended, { status: "failed", detail: "error" });
    expect(rig.tool("job_list", {}, { caller: "alice" }).shown).toBe(
      "bash-1 [bash] running — pnpm test\nsubagent-1 [subagent] failed — look",
    );
    const other = rig.tool("job_list", {}, { caller: "bob" });
    expect(other.shown).toBe("subagent-1 [subagent] failed — look");
    expect(other.value).toStrictEqual([
      {
        id: "subagent-1",
        kind: "subagent",
        label: "look",
        status: "failed",
        detail: "error",
        startedAt: rig.get(ended).startedAt,
        finishedAt: rig.get(ended).finishedAt,
      },
    ]);
    expect(rig.get(ended).reported).toBe(false);
  });
});

describe("job_kill", () => {
  it("[jobs/64] asks for the end of a live job", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    const killed = rig.tool("job_kill", { job_id: id, reason: "no longer needed" });
    expect(killed.shown).toBe("requested cancellation of job bash-1");
    expect(killed.value).toMatchObject({
      outcome: "cancellation-requested",
      job: { id, status: "stopping" },
    });
    expect(rig.cancels).toEqual([{ id, reason: "no longer needed" }]);
    expect(rig.get(id).status).toBe("stopping");
  });

  it("[jobs/65] its text fits the smallest limit, and the cancel is asked for all the same", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { limit: 8 });
    expect(rig.tool("job_kill", { job_id: id }).shown).toBe("uncated]");
    expect(rig.cancels).toHaveLength(1);
  });

  it("[jobs/66] a refused request is a short error, and the job runs on", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { limit: 64 });
    rig.cancelErrors.set(id, "why ".repeat(100));
    const { outcome, shown } = rig.tool("job_kill", { job_id: id });
    expect(outcome.isError).toBe(true);
    expect(bytes(shown)).toBeLessThanOrEqual(64);
    expect(shown.endsWith("\n[result truncated]")).toBe(true);
    expect(rig.get(id)).toMatchObject({ status: "running", reported: false });
  });

  it("[jobs/67] results of several blocks, or of none, pass as they are", () => {
    const long = "x".repeat(200);
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { limit: 64 });
    const policy = () => textOutcome(long, long);
    expect(rig.tool("job_kill", { job_id: id }, { policy }).outcome).toEqual(
      textOutcome(long, long),
    );
    const empty = { content: [], isError: false };
    expect(boundJobResult(empty, 64)).toBe(empty);
    expect(boundJobResult(textOutcome(long), undefined)).toEqual(textOutcome(long));
  });

  it("an error that reads like the default text is cut as an error", () => {
    const shown = `${"x".repeat(100)}\n[status: running]`;
    const rendered = { shown, content: "x".repeat(100), suffix: "\n[status: running]" };
    const failed = { ...textOutcome(shown), isError: true };
    const text = boundJobResult(failed, 64, rendered).content[0]?.text;
    expect(text?.endsWith("\n[result truncated]")).toBe(true);
  });

  it("[jobs/68] a job that had finished keeps its unread output", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.push(id, "unread tail");
    rig.settle(id, { status: "completed", detail: "exit code: 0" });
    const { shown, value } = rig.tool("job_kill", { job_id: id });
    expect(shown).toBe("job bash-1 had already finished [status: completed, exit code: 0]");
    expect(value).toMatchObject({ outcome: "already-finished", job: { status: "completed" } });
    expect(rig.read(id)).toMatchObject({ text: "unread tail" });
  });

  it("passes a reason on word for word, and none when there is none", () => {
    const rig = new JobRig();
    const id = rig.begin("subagent", "x", { output: "final" });
    rig.tool("job_kill", { job_id: id, reason: "superseded" });
    rig.tool("job_kill", { job_id: id });
    expect(rig.cancels.map((cancel) => cancel.reason)).toEqual(["superseded", undefined]);
    expect(planJobKill(rig.state, { job_id: id }, undefined)).not.toHaveProperty("effect.reason");
  });

  it("the change a kill made stays when a policy hides its result", () => {
    const rig = new JobRig();
    const id = rig.begin("bash");
    rig.tool("job_kill", { job_id: id }, { policy: () => errorOutcome("TOOL_DENIED", "no") });
    expect(rig.get(id)).toMatchObject({ status: "stopping", reported: true });
  });
});

describe("foreign jobs", () => {
  it("bound nothing: their limit is unknown to the caller", () => {
    const rig = new JobRig();
    const id = rig.begin("bash", "x", { owner: rig.owner("alice"), limit: 8 });
    expect(rig.tool("job_output", { job_id: id }, { caller: "bob" }).shown).toBe(
      `Error: job ${id} belongs to another session`,
    );
  });
});
