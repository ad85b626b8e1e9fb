import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JobOutputReader, type JobOutputPiece } from "../../src/client/job-output.js";
import { defineSessionConfig } from "../../src/client/session-config.js";
import { SessionClient } from "../../src/client/session-client.js";
import type { SessionRunStatus, Wire } from "../../src/client/wire.js";
import { Watchers } from "../../src/client/watch.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { JobsConfig } from "../../src/contracts/jobs.js";
import type { EventData, EventType, LogEntry } from "../../src/contracts/log.js";
import { commands, queries } from "../../src/contracts/names.js";
import { sessionConfigSchema } from "../../src/contracts/schemas/config.js";
import { parseInput } from "../../src/contracts/schemas/parse.js";
import { configureSchema } from "../../src/contracts/schemas/session.js";
import type { JobsView, JobView } from "../../src/contracts/session.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { jobStreamId } from "../../src/store/job-output.js";

interface Write {
  readonly name: string;
  readonly id: string;
  readonly payload: unknown;
}

/** A session that answers from what the test decides. */
class FakeWire implements Wire {
  jobs: readonly JobView[] = [];
  readonly entries: LogEntry[] = [];
  readonly writes: Write[] = [];
  verdict: unknown = { ok: true };
  away: Error | undefined;
  status$: SessionRunStatus | undefined = { open: true, status: "RUNNING" };
  asked = 0;
  state: JobsView["state"] = "idle";

  query<T>(_session: string, name: string): Promise<T> {
    if (name === queries.jobs) this.asked++;
    if (this.away !== undefined) return Promise.reject(this.away);
    const lastSeq = this.entries.length - 1;
    const answer =
      name === queries.jobs
        ? { jobs: this.jobs, kinds: ["bash"], state: this.state }
        : { entries: this.entries, lastSeq, state: "idle" };
    return Promise.resolve(answer as T);
  }

  update<T>(_session: string, name: string, id: string, payload: unknown): Promise<T> {
    this.writes.push({ name, id, payload });
    return Promise.resolve(this.verdict as T);
  }

  signal(): Promise<never> {
    return Promise.reject(new Error("not asked for here"));
  }

  status(): Promise<SessionRunStatus | undefined> {
    return Promise.resolve(this.status$);
  }

  record(): Promise<never> {
    return Promise.reject(new Error("not asked for here"));
  }

  add<T extends EventType>(type: T, data: EventData[T]): void {
    this.entries.push({ type, data, seq: this.entries.length, time: 0 } as LogEntry);
  }
}

const running: JobView = {
  id: "bash-1",
  kind: "bash",
  label: "yes",
  status: "running",
  startedAt: 5,
  output: "stream",
  reported: false,
  workflowId: "s/job/bash-1/n",
};
const ended: JobView = {
  ...running,
  status: "completed",
  detail: "exit code: 0",
  finishedAt: 9,
};

let wire: FakeWire;
let directory: string;
let store: Store;
let session: SessionClient;

beforeEach(async () => {
  wire = new FakeWire();
  directory = await mkdtemp(join(tmpdir(), "longhaul-client-jobs-"));
  store = await openDirectoryStore(join(directory, "store"));
  session = sessionWith(store);
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

function sessionWith(opened: Store | undefined): SessionClient {
  const watchers = new Watchers(() => {
    throw new Error("nothing is watched here");
  });
  return new SessionClient("s", wire, watchers, () => Promise.resolve(), opened);
}

async function all(pieces: AsyncIterable<JobOutputPiece>): Promise<readonly JobOutputPiece[]> {
  const taken: JobOutputPiece[] = [];
  for await (const piece of pieces) taken.push(piece);
  return taken;
}

/** Neighbours of one stream joined: how output is cut is a matter of timing. */
function texts(pieces: readonly JobOutputPiece[]): string {
  return pieces.map(({ stream, text }) => `${stream}:${text}`).join("|");
}

const text = (value: string) => new TextEncoder().encode(value);

describe("the jobs of a closed session", () => {
  const start = { kind: "bash", label: "yes", startedAt: 5, output: "stream", nonce: "n" } as const;
  const settled = { status: "completed", detail: "exit code: 0", finishedAt: 9 } as const;

  beforeEach(() => {
    for (const id of ["bash-1", "bash-2"]) {
      wire.add("job/start", { ...start, id });
      wire.add("job/settled", { ...settled, id });
    }
    wire.add("job/removed", { ids: ["bash-1", "bash-2"] });
  });

  test("are listed from its log", async () => {
    wire.state = "closed";
    expect(await session.jobs()).toEqual({
      jobs: [ended, { ...ended, id: "bash-2", workflowId: "s/job/bash-2/n" }],
      kinds: ["bash"],
      state: "closed",
    });
    expect(await session.waitJob("bash-2")).toMatchObject({ id: "bash-2", status: "completed" });
  });

  test("are those it names itself when it does, and an open session's list is what it says", async () => {
    expect((await session.jobs()).jobs).toEqual([]);
    [wire.state, wire.jobs] = ["closed", [running]];
    expect((await session.jobs()).jobs).toEqual([running]);
  });
});

describe("starting a job", () => {
  test.each([
    [{ kind: "bash", input: { command: "npm test" } }, "npm test"],
    [{ kind: "bash", input: { command: "\n  cd x &&\n npm test" } }, "cd x &&"],
    [{ kind: "bash", input: { command: "npm test" }, label: "tests" }, "tests"],
    [{ kind: "bash", input: { command: "  " } }, "bash"],
    [{ kind: "sweep", input: {} }, "sweep"],
  ])("%j has the label %j", async (options, label) => {
    wire.verdict = { ok: true, id: "bash-1" };
    await expect(session.startJob({ ...options, id: "op" })).resolves.toEqual(wire.verdict);
    const { kind, input } = options;
    expect(wire.writes).toEqual([
      { name: commands.jobStart, id: "op", payload: { opId: "op", kind, label, input } },
    ]);
  });

  test.each([
    ["x", 1_021],
    ["é", 510],
    ["👍", 255],
  ])(
    "has a label of at most 1,024 bytes from a long line of %j, cut between characters",
    async (character, kept) => {
      const command = `${character.repeat(2_000)}\nls`;
      await session.startJob({ kind: "bash", input: { command } });
      expect(wire.writes).toMatchObject([
        { payload: { label: `${character.repeat(kept)}…`, input: { command } } },
      ]);
    },
  );

  test("counts the label that is sent against the limit, not the line it is made from", async () => {
    const command = "x".repeat(200 * 1024);
    await session.startJob({ kind: "bash", input: { command } });
    expect(wire.writes).toHaveLength(1);
  });

  test("has an id of its own each time, unless one is given", async () => {
    for (let round = 0; round < 2; round++) await session.startJob({ kind: "bash", input: {} });
    const ids = wire.writes.map(({ id, payload }) => {
      expect(payload).toMatchObject({ opId: id });
      return id;
    });
    expect(new Set(ids).size).toBe(2);
  });

  const tooLarge = { kind: "bash", label: "x", input: { command: "x".repeat(256 * 1024) } };
  const deep: Record<string, unknown> = {};
  let inner = deep;
  for (let depth = 0; depth < 20_000; depth++) inner = inner["a"] = {} as Record<string, unknown>;
  test.each<[string, unknown, string, RegExp]>([
    ["no kind", { kind: "", input: {} }, "INVALID_INPUT", /job: kind: expected a kind of job/],
    [
      "a label of two lines",
      { kind: "bash", label: "a\nb", input: {} },
      "INVALID_INPUT",
      /one line/,
    ],
    ["a blank label", { kind: "bash", label: " ", input: {} }, "INVALID_INPUT", /not blank/],
    ["an input that is no object", { kind: "bash", input: ["ls"] }, "INVALID_INPUT", /an object/],
    ["no input", { kind: "bash" }, "INVALID_INPUT", /input: expected an object, got nothing/],
    [
      "what is not JSON",
      { kind: "x", input: { at: new Date(0) } },
      "INVALID_INPUT",
      /\$\.at is a Date/,
    ],
    ["nesting without end", { kind: "x", input: deep }, "INVALID_INPUT", /nested deeper than/],
    ["another key", { kind: "x", input: {}, id: " " }, "INVALID_INPUT", /opId/],
    ["more than 256 KB", tooLarge, "MESSAGE_TOO_LARGE", /at most 262144 bytes/],
  ])("with %s is refused in one line and sends nothing", async (_name, options, code, message) => {
    const started = session.startJob(options as Parameters<SessionClient["startJob"]>[0]);
    await expect(started).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    await expect(started).rejects.toMatchObject({ message: expect.not.stringContaining("\n") });
    expect(wire.writes).toEqual([]);
  });

  test("that the session refuses rejects with its code", async () => {
    wire.verdict = { ok: false, code: "JOB_LIMIT", message: "too many" };
    await expect(session.startJob({ kind: "bash", input: {} })).rejects.toMatchObject({
      code: "JOB_LIMIT",
      message: "too many",
    });
  });
});

test("a kill carries its reason, and a reason beyond 1,000 characters is refused", async () => {
  wire.verdict = { ok: true, result: "requested" };
  await expect(session.killJob("bash-1", { reason: "why", id: "k" })).resolves.toEqual(
    wire.verdict,
  );
  expect(wire.writes).toEqual([
    { name: commands.jobKill, id: "k", payload: { opId: "k", jobId: "bash-1", reason: "why" } },
  ]);
  await expect(session.killJob("bash-1", { reason: "x".repeat(1001) })).rejects.toMatchObject({
    code: "INVALID_INPUT",
  });
  await expect(session.killJob("")).rejects.toMatchObject({ code: "INVALID_INPUT" });
});

describe("waiting for a job", () => {
  test("resolves with its end, and tells the session nothing", async () => {
    wire.jobs = [running];
    const waiting = session.waitJob("bash-1");
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBeGreaterThan(1);
    wire.jobs = [ended];
    await expect(waiting).resolves.toEqual(ended);
    expect(wire.writes).toEqual([]);
  });

  test("resolves with the live job at its time-out", async () => {
    wire.jobs = [running];
    await expect(session.waitJob("bash-1", { timeoutMs: 5 })).resolves.toEqual(running);
  });

  test.each([0, -1, Number.NaN, Infinity])(
    "refuses the time-out %d, also of an ended job",
    async (timeoutMs) => {
      wire.jobs = [ended];
      await expect(session.waitJob("bash-1", { timeoutMs })).rejects.toMatchObject({
        code: "INVALID_INPUT",
        message: `invalid wait timeout: expected a positive number of milliseconds, got ${JSON.stringify(timeoutMs)}`,
      });
      await expect(session.waitJob("bash-9", { timeoutMs })).rejects.toMatchObject({
        code: "JOB_NOT_FOUND",
        message: "unknown job bash-9",
      });
    },
  );

  test("is aborted by its signal, which an ended job no longer minds", async () => {
    wire.jobs = [running];
    const stop = new AbortController();
    const waiting = session.waitJob("bash-1", { signal: stop.signal });
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBeGreaterThan(1);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "ABORTED", message: "wait aborted" });
    wire.jobs = [ended];
    await expect(session.waitJob("bash-1", { signal: stop.signal })).resolves.toEqual(ended);
  });

  test("outlasts a worker that is away", async () => {
    wire.jobs = [running];
    const waiting = session.waitJob("bash-1");
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBeGreaterThan(1);
    wire.away = new LonghaulError("NO_WORKER", "nobody");
    const { asked } = wire;
    await expect.poll(() => wire.asked).toBeGreaterThan(asked);
    [wire.away, wire.jobs] = [undefined, [ended]];
    await expect(waiting).resolves.toEqual(ended);
  });

  test("finds the end in the log of a session that closed and forgot its jobs", async () => {
    wire.jobs = [running];
    const waiting = session.waitJob("bash-1");
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBeGreaterThan(1);
    wire.add("job/start", {
      id: "bash-1",
      kind: "bash",
      label: "yes",
      startedAt: 5,
      output: "stream",
      nonce: "n",
    });
    wire.add("job/settled", {
      id: "bash-1",
      status: "killed",
      detail: "killed before exit",
      finishedAt: 7,
    });
    wire.add("job/removed", { ids: ["bash-1"] });
    wire.jobs = [];
    await expect(waiting).resolves.toEqual({
      ...running,
      status: "killed",
      detail: "killed before exit",
      finishedAt: 7,
    });
  });

  test("gives up on a session that was cut off", { timeout: 30_000 }, async () => {
    wire.jobs = [running];
    wire.status$ = { open: false, status: "TERMINATED" };
    await expect(session.waitJob("bash-1")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });
});

describe("the output of a job", () => {
  const put = (fd: number, base: number, at: number, bytes: Uint8Array) =>
    store.append("s", jobStreamId("bash-1/n", fd, base), at, bytes);

  test("is what it has printed so far, each stream from where it is asked", async () => {
    wire.jobs = [running];
    expect(await all(session.jobOutput("bash-1"))).toEqual([]);
    await put(1, 0, 0, text("one\ntwo\n"));
    await put(2, 0, 0, text("oops\n"));
    expect(texts(await all(session.jobOutput("bash-1")))).toBe("stdout:one\ntwo\n|stderr:oops\n");
    const later = await all(session.jobOutput("bash-1", { from: { stdout: 4, stderr: 5 } }));
    expect(later).toEqual([
      { stream: "stdout", offset: 4, text: "two\n", bytes: Buffer.from("two\n") },
    ]);
    expect(wire.writes).toEqual([]);
  });

  test("has the streams that the kind of job names", async () => {
    wire.jobs = [{ ...ended, id: "sweep-1" }];
    await store.append("s", jobStreamId("sweep-1/n", "progress", 0), 0, text("half"));
    await store.append("s", jobStreamId("sweep-1/n", "output", 0), 0, text("found"));
    expect(texts(await all(session.jobOutput("sweep-1", { follow: true })))).toBe(
      "output:found|progress:half",
    );
  });

  test("jumps over what was dropped", async () => {
    wire.jobs = [ended];
    await put(1, 0, 0, text("head"));
    await put(1, 100, 0, text("tail"));
    expect(
      (await all(session.jobOutput("bash-1"))).map(({ offset, text: part }) => [offset, part]),
    ).toEqual([
      [0, "head"],
      [100, "tail"],
    ]);
    expect((await all(session.jobOutput("bash-1", { from: { stdout: 50 } })))[0]).toMatchObject({
      offset: 100,
      text: "tail",
    });
  });

  test("is followed until the job has ended and all is read", async () => {
    wire.jobs = [running];
    const following = all(session.jobOutput("bash-1", { follow: true }));
    await put(1, 0, 0, text("a"));
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBeGreaterThan(1);
    await put(1, 0, 1, text("b"));
    await put(2, 0, 0, text("c"));
    wire.jobs = [ended];
    const pieces = await following;
    const of = (stream: string) =>
      pieces.flatMap((piece) => (piece.stream === stream ? [piece.text] : [])).join("");
    expect([of("stdout"), of("stderr")]).toEqual(["ab", "c"]);
  });

  test("goes on while no worker answers", async () => {
    wire.jobs = [running];
    const seen: string[] = [];
    const stop = new AbortController();
    const following = (async () => {
      for await (const piece of session.jobOutput("bash-1", { follow: true, signal: stop.signal }))
        seen.push(piece.text);
    })();
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBe(1);
    wire.away = new LonghaulError("NO_WORKER", "nobody");
    await expect.poll(() => wire.asked, { timeout: 5_000 }).toBeGreaterThan(1);
    await put(1, 0, 0, text("still"));
    await expect.poll(() => seen, { timeout: 5_000 }).toEqual(["still"]);
    stop.abort();
    await following;
  });

  test("is never cut inside a character, wherever it is flushed", async () => {
    const chunk = fc.oneof(
      fc.string({ unit: "grapheme" }).map((part) => Buffer.from(part)),
      fc.uint8Array({ maxLength: 6 }).map((part) => Buffer.from(part)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(chunk, { maxLength: 8 }),
        fc.array(fc.nat({ max: 12 }), { maxLength: 30 }),
        async (parts, cuts) => {
          const whole = Buffer.concat(parts);
          let length = 0;
          const growing: Pick<Store, "list" | "read"> = {
            list: (_session, prefix) =>
              Promise.resolve(
                "job/j-1/1".startsWith(prefix) && length > 0
                  ? [{ stream: "job/j-1/1", bytes: length }]
                  : [],
              ),
            read: (_session, _stream, offset, limit) =>
              Promise.resolve(whole.subarray(offset, Math.min(length, offset + limit))),
          };
          const reader = new JobOutputReader(growing, "s", "j-1", {});
          const pieces: JobOutputPiece[] = [];
          for (const cut of [...cuts, whole.length]) {
            length = Math.min(whole.length, length + cut);
            pieces.push(...(await all(reader.read(false))));
          }
          pieces.push(...(await all(reader.read(true))));
          expect(Buffer.concat(pieces.map(({ bytes }) => bytes))).toEqual(whole);
          expect(pieces.map((piece) => piece.text).join("")).toBe(whole.toString("utf8"));
          const ends = pieces.map(({ offset, bytes }) => offset + bytes.length);
          expect(pieces.map(({ offset }) => offset)).toEqual([0, ...ends].slice(0, pieces.length));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("of a job with one result is that, from the log or from the store, after its end", async () => {
    const final: JobView = { ...running, id: "sweep-1", kind: "sweep", output: "final" };
    wire.jobs = [final];
    wire.add("job/start", {
      id: "sweep-1",
      kind: "sweep",
      label: "x",
      startedAt: 5,
      output: "final",
      nonce: "n",
    });
    expect(await all(session.jobOutput("sweep-1"))).toEqual([]);
    const following = all(sessionWith(undefined).jobOutput("sweep-1", { follow: true }));
    wire.add("job/settled", {
      id: "sweep-1",
      status: "completed",
      finishedAt: 7,
      output: "done ✓",
    });
    wire.jobs = [{ ...final, status: "completed", finishedAt: 7 }];
    expect(texts(await following)).toBe("output:done ✓");

    wire.entries.length = 0;
    await store.append("s", "job/sweep-1/n/output", 0, text("stored"));
    const ref = { ref: "job/sweep-1/n/output", bytes: 6, digest: "d" };
    wire.add("job/settled", { id: "sweep-1", status: "completed", finishedAt: 7, ref });
    expect(texts(await all(session.jobOutput("sweep-1")))).toBe("output:stored");
  });

  test("needs a store, and a job that is known", async () => {
    wire.jobs = [running];
    await expect(all(sessionWith(undefined).jobOutput("bash-1"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
    await expect(all(session.jobOutput("bash-7"))).rejects.toMatchObject({ code: "JOB_NOT_FOUND" });
  });
});

describe("limits of jobs in a session's configuration", () => {
  const choices = { model: "p/m", allowParallelInProgress: true } as const;

  test("are taken as they are, each key optional", () => {
    const config = defineSessionConfig({ ...choices, jobs: { maxConcurrentJobsPerOwner: 2 } });
    expect(config.jobs).toEqual({ maxConcurrentJobsPerOwner: 2 });
    expect(parseInput(sessionConfigSchema, config, "config")).toEqual(config);
    const change = { config: { jobs: { heartbeatMs: 500 } } };
    expect(parseInput(configureSchema, change, "configure")).toEqual(change);
  });

  test.each<[Partial<JobsConfig>, string]>([
    [{ heartbeatMs: 5 }, "jobs.heartbeatMs expected a whole number of at least 100, got 5"],
    [{ maxJobs: 5 } as object, 'jobs has no key "maxJobs"'],
    [
      { waitTimeoutMs: 9, maxWaitTimeoutMs: 3 },
      "tool-jobs: waitTimeoutMs (9) exceeds maxWaitTimeoutMs (3)",
    ],
    [
      { maxConsecutiveWakes: 2.5 },
      "tool-jobs: maxConsecutiveWakes (2.5) must be a whole number of turns",
    ],
  ])("%j are refused", (jobs, message) => {
    expect(() => defineSessionConfig({ ...choices, jobs })).toThrow(
      expect.objectContaining({ code: "INVALID_CONFIG", message }),
    );
    const config = { ...defineSessionConfig(choices), jobs };
    expect(() => parseInput(sessionConfigSchema, config, "createSession")).toThrow(
      new RegExp(`^createSession: jobs\\.${Object.keys(jobs)[0]}: [^\n]+$`, "u"),
    );
    expect(() => parseInput(configureSchema, { config: { jobs } }, "configure")).toThrow(
      /^configure: config\.jobs\./u,
    );
  });
});
