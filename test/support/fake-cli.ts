import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { rmSync } from "node:fs";
import { randomUUID } from "node:crypto";
import type { Backend, Session } from "../../src/cli/backend.js";
import type { Io, Output } from "../../src/cli/io.js";

export interface FakeOutput extends Output {
  readonly text: string;
}

function fakeOutput(shape: Partial<Output>): FakeOutput {
  let text = "";
  return {
    ...shape,
    get text() {
      return text;
    },
    write(piece: string | Uint8Array) {
      text += typeof piece === "string" ? piece : Buffer.from(piece).toString("utf8");
    },
  };
}

export interface FakeIo extends Io {
  readonly out: FakeOutput;
  readonly err: FakeOutput;
  readonly controller: AbortController;
  readonly home: string;
}

/** A terminal in memory, with a data directory of its own that goes with the test. */
export function fakeIo(
  options: {
    readonly env?: Record<string, string>;
    readonly stdin?: string;
    readonly tty?: boolean;
  } = {},
): FakeIo {
  const home = join(tmpdir(), `longhaul-cli-${randomUUID()}`);
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const shape = options.tty === true ? { isTTY: true, columns: 80 } : {};
  const [out, err] = [fakeOutput(shape), fakeOutput(shape)];
  const controller = new AbortController();
  return {
    home,
    out,
    err,
    controller,
    stdout: out,
    stderr: err,
    stop: controller.signal,
    env: { LONGHAUL_HOME: home, LANG: "C.UTF-8", ...options.env },
    cwd: "/home/me/project",
    stdin: (async function* () {
      if (options.stdin !== undefined) yield options.stdin;
    })(),
  };
}

export function noBackend(): Promise<Backend> {
  return Promise.reject(new Error("nothing was to be started"));
}

const missing = (name: string) => (): never => {
  throw new Error(`the test gave no ${name}`);
};

/** A session that answers from what the test gives it; everything else fails loudly. */
export function fakeSession(parts: Partial<Session>): Session {
  return {
    id: "s-1",
    send: missing("send"),
    interrupt: missing("interrupt"),
    compact: missing("compact"),
    cancel: missing("cancel"),
    close: missing("close"),
    todos: missing("todos"),
    writeTodos: missing("writeTodos"),
    jobs: missing("jobs"),
    startJob: missing("startJob"),
    killJob: missing("killJob"),
    waitJob: missing("waitJob"),
    jobOutput: missing("jobOutput"),
    remind: missing("remind"),
    reminders: () => Promise.resolve({ ok: true, enabled: false, live: true, reminders: [] }),
    deleteReminder: missing("deleteReminder"),
    suspend: missing("suspend"),
    resume: missing("resume"),
    rebind: missing("rebind"),
    view: missing("view"),
    projections: () => Promise.resolve({ asOfSeq: 0, values: {} }),
    record: () =>
      Promise.resolve({ id: parts.id ?? "s-1", state: "idle", status: "open", startedAt: 0 }),
    log: missing("log"),
    watch: missing("watch"),
    waitIdle: missing("waitIdle"),
    outcome: missing("outcome"),
    ...parts,
  };
}

export interface FakeBackend extends Backend {
  /** What happened, in order: `worker session,host`, `stop`, `close`. */
  readonly events: readonly string[];
}

/** A backend around one session. `close` stops its worker, as the real one does. */
export function fakeBackend(session: Session, parts: Partial<Backend> = {}): FakeBackend {
  const events: string[] = [];
  return {
    events,
    address: "127.0.0.1:7233",
    namespace: "default",
    sessionUrl: (id) => `http://127.0.0.1:8233/namespaces/default/workflows/${id}`,
    createSession: (options) => Promise.resolve({ ...session, id: options.id ?? session.id }),
    session: (id) => ({ ...session, id }),
    list: () => Promise.resolve([]),
    archived: async function* () {},
    purge: () => Promise.reject(new Error("the test gave no purge")),
    hosts: () => Promise.resolve([]),
    async *rollOut() {},
    async *freeSessions() {},
    fork: missing("fork"),
    export: missing("export"),
    importSession: missing("importSession"),
    verify: missing("verify"),
    store: { list: missing("list"), read: missing("read"), append: missing("append") },
    workerSeen: () => Promise.resolve(true),
    startWorker({ roles }) {
      events.push(`worker ${roles.join(",")}`);
      return Promise.resolve({
        stop: () => Promise.resolve(),
        done: new Promise<void>(() => undefined),
      });
    },
    close() {
      events.push("close");
      return Promise.resolve();
    },
    ...parts,
  };
}
