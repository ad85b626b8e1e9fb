import { describe, expect, it } from "vitest";
import type { Backend, Session } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { stops } from "../../src/cli/io.js";
import { runCli } from "../../src/cli/run.js";
import type { SessionSummary, WatchEvent } from "../../src/client/types.js";
import type { ArchivedSession } from "../../src/contracts/archive.js";
import { defaultLimits } from "../../src/contracts/config.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { SessionView } from "../../src/contracts/session.js";
import type { TodoItem } from "../../src/contracts/todo.js";
import { fakeBackend, fakeIo, fakeSession, type FakeIo } from "../support/fake-cli.js";

async function line(
  session: Partial<Session>,
  argv: readonly string[],
  io: FakeIo = fakeIo(),
  parts: Partial<Backend> = {},
) {
  const backend = fakeBackend(fakeSession(session), parts);
  const exitCode = await runCli(argv, io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(backend),
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text, events: backend.events };
}

const view: SessionView = {
  id: "s-1",
  state: "running",
  ready: true,
  header: { version: 0, id: "s-1", createdAt: 0 },
  title: "A \u001b[31mred\u001b[0m title",
  config: {
    request: { provider: "p", model: "m" },
    allowParallelInProgress: true,
    worldTools: true,
    cwd: "/ws",
    outsideWorkspace: false,
    deny: [],
    ask: [],
    limits: defaultLimits,
  },
  host: "h",
  epoch: 1,
  turn: { number: 2, open: true, step: 3 },
  inbox: { nextTurn: ["a"], nextStep: ["b"] },
  todos: [{ content: "one", status: "in_progress" }],
  lastSeq: 41,
};

const entries = [
  { type: "turn/start", seq: 4, time: 0, data: { turn: 1 } },
  {
    type: "assistant/message",
    seq: 5,
    time: 0,
    data: {
      turn: 1,
      step: 1,
      message: {
        id: "a",
        role: "assistant",
        content: [{ type: "text", text: "hello" }],
        source: { kind: "model" },
      },
    },
  },
  { type: "session/close", seq: 6, time: 0, data: {} },
] as const satisfies readonly LogEntry[];

async function* all<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

describe("sessions", () => {
  const list: readonly SessionSummary[] = [
    {
      id: "s-2",
      state: "idle",
      host: "h",
      startedAt: Date.UTC(2026, 0, 2, 3, 4),
      title: "A title",
    },
    { id: "s-long-id-1", state: "closed", startedAt: Date.UTC(2026, 0, 1) },
  ];
  const parts: Partial<Backend> = {
    list: ({ state }) =>
      Promise.resolve(list.filter((one) => state === undefined || one.state === state)),
  };

  it("is a table", async () => {
    expect((await line({}, ["sessions"], fakeIo(), parts)).stdout).toMatchInlineSnapshot(`
      "SESSION      STATE   HOST  STARTED            TITLE
      s-2          idle    h     2026-01-02 03:04Z  A title
      s-long-id-1  closed  -     2026-01-01 00:00Z
      "
    `);
  });

  it("filters by state and says when there are none", async () => {
    expect(
      (await line({}, ["sessions", "--state", "closed"], fakeIo(), parts)).stdout,
    ).not.toContain("s-2");
    expect((await line({}, ["sessions", "--state", "faulted"], fakeIo(), parts)).stdout).toBe(
      "no sessions in state faulted\n",
    );
  });

  it("is one JSON document with --json", async () => {
    expect(JSON.parse((await line({}, ["sessions", "--json"], fakeIo(), parts)).stdout)).toEqual(
      list,
    );
    expect(JSON.parse((await line({}, ["sessions", "--json"])).stdout)).toEqual([]);
  });
});

describe("sessions --archived", () => {
  const archived: readonly ArchivedSession[] = [
    {
      v: 1,
      session: "s-2",
      run: "r-2",
      segment: "a",
      lastSeq: 41,
      status: "timed-out",
      title: "A \u001b[31mred\u001b[0m title",
      startedAt: Date.UTC(2026, 0, 1, 3, 4),
      closedAt: Date.UTC(2026, 0, 2, 3, 4),
    },
    {
      v: 1,
      session: "s-1",
      run: "r-1",
      segment: "b",
      lastSeq: 0,
      status: "completed",
      startedAt: Date.UTC(2026, 0, 1),
      closedAt: Date.UTC(2026, 0, 1, 1),
    },
  ];
  const parts: Partial<Backend> = { archived: () => all(archived) };

  it("is a table of how and when they ended", async () => {
    expect((await line({}, ["sessions", "--archived"], fakeIo(), parts)).stdout)
      .toMatchInlineSnapshot(`
      "SESSION  ENDED      STARTED            CLOSED             ENTRIES  TITLE
      s-2      timed out  2026-01-01 03:04Z  2026-01-02 03:04Z  42       A red title
      s-1      closed     2026-01-01 00:00Z  2026-01-01 01:00Z  1
      "
    `);
    expect((await line({}, ["sessions", "--archived"])).stdout).toBe("no archived sessions\n");
  });

  it("is one JSON document with --json", async () => {
    const { stdout } = await line({}, ["sessions", "--archived", "--json"], fakeIo(), parts);
    expect(JSON.parse(stdout)).toEqual([
      {
        id: "s-2",
        title: archived[0]?.title,
        ended: "timed out",
        startedAt: archived[0]?.startedAt,
        closedAt: archived[0]?.closedAt,
        entries: 42,
      },
      {
        id: "s-1",
        ended: "closed",
        startedAt: archived[1]?.startedAt,
        closedAt: archived[1]?.closedAt,
        entries: 1,
      },
    ]);
  });

  it("says that there are more, and shows what can be read before it says what cannot", async () => {
    const some = await line({}, ["sessions", "--archived", "--limit", "1"], fakeIo(), parts);
    expect(some.stdout).not.toContain("s-1 ");
    expect(some.stderr).toBe("1 shown, more with --limit N\n");
    const damaged = async function* () {
      yield* archived;
      throw new LonghaulError("LOG_CORRUPT", "archived/r-0 of session s-0 is damaged");
    };
    const broken = await line({}, ["sessions", "--archived"], fakeIo(), { archived: damaged });
    expect(broken).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining("s-1 "),
      stderr: "error: LOG_CORRUPT: archived/r-0 of session s-0 is damaged\n",
    });
  });

  it("goes with no other filter", async () => {
    for (const filter of [["--state", "idle"], ["--overdue"]])
      expect((await line({}, ["sessions", "--archived", ...filter])).exitCode).toBe(2);
  });
});

describe("purge", () => {
  const removed = { session: "s-1", runs: 1, jobs: 2, streams: 3, bytes: 4096 };
  const parts: Partial<Backend> = { purge: (session) => Promise.resolve({ ...removed, session }) };

  it("removes with --yes and says what", async () => {
    expect(await line({}, ["purge", "s-1", "--yes"], fakeIo(), parts)).toMatchObject({
      exitCode: 0,
      stdout: "purged s-1: 1 run and 2 jobs in Temporal, 3 streams with 4096 bytes in the store\n",
      stderr: "",
    });
    const { stdout } = await line({}, ["purge", "s-1", "--yes", "--json"], fakeIo(), parts);
    expect(JSON.parse(stdout)).toEqual(removed);
  });

  it("asks on a terminal, and removes nothing without a yes or without a terminal", async () => {
    const asked = async (stdin: string) => {
      const io = fakeIo({ tty: true, stdin });
      Object.assign(io.stdin, { isTTY: true });
      return line({}, ["purge", "s-1"], io, parts);
    };
    expect(await asked("n\n")).toMatchObject({
      exitCode: 1,
      stdout: "Remove all of session s-1 for good? [y/N] nothing was removed\n",
      events: [],
    });
    expect((await asked("y\n")).stdout).toContain("purged s-1");
    const piped = await line({}, ["purge", "s-1"], fakeIo({ stdin: "y\n" }), parts);
    expect(piped).toMatchObject({ exitCode: 2, stdout: "", events: [] });
    expect(piped.stderr).toContain("say --yes");
  });

  it("is one line when it is refused", async () => {
    const refused: Partial<Backend> = {
      purge: () => Promise.reject(new LonghaulError("SESSION_OPEN", "session s-1 has not ended")),
    };
    expect(await line({}, ["purge", "s-1", "-y"], fakeIo(), refused)).toMatchObject({
      exitCode: 1,
      stderr: "error: SESSION_OPEN: session s-1 has not ended\n",
    });
  });
});

describe("show", () => {
  it("says that a session is read from the archive, and gives no address of what Temporal has deleted", async () => {
    const closed: SessionView = {
      ...view,
      state: "closed",
      turn: { number: 2, open: false, step: 3 },
    };
    const record = {
      id: "s-1",
      state: "closed",
      status: "closed",
      startedAt: 0,
      closedAt: 5,
      archived: true,
    } as const;
    const session = { view: () => Promise.resolve(closed), record: () => Promise.resolve(record) };
    const { stdout } = await line(session, ["show", "s-1"]);
    expect(stdout).toContain("Log        42 entries, from the archive\n");
    expect(stdout).not.toContain("Temporal");
    expect(JSON.parse((await line(session, ["show", "s-1", "--json"])).stdout)).toMatchObject({
      state: "closed",
      archived: true,
      closedAt: 5,
      live: false,
    });
  });

  it("tells a long error whole, wrapped on a terminal", async () => {
    const message = `/some/dir/bad.yaml:4:9: turns[0].steps[0]: ${"unknown key, ".repeat(9)}see the docs`;
    const lastEnd = { turn: 2, kind: "error", code: "INVALID_SCENARIO", message } as const;
    const ended: SessionView = { ...view, turn: { number: 2, open: false, step: 0 }, lastEnd };
    const told = `2, ended error (INVALID_SCENARIO: ${message})`;
    const session = { view: () => Promise.resolve(ended) };
    expect((await line(session, ["show", "s-1"])).stdout).toContain(`Turn       ${told}\n`);
    const { stdout } = await line(
      session,
      ["show", "s-1"],
      fakeIo({ tty: true, env: { NO_COLOR: "1" } }),
    );
    const rows = stdout.split("\n").filter((row) => !row.startsWith("Temporal"));
    expect(Math.max(...rows.map((row) => row.trimEnd().length))).toBeLessThanOrEqual(80);
    expect(stdout.replaceAll(/\s+/g, "")).toContain(told.replaceAll(/\s+/g, ""));
  });

  it("tells what a session is and does", async () => {
    expect((await line({ view: () => Promise.resolve(view) }, ["show", "s-1"])).stdout)
      .toMatchInlineSnapshot(`
      "Session    s-1
      Title      A red title
      State      running
      Model      p/m
      Host       h
      Workspace  /ws
      Turn       2, step 3, running
      Waiting    2 messages
      Log        42 entries
      Temporal   http://127.0.0.1:8233/namespaces/default/workflows/s-1

      Todo  0 of 1 done
        ▸ one
      "
    `);
  });

  it("tells how the last turn ended", async () => {
    const ended: SessionView = {
      ...view,
      turn: { number: 2, open: false, step: 0 },
      lastEnd: { turn: 2, kind: "error", code: "AUTH", message: "bad key" },
    };
    expect((await line({ view: () => Promise.resolve(ended) }, ["show", "s-1"])).stdout).toContain(
      "Turn       2, ended error (AUTH: bad key)\n",
    );
    const fresh: SessionView = { ...view, turn: { number: 0, open: false, step: 0 } };
    expect((await line({ view: () => Promise.resolve(fresh) }, ["show", "s-1"])).stdout).toContain(
      "Turn       none yet\n",
    );
  });

  it("is the view with its address in JSON", async () => {
    const { stdout } = await line({ view: () => Promise.resolve(view) }, ["show", "s-1", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      ...view,
      live: true,
      reminders: { enabled: false, live: true, active: 0 },
      openJobs: [],
      temporalUi: "http://127.0.0.1:8233/namespaces/default/workflows/s-1",
    });
  });
});

describe("log", () => {
  const after: (number | undefined)[] = [];
  const session: Partial<Session> = {
    log: (options) => {
      after.push(options?.after);
      return all(entries.filter((one) => one.seq > (options?.after ?? -1)));
    },
  };

  it("is the transcript", async () => {
    expect(await line(session, ["log", "s-1"])).toMatchObject({
      exitCode: 0,
      stdout: "hello\n\nsession closed\n",
    });
  });

  it("is one entry a line with --json, from where it is asked", async () => {
    const { stdout } = await line(session, ["log", "s-1", "--json", "--after", "4"]);
    expect(
      stdout
        .split("\n")
        .filter(Boolean)
        .map((one): unknown => JSON.parse(one)),
    ).toEqual(entries.slice(1));
    expect(after.at(-1)).toBe(4);
  });

  const events: readonly WatchEvent[] = [
    { type: "delta", turn: 1, step: 1, kind: "text", text: "hel" },
    ...entries.map((entry) => ({ type: "entry", entry }) as const),
  ];

  it("follows a session until it is closed", async () => {
    const watch = async function* (): AsyncGenerator<WatchEvent> {
      yield* events;
      await new Promise(() => undefined);
    };
    // The watch itself never ends; leaving it is what ends the command.
    const ended = {
      watch: (options: { signal?: AbortSignal } = {}) => untilAborted(watch(), options.signal),
    };
    expect(await line(ended, ["log", "s-1", "--follow"])).toMatchObject({
      exitCode: 0,
      stdout: "hello\n\nsession closed\n",
    });
    const json = await line(ended, ["log", "s-1", "--follow", "--json"]);
    expect(
      json.stdout
        .split("\n")
        .filter(Boolean)
        .map((one): unknown => JSON.parse(one)),
    ).toEqual(entries);
  });

  it("stops following on Ctrl-C with what is there ended cleanly", async () => {
    const io = fakeIo();
    const watch = async function* (): AsyncGenerator<WatchEvent> {
      yield { type: "delta", turn: 1, step: 1, kind: "text", text: "hel" };
      io.controller.abort(stops.SIGINT);
      await new Promise(() => undefined);
    };
    const endless = {
      watch: (options: { signal?: AbortSignal } = {}) => untilAborted(watch(), options.signal),
    };
    expect(await line(endless, ["log", "s-1", "--follow"], io)).toMatchObject({
      exitCode: 130,
      stdout: "hel\n",
      events: ["close"],
    });
  });

  it("fails when following fails", async () => {
    const watch = async function* (): AsyncGenerator<WatchEvent> {
      yield* [];
      throw new LonghaulError("SESSION_NOT_FOUND", "there is no session s-1");
    };
    expect(await line({ watch }, ["log", "s-1", "--follow"])).toMatchObject({
      exitCode: 1,
      stderr: "error: SESSION_NOT_FOUND: there is no session s-1\n",
    });
  });
});

/** Ends the iteration when the signal is aborted, as the client's watch does. */
async function* untilAborted<T>(
  source: AsyncGenerator<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  const aborted = new Promise<undefined>((resolve) =>
    signal?.addEventListener("abort", () => resolve(undefined)),
  );
  for (;;) {
    const next = await Promise.race([source.next(), aborted]);
    if (next === undefined || next.done === true) return;
    yield next.value;
  }
}

describe("send", () => {
  const sent: unknown[] = [];
  const session: Partial<Session> = {
    send: (text, options) => {
      sent.push([text, options]);
      return Promise.resolve({ ok: true, id: options?.id ?? "m-1", seq: 9 });
    },
  };

  it.each([
    [
      ["hello", "there"],
      ["hello there", { mode: "followup" }],
    ],
    [
      ["x", "--steer"],
      ["x", { mode: "steer" }],
    ],
    [
      ["x", "--inject", "--id", "mine"],
      ["x", { mode: "inject", id: "mine" }],
    ],
    [
      ["--", "--steer"],
      ["--steer", { mode: "followup" }],
    ],
  ])("%j is sent as %j", async (words, expected) => {
    const { exitCode, stdout } = await line(session, ["send", "s-1", ...words]);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: `sent ${words.includes("mine") ? "mine" : "m-1"}\n`,
    });
    expect(sent.at(-1)).toEqual(expected);
  });

  it("reads the text from stdin for -, and answers in JSON", async () => {
    const { stdout } = await line(
      session,
      ["send", "s-1", "-", "--json"],
      fakeIo({ stdin: "from\nstdin\n" }),
    );
    expect(sent.at(-1)).toEqual(["from\nstdin\n", { mode: "followup" }]);
    expect(JSON.parse(stdout)).toEqual({ session: "s-1", id: "m-1", seq: 9, mode: "followup" });
  });
});

describe("todo", () => {
  const written: (readonly TodoItem[])[] = [];
  const session: Partial<Session> = {
    todos: () => Promise.resolve([{ content: "one", status: "completed" }]),
    writeTodos: ({ todos }) => {
      written.push(todos);
      return Promise.resolve({ ok: true, text: "Updated todo list: …", seq: 3 });
    },
  };

  it("shows the list", async () => {
    expect((await line(session, ["todo", "s-1"])).stdout).toBe("Todo  1 of 1 done\n  ☑ one\n");
    expect((await line({ todos: () => Promise.resolve(null) }, ["todo", "s-1"])).stdout).toBe(
      "no todo list\n",
    );
    expect(
      JSON.parse(
        (await line({ todos: () => Promise.resolve(null) }, ["todo", "s-1", "--json"])).stdout,
      ),
    ).toEqual({ session: "s-1", todos: null });
  });

  it("replaces the list by words with marks", async () => {
    const { exitCode, stdout } = await line(session, [
      "todo",
      "s-1",
      "set",
      "[x] one",
      "[>] two",
      "[ ] three",
      "[y] four",
      "[x]five",
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "Updated todo list: …\n" });
    expect(written.at(-1)).toEqual([
      { content: "one", status: "completed" },
      { content: "two", status: "in_progress" },
      { content: "three", status: "pending" },
      { content: "[y] four", status: "pending" },
      { content: "[x]five", status: "pending" },
    ]);
  });

  it("replaces the list by a JSON document, also with an empty one", async () => {
    await line(
      session,
      ["todo", "s-1", "set", "--file", "-"],
      fakeIo({ stdin: '[{"content":"a","status":"pending"}]' }),
    );
    expect(written.at(-1)).toEqual([{ content: "a", status: "pending" }]);
    const { stdout } = await line(
      session,
      ["todo", "s-1", "set", "--file", "-", "--json"],
      fakeIo({ stdin: "[]" }),
    );
    expect(JSON.parse(stdout)).toEqual({ session: "s-1", seq: 3, todos: [] });
  });

  it.each([
    ["{", /^error: INVALID_TODOS: stdin: expected JSON \([^\n]+\)\n$/],
    ["{}", /^error: INVALID_TODOS: stdin: \$ .*expected a JSON array[^\n]+\n$/],
    [
      '[{"content":"a","status":"doing"}]',
      /^error: INVALID_TODOS: stdin: \$\[0\]\.status [^\n]+\n$/,
    ],
  ])("refuses the document %s in one line", async (stdin, expected) => {
    const { exitCode, stderr } = await line(
      session,
      ["todo", "s-1", "set", "--file", "-"],
      fakeIo({ stdin }),
    );
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(expected);
  });

  it("hands on a refusal, such as that no turn runs", async () => {
    const refused: Partial<Session> = {
      writeTodos: () => Promise.reject(new LonghaulError("INVALID_INPUT", "no turn is open")),
    };
    expect(await line(refused, ["todo", "s-1", "set", "a"])).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: "error: INVALID_INPUT: no turn is open\n",
    });
  });
});

describe("interrupt, cancel and close", () => {
  it("say what they did", async () => {
    const session: Partial<Session> = {
      interrupt: () => Promise.resolve({ ok: true, result: "idle", removed: 0 }),
      cancel: () => Promise.resolve({ ok: true, result: "requested", removed: 1 }),
      close: () => Promise.resolve(),
    };
    expect((await line(session, ["interrupt", "s-1"])).stdout).toBe("no turn was running\n");
    expect((await line(session, ["cancel", "s-1"])).stdout).toBe(
      "the turn is being stopped; 1 waiting message dropped\n",
    );
    expect((await line(session, ["close", "s-1"])).stdout).toBe("closed s-1\n");
    expect(JSON.parse((await line(session, ["interrupt", "s-1", "--json"])).stdout)).toEqual({
      session: "s-1",
      result: "idle",
    });
    expect(JSON.parse((await line(session, ["cancel", "s-1", "--json"])).stdout)).toEqual({
      session: "s-1",
      result: "requested",
      removed: 1,
    });
    expect(JSON.parse((await line(session, ["close", "s-1", "--json"])).stdout)).toEqual({
      session: "s-1",
      closed: true,
    });
  });
});

describe("a failure", () => {
  const failing = (cause: Error): Partial<Session> => ({ record: () => Promise.reject(cause) });

  it("is one line with its code, and what was opened is closed", async () => {
    const error = new LonghaulError(
      "NO_WORKER",
      "no worker answered;\nstart one (longhaul worker)",
    );
    expect(await line(failing(error), ["show", "s-1"])).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "error: NO_WORKER: no worker answered; start one (longhaul worker)\n",
      events: ["close"],
    });
  });

  it("is one line of JSON for --json, with the same exit code", async () => {
    const error = new LonghaulError("NO_WORKER", "no worker answered;\nstart one");
    const told = await line(failing(error), ["show", "s-1", "--json"]);
    expect(told).toMatchObject({ exitCode: 1, stdout: "", events: ["close"] });
    expect(told.stderr).toBe(
      '{"error":{"code":"NO_WORKER","message":"no worker answered; start one"}}\n',
    );
    expect((await line(failing(new Error("boom")), ["show", "s-1", "--json"])).stderr).toBe(
      '{"error":{"code":null,"message":"boom"}}\n',
    );
  });

  it("has no stack unless it is asked for", async () => {
    const error = new Error("boom", { cause: new TypeError("why") });
    expect((await line(failing(error), ["show", "s-1"])).stderr).toBe("error: boom\n");
    const { stderr } = await line(
      failing(error),
      ["show", "s-1"],
      fakeIo({ env: { LONGHAUL_DEBUG: "1" } }),
    );
    expect(stderr).toMatch(/^error: boom\nError: boom\n\s+at [^]*caused by TypeError: why\n\s+at /);
  });

  it("of the configuration is one line too", async () => {
    expect(
      await line({}, ["show", "s-1"], fakeIo({ env: { LONGHAUL_HOST_ID: "a b" } })),
    ).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^error: INVALID_CONFIG: LONGHAUL_HOST_ID [^\n]+\n$/),
      events: [],
    });
  });

  it("while closing is told and leaves the exit code", async () => {
    const parts: Partial<Backend> = { close: () => Promise.reject(new Error("cannot close")) };
    expect(
      await line({ view: () => Promise.resolve(view) }, ["show", "s-1", "--json"], fakeIo(), parts),
    ).toMatchObject({
      exitCode: 0,
      stderr: '{"error":{"code":null,"message":"cannot close"}}\n',
    });
  });

  it("is none when the user ends a command: it closes and exits with the signal's code", async () => {
    for (const [stop, exitCode] of [
      [stops.SIGINT, 130],
      [stops.SIGTERM, 143],
      [stops.EPIPE, 0],
    ] as const) {
      const io = fakeIo();
      const never: Partial<Session> = {
        view: () => {
          io.controller.abort(stop);
          return new Promise(() => undefined);
        },
      };
      expect(await line(never, ["show", "s-1"], io)).toEqual({
        exitCode,
        stdout: "",
        stderr: "",
        events: ["close"],
      });
    }
  });
});
