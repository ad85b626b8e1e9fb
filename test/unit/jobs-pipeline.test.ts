import { describe, expect, it } from "vitest";
import { interrupt } from "../../src/domain/commands.js";
import type { SessionPolicy } from "../../src/domain/policy.js";
import { openJobSession } from "../support/jobs-in-session.js";
import {
  call,
  jobEntries,
  playCalls,
  policyWith,
  recordOf,
  resultCodes,
  withJob,
} from "../support/job-script.js";
import { entriesOf, once, waitingFor } from "../support/session-script.js";

const bytes = (text: string | undefined) => Buffer.byteLength(text ?? "");
const long = "e".repeat(500);

const noise = (text: string): SessionPolicy =>
  policyWith({ postExecute: () => ({ kind: "accept", content: [{ type: "text", text }] }) });

describe("results of the job tools, through the policies", () => {
  it("[jobs/54] [jobs/63] are read, listed and closed with the status of the job as it is by then", () => {
    const here = withJob("bash", "line one\n");
    const { texts } = playCalls(
      here.session,
      [[here.read(), here.read()], [call("job_list", {})]],
      here,
    );
    expect(texts).toEqual([
      "line one\n[status: running]",
      "(no new output)\n[status: running]",
      "bash-1 [bash] running — x",
    ]);
    expect(here.host.reads).toEqual([0, 9]);
    const empty = openJobSession();
    expect(playCalls(empty, [[call("job_list", {})]]).texts).toEqual(["(no background jobs)"]);
  });

  it("[jobs/58] are cut as a whole, without the status line, when a policy replaced the text", () => {
    const here = withJob("tight", "some output");
    const { texts } = playCalls(here.session, [[here.read()]], {
      ...here,
      policy: noise("p".repeat(1_000)),
    });
    expect(texts).toEqual([`${"p".repeat(45)}\n[result truncated]`]);
  });

  const failing: { readonly [stage: string]: SessionPolicy } = {
    "a denial": policyWith({ preExecute: () => ({ kind: "deny", reason: long }) }),
    "an ask": policyWith({ preExecute: () => ({ kind: "ask", reason: long }) }),
    "a guard": policyWith({ guard: () => long }),
    "a throw before": policyWith({
      preExecute() {
        throw new Error(long);
      },
    }),
    "a throw around": policyWith({
      deadline() {
        throw new Error(long);
      },
    }),
    "a throw after": policyWith({
      postExecute() {
        throw new Error(long);
      },
    }),
    "a block after": policyWith({ postExecute: () => ({ kind: "block", feedback: long }) }),
  };

  it.each(Object.entries(failing))(
    "[jobs/59] in place of short circuits: %s fits the job's limit and keeps the end of the text",
    (_, policy) => {
      for (const tool of ["read", "kill"] as const) {
        const here = withJob("tight", "unread");
        const [text] = playCalls(here.session, [[here[tool]()]], { ...here, policy }).texts;
        expect(bytes(text)).toBe(64);
        expect(text).toMatch(/e\)?\n\[result truncated\]$/u);
        const free = withJob("bash");
        expect(
          bytes(playCalls(free.session, [[free[tool]()]], { ...free, policy }).texts[0]),
        ).toBeGreaterThan(500);
      }
    },
  );

  it("[jobs/59] a read that failed with a long message fits the limit; text a policy left as it was keeps its status line", () => {
    const failed = withJob("tight");
    const jobs = () => ({
      kind: "failed" as const,
      code: "STORE_UNAVAILABLE" as const,
      message: long,
    });
    expect(playCalls(failed.session, [[failed.read()]], { jobs }).texts).toEqual([
      `${"e".repeat(45)}\n[result truncated]`,
    ]);
    const same = withJob("tight", long);
    const policy = policyWith({
      postExecute: (_context, _call, { content }) => ({ kind: "accept", content }),
    });
    const [text] = playCalls(same.session, [[same.read()]], { ...same, policy }).texts;
    expect(bytes(text)).toBe(64);
    expect(text).toMatch(/^e+\n\[output truncated\]\n\[status: running\]$/u);
  });

  it("[jobs/62] are errors for an empty or unknown id, whose limit nobody knows", () => {
    const here = withJob("tight");
    const { texts } = playCalls(here.session, [
      [call("job_output", { job_id: "" }), call("job_kill", { job_id: "bash-99" })],
    ]);
    expect(texts).toEqual([
      'Error: invalid job_id: expected a non-empty string, got ""',
      "Error: unknown job bash-99",
    ]);
    expect(resultCodes(here.session)).toEqual(["INVALID_ARGS", "JOB_NOT_FOUND"]);
    const unbounded = playCalls(here.session, [[call("job_kill", { job_id: "bash-99" })]], {
      policy: policyWith({ guard: () => long }),
    });
    expect(bytes(unbounded.texts[0])).toBe(507);
  });

  it("[jobs/65] [jobs/66] an acknowledged kill fits the smallest limit, and so does one that was refused: the job runs on", () => {
    const tiny = withJob("tiny");
    const { texts, run } = playCalls(tiny.session, [[tiny.kill()]], tiny);
    expect(texts).toEqual(["uncated]"]);
    expect(run.begun.filter(({ op }) => op.kind === "job")).toHaveLength(1);
    expect(recordOf(tiny.world, tiny.id)).toMatchObject({ status: "stopping", reported: true });

    const here = withJob("tight");
    const jobs = () => ({ kind: "failed" as const, code: "TOOL_FAILED" as const, message: long });
    const [refused] = playCalls(here.session, [[here.kill()]], { jobs }).texts;
    expect(refused).toBe(`${"e".repeat(45)}\n[result truncated]`);
    expect(recordOf(here.world, here.id)).toMatchObject({ status: "running", reported: false });
    expect(jobEntries(here.session)).toEqual(["job/start"]);
  });

  it("[jobs/67] of several blocks, or of none, pass the limit as they are", () => {
    for (const content of [
      [
        { type: "text" as const, text: long },
        { type: "text" as const, text: long },
      ],
      [],
    ]) {
      const here = withJob("tight");
      playCalls(here.session, [[here.kill()]], {
        ...here,
        policy: policyWith({ postExecute: () => ({ kind: "accept", content }) }),
      });
      const [result] = entriesOf(here.session, "tool/result");
      expect(result?.data.message.content[0]).toMatchObject({ content });
      expect(recordOf(here.world, here.id).status).toBe("stopping");
    }
  });
});

describe("job_output with wait", () => {
  it("[jobs/60] [jobs/61] waits as long as it may, delivers an end that comes meanwhile, and running out of time is no error", () => {
    const here = withJob("bash", "", { waitTimeoutMs: 10, maxWaitTimeoutMs: 20 });
    const { texts, run } = playCalls(
      here.session,
      [
        [here.read({ wait: true, timeout_ms: 600_000 }), here.read({ wait: true })],
        [here.read({ wait: true, timeout_ms: 0 }), here.read({ timeout_ms: 0 })],
      ],
      here,
    );
    const waits = run.begun.flatMap(({ op }) =>
      op.kind === "job" && op.work.do === "wait" ? [op.work.ms] : [],
    );
    expect(waits).toEqual([20, 10]);
    expect(texts).toEqual([
      "(no new output)\n[status: running]",
      "(no new output)\n[status: running]",
      "Error: invalid wait timeout: expected a positive number of milliseconds, got 0",
      "(no new output)\n[status: running]",
    ]);
    const ended = playCalls(here.session, [[here.read({ wait: true })]], {
      ...here,
      at: once(waitingFor("job"), () => {
        here.host.printed.set(here.id, "the end");
        here.world.settle(here.id, { status: "completed", detail: "exit code: 0" });
      }),
    });
    expect(ended.texts).toEqual(["the end\n[status: completed, exit code: 0]"]);
    expect(here.world.told(here.id)).toEqual({ shown: 0, pending: 0 });
    expect(here.session.waits.live).toEqual([]);
  });

  it("counts only while it waits, and a roll-over can see that it does", () => {
    const here = withJob();
    const counted: number[] = [];
    playCalls(here.session, [[here.read({ wait: true })]], {
      ...here,
      at: once(waitingFor("job"), () => counted.push(here.session.waits.live.length)),
    });
    expect([...counted, here.session.waits.live.length]).toEqual([1, 0]);
    expect(JSON.stringify(here.session.log.entries)).not.toContain('"waits"');
  });

  it("aborted, it is un-counted at once: an end in the same moment is announced", () => {
    const here = withJob("bash", "kept");
    const { texts } = playCalls(here.session, [[here.read({ wait: true })]], {
      ...here,
      at: once(waitingFor("job"), () => {
        interrupt(here.session, {});
        here.world.settle(here.id);
      }),
    });
    expect(texts).toEqual(["Error: wait aborted"]);
    expect(resultCodes(here.session)).toEqual(["ABORTED"]);
    expect(here.world.told(here.id)).toEqual({ shown: 0, pending: 1 });
    expect(recordOf(here.world, here.id).reported).toBe(false);
    expect(playCalls(here.session, [[here.read()]], here).texts).toEqual([
      "kept\n[status: completed]",
    ]);
  });

  it("settled and then aborted, the call tells the end that no notice tells", () => {
    const here = withJob("bash", "kept");
    const { texts } = playCalls(here.session, [[here.read({ wait: true })]], {
      ...here,
      at: once(waitingFor("job"), () => {
        here.world.settle(here.id);
        interrupt(here.session, {});
      }),
    });
    expect(texts).toEqual([
      "Error: the read was given up; job bash-1 has ended [status: completed], its output is still unread",
    ]);
    expect(here.world.told(here.id)).toEqual({ shown: 0, pending: 0 });
    expect(playCalls(here.session, [[here.read()]], here).texts).toEqual([
      "kept\n[status: completed]",
    ]);
  });
});
