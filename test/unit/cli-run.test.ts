import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Backend, Session, WorkerRequest } from "../../src/cli/backend.js";
import { commands } from "../../src/cli/commands/index.js";
import { outcomeText } from "../../src/cli/commands/run.js";
import { stops } from "../../src/cli/io.js";
import { runCli } from "../../src/cli/run.js";
import type { CreateSessionOptions, Outcome } from "../../src/client/types.js";
import type { SessionView } from "../../src/contracts/session.js";
import {
  fakeBackend,
  fakeIo,
  fakeSession,
  type FakeBackend,
  type FakeIo,
} from "../support/fake-cli.js";

const model = { LONGHAUL_MODEL: "scripted:/some.yaml" };
const view = {} as SessionView;

afterEach(() => {
  vi.useRealTimers();
});

function sessionWith(outcome: Outcome, sent: string[] = []): Session {
  return fakeSession({
    send: (text) => {
      sent.push(text);
      return Promise.resolve({ ok: true, id: "m", seq: 7 });
    },
    waitIdle: () => Promise.resolve(view),
    outcome: () => Promise.resolve(outcome),
  });
}

function run(io: FakeIo, backend: Backend, ...argv: string[]): Promise<number> {
  return runCli(["run", ...argv], io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(backend),
  });
}

async function runTo(outcome: Outcome) {
  const io = fakeIo({ env: model });
  const exitCode = await run(io, fakeBackend(sessionWith(outcome)), "do", "it");
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

describe("a headless run", () => {
  it("[harness/E1] prints the text and nothing on stderr, and exits 0 when the last turn completed", async () => {
    expect(
      await runTo({ kind: "completed", turn: 1, text: "all done", canceledUnrun: false }),
    ).toEqual({
      exitCode: 0,
      stdout: "all done\n",
      stderr: "",
    });
  });

  it("[harness/E2] prints one line with code and message on an error, and exits 1", async () => {
    expect(
      await runTo({
        kind: "error",
        turn: 1,
        code: "AUTH",
        message: "bad\nkey",
        canceledUnrun: false,
      }),
    ).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "error: AUTH: bad key\n",
    });
  });

  it.each(["aborted", "blocked", "max-tokens", "interrupted"] as const)(
    "[harness/E3] exits 1 with one line when the turn ended %s",
    async (kind) => {
      const { exitCode, stdout, stderr } = await runTo({
        kind,
        turn: 1,
        text: "so far",
        canceledUnrun: false,
      });
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "so far\n" });
      expect(stderr).toMatch(/^error: the turn [^\n]+\n$/);
    },
  );

  it("[harness/E4] exits 1 when no turn ran", async () => {
    expect(await runTo({ kind: "none", canceledUnrun: true })).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "error: no turn ran\n",
    });
  });

  it("[harness/E5] prints the text that the outcome names, clean of control codes", () => {
    expect(
      outcomeText({
        kind: "completed",
        turn: 1,
        text: "last\u001b[2J\u001b]0;x\u0007 words",
        canceledUnrun: false,
      }),
    ).toEqual({
      stdout: "last words\n",
      stderr: "",
      exitCode: 0,
    });
  });

  it("prints nothing on stdout for a turn that completed without a text", async () => {
    expect(await runTo({ kind: "completed", turn: 1, canceledUnrun: false })).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: "",
    });
  });

  it.each([[[]], [[""]], [["  ", "\t"]]])(
    "[harness/E6] refuses the blank task %j as a usage error and starts nothing",
    async (words) => {
      const io = fakeIo({ env: model });
      let opened = 0;
      const exitCode = await runCli(["run", ...words], io, {
        commands,
        version: "0",
        openBackend: () => {
          opened += 1;
          return Promise.reject(new Error("opened"));
        },
      });
      expect({ exitCode, opened, stdout: io.out.text }).toEqual({
        exitCode: 2,
        opened: 0,
        stdout: "",
      });
      expect(io.err.text).toMatch(/^error: USAGE: run expected a task, got a blank one[^\n]*\n$/);
      expect(existsSync(io.home)).toBe(false);
    },
  );

  it("says how to name a model when none is configured, and starts nothing", async () => {
    const io = fakeIo();
    const backend = fakeBackend(fakeSession({}));
    expect(await run(io, backend, "task")).toBe(2);
    expect(io.err.text).toMatch(
      /^error: USAGE: no model is configured: .*--model provider\/model.*LONGHAUL_MODEL.*config\.yaml[^\n]*\n$/,
    );
    expect(backend.events).toEqual([]);
  });

  it("opens one session in the invoking directory on this host and sends the words as one message", async () => {
    const io = fakeIo({ env: { ...model, LONGHAUL_HOST_ID: "here" } });
    const sent: string[] = [];
    const created: CreateSessionOptions[] = [];
    const session = sessionWith({ kind: "completed", turn: 1, canceledUnrun: false }, sent);
    const backend = fakeBackend(session, {
      createSession: (options) => {
        created.push(options);
        return Promise.resolve(session);
      },
    });
    expect(await run(io, backend, "fix", "the bug", "--model", "scripted:play.yaml")).toBe(0);
    expect(sent).toEqual(["fix the bug"]);
    expect(created).toHaveLength(1);
    expect(created[0]).toMatchObject({
      host: "here",
      config: {
        cwd: "/home/me/project",
        worldTools: true,
        request: { provider: "scripted", model: "/home/me/project/play.yaml" },
      },
    });
  });

  it("uses the worker that answers, and closes what it opened", async () => {
    const backend = fakeBackend(sessionWith({ kind: "completed", turn: 1, canceledUnrun: false }));
    expect(await run(fakeIo({ env: model }), backend, "task")).toBe(0);
    expect(backend.events).toEqual(["close"]);
  });

  it("becomes the worker at once when none was seen", async () => {
    const session = sessionWith({ kind: "completed", turn: 1, canceledUnrun: false });
    const backend = fakeBackend(session, { workerSeen: () => Promise.resolve(false) });
    expect(await run(fakeIo({ env: model }), backend, "task")).toBe(0);
    expect(backend.events).toEqual(["worker session,host", "close"]);
  });

  it("becomes the worker when the one that was seen does not answer", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const session = sessionWith({ kind: "completed", turn: 1, canceledUnrun: false });
    let ready: (session: Session) => void = () => undefined;
    const base = fakeBackend(session, {
      createSession: () => new Promise((resolve) => (ready = resolve)),
    });
    const backend: FakeBackend = {
      ...base,
      startWorker(request) {
        ready(session);
        return base.startWorker(request);
      },
    };
    const running = run(fakeIo({ env: model }), backend, "task");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await running).toBe(0);
    expect(backend.events).toEqual(["worker session,host", "close"]);
  });

  it("fails with one line when the worker it became fails", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const io = fakeIo({ env: model });
    const backend = fakeBackend(fakeSession({}), {
      createSession: () => new Promise(() => undefined),
      startWorker: () => Promise.reject(new Error("no bundle\n    at somewhere")),
    });
    const running = run(io, backend, "task");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await running).toBe(1);
    expect(io.err.text).toBe("error: no bundle at somewhere\n");
    expect(backend.events).toEqual(["close"]);
  });

  it("stops the turn and closes when the user ends it", async () => {
    const io = fakeIo({ env: model });
    const calls: string[] = [];
    const session = fakeSession({
      send: () => Promise.resolve({ ok: true, id: "m", seq: 7 }),
      waitIdle: ({ signal } = {}) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(new Error("aborted")));
          io.controller.abort(stops.SIGINT);
        }),
      interrupt: () => {
        calls.push("interrupt");
        return Promise.resolve({ ok: true, result: "requested", removed: 0 });
      },
    });
    const backend = fakeBackend(session);
    expect(await run(io, backend, "task")).toBe(130);
    expect(calls).toEqual(["interrupt"]);
    expect(backend.events).toEqual(["close"]);
    expect(io.err.text).toBe("");
  });

  describe("with a model whose key this process does not have", () => {
    const keyless = { LONGHAUL_MODEL: "deepseek/deepseek-v4-pro" };

    it("uses a worker that answers: that one may have it", async () => {
      const backend = fakeBackend(
        sessionWith({ kind: "completed", turn: 1, canceledUnrun: false }),
      );
      expect(await run(fakeIo({ env: keyless }), backend, "task")).toBe(0);
    });

    it.each([
      [keyless, "AUTH", /DEEPSEEK_API_KEY/],
      [{ LONGHAUL_MODEL: "deepsek/x" }, "MODEL_NOT_FOUND", /one of: deepseek/],
      [
        { ...keyless, DEEPSEEK_API_KEY: "k", DEEPSEEK_BASE_URL: "no url" },
        "INVALID_CONFIG",
        /DEEPSEEK_BASE_URL/,
      ],
    ])("does not become a worker that cannot call it: %j", async (env, code, what) => {
      const io = fakeIo({ env });
      const backend = fakeBackend(fakeSession({}), {
        createSession: () => Promise.reject(new Error("nothing was to be opened")),
        workerSeen: () => Promise.resolve(false),
      });
      expect(await run(io, backend, "task")).toBe(1);
      expect(io.err.text).toMatch(new RegExp(`^error: ${code}: [^\\n]+\\n$`));
      expect(io.err.text).toMatch(what);
      expect(backend.events).toEqual(["close"]);
    });
  });

  describe("with --tools", () => {
    it("becomes the worker at once, with the tools of the file", async () => {
      const requests: WorkerRequest[] = [];
      const session = sessionWith({ kind: "completed", turn: 1, canceledUnrun: false });
      const base = fakeBackend(session);
      const backend: FakeBackend = {
        ...base,
        startWorker(request) {
          requests.push(request);
          return base.startWorker(request);
        },
      };
      const file = fileURLToPath(new URL("../../examples/my-tools.ts", import.meta.url));
      expect(await run(fakeIo({ env: model }), backend, "--tools", file, "task")).toBe(0);
      expect(requests).toHaveLength(1);
      expect(requests[0]?.tools?.map((tool) => tool.row.name)).toContain("count_words");
    });

    it("starts nothing for a file with a mistake", async () => {
      const io = fakeIo({ env: model });
      const backend = fakeBackend(fakeSession({}));
      expect(await run(io, backend, "--tools", "/nowhere/tools.ts", "task")).toBe(1);
      expect(io.err.text).toMatch(/^error: INVALID_CONFIG: [^\n]*tools\.ts[^\n]*\n$/);
      expect(backend.events).toEqual([]);
    });
  });
});
