import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jobEnds, type JobWorkflowInput } from "../../src/contracts/jobs.js";
import { parseJobKill, parseJobStart } from "../../src/domain/job-commands.js";
import { jobRunDetails } from "../../src/domain/job-details.js";
import { jobInputProblem, parseKillRequest, parseProgress } from "../../src/domain/job-input.js";
import { parseReport } from "../../src/domain/job-report.js";
import { utf8Bytes } from "../../src/domain/guards.js";
import { reportJob } from "../../src/domain/session-jobs.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";

const start = { opId: "o", kind: "bash", label: "x", input: { command: "x" } };
const workflowInput: JobWorkflowInput = {
  v: 1,
  session: "s1",
  token: "t",
  jobId: "bash-1",
  nonce: "n",
  host: "h",
  kind: "bash",
  label: "pnpm test",
  input: { command: "pnpm test" },
  cwd: "/w",
  outsideWorkspace: false,
  heartbeatMs: 2_000,
  heartbeatTimeoutMs: 15_000,
  orphanGraceMs: 300_000,
  outputBytes: 0,
};

/** A valid value with some of its fields replaced by anything, or anything. */
function bent(valid: object): fc.Arbitrary<unknown> {
  const keys = Object.keys(valid);
  const changes = fc.dictionary(fc.constantFrom(...keys), odd, { maxKeys: 3 });
  return fc.oneof(
    odd,
    changes.map((change) => ({ ...valid, ...change })),
  );
}

const odd = fc.anything({
  withBigInt: true,
  withDate: true,
  withNullPrototype: true,
  withMap: true,
  withSparseArray: true,
  withObjectString: true,
  withUnicodeString: true,
} as fc.ObjectConstraints);

describe("job.start", () => {
  it.each<[string, object, RegExp]>([
    ["no operation id", { opId: undefined }, /`opId` of 1 to 200 characters, got undefined/u],
    ["an empty operation id", { opId: "" }, /got text of 0 characters/u],
    ["a long operation id", { opId: "o".repeat(201) }, /got text of 201 characters/u],
    ["no kind", { kind: undefined }, /a `kind` of job/u],
    ["an empty kind", { kind: "" }, /a `kind` of job/u],
    ["a blank label", { label: " \n" }, /a `label` that is not blank/u],
    ["no input", { input: undefined }, /`input` to be an object, got undefined/u],
    ["an input of null", { input: null }, /`input` to be an object, got null/u],
    ["a list as input", { input: [] }, /`input` to be an object, got a list/u],
    ["an input that JSON would change", { input: { at: new Date(0) } }, /must be JSON: \$\.at/u],
  ])("with %s is refused", (_, changes, message) => {
    const parsed = parseJobStart({ ...start, ...changes });
    expect(parsed).toMatchObject({ ok: false, code: "INVALID_INPUT" });
    expect(parsed).toHaveProperty("message", expect.stringMatching(message));
  });

  it("holds 256 KiB of label and input together, and not a byte more", () => {
    const filled = (bytes: number) => ({ ...start, input: { command: "x".repeat(bytes) } });
    const most = 262_144 - utf8Bytes('{"command":""}') - 1;
    expect(parseJobStart(filled(most))).toEqual({ ok: true, value: filled(most) });
    expect(parseJobStart(filled(most + 1))).toMatchObject({ code: "MESSAGE_TOO_LARGE" });
    expect(parseJobStart({ ...filled(most), label: "é" })).toMatchObject({
      code: "MESSAGE_TOO_LARGE",
    });
  });

  it("passes on what it knows and nothing else", () => {
    expect(parseJobStart({ ...start, colour: "red" })).toStrictEqual({ ok: true, value: start });
  });
});

describe("job.kill", () => {
  const kill = { opId: "o", jobId: "bash-1" };

  it.each<[string, object, RegExp]>([
    ["no operation id", { opId: 5 }, /`opId` of 1 to 200 characters, got 5/u],
    ["no job", { jobId: "" }, /a `jobId`, got text of 0 characters/u],
    ["a reason that is no text", { reason: {} }, /`reason` to be text .* got object/u],
    ["a long reason", { reason: "r".repeat(1_001) }, /at most 1,000 characters/u],
  ])("with %s is refused", (_, changes, message) => {
    const parsed = parseJobKill({ ...kill, ...changes });
    expect(parsed).toMatchObject({ ok: false, code: "INVALID_INPUT" });
    expect(parsed).toHaveProperty("message", expect.stringMatching(message));
  });

  it("takes a reason of 1,000 characters, or none", () => {
    const reason = "r".repeat(1_000);
    expect(parseJobKill({ ...kill, reason })).toStrictEqual({
      ok: true,
      value: { ...kill, reason },
    });
    expect(parseJobKill({ ...kill, more: 1 })).toStrictEqual({ ok: true, value: kill });
  });
});

describe("the start input of a job's workflow", () => {
  it.each<[keyof JobWorkflowInput, unknown, RegExp]>([
    ["v", 2, /expected the start input of a job/u],
    ["session", "", /`session` is text that is not empty/u],
    ["token", 5, /`token` is text/u],
    ["jobId", undefined, /`jobId` is text/u],
    ["nonce", null, /`nonce` is text/u],
    ["host", "", /`host` is text/u],
    ["kind", [], /`kind` is text/u],
    ["label", "", /`label` is text/u],
    ["heartbeatMs", -1, /`heartbeatMs` is a whole number from 0/u],
    ["heartbeatTimeoutMs", 1.5, /`heartbeatTimeoutMs` is a whole number/u],
    ["orphanGraceMs", "1", /`orphanGraceMs` is a whole number/u],
    ["outputBytes", Infinity, /`outputBytes` is a whole number/u],
    ["input", null, /`input` is an object/u],
    ["cwd", 5, /`cwd` is text/u],
    ["outsideWorkspace", undefined, /`outsideWorkspace` is true or false/u],
  ])("names %s when it is wrong", (key, value, problem) => {
    expect(jobInputProblem(workflowInput)).toBeUndefined();
    expect(jobInputProblem({ ...workflowInput, [key]: value })).toMatch(problem);
  });

  it("needs no workspace", () => {
    const { cwd: _, ...without } = workflowInput;
    expect(jobInputProblem(without)).toBeUndefined();
  });
});

describe("signals of a job's workflow", () => {
  it("a kill of any shape is one, its reason is text of at most 4 KiB", () => {
    expect(parseKillRequest(undefined)).toEqual({});
    expect(parseKillRequest({ reason: 5 })).toEqual({});
    const { reason = "" } = parseKillRequest({ reason: "界".repeat(2_000) });
    expect(reason).toBe("界".repeat(1_365));
  });

  it("progress needs bytes and a tail, of which the last 4 KiB are kept", () => {
    for (const strange of [undefined, {}, { bytes: "1", tail: "x" }, { bytes: 1 }])
      expect(parseProgress(strange)).toBeUndefined();
    expect(parseProgress({ bytes: 9, tail: `a${"x".repeat(4_096)}` })).toEqual({
      bytes: 9,
      tail: "x".repeat(4_096),
    });
  });
});

describe("the current details of a job", () => {
  const show = (...rest: [] | [boolean, ...unknown[]]) => {
    const [stopping = false, progress, ended] = rest as Parameters<typeof jobRunDetails> extends [
      unknown,
      ...infer R,
    ]
      ? Partial<R>
      : never;
    return jobRunDetails(workflowInput, stopping ?? false, progress, ended);
  };

  it("say what it is, where, and its state", () => {
    expect(show()).toBe(
      "**[status: running]** · `bash-1` of session `s1` on host `h`\n\nbash: pnpm test\n\nIts newest output stands with the pending activity.",
    );
    expect(show(true)).toContain("**[status: stopping]**");
    expect(show(true, undefined, { status: "killed", detail: "signal: SIGTERM" })).toBe(
      "**[status: killed, signal: SIGTERM]** · `bash-1` of session `s1` on host `h`\n\nbash: pnpm test",
    );
  });

  it("show the newest output in a fence longer than any inside, and at most 2 KiB", () => {
    expect(show(false, { bytes: 12, tail: "a\n````\nb" })).toContain(
      "Output so far: 12 bytes\n\n`````\na\n````\nb\n`````",
    );
    const long = show(false, { bytes: 5_000, tail: `start${"x".repeat(4_000)}` });
    expect(long).not.toContain("start");
    expect(long).toContain(`\n${"x".repeat(2_048)}\n`);
  });

  it("show at the end how much each stream had, and a final output", () => {
    const tails = [
      { stream: "stdout", from: 0, to: 3, text: "ok\n" },
      { stream: "stderr", from: 0, to: 0, text: "" },
    ];
    const ended = show(false, { bytes: 1, tail: "old" }, { status: "completed", tails });
    expect(ended).toContain("Output: 3 bytes of stdout, 0 bytes of stderr\n\n```\nok\n```");
    expect(ended).not.toContain("old");
    expect(show(false, undefined, { status: "completed", output: "42" })).toContain("```\n42\n```");
  });
});

describe("input of any shape", () => {
  const report = {
    id: "bash-1",
    nonce: "n1",
    owner: "s1",
    report: "settled",
    outcome: { status: "completed" },
    silent: true,
  };
  const outcome = {
    status: "failed",
    detail: "d",
    output: "o",
    ref: { ref: "r", bytes: 1, digest: "d" },
    tails: [{ stream: "stdout", from: 0, to: 1, text: "x" }],
    lost: true,
  };

  const hollow: unknown[] = [];
  hollow.length = 1;

  it("is accepted or refused, never thrown at", () => {
    fc.assert(
      fc.property(
        bent(start),
        bent({ opId: "o", jobId: "bash-1", reason: "r" }),
        bent(workflowInput),
        bent({ bytes: 1, tail: "x" }),
        (asked, kill, input, progress) => {
          for (const parsed of [parseJobStart(asked), parseJobKill(kill)]) {
            const kept = parsed.ok ? parsed.value : parsed.message;
            expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
          }
          const problem = jobInputProblem(input);
          if (problem === undefined)
            jobRunDetails(input as JobWorkflowInput, false, parseProgress(progress), undefined);
          parseKillRequest(progress);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("as a report leaves the session's log sound, and an accepted one ends the job", () => {
    fc.assert(
      fc.property(bent(report), bent(outcome), fc.boolean(), (signal, end, nested) => {
        const given =
          nested && typeof signal === "object" && signal !== null
            ? { ...signal, outcome: end }
            : signal;
        const session = openJobSession();
        const world = new JobsInSession(session);
        world.start();
        const lines = reportJob(session, given);
        expect(session.fault).toBeUndefined();
        for (const line of lines) expect(typeof line).toBe("string");
        const [job] = session.folds.jobs.jobs;
        const parsed = parseReport(given)?.report;
        const ends =
          parsed?.report === "settled" &&
          parsed.id === "bash-1" &&
          parsed.nonce === "n1" &&
          parsed.owner === "s1";
        expect(ends ? jobEnds : ["running"]).toContain(job?.status);
        const { jobs } = session.folds;
        expect(JSON.parse(JSON.stringify(jobs))).toEqual(jobs);
      }),
      // A list with a hole was found by chance once.
      { numRuns: 500, examples: [[report, { ...outcome, tails: hollow }, true]] },
    );
  });
});
