import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Session } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { stops } from "../../src/cli/io.js";
import { durationText } from "../../src/cli/render/jobs.js";
import { runCli } from "../../src/cli/run.js";
import { shellLine } from "../../src/cli/shell-words.js";
import type { JobOutputPiece } from "../../src/client/job-output.js";
import { defaultLimits } from "../../src/contracts/config.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { JobView, SessionView } from "../../src/contracts/session.js";
import { fakeBackend, fakeIo, fakeSession, type FakeIo } from "../support/fake-cli.js";

async function line(session: Partial<Session>, argv: readonly string[], io: FakeIo = fakeIo()) {
  const exitCode = await runCli(argv, io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(fakeBackend(fakeSession(session))),
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

const running: JobView = {
  id: "bash-2",
  kind: "bash",
  label: "npm \u001b[31mtest\u001b[0m",
  status: "running",
  startedAt: Date.UTC(2026, 0, 2, 3, 4),
  output: "stream",
  reported: false,
  workflowId: "s-1/job/bash-2/n",
};
const failed: JobView = {
  ...running,
  id: "bash-1",
  label: "make",
  status: "completed",
  detail: "exit code: 2",
  finishedAt: running.startedAt + 125_000,
};

describe("jobs", () => {
  const session: Partial<Session> = {
    jobs: () => Promise.resolve({ jobs: [failed, running], kinds: ["bash"], state: "idle" }),
  };

  it("is a table in the order of their start", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: running.startedAt + 11_000_000 });
    onTestFinished(() => void vi.useRealTimers());
    const { stdout } = await line(session, ["jobs", "s-1"]);
    expect(stdout).toMatchInlineSnapshot(`
      "JOB     KIND  STATUS                   STARTED            RAN FOR  LABEL
      bash-1  bash  completed, exit code: 2  2026-01-02 03:04Z  2m 5s    make
      bash-2  bash  running                  2026-01-02 03:04Z  3h 3m    npm test
      "
    `);
  });

  it("is one JSON document with --json", async () => {
    const { stdout } = await line(session, ["jobs", "s-1", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      session: "s-1",
      jobs: [failed, running],
      kinds: ["bash"],
      state: "idle",
    });
  });

  it("says when there are none", async () => {
    const none = { jobs: () => Promise.resolve({ jobs: [], kinds: [], state: "idle" as const }) };
    expect((await line(none, ["jobs", "s-1"])).stdout).toBe("no jobs\n");
  });

  it("has a help that names its sub-commands, which win over a session of that name", async () => {
    const { stdout } = await line({}, ["jobs", "--help"]);
    expect(stdout).toMatch(
      /^ {2}jobs start .*\n {2}jobs logs .*\n {2}jobs wait .*\n {2}jobs kill /m,
    );
    expect((await line({}, ["jobs", "start", "--help"])).stdout).toContain("longhaul jobs start");
  });
});

describe("jobs start", () => {
  const started: unknown[] = [];
  const session: Partial<Session> = {
    startJob: (options) => {
      started.push(options);
      return Promise.resolve({ ok: true, id: "bash-1" });
    },
  };

  it.each<[readonly string[], unknown]>([
    [["--", "npm test && ls"], { kind: "bash", input: { command: "npm test && ls" } }],
    [["--", "grep", "a b", "-r"], { kind: "bash", input: { command: "grep 'a b' -r" } }],
    [["--label", "L", "--", "ls"], { kind: "bash", label: "L", input: { command: "ls" } }],
    [["--id", "op", "ls"], { kind: "bash", id: "op", input: { command: "ls" } }],
    [["--kind", "sweep", "--input", '{"n":1}'], { kind: "sweep", input: { n: 1 } }],
  ])("%j is asked for as %j", async (words, expected) => {
    const { exitCode, stdout } = await line(session, ["jobs", "start", "s-1", ...words]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "bash-1\n" });
    expect(started.at(-1)).toEqual(expected);
  });

  it("answers in JSON", async () => {
    const { stdout } = await line(session, ["jobs", "start", "s-1", "--json", "--", "ls"]);
    expect(JSON.parse(stdout)).toEqual({ session: "s-1", id: "bash-1", kind: "bash" });
  });

  it.each<[readonly string[], string]>([
    [[], "jobs start expected -- and a command, or --input, got nothing"],
    [["--", ""], "jobs start expected -- and a command, or --input, got nothing"],
    [["--input", "{}", "--", "ls"], "jobs start takes a command or --input, not both"],
    [["--input", "{"], "--input expected JSON ("],
    [["--input", "[1]"], "--input expected a JSON object, got [1]"],
    [["--lable", "x"], 'unknown option "--lable"; did you mean "--label"?'],
  ])("%j is a mistake on the command line", async (words, expected) => {
    const { exitCode, stderr } = await line({}, ["jobs", "start", "s-1", ...words]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`error: USAGE: ${expected}`);
    expect(stderr).toMatch(/^[^\n]+\n$/);
  });

  it("is suggested for a mistyped sub-command", async () => {
    const { stderr } = await line({}, ["jobs", "strat", "s-1"]);
    expect(stderr).toContain('jobs got "s-1" too many; it takes <session>; did you mean "start"?');
  });
});

describe("words joined for a shell", () => {
  it("are read back by a shell as they were, whatever they hold", () => {
    const word = fc
      .string({
        unit: fc.constantFrom(..."ab -='\"\\$`*?[]{}()<>|&;!#~%^\n\t\u00e9☑,./:@+".split("")),
      })
      .filter((text) => !text.startsWith("-"));
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
        const script = shellLine(["printf", String.raw`%s\0`, ...words]);
        const read = execFileSync("bash", ["-c", script], { encoding: "utf8" }).split("\0");
        expect(read).toEqual([...words, ""]);
      }),
      { numRuns: 60 },
    );
  });
});

describe("jobs logs", () => {
  const piece = (stream: string, offset: number, bytes: Uint8Array): JobOutputPiece => ({
    stream,
    offset,
    text: Buffer.from(bytes).toString("utf8"),
    bytes,
  });
  const text = (stream: string, offset: number, value: string) =>
    piece(stream, offset, Buffer.from(value));
  const asked: unknown[] = [];
  const printing = (...pieces: readonly JobOutputPiece[]): Partial<Session> => ({
    async *jobOutput(job, { follow } = {}) {
      asked.push([job, follow]);
      yield* pieces;
    },
    waitJob: () => Promise.resolve(failed),
  });
  const both = printing(
    text("stdout", 0, "one\n"),
    text("stderr", 0, "oops\u001b[31m!\n"),
    text("stdout", 4, "two"),
  );

  it("gives each stream to its own, as it is where it is piped", async () => {
    expect(await line(both, ["jobs", "logs", "s-1", "bash-1"])).toEqual({
      exitCode: 0,
      stdout: "one\ntwo",
      stderr: "oops\u001b[31m!\n",
    });
    expect(asked.at(-1)).toEqual(["bash-1", false]);
    await line(both, ["jobs", "logs", "s-1", "bash-1", "-f"]);
    expect(asked.at(-1)).toEqual(["bash-1", true]);
  });

  it("is byte for byte what was printed, also what is no text", async () => {
    const io = fakeIo();
    const written: Buffer[] = [];
    const stdout = { write: (bytes: string | Uint8Array) => written.push(Buffer.from(bytes)) };
    const binary = Buffer.from([0, 255, 254, 10, 0xe2]);
    await line(printing(piece("stdout", 0, binary)), ["jobs", "logs", "s-1", "j"], {
      ...io,
      stdout,
    });
    expect(Buffer.concat(written)).toEqual(binary);
  });

  it("has no control characters on a terminal, also such as come in pieces, and ends its line", async () => {
    const cut = printing(text("stdout", 0, "a\u001b[3"), text("stdout", 4, "1mb\u0007\tc"));
    expect((await line(cut, ["jobs", "logs", "s-1", "j"], fakeIo({ tty: true }))).stdout).toBe(
      "ab\tc\n",
    );
  });

  it("is one of the streams when that is asked for, and says what was dropped", async () => {
    const stderr = await line(both, ["jobs", "logs", "s-1", "j", "--stream", "stderr"]);
    expect(stderr.stdout).toBe("");
    const gap = printing(text("stdout", 0, "a"), text("stdout", 11, "b"));
    expect(await line(gap, ["jobs", "logs", "s-1", "j"])).toMatchObject({
      stdout: "ab",
      stderr: "(10 bytes of stdout were dropped)\n",
    });
    const { exitCode, stderr: said } = await line({}, [
      "jobs",
      "logs",
      "s-1",
      "j",
      "--stream",
      "out",
    ]);
    expect({ exitCode, said }).toEqual({
      exitCode: 2,
      said: 'error: USAGE: --stream expected stdout or stderr, got "out" (see longhaul jobs logs --help)\n',
    });
  });

  it("is one piece a line with --json", async () => {
    const { stdout } = await line(both, ["jobs", "logs", "s-1", "j", "--json"]);
    expect(
      stdout
        .trimEnd()
        .split("\n")
        .map((one): unknown => JSON.parse(one)),
    ).toEqual([
      { stream: "stdout", offset: 0, text: "one\n" },
      { stream: "stderr", offset: 0, text: "oops\u001b[31m!\n" },
      { stream: "stdout", offset: 4, text: "two" },
    ]);
  });

  describe("of a job whose worker was lost", () => {
    const note = "[output may be incomplete: worker lost]\n";
    const lost: JobView = { ...failed, status: "failed", detail: "worker lost: no worker on h" };
    const logs = (job: JobView, shown: Partial<Session>, ...more: readonly string[]) =>
      line({ ...shown, waitJob: () => Promise.resolve(job) }, [
        "jobs",
        "logs",
        "s-1",
        "j",
        ...more,
      ]);

    it.each([[[]], [["--follow"]], [["--stream", "stdout"]], [["--json"]]])(
      "ends with a note on stderr (%j)",
      async (more) => {
        const plain = await logs(failed, both, ...more);
        const { exitCode, stdout, stderr } = await logs(lost, both, ...more);
        expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: plain.stdout });
        expect(stderr).toBe(plain.stderr + note);
      },
    );

    it("has the note on a line of its own", async () => {
      const open = printing(text("stderr", 0, "half"));
      expect((await logs(lost, open)).stderr).toBe(`half\n${note}`);
      const io = fakeIo({ tty: true });
      const shown = { ...open, waitJob: () => Promise.resolve(lost) };
      expect((await line(shown, ["jobs", "logs", "s-1", "j"], io)).stderr).toBe(`half\n${note}`);
    });

    it("has no note while it lives, or when nobody can say how it ended", async () => {
      const { finishedAt: _, ...live } = lost;
      expect((await logs({ ...live, status: "stopping" }, both)).stderr).not.toContain(note);
      const away = () => Promise.reject(new LonghaulError("NO_WORKER", "nobody"));
      const answer = await line({ ...both, waitJob: away }, ["jobs", "logs", "s-1", "j"]);
      expect(answer).toMatchObject({ exitCode: 0, stdout: "one\ntwo" });
      expect(answer.stderr).not.toContain("NO_WORKER");
    });
  });

  it("stops following on Ctrl-C", async () => {
    const io = fakeIo();
    const endless: Partial<Session> = {
      async *jobOutput() {
        yield text("stdout", 0, "a");
        io.controller.abort(stops.SIGINT);
        await new Promise(() => undefined);
      },
    };
    expect(await line(endless, ["jobs", "logs", "s-1", "j", "--follow"], io)).toMatchObject({
      exitCode: 130,
      stdout: "a",
    });
  });

  it("tells why it cannot be read", async () => {
    const unknown: Partial<Session> = {
      // oxlint-disable-next-line require-yield
      async *jobOutput() {
        throw new LonghaulError("JOB_NOT_FOUND", "unknown job j");
      },
    };
    expect(await line(unknown, ["jobs", "logs", "s-1", "j"])).toMatchObject({
      exitCode: 1,
      stderr: "error: JOB_NOT_FOUND: unknown job j\n",
    });
  });
});

describe("jobs kill", () => {
  it("tells what was asked for, with its reason", async () => {
    const asked: unknown[] = [];
    const session: Partial<Session> = {
      killJob: (job, options) => {
        asked.push([job, options]);
        const result = asked.length === 1 ? "requested" : "already-finished";
        return Promise.resolve({ ok: true, result });
      },
    };
    const first = await line(session, ["jobs", "kill", "s-1", "bash-1", "--reason", "enough"]);
    expect(first).toEqual({ exitCode: 0, stdout: "job bash-1 is asked to stop\n", stderr: "" });
    const again = await line(session, ["jobs", "kill", "s-1", "bash-1"]);
    expect(again.stdout).toBe("job bash-1 had already finished\n");
    expect(asked).toEqual([
      ["bash-1", { reason: "enough" }],
      ["bash-1", {}],
    ]);
    const { stdout } = await line(session, ["jobs", "kill", "s-1", "bash-1", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      session: "s-1",
      id: "bash-1",
      result: "already-finished",
    });
  });
});

describe("jobs wait", () => {
  const finishedAt = running.startedAt + 1;
  it.each<[Partial<JobView>, number, string]>([
    [
      { status: "completed", detail: "exit code: 0", finishedAt },
      0,
      "has ended: completed, exit code: 0",
    ],
    [
      { status: "completed", detail: "exit code: 10", finishedAt },
      1,
      "has ended: completed, exit code: 10",
    ],
    [{ status: "completed", finishedAt }, 0, "has ended: completed"],
    [
      { status: "killed", detail: "signal: SIGTERM", finishedAt },
      1,
      "has ended: killed, signal: SIGTERM",
    ],
    [
      { status: "failed", detail: "spawn failed: x", finishedAt },
      1,
      "has ended: failed, spawn failed: x",
    ],
    [{}, 124, "still runs: running"],
  ])("for %j exits with %i", async (end, code, said) => {
    const session: Partial<Session> = { waitJob: () => Promise.resolve({ ...running, ...end }) };
    expect(await line(session, ["jobs", "wait", "s-1", "bash-2"])).toEqual({
      exitCode: code,
      stdout: `job bash-2 ${said}\n`,
      stderr: "",
    });
    const json = await line(session, ["jobs", "wait", "s-1", "bash-2", "--json"]);
    expect(json.exitCode).toBe(code);
    expect(JSON.parse(json.stdout)).toEqual({ session: "s-1", ...running, ...end });
  });

  it.each([
    ["90s", 90_000],
    ["10m", 600_000],
    ["1.5h", 5_400_000],
    ["250ms", 250],
    ["2d", 172_800_000],
  ])("waits at most --timeout %s", async (timeout, expected) => {
    const asked: unknown[] = [];
    const session: Partial<Session> = {
      waitJob: (_job, options) => {
        asked.push(options?.timeoutMs);
        return Promise.resolve(failed);
      },
    };
    await line(session, ["jobs", "wait", "s-1", "bash-1", "--timeout", timeout]);
    expect(asked).toEqual([expected]);
  });

  it.each(["10", "0s", "-1s", "m", "1e3s", "1 hour"])("refuses --timeout=%s", async (timeout) => {
    const argv = ["jobs", "wait", "s-1", "bash-1", `--timeout=${timeout}`];
    expect(await line({}, argv)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^error: USAGE: --timeout expected a time [^\n]+\n$/),
    });
  });

  it("ends with Ctrl-C", async () => {
    const io = fakeIo();
    const session: Partial<Session> = {
      waitJob: () => {
        io.controller.abort(stops.SIGINT);
        return new Promise(() => undefined);
      },
    };
    expect(await line(session, ["jobs", "wait", "s-1", "bash-1"], io)).toMatchObject({
      exitCode: 130,
      stderr: "",
    });
  });
});

describe("show", () => {
  const view: SessionView = {
    id: "s-1",
    state: "idle",
    ready: true,
    header: { version: 0, id: "s-1", createdAt: 0 },
    config: {
      request: { provider: "p", model: "m" },
      allowParallelInProgress: true,
      worldTools: false,
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
    },
    epoch: 1,
    turn: { number: 0, open: false, step: 0 },
    inbox: { nextTurn: [], nextStep: [] },
    todos: null,
    lastSeq: 1,
  };
  const session: Partial<Session> = {
    view: () => Promise.resolve(view),
    projections: () => Promise.resolve({ asOfSeq: 1, values: { jobs: [failed, running] } }),
  };

  it("lists the jobs that are open", async () => {
    const { stdout } = await line(session, ["show", "s-1"]);
    expect(stdout).toMatch(/\n\nJobs {2}1 open\n {2}bash-2 {2}running {2}npm test\n$/);
    const json = await line(session, ["show", "s-1", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ openJobs: [running] });
  });

  it("goes without them when they are not told", async () => {
    const silent: Partial<Session> = {
      ...session,
      projections: () => Promise.reject(new LonghaulError("NO_WORKER", "nobody")),
    };
    const { exitCode, stdout } = await line(silent, ["show", "s-1"]);
    expect(exitCode).toBe(0);
    expect(stdout).not.toContain("Jobs");
  });
});

it.each([
  [-5, "0s"],
  [999, "0s"],
  [7_000, "7s"],
  [125_999, "2m 5s"],
  [10_800_000, "3h 0m"],
  [352_800_000, "4d 2h"],
])("%i ms are shown as %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
