import { describe, expect, it } from "vitest";
import type { SessionConfig } from "../../src/contracts/config.js";
import { interrupt } from "../../src/domain/commands.js";
import { currentDetails } from "../../src/domain/details.js";
import { backgroundDisabled, jobsPromptSection, noController } from "../../src/domain/job-texts.js";
import { offered } from "../../src/domain/job-tool-rows.js";
import type { SessionPolicy } from "../../src/domain/policy.js";
import { jobsView, projectionsOf } from "../../src/domain/views.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import { backgroundRow, call, playCalls, policyWith, resultCodes } from "../support/job-script.js";
import { entriesOf, once, openSession, row, waitingFor } from "../support/session-script.js";

const sleep = call("bash", { command: "sleep 60", run_in_background: true });

function open(jobs: SessionConfig["jobs"] = {}, kind = "bash") {
  return openJobSession([row("t"), backgroundRow(kind)], jobs);
}

/** Nothing was begun, logged or queued for a job. */
function expectNothingStarted(session: ReturnType<typeof open>, begun: readonly unknown[] = []) {
  expect(begun).toEqual([]);
  expect(session.effects).toEqual([]);
  expect(session.folds.jobs).toEqual({ ...session.folds.jobs, jobs: [], counters: {} });
}

describe("run_in_background", () => {
  it("answers with the job's id at once, runs no body, and the job is that of the session", () => {
    const session = open();
    const { texts, run: driven } = playCalls(session, [
      [sleep, call("bash", { command: "make", run_in_background: true, nice: 5 })],
    ]);
    expect(texts).toEqual(["started background job bash-1", "started background job bash-2"]);
    expect(driven.begun.some(({ op }) => op.kind === "tool")).toBe(false);
    expect(entriesOf(session, "tool/result").map(({ data }) => data.meta)).toEqual([
      { kind: "background", jobId: "bash-1" },
      { kind: "background", jobId: "bash-2" },
    ]);
    expect(session.effects).toMatchObject([
      { kind: "start-job", id: "bash-1", input: { command: "sleep 60" } },
      { kind: "start-job", id: "bash-2", input: { command: "make", nice: 5 } },
    ]);
    expect(JSON.stringify(session.effects)).not.toContain("run_in_background");
    expect(jobsView(session).jobs.map(({ label }) => label)).toEqual(["sleep 60", "make"]);
  });

  it("false, absent or of another shape runs the body", () => {
    const session = open();
    const { run: driven } = playCalls(session, [
      [false, "yes", undefined].map((flag) =>
        call("bash", { command: "date", run_in_background: flag }),
      ),
    ]);
    expect(driven.begun.filter(({ op }) => op.kind === "tool")).toHaveLength(3);
    expectNothingStarted(session);
  });

  it("takes the label from what the call says, else the tool's name", () => {
    const session = openJobSession([row("t", { jobKind: "sum" })]);
    const flag = { run_in_background: true };
    playCalls(session, [
      [
        call("t", { ...flag, label: "the label", description: "what" }),
        call("t", { ...flag, label: " ", description: "what" }),
        call("t", { ...flag, command: 7 }),
      ],
    ]);
    expect(jobsView(session).jobs.map(({ label }) => label)).toEqual(["the label", "what", "t"]);
  });

  it("outlives its call, its turn and their abort", () => {
    const session = open();
    playCalls(session, [[sleep], [call("t", {})]], {
      at: once(waitingFor("tool"), () => interrupt(session, {})),
    });
    expect(entriesOf(session, "turn/end").map(({ data }) => data.reason.kind)).toEqual(["aborted"]);
    expect(jobsView(session).jobs).toMatchObject([{ id: "bash-1", status: "running" }]);
    expect(session.effects).toHaveLength(1);
  });
});

describe("[jobs/86] nothing is started for a call", () => {
  const refusing: { readonly [stage: string]: SessionPolicy } = {
    "that is denied": policyWith({ preExecute: () => ({ kind: "deny", reason: "no" }) }),
    "that would have to be asked about": policyWith({ preExecute: () => ({ kind: "ask" }) }),
    "that a guard stops": policyWith({ guard: () => "no" }),
    "before which a policy throws": policyWith({
      preExecute() {
        throw new Error("no");
      },
    }),
    "whose deadline throws": policyWith({
      deadline() {
        throw new Error("no");
      },
    }),
  };

  it.each(Object.entries(refusing))("%s", (_, policy) => {
    const session = open();
    playCalls(session, [[sleep]], { policy });
    expect(resultCodes(session)[0]).toMatch(/^TOOL_(DENIED|FAILED)$/u);
    expectNothingStarted(session);
  });

  it("that an abort overtakes", () => {
    const session = open();
    playCalls(session, [[call("t", {}), sleep]], {
      at: once(waitingFor("tool"), () => interrupt(session, {})),
    });
    expect(resultCodes(session)).toEqual(["ABORTED", "ABORTED_BEFORE_DISPATCH"]);
    expectNothingStarted(session);
  });

  it("where background jobs are switched off: exact text, and the tool does not offer it", () => {
    const session = open({ enableRunInBackground: false });
    expect(playCalls(session, [[sleep]]).texts).toEqual([`Error: ${backgroundDisabled}`]);
    expect(backgroundDisabled).toBe(
      "run_in_background is disabled for this deployment (enableRunInBackground: false)",
    );
    expect(resultCodes(session)).toEqual(["JOBS_UNAVAILABLE"]);
    expectNothingStarted(session);

    const tool = backgroundRow();
    expect(offered(tool, { enableRunInBackground: true })).toBe(tool);
    const without = offered(tool, { enableRunInBackground: false });
    expect(without.parameters).toEqual({
      type: "object",
      properties: { command: { type: "string" } },
      required: ["command"],
    });
    const other = row("t", { parameters: tool.parameters });
    expect(offered(other, { enableRunInBackground: false })).toBe(other);
    for (const parameters of [{}, { properties: null }, { properties: ["a"] }]) {
      const odd = { ...tool, parameters };
      expect(offered(odd, { enableRunInBackground: false })).toBe(odd);
    }
  });

  it("whose session has no job tools, or whose kind no host of it runs", () => {
    const bare = openSession({}, [backgroundRow()]);
    expect(playCalls(bare, [[sleep]]).texts).toEqual([`Error: ${noController}`]);
    expect(noController).toBe(
      "background jobs unavailable: no job controller serves this agent (load the longhaul job tools in its composition)",
    );
    expectNothingStarted(bare);
    const strange = open({}, "pty-send");
    expect(playCalls(strange, [[sleep]]).texts).toEqual([
      'Error: unknown job kind "pty-send"; this session knows bash, sum, tight',
    ]);
    expectNothingStarted(strange);
  });

  it("whose arguments break the tool's schema or are too large to travel", () => {
    const session = open();
    const tooLong = "é".repeat(131_072);
    const { texts } = playCalls(session, [
      [
        call("bash", { run_in_background: true }),
        call("bash", { command: 5, run_in_background: true }),
        call("bash", { command: tooLong, run_in_background: true }),
      ],
    ]);
    expect(resultCodes(session)).toEqual(["INVALID_ARGS", "INVALID_ARGS", "INVALID_ARGS"]);
    expect(texts[0]).toBe('Error: invalid arguments: missing required property "command"');
    expect(texts[2]).toBe(
      "Error: the arguments of a background job hold at most 262144 bytes, these have 262158; put the text in a file and name it",
    );
    expectNothingStarted(session);
    const fits = "é".repeat(131_065);
    playCalls(session, [[call("bash", { command: fits, run_in_background: true })]]);
    expect(jobsView(session).jobs).toHaveLength(1);
  });

  it("beyond the limit of its owner, and the refusal burns no number", () => {
    const session = open({ maxConcurrentJobsPerOwner: 1 });
    const world = new JobsInSession(session);
    const { texts } = playCalls(session, [[sleep, sleep]]);
    expect(texts).toEqual([
      "started background job bash-1",
      "Error: background job limit reached for this owner (limit: 1); use job_kill to stop an unneeded job, wait for it to finish, then retry",
    ]);
    expect(resultCodes(session)).toEqual([undefined, "JOB_LIMIT"]);
    expect(session.effects).toHaveLength(1);
    world.settle("bash-1");
    expect(playCalls(session, [[sleep]]).texts).toEqual(["started background job bash-2"]);
  });

  it("that uses the id of another call of the reply", () => {
    const session = open();
    const same = { ...sleep, callId: "c1" };
    playCalls(session, [[same, same]]);
    expect(resultCodes(session)).toEqual([undefined, "INVALID_ARGS"]);
    expect(jobsView(session).jobs).toHaveLength(1);
  });
});

describe("what a session shows of its jobs", () => {
  it("in the prompt: how to treat them, exactly when the table has all the job tools", () => {
    const promptOf = (session: ReturnType<typeof open>): string => {
      playCalls(session, []);
      const header = entriesOf(session, "request/header").at(-1);
      return header?.data.header.system ?? "";
    };
    expect(promptOf(openJobSession())).toContain(jobsPromptSection.text);
    expect(promptOf(openSession({}, [row("t")]))).not.toContain(jobsPromptSection.text);
    const partly = openJobSession();
    const { epoch, tools, jobKinds } = partly.folds.place;
    const change = { epoch, tools: tools.filter(({ name }) => name !== "job_list"), jobKinds };
    partly.record({ type: "session/tools", data: change });
    expect(promptOf(partly)).not.toContain(jobsPromptSection.text);
  });

  it("in its projections: the whole set, from the first job on, also when all are gone", () => {
    const session = open();
    expect(projectionsOf(session).values).not.toHaveProperty("jobs");
    playCalls(session, [[sleep]]);
    const [job] = projectionsOf(session).values.jobs ?? [];
    expect(job).toStrictEqual({
      id: "bash-1",
      kind: "bash",
      label: "sleep 60",
      status: "running",
      startedAt: job?.startedAt,
    });
    session.record({ type: "job/removed", data: { ids: ["bash-1"] } });
    expect(projectionsOf(session).values.jobs).toEqual([]);
  });

  it("in its jobs: what people need to find them, and the kinds it can start", () => {
    const session = open();
    playCalls(session, [[sleep]]);
    new JobsInSession(session).settle("bash-1", { status: "killed", detail: "signal: SIGTERM" });
    const view = jobsView(session);
    expect(view).toMatchObject({
      jobs: [
        {
          id: "bash-1",
          status: "killed",
          detail: "signal: SIGTERM",
          output: "stream",
          reported: false,
          workflowId: "s1/job/bash-1/n1",
        },
      ],
      kinds: ["bash", "sum", "tight"],
    });
    expect(view.jobs[0]).not.toHaveProperty("ownerSession");
  });

  it("in its details: a line for each live job, at most 20, as one line of Markdown", () => {
    const session = open({ maxConcurrentJobsPerOwner: 100 });
    expect(currentDetails(session, undefined)).not.toContain("### Jobs");
    const many = Array.from({ length: 22 }, (_, index) =>
      call("bash", { command: `first ${index}\nsecond`, run_in_background: true }),
    );
    playCalls(session, [many]);
    const world = new JobsInSession(session);
    world.settle("bash-1");
    session.record({ type: "job/stopping", data: { id: "bash-2", detail: "stop\noverdue" } });
    const lines = currentDetails(session, undefined).split("\n");
    const shown = lines.slice(lines.indexOf("### Jobs") + 2);
    expect(shown).toHaveLength(20);
    expect(shown[0]).toBe("- `bash-2` stopping, stop overdue — first 1 second");
    expect(shown[1]).toBe("- `bash-3` running — first 2 second");
  });
});
