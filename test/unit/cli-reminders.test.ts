import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Backend, Session } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { terminalOf } from "../../src/cli/render/terminal.js";
import { Transcript } from "../../src/cli/render/transcript.js";
import { runCli } from "../../src/cli/run.js";
import type { RemindersResult } from "../../src/client/session-reminders.js";
import type { HostRecord, ListFilter, SessionSummary } from "../../src/client/types.js";
import { defaultLimits } from "../../src/contracts/config.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import type { ScheduleView } from "../../src/contracts/schedule.js";
import type { SessionView } from "../../src/contracts/session.js";
import { batchText, reminderText } from "../../src/domain/schedule-texts.js";
import { fakeBackend, fakeIo, fakeSession, type FakeIo } from "../support/fake-cli.js";

const now = Date.parse("2026-08-05T12:00:00.000Z");

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now }));
afterEach(() => void vi.useRealTimers());

async function line(
  session: Partial<Session>,
  argv: readonly string[],
  io: FakeIo = fakeIo(),
  parts: Partial<Backend> = {},
) {
  const exitCode = await runCli(argv, io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(fakeBackend(fakeSession(session), parts)),
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

const berlin = ["--tz", "Europe/Berlin"];

/** Someone at a terminal who answers. */
function terminal(answer: string): FakeIo {
  const io = fakeIo({ tty: true, env: { NO_COLOR: "1" } });
  const stdin = (async function* () {
    yield Buffer.from(answer);
    throw new Error("no more is to be read");
  })();
  return { ...io, stdin: Object.assign(stdin, { isTTY: true }) };
}

describe("remind add", () => {
  const asked: unknown[] = [];
  const session: Partial<Session> = {
    remind: (options) => {
      asked.push(options);
      const scheduledAt = "2026-08-05T12:10:00.007Z";
      return Promise.resolve({ ok: true, requestId: "r", id: "schedule-1", scheduledAt });
    },
  };
  beforeEach(() => void (asked.length = 0));

  it.each<[readonly string[], object, string]>([
    [
      ["--in", "10m"],
      { in: 600 },
      "in 10m: 2026-08-05T12:10:00.000Z, that is Wed 2026-08-05 14:10:00 +02:00 Europe/Berlin",
    ],
    [
      ["--in", "1 hour and 30 minutes"],
      { in: 5_400 },
      "in 1h30m: 2026-08-05T13:30:00.000Z, that is Wed 2026-08-05 15:30:00 +02:00 Europe/Berlin",
    ],
    [
      ["--every", "15m"],
      { every: 900 },
      "every 15m, first 2026-08-05T12:15:00.000Z, that is Wed 2026-08-05 14:15:00 +02:00 Europe/Berlin",
    ],
    [
      ["--at", "tomorrow 9:00"],
      { at: "2026-08-06T07:00:00.000Z" },
      "at 2026-08-06T07:00:00.000Z, that is Thu 2026-08-06 09:00:00 +02:00 Europe/Berlin",
    ],
    [
      ["--at", "2026-12-01T09:00:00-08:00"],
      { at: "2026-12-01T17:00:00.000Z" },
      "at 2026-12-01T17:00:00.000Z, that is Tue 2026-12-01 18:00:00 +01:00 Europe/Berlin",
    ],
    [
      ["--at", "2026-10-25 02:30"],
      { at: "2026-10-25T00:30:00.000Z" },
      "at 2026-10-25T00:30:00.000Z, that is Sun 2026-10-25 02:30:00 +02:00 Europe/Berlin; clocks show it twice that day, the first is meant",
    ],
    [["--at", "9:00 utc"], { at: "2026-08-06T09:00:00.000Z" }, "at 2026-08-06T09:00:00.000Z"],
  ])("%j is understood, said back and sent", async (when, rule, said) => {
    const { exitCode, stdout, stderr } = await line(session, [
      "remind",
      "add",
      "s-1",
      ...when,
      ...berlin,
      "look",
      "again",
    ]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout.split("\n")[0]).toBe(said);
    expect(stdout).toMatch(/\nschedule-1 is set for 2026-08-05T12:10:00\.007Z/);
    expect(asked).toEqual([{ prompt: "look again", ...rule }]);
  });

  it("is one JSON document, and the time is said on stderr", async () => {
    const { stdout, stderr } = await line(session, [
      "remind",
      "add",
      "s-1",
      "--in",
      "10m",
      "--id",
      "op",
      ...berlin,
      "--json",
      "look",
    ]);
    expect(JSON.parse(stdout)).toEqual({
      session: "s-1",
      requestId: "r",
      id: "schedule-1",
      scheduledAt: "2026-08-05T12:10:00.007Z",
      local: "Wed 2026-08-05 14:10:00.007 +02:00",
      timeZone: "Europe/Berlin",
    });
    expect(stderr).toMatch(/^in 10m: 2026-08-05T12:10:00\.000Z, that is /);
    expect(asked).toEqual([{ prompt: "look", in: 600, id: "op" }]);
  });

  it.each<[string, boolean]>([
    ["y\n", true],
    ["YES\nmore", true],
    ["n\n", false],
    ["\n", false],
    ["", false],
    ["yep\n", false],
  ])("asks on a terminal before anything is sent; %j", async (answer, agreed) => {
    const io = terminal(answer);
    if (answer === "")
      Object.assign(io, { stdin: Object.assign((async function* () {})(), { isTTY: true }) });
    const { exitCode, stdout } = await line(
      session,
      ["remind", "add", "s-1", "--in", "10m", ...berlin, "look"],
      io,
    );
    expect(stdout).toContain("+02:00 Europe/Berlin\nSet this reminder? [y/N] ");
    expect(asked).toHaveLength(agreed ? 1 : 0);
    expect(exitCode).toBe(agreed ? 0 : 1);
    expect(stdout.endsWith("nothing was set\n")).toBe(!agreed);
  });

  it("asks nothing with --yes", async () => {
    const io = terminal("n\n");
    const { stdout } = await line(
      session,
      ["remind", "add", "s-1", "--in", "10m", "-y", "look"],
      io,
    );
    expect(stdout).not.toContain("[y/N]");
    expect(asked).toHaveLength(1);
  });

  it.each<[readonly string[], string]>([
    [["look"], "remind add expected one of --in, --at and --every, got none"],
    [
      ["--in", "5m", "--every", "5m", "look"],
      "remind add expected one of --in, --at and --every, got 2",
    ],
    [
      ["--in", "10", "look"],
      '--in expected a time such as 10m, 1h30m, 2 days or 45s, in whole seconds from 1, got "10"',
    ],
    [
      ["--in", "0s", "look"],
      '--in expected a time such as 10m, 1h30m, 2 days or 45s, in whole seconds from 1, got "0s"',
    ],
    [["--every", "often", "look"], "--every expected a time such as 10m"],
    [["--at", "soon", "look"], '--at expected a time such as "tomorrow 9:00"'],
    [
      ["--at", "01/12/2026 9:00", "look"],
      'got "01/12/2026 9:00" (a date is year-month-day, for others read it otherwise)',
    ],
    [
      ["--at", "9:00", "--tz", "EST", "look"],
      '--tz expected UTC or a name of the zone database such as Europe/Berlin, got "EST"',
    ],
    [["--in", "5m", "--", " "], "remind add expected a prompt, got a blank one"],
  ])("%j is a mistake on the command line", async (words, expected) => {
    const { exitCode, stdout, stderr } = await line({}, ["remind", "add", "s-1", ...words]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain(expected);
    expect(stderr).toMatch(/^error: USAGE: [^\n]+\n$/);
  });

  it.each<[readonly string[], string]>([
    [["--every", "2m"], "frequency_too_high: --every expected at least 5m, got 2m"],
    [
      ["--at", "2027-03-28 02:30"],
      'invalid_rule: --at "2027-03-28 02:30": 2027-03-28 02:30:00 does not exist in Europe/Berlin: clocks skip it',
    ],
    [
      ["--at", "today 9:00"],
      "not_future: the time must be after now, 2026-08-05T12:00:00.000Z, got 2026-08-05T07:00:00.000Z",
    ],
    [["--in", "99999999999d"], "time_out_of_range: "],
    [["--at", "2026-13-01 09:00"], "invalid_rule: --at "],
  ])("%j is refused by the rules before it is asked or sent", async (when, expected) => {
    const { exitCode, stdout, stderr } = await line({}, [
      "remind",
      "add",
      "s-1",
      ...when,
      ...berlin,
      "look",
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain(`error: ${expected}`);
    expect(stderr).toMatch(/^[^\n]+\n$/);
  });

  it("tells a refusal of the session with its code, and what is not known as a program needs it", async () => {
    const refusing: Partial<Session> = {
      remind: () =>
        Promise.resolve({
          ok: false,
          code: "persistence_uncertain",
          message: "not known",
          operation: "create",
          requestId: "r-1",
        }),
    };
    const argv = ["remind", "add", "s-1", "--in", "10m", "look"];
    expect(await line(refusing, argv)).toMatchObject({
      exitCode: 1,
      stderr: "error: persistence_uncertain: not known\n",
    });
    const { stderr } = await line(refusing, [...argv, "--json"]);
    expect(JSON.parse(stderr.split("\n")[1] ?? "")).toEqual({
      error: {
        code: "persistence_uncertain",
        message: "not known",
        operation: "create",
        requestId: "r-1",
      },
    });
  });
});

const view = { deliveryMode: "session-local" } as const;
const reminders: readonly ScheduleView[] = [
  {
    id: "schedule-1",
    kind: "every",
    prompt: "look \u001b[31mred\u001b[0m\nand more",
    everySeconds: 5_400,
    scheduledAt: "2026-08-05T13:00:00.000Z",
    state: "scheduled",
    ...view,
  },
  {
    id: "schedule-2",
    kind: "at",
    prompt: "late",
    scheduledAt: "2026-08-05T11:00:00.000Z",
    state: "overdue",
    ...view,
  },
];
const list = (parts: object = {}): Partial<Session> => ({
  reminders: () =>
    Promise.resolve({
      ok: true,
      enabled: true,
      live: true,
      reminders,
      ...parts,
    } as RemindersResult),
});

describe("remind list", () => {
  it("is a table with both clocks", async () => {
    const { stdout, stderr } = await line(list(), ["remind", "list", "s-1", ...berlin]);
    expect(stderr).toBe("");
    expect(stdout).toMatchInlineSnapshot(`
      "REMINDER    STATE      DUE                   IN Europe/Berlin                REPEATS      PROMPT
      schedule-1  scheduled  2026-08-05 13:00:00Z  Wed 2026-08-05 15:00:00 +02:00  every 1h30m  look red and more
      schedule-2  overdue    2026-08-05 11:00:00Z  Wed 2026-08-05 13:00:00 +02:00  once         late
      "
    `);
  });

  it("says why nothing comes, and when there are none", async () => {
    const argv = ["remind", "list", "s-1"];
    expect((await line(list({ live: false }), argv)).stderr).toContain("nothing is delivered now");
    expect((await line(list({ reminders: [] }), argv)).stdout).toBe("no reminders\n");
    expect((await line(list({ reminders: [], enabled: false }), argv)).stdout).toBe(
      "no reminders: the session was made without them\n",
    );
  });

  it("is one JSON document", async () => {
    const { stdout } = await line(list(), ["remind", "list", "s-1", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ session: "s-1", enabled: true, live: true, reminders });
  });

  it("tells that it cannot be read", async () => {
    const corrupt = list({ ok: false, code: "corrupt_schedule_log", message: "entry 4" });
    expect(await line(corrupt, ["remind", "list", "s-1"])).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "error: corrupt_schedule_log: entry 4\n",
    });
  });
});

describe("remind delete", () => {
  const session: Partial<Session> = {
    deleteReminder: (id) =>
      Promise.resolve(
        id === "schedule-1"
          ? { ok: true, requestId: "r", id, deleted: true }
          : { ok: true, requestId: "r", id, deleted: false, code: "schedule_not_found" },
      ),
  };

  it("tells whether there was one", async () => {
    expect(await line(session, ["remind", "delete", "s-1", "schedule-1"])).toEqual({
      exitCode: 0,
      stdout: "schedule-1 is deleted\n",
      stderr: "",
    });
    expect(await line(session, ["remind", "delete", "s-1", "schedule-9"])).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "error: schedule_not_found: session s-1 has no active reminder schedule-9\n",
    });
    const { exitCode, stdout } = await line(session, ["remind", "delete", "s-1", "x", "--json"]);
    expect({ exitCode, answer: JSON.parse(stdout) as unknown }).toEqual({
      exitCode: 1,
      answer: {
        session: "s-1",
        requestId: "r",
        id: "x",
        deleted: false,
        code: "schedule_not_found",
      },
    });
  });
});

describe("suspend, resume and rebind", () => {
  it("ask the session and say what is so", async () => {
    const done: string[] = [];
    const session: Partial<Session> = {
      suspend: async () => void done.push("suspend"),
      resume: async () => void done.push("resume"),
      rebind: async (host) => void done.push(`rebind ${host}`),
    };
    expect((await line(session, ["suspend", "s-1"])).stdout).toBe("suspended s-1\n");
    expect((await line(session, ["resume", "s-1"])).stdout).toBe("resumed s-1\n");
    expect((await line(session, ["rebind", "s-1", "b"])).stdout).toBe(
      "session s-1 is bound to host b\n",
    );
    expect(done).toEqual(["suspend", "resume", "rebind b"]);
    const json = async (...argv: string[]) =>
      JSON.parse((await line(session, [...argv, "--json"])).stdout) as unknown;
    expect(await json("suspend", "s-1")).toEqual({ session: "s-1", suspended: true });
    expect(await json("resume", "s-1")).toEqual({ session: "s-1", suspended: false });
    expect(await json("rebind", "s-1", "b")).toEqual({ session: "s-1", host: "b" });
  });

  it("need a host to move to, and tell a refusal", async () => {
    expect((await line({}, ["rebind", "s-1"])).exitCode).toBe(2);
    expect((await line({}, ["rebind", "s-1", " "])).stderr).toContain("rebind expected <host>");
    const refusing = { rebind: () => Promise.reject(new LonghaulError("INVALID_INPUT", "m")) };
    expect((await line(refusing, ["rebind", "s-1", "b"])).stderr).toBe("error: INVALID_INPUT: m\n");
  });
});

describe("sessions", () => {
  const filters: ListFilter[] = [];
  const found: readonly SessionSummary[] = [
    { id: "s-2", state: "suspended", startedAt: 0, nextReminder: now - 1_000, title: "T" },
    { id: "s-1", state: "cold", host: "h", startedAt: 0 },
  ];
  const parts: Partial<Backend> = {
    list: (filter) => {
      filters.push(filter);
      return Promise.resolve(found);
    },
  };

  it("show the next reminder where there is one", async () => {
    const { stdout } = await line({}, ["sessions"], fakeIo(), parts);
    expect(stdout).toMatchInlineSnapshot(`
      "SESSION  STATE      HOST  STARTED            NEXT REMINDER         TITLE
      s-2      suspended  -     1970-01-01 00:00Z  2026-08-05 11:59:59Z  T
      s-1      cold       h     1970-01-01 00:00Z  -
      "
    `);
    expect(JSON.parse((await line({}, ["sessions", "--json"], fakeIo(), parts)).stdout)).toEqual([
      { ...found[0], nextReminder: "2026-08-05T11:59:59.000Z" },
      found[1],
    ]);
  });

  it("are those with overdue reminders on demand", async () => {
    filters.length = 0;
    await line({}, ["sessions", "--overdue", "--state", "cold"], fakeIo(), parts);
    expect(filters).toEqual([{ limit: 1_001, overdue: true, state: "cold" }]);
    expect((await line({}, ["sessions", "--overdue"])).stdout).toBe(
      "no sessions with overdue reminders\n",
    );
  });
});

describe("show", () => {
  const shown: SessionView = {
    id: "s-1",
    state: "cold",
    ready: true,
    header: { version: 0, id: "s-1", createdAt: 0 },
    config: {
      request: { provider: "p", model: "m" },
      allowParallelInProgress: true,
      worldTools: true,
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
    },
    host: "h",
    epoch: 1,
    turn: { number: 0, open: false, step: 0 },
    inbox: { nextTurn: [], nextStep: [] },
    todos: null,
    lastSeq: 1,
  };
  const session = (state: SessionView["state"], parts: object = {}): Partial<Session> => ({
    view: () => Promise.resolve({ ...shown, state }),
    ...list(parts),
  });
  const argv = ["show", "s-1"];

  it("tells what cold and suspended mean, and what is due first", async () => {
    const { stdout } = await line(session("cold", { live: false }), argv);
    expect(stdout).toContain("cold (host h does not answer; reminders wait for it)\n");
    expect(stdout).toContain(
      "Reminders  2, next schedule-2 is overdue since 2026-08-05T11:00:00.000Z\n",
    );
    const suspended = await line(session("suspended"), argv);
    expect(suspended.stdout).toContain("suspended (longhaul resume s-1, or a message, goes on)\n");
    const next = await line(session("idle", { reminders: reminders.slice(0, 1) }), argv);
    expect(next.stdout).toContain("Reminders  1, next schedule-1 at 2026-08-05T13:00:00.000Z\n");
    expect((await line(session("idle", { reminders: [] }), argv)).stdout).toContain(
      "Reminders  none\n",
    );
    const off = session("idle", { reminders: [], enabled: false });
    expect((await line(off, argv)).stdout).not.toContain("Reminders");
    const corrupt = session("idle", { ok: false, code: "corrupt_schedule_log", message: "m" });
    expect((await line(corrupt, argv)).stdout).toContain("Reminders  corrupt_schedule_log: m\n");
  });

  it("has them in JSON, and none from a worker that does not know them", async () => {
    const json = async (one: Partial<Session>) =>
      JSON.parse((await line(one, [...argv, "--json"])).stdout) as { reminders?: unknown };
    expect((await json(session("cold", { live: false }))).reminders).toEqual({
      enabled: true,
      live: false,
      active: 2,
      next: { id: "schedule-2", scheduledAt: "2026-08-05T11:00:00.000Z", state: "overdue" },
    });
    const old = {
      ...session("idle"),
      reminders: () => Promise.reject(new LonghaulError("INVARIANT", "no such query")),
    };
    expect(await json(old)).not.toHaveProperty("reminders");
  });
});

describe("hosts", () => {
  it("is a table with this machine in it", async () => {
    const io = fakeIo({ env: { LONGHAUL_HOST_ID: "me" } });
    const also: unknown[] = [];
    const hosts: readonly HostRecord[] = [
      { id: "gone", polling: false, workers: [], sessions: 2 },
      { id: "me", polling: true, lastSeen: now, workers: ["1@m", "2@m"], sessions: 0 },
    ];
    const parts: Partial<Backend> = {
      hosts: (given) => {
        also.push(given);
        return Promise.resolve(hosts);
      },
    };
    const { stdout } = await line({}, ["hosts"], io, parts);
    expect(also).toEqual([["me"]]);
    expect(stdout).toMatchInlineSnapshot(`
      "HOST       POLLING  LAST SEEN             SESSIONS  WORKERS
      gone       no       -                     2         -
      me (here)  yes      2026-08-05 12:00:00Z  0         1@m, 2@m
      "
    `);
    const json = await line(
      {},
      ["hosts", "--json"],
      fakeIo({ env: { LONGHAUL_HOST_ID: "me" } }),
      parts,
    );
    expect(JSON.parse(json.stdout)).toEqual([
      { ...hosts[0], here: false },
      { ...hosts[1], here: true },
    ]);
  });
});

describe("a transcript", () => {
  const record = (id: string, prompt: string) =>
    ({ id, kind: "at", prompt, scheduledAt: "2026-08-05T12:00:00.000Z" }) as const;
  const entry = (text: string, plugin = "schedule"): LogEntry => ({
    type: "user/message",
    seq: 0,
    time: 0,
    data: {
      message: {
        id: "m",
        role: "user",
        content: [{ type: "text", text }],
        source: { kind: "plugin", plugin },
      },
    },
  });
  const shown = (one: LogEntry) => {
    const io = fakeIo();
    const page = new Transcript((text) => void io.out.write(text), terminalOf(io.stdout, io.env));
    page.event({ type: "entry", entry: one });
    page.end();
    return io.out.text.trim();
  };

  it("tells a reminder by its id and prompt, clean and on one line", () => {
    const text = reminderText(record("schedule-1", "check\n\u001b[31mthe\u001b[0m build"));
    expect(shown(entry(text))).toBe("[reminder schedule-1] check the build");
  });

  it("tells each of a batch", () => {
    const due = ["a", "b"].map((prompt, at) => ({
      record: record(`schedule-${at}`, prompt),
      occurrenceAt: "2026-08-05T12:00:00.000Z",
    }));
    expect(shown(entry(batchText(due)))).toBe("[reminder schedule-0] a [reminder schedule-1] b");
  });

  it.each([
    "[SCHEDULE REMINDER]",
    "schedule_id_json: {",
    "reminders_json: []",
    "reminders_json: 1",
  ])("tells what has another form as it is: %j", (text) => {
    expect(shown(entry(text))).toBe(`[plugin] ${text}`);
    expect(shown(entry(text, "other"))).toBe(`[plugin] ${text}`);
  });

  it.each<[NewEntry, string]>([
    [
      {
        type: "session/live",
        data: { live: false, why: "suspended", suspended: true, cold: false },
      },
      "suspended",
    ],
    [
      { type: "session/live", data: { live: false, why: "h is silent" } },
      "the host is away: h is silent",
    ],
    [{ type: "session/bound", data: { host: "b", epoch: 2 } }, "moved to host b"],
    [{ type: "session/bound", data: { host: "b", epoch: 1 } }, ""],
    [
      { type: "schedule/rejected", data: { requestId: "r", code: "not_future", message: "m" } },
      "reminder refused: not_future: m",
    ],
  ])("tells %j", (one, text) => {
    expect(shown({ ...one, seq: 0, time: 0 })).toBe(text);
  });
});
