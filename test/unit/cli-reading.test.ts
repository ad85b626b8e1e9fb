import { describe, expect, it } from "vitest";
import type { Backend, Session } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { runCli } from "../../src/cli/run.js";
import type { ListFilter, SessionRecord, SessionSummary } from "../../src/client/types.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import { fakeBackend, fakeIo, fakeSession } from "../support/fake-cli.js";

async function line(
  session: Partial<Session>,
  argv: readonly string[],
  parts: Partial<Backend> = {},
) {
  const io = fakeIo();
  const exitCode = await runCli(argv, io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(fakeBackend(fakeSession(session), parts)),
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

const open: SessionRecord = {
  id: "s-1",
  title: "A title",
  state: "running",
  status: "open",
  host: "h",
  startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
};
const terminated: SessionRecord = {
  ...open,
  state: "terminated",
  status: "terminated",
  closedAt: Date.UTC(2026, 0, 2, 3, 5),
};
const failed: SessionRecord = {
  ...open,
  state: "failed",
  status: "failed",
  closedAt: Date.UTC(2026, 0, 2, 3, 5),
  failure: { code: "NO_HOST", message: "no host answered" },
};
const recorded = (record: SessionRecord): Partial<Session> => ({
  record: () => Promise.resolve(record),
});
const silent: Partial<Session> = {
  view: () => Promise.reject(new LonghaulError("NO_WORKER", "no worker answered")),
};

describe("sessions", () => {
  const many = (count: number): SessionSummary[] =>
    Array.from({ length: count }, (_, index) => ({
      id: `s-${index}`,
      state: "idle",
      startedAt: 0,
    }));
  const parts: Partial<Backend> = {
    list: ({ limit = 0 }: ListFilter) => Promise.resolve(many(Math.min(limit, 1200))),
  };

  it("shows as many as it is told, 1,000 by default, and says that there are more", async () => {
    const all = await line({}, ["sessions"], parts);
    expect(all.stdout.trimEnd().split("\n")).toHaveLength(1001);
    expect(all.stderr).toBe("1000 shown, more with --limit N\n");
    const some = await line({}, ["sessions", "--limit", "2", "--json"], parts);
    expect(JSON.parse(some.stdout)).toEqual(many(2));
    expect(some.stderr).toBe("2 shown, more with --limit N\n");
    const enough = await line({}, ["sessions", "--limit", "1200"], parts);
    expect(enough.stdout.trimEnd().split("\n")).toHaveLength(1201);
    expect(enough.stderr).toBe("");
  });

  it("refuses a limit of none", async () => {
    expect(await line({}, ["sessions", "--limit", "0"], parts)).toMatchObject({ exitCode: 2 });
  });
});

describe("show", () => {
  it("tells what Temporal knows when no worker answers", async () => {
    expect(await line({ ...recorded(open), ...silent }, ["show", "s-1"])).toEqual({
      exitCode: 0,
      stdout: [
        "Session    s-1",
        "Title      A title",
        "State      running",
        "Host       h",
        "Started    2026-01-02 03:04:05Z",
        "Temporal   http://127.0.0.1:8233/namespaces/default/workflows/s-1",
        "",
      ].join("\n"),
      stderr: "NO_WORKER: no worker answered; shown is what Temporal knows\n",
    });
    const json = await line({ ...recorded(open), ...silent }, ["show", "s-1", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ ...open, live: false });
  });

  it("tells how and why a session ended that cannot answer", async () => {
    const unanswered: Partial<Session> = {
      view: () => Promise.reject(new LonghaulError("NO_HOST", "no host answered")),
    };
    const { exitCode, stdout, stderr } = await line({ ...recorded(failed), ...unanswered }, [
      "show",
      "s-1",
    ]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toContain(
      "State      failed at 2026-01-02 03:05:00Z (NO_HOST: no host answered)\n",
    );
  });

  it("fails when Temporal does not know the session", async () => {
    const unknown: Partial<Session> = {
      record: () =>
        Promise.reject(new LonghaulError("SESSION_NOT_FOUND", "there is no session s-1")),
    };
    expect(await line(unknown, ["show", "s-1"])).toMatchObject({ exitCode: 1, stdout: "" });
  });
});

describe("a session that was terminated", () => {
  it("is told when it was followed", async () => {
    const watch = async function* () {
      yield* [];
    };
    expect(
      await line({ ...recorded(terminated), watch }, ["log", "s-1", "--follow"]),
    ).toMatchObject({
      exitCode: 0,
      stderr: "session s-1 has ended: terminated at 2026-01-02 03:05:00Z\n",
    });
  });

  it("is not said to be closed by close", async () => {
    const close = () => Promise.resolve();
    expect(await line({ ...recorded(terminated), close }, ["close", "s-1"])).toEqual({
      exitCode: 0,
      stdout: "session s-1 has ended already: terminated at 2026-01-02 03:05:00Z\n",
      stderr: "",
    });
    const json = await line({ ...recorded(terminated), close }, ["close", "s-1", "--json"]);
    expect(JSON.parse(json.stdout)).toEqual({
      session: "s-1",
      closed: false,
      state: "terminated",
    });
  });
});
