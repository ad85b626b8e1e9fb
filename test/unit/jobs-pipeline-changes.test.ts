import { describe, expect, it } from "vitest";
import { interrupt } from "../../src/domain/commands.js";
import type { SessionPolicy } from "../../src/domain/policy.js";
import {
  call,
  jobEntries,
  playCalls,
  policyWith,
  recordOf,
  resultCodes,
  withJob,
} from "../support/job-script.js";
import { once, waitingFor } from "../support/session-script.js";

describe("the cursor of job_output", () => {
  it("moves in the log right before the result that shows the text, once", () => {
    const here = withJob("bash", "one\n");
    playCalls(here.session, [[here.read()]], here);
    const types = here.session.log.entries.map(({ type }) => type);
    expect(types.slice(types.indexOf("job/cursor") - 1, types.indexOf("job/cursor") + 2)).toEqual([
      "tool/call",
      "job/cursor",
      "tool/result",
    ]);
    expect(recordOf(here.world, here.id).offsets).toEqual({ stdout: 4 });
    here.host.printed.set(here.id, "one\ntwo\n");
    expect(playCalls(here.session, [[here.read()]], here).texts).toEqual([
      "two\n[status: running]",
    ]);
    expect(here.host.reads).toEqual([0, 4]);
  });

  it("stays where it is when the read is aborted", () => {
    const here = withJob("bash", "kept");
    here.world.settle(here.id);
    const aborted = playCalls(here.session, [[here.read()]], {
      ...here,
      at: once(waitingFor("job"), () => interrupt(here.session, {})),
    });
    expect(aborted.texts).toEqual(["Error: the read was given up"]);
    expect(jobEntries(here.session)).toEqual(["job/start", "job/settled"]);
    expect(recordOf(here.world, here.id)).toMatchObject({ reported: false, offsets: {} });
  });

  it("moves when the text arrived in spite of an abort, for then it is in the log", () => {
    const here = withJob("bash", "kept");
    const { texts } = playCalls(here.session, [[here.read()]], {
      jobs: (op) => here.jobs({ ...op, cancelled: false }),
      at: once(waitingFor("job"), () => interrupt(here.session, {})),
    });
    expect(texts).toEqual(["kept\n[status: running]"]);
    expect(recordOf(here.world, here.id).offsets).toEqual({ stdout: 4 });
  });

  it("stays where it is when a policy blocks, breaks or fails the result, and moves when it only rewrites it", () => {
    const broken = [{ type: "text", text: 5 }] as unknown as { type: "text"; text: string }[];
    const hiding: readonly Partial<SessionPolicy>[] = [
      { postExecute: () => ({ kind: "block", feedback: "no" }) },
      { postExecute: () => ({ kind: "accept", content: broken }) },
      {
        postExecute() {
          throw new Error("no");
        },
      },
    ];
    for (const stages of hiding) {
      const here = withJob("bash", "kept");
      here.world.settle(here.id);
      playCalls(here.session, [[here.read()]], { ...here, policy: policyWith(stages) });
      expect(resultCodes(here.session)[0]).toBeDefined();
      expect(recordOf(here.world, here.id)).toMatchObject({ reported: false, offsets: {} });
    }
    const here = withJob("bash", "seen");
    playCalls(here.session, [[here.read()]], {
      ...here,
      policy: policyWith({
        postExecute: () => ({
          kind: "accept",
          content: [{ type: "text", text: "in other words" }],
        }),
      }),
    });
    expect(recordOf(here.world, here.id).offsets).toEqual({ stdout: 4 });
  });

  it("an end that comes during the read comes with the output up to it", () => {
    const here = withJob("bash", "so far");
    const { texts } = playCalls(here.session, [[here.read()]], {
      ...here,
      at: once(waitingFor("job"), () => {
        here.host.printed.set(here.id, "so far, and the rest");
        here.world.settle(here.id, { status: "completed", detail: "exit code: 1" });
      }),
    });
    expect(texts).toEqual(["so far, and the rest\n[status: completed, exit code: 1]"]);
    expect(here.host.reads).toEqual([0, 0]);
    expect(here.world.told(here.id)).toEqual({ shown: 0, pending: 0 });
  });
});

describe("job_kill", () => {
  it("[jobs/64] asks the job's workflow first, with the reason, and then says that the job is stopping", () => {
    const here = withJob();
    const seen: string[] = [];
    const { texts, run } = playCalls(here.session, [[here.kill({ reason: "enough" })]], {
      ...here,
      at: once(waitingFor("job"), () => seen.push(recordOf(here.world, here.id).status)),
    });
    expect(texts).toEqual(["requested cancellation of job bash-1"]);
    expect(run.begun.find(({ op }) => op.kind === "job")?.op).toMatchObject({
      work: { do: "cancel", effect: { id: "bash-1", by: "kill", reason: "enough" } },
    });
    expect(seen).toEqual(["running"]);
    expect(recordOf(here.world, here.id)).toMatchObject({ status: "stopping", reported: true });
  });

  it("[jobs/68] tells that a job had finished, also one that settles while it is asked, and eats no output", () => {
    const here = withJob("bash", "unread tail");
    const end = { status: "completed", detail: "exit code: 0" };
    const { texts, run } = playCalls(here.session, [[here.kill()], [here.kill()], [here.read()]], {
      ...here,
      at: once(waitingFor("job"), () => here.world.settle(here.id, end)),
    });
    const finished = "job bash-1 had already finished [status: completed, exit code: 0]";
    expect(texts).toEqual([finished, finished, "unread tail\n[status: completed, exit code: 0]"]);
    const asked = run.begun.filter(({ op }) => op.kind === "job" && op.work.do === "cancel");
    expect(asked).toHaveLength(1);
    expect(jobEntries(here.session)).toEqual([
      "job/start",
      "job/settled",
      "job/reported",
      "job/cursor",
    ]);
  });

  it("tells the end of a job that settles while the request for it fails", () => {
    const here = withJob();
    const { texts } = playCalls(here.session, [[here.kill()]], {
      jobs: () => ({ kind: "failed", code: "JOB_NOT_FOUND", message: "its workflow is gone" }),
      at: once(waitingFor("job"), () => here.world.settle(here.id, { status: "killed" })),
    });
    expect(texts).toEqual(["job bash-1 had already finished [status: killed]"]);
  });

  it("is not given up by an abort: what was asked is logged", () => {
    const here = withJob();
    const { texts, run } = playCalls(here.session, [[here.kill()]], {
      ...here,
      at: once(waitingFor("job"), () => interrupt(here.session, {})),
    });
    expect(run.effects.some(({ kind }) => kind === "cancel")).toBe(false);
    expect(texts).toEqual(["requested cancellation of job bash-1"]);
    expect(recordOf(here.world, here.id).status).toBe("stopping");
  });

  it("what it changed stays when a policy hides its result, and nothing changes when one denies it", () => {
    const hidden = withJob();
    const policy = policyWith({ postExecute: () => ({ kind: "block", feedback: "no" }) });
    expect(playCalls(hidden.session, [[hidden.kill()]], { ...hidden, policy }).texts).toEqual([
      "Error: no",
    ]);
    expect(recordOf(hidden.world, hidden.id).status).toBe("stopping");

    const denied = withJob();
    const never = policyWith({ preExecute: () => ({ kind: "deny", reason: "no" }) });
    const { run } = playCalls(denied.session, [[denied.kill()]], { ...denied, policy: never });
    expect(run.begun.filter(({ op }) => op.kind === "job")).toEqual([]);
    expect(recordOf(denied.world, denied.id).status).toBe("running");
  });
});

describe("jobs that were silent for a minute", () => {
  it("are looked for before the model is told of them, not before a kill", () => {
    const here = withJob("bash", "x");
    here.session.heard.delete(here.id);
    const looked = (made: ReturnType<typeof call>) =>
      playCalls(here.session, [[made]], here).run.begun.flatMap(({ op }) =>
        op.kind === "job" && op.work.do === "look" ? [op.work.jobs] : [],
      );
    expect(looked(call("job_list", {}))).toEqual([["bash-1"]]);
    expect(looked(here.read())).toEqual([["bash-1"]]);
    here.session.heard.set(here.id, here.session.now);
    expect(looked(here.read())).toEqual([]);
    here.session.heard.delete(here.id);
    expect(looked(here.kill())).toEqual([]);
  });
});
