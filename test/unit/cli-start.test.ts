import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Backend, Session } from "../../src/cli/backend.js";
import type { BackendRequest } from "../../src/cli/command.js";
import { commands } from "../../src/cli/commands/index.js";
import { stops } from "../../src/cli/io.js";
import { runCli } from "../../src/cli/run.js";
import type { CreateSessionOptions, Outcome, WatchEvent } from "../../src/client/types.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { SessionView } from "../../src/contracts/session.js";
import { fakeBackend, fakeIo, fakeSession, type FakeIo } from "../support/fake-cli.js";

const said: LogEntry = {
  type: "assistant/message",
  seq: 3,
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
};

function playing(kind: Outcome["kind"]): Session {
  return fakeSession({
    send: () => Promise.resolve({ ok: true, id: "m", seq: 1 }),
    waitIdle: () => Promise.resolve({ lastSeq: 3 } as SessionView),
    outcome: () => Promise.resolve({ kind, canceledUnrun: false }),
    async *watch({ signal } = {}): AsyncGenerator<WatchEvent> {
      yield { type: "entry", entry: said };
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    },
  });
}

async function start(
  io: FakeIo,
  session: Session,
  argv: readonly string[] = [],
  parts: Partial<Backend> = {},
) {
  const created: CreateSessionOptions[] = [];
  const opened: BackendRequest[] = [];
  const backend = fakeBackend(session, {
    createSession: (options) => {
      created.push(options);
      return Promise.resolve({ ...session, id: options.id ?? "" });
    },
    ...parts,
  });
  const exitCode = await runCli(["start", ...argv], io, {
    commands,
    version: "0",
    openBackend: (request) => {
      opened.push(request);
      return Promise.resolve(backend);
    },
  });
  return { exitCode, created, opened, events: backend.events };
}

describe("start without a terminal", () => {
  it("plays, names the session and its page, and exits 0", async () => {
    const io = fakeIo();
    const { exitCode, created, opened, events } = await start(io, playing("completed"));
    const id = created[0]?.id ?? "";
    expect(exitCode).toBe(0);
    expect(io.err.text).toBe("");
    expect(io.out.text).toBe(
      `hello\n\nSession    ${id}\nWorkspace  ${join(io.home, "workspaces", id)}\nTemporal   http://127.0.0.1:8233/namespaces/default/workflows/${id}\n           (the page is there while a server runs: longhaul server start)\n`,
    );
    expect(created[0]?.title).toBe("First session");
    expect(events).toEqual(["worker session,host", "close"]);
    expect(opened[0]).toMatchObject({ home: io.home, register: true, keep: false });
  });

  it("gives the session a fresh workspace and the shipped scenario", async () => {
    const io = fakeIo();
    const { created } = await start(io, playing("completed"), ["--host-id", "here"]);
    const [{ config, host } = { config: undefined, host: undefined }] = created;
    expect(host).toBe("here");
    expect(statSync(config?.cwd ?? "").isDirectory()).toBe(true);
    expect(config?.request.provider).toBe("scripted");
    expect(statSync(config?.request.model ?? "").isFile()).toBe(true);
    expect(config?.request.model).toMatch(/examples[/\\]first-session\.yaml$/);
  });

  it.each(["error", "aborted", "none"] as const)(
    "exits 1 when the session ended %s",
    async (kind) => {
      expect((await start(fakeIo(), playing(kind))).exitCode).toBe(1);
    },
  );

  it.each([
    ["its name", "name: Other work\nturns:\n  - steps:\n      - text: hi\n", "Other work"],
    ["its file when it has a mistake", "name: x\nturns: 7\n", "other.yaml"],
  ])("titles the session of a given scenario by %s", async (_what, text, title) => {
    const io = fakeIo();
    mkdirSync(io.home);
    const file = join(io.home, "other.yaml");
    writeFileSync(file, text);
    const { created } = await start(io, playing("completed"), [
      "--scenario",
      file,
      "--message",
      "go",
    ]);
    expect(created[0]?.title).toBe(title);
  });

  it("keeps the server for --keep, and its page with it", async () => {
    const io = fakeIo();
    expect((await start(io, playing("completed"), ["--keep"])).opened[0]?.keep).toBe(true);
    expect(io.out.text).not.toContain("the page is there while");
  });

  it("names commands as the user calls them", async () => {
    const io = fakeIo({ env: { npm_lifecycle_event: "start" } });
    await start(io, playing("completed"));
    expect(io.out.text).toContain("runs: npx longhaul server start)");
  });

  it("fails with one line when its worker fails", async () => {
    const io = fakeIo();
    const { exitCode, events } = await start(
      io,
      { ...playing("completed"), waitIdle: () => new Promise(() => undefined) },
      [],
      {
        startWorker: () =>
          Promise.resolve({
            stop: () => Promise.resolve(),
            done: Promise.reject(new Error("lost")),
          }),
      },
    );
    expect({ exitCode, stderr: io.err.text, events }).toEqual({
      exitCode: 1,
      stderr: "error: lost\n",
      events: ["close"],
    });
  });
});

describe("start on a terminal", () => {
  it.each([stops.SIGINT, stops.SIGTERM])(
    "stays up until $why, then ends in good order with 0",
    async (stop) => {
      const io = fakeIo({ tty: true });
      const running = start(io, playing("completed"));
      await vi.waitFor(() => expect(io.out.text).toContain("It stays up until Ctrl-C"), {
        timeout: 10_000,
      });
      io.controller.abort(stop);
      const { exitCode, events } = await running;
      expect({ exitCode, events }).toEqual({
        exitCode: 0,
        events: ["worker session,host", "close"],
      });
    },
  );
});
