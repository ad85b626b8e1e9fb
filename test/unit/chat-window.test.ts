import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Session } from "../../src/cli/backend.js";
import { chat } from "../../src/cli/chat/chat.js";
import { plainChat } from "../../src/cli/chat/plain.js";
import { stops, type Io } from "../../src/cli/io.js";
import type { Outcome, SendOptions, WatchEvent } from "../../src/client/types.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { EventData, EventType, LogEntry } from "../../src/contracts/log.js";
import type { SessionView } from "../../src/contracts/session.js";
import { fakeIo, fakeSession } from "../support/fake-cli.js";
import { EmulatedScreen } from "../support/screen.js";

/** What is put in comes out, for one reader that may come later. */
class Feed<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #wake: () => void = () => {};
  #ended = false;

  push(...items: readonly T[]): void {
    this.#items.push(...items);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) yield item;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** A session whose log the test writes, on a terminal it types on. */
function onTerminal(parts: Partial<Session> = {}, past: readonly LogEntry[] = []) {
  const home = mkdtempSync(join(tmpdir(), "longhaul-window-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const screen = new EmulatedScreen(30, 60);
  const keys = new Feed<string>();
  const events = new Feed<WatchEvent>();
  const sent: (readonly [string, SendOptions["mode"]])[] = [];
  const raw: boolean[] = [];
  let resize = () => {};
  let sink: ((text: string) => void) | undefined;
  const stop = new AbortController();
  const stdout = {
    isTTY: true,
    columns: 60,
    rows: 30,
    write: (text: string) => screen.write(text),
    on: (_event: "resize", listener: () => void) => (resize = listener),
    off: () => (resize = () => {}),
  };
  const io: Io = {
    stdin: Object.assign(keys, { isTTY: true, setRawMode: (on: boolean) => raw.push(on) }),
    stdout,
    stderr: { write: () => {} },
    env: { LANG: "C.UTF-8", NO_COLOR: "" },
    cwd: "/",
    stop: stop.signal,
    divertErrors: (to) => {
      sink = to;
    },
  };
  const session = fakeSession({
    send: (text, { id = "", mode } = {}) => {
      sent.push([text, mode]);
      return Promise.resolve({ ok: true, id, seq: 1 });
    },
    async *log() {
      yield* past;
    },
    async *watch({ signal } = {}) {
      signal?.addEventListener("abort", () => events.end());
      yield* events;
    },
    ...parts,
  });
  const done = chat(io, {
    session,
    home,
    head: ["Session s-1"],
    farewell: ["come back"],
    lost: new Promise<never>(() => undefined),
  });
  done.catch(() => undefined);
  let seq = past.length - 1;
  return {
    screen,
    keys,
    sent,
    raw,
    done,
    stop,
    stdout,
    resize: () => resize(),
    stderr: (text: string) => sink?.(text),
    diverted: () => sink !== undefined,
    tell: (...all: readonly WatchEvent[]) => events.push(...all),
    log<T extends EventType>(type: T, data: EventData[T]) {
      seq += 1;
      events.push({ type: "entry", entry: { type, data, seq, time: 0 } as LogEntry });
    },
    shows: (text: string | RegExp) =>
      vi.waitFor(() => expect(screen.text()).toMatch(text), { timeout: 10_000 }),
  };
}

const delta = (text: string): WatchEvent => ({
  type: "delta",
  turn: 1,
  step: 1,
  kind: "text",
  text,
});
const restart: WatchEvent = { type: "restart", turn: 1, step: 1 };
const said = (text: string): EventData["assistant/message"] => ({
  turn: 1,
  step: 1,
  message: {
    id: "a",
    role: "assistant",
    content: [{ type: "text", text }],
    source: { kind: "model" },
  },
});

describe("the chat window", () => {
  it("opens a turn when idle, steers one that runs, and queues what is to have its own", async () => {
    const at = onTerminal();
    at.keys.push("first\r");
    await vi.waitFor(() => expect(at.sent).toEqual([["first", "followup"]]), { timeout: 10_000 });
    at.log("turn/start", { turn: 1 });
    await at.shows("working");
    at.keys.push("second\r", "/queue third\r");
    await vi.waitFor(() =>
      expect(at.sent.slice(1)).toEqual([
        ["second", "steer"],
        ["third", "followup"],
      ]),
    );
    at.keys.push("/quit\r");
    expect(await at.done).toBe(0);
    expect(at.screen.text()).toBe("Session s-1\ncome back");
    expect(at.raw).toEqual([true, false]);
    expect(at.diverted()).toBe(false);
    expect([...at.screen.modes]).toEqual(["25"]);
  });

  it("goes on with an answer at the character where the connection or the worker was lost", async () => {
    const at = onTerminal();
    at.log("turn/start", { turn: 1 });
    at.tell(delta("Hello, wo"));
    await at.shows("Hello, wo");
    at.tell({ type: "connection", up: false, message: "no worker answered" });
    await at.shows("waiting: no worker answered");
    at.tell(
      { type: "connection", up: true, message: "back" },
      restart,
      delta("Hello"),
      delta(", world"),
    );
    await at.shows("Hello, world");
    at.log("assistant/message", said("Hello, world!"));
    at.log("turn/end", { turn: 1, reason: { kind: "completed" } });
    await at.shows(/Hello, world!\n\n[^\n]*help\n❯$/);
    at.keys.push("\u0004");
    await at.done;
    expect(at.screen.text()).toBe(
      "Session s-1\n\nHello, world!\ncome back".replace("\n\nHello", "\nHello"),
    );
  });

  it("interrupts with Ctrl-C and leaves with the second, once the session has taken the first", async () => {
    let taken = false;
    const at = onTerminal({
      interrupt: async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        taken = true;
        return { ok: true, result: "requested", removed: 0 };
      },
    });
    at.log("turn/start", { turn: 1 });
    await at.shows("working");
    at.keys.push("\u0003\u0003");
    expect(await at.done).toBe(0);
    expect(taken).toBe(true);
  });

  it("interrupts each turn with its own first Ctrl-C, however soon it comes", async () => {
    let interrupts = 0;
    const at = onTerminal({
      interrupt: () => {
        interrupts += 1;
        return Promise.resolve({ ok: true, result: "requested", removed: 0 });
      },
    });
    for (const turn of [1, 2]) {
      at.log("turn/start", { turn });
      await at.shows("working");
      at.keys.push("\u0003");
      await at.shows("interrupting");
      at.log("turn/end", { turn, reason: { kind: "aborted", reason: "user" } });
      await at.shows(new RegExp(`turn ${turn} was interrupted\\n\\n[^\\n]*help\\n`));
    }
    expect(interrupts).toBe(2);
    at.keys.push("\u0003");
    expect(await at.done).toBe(0);
  });

  it("compacts on demand, says when there was nothing to do, and interrupts it with Ctrl-C", async () => {
    const ends: (() => void)[] = [];
    let interrupts = 0;
    const at = onTerminal({
      compact: () => new Promise((resolve) => ends.push(() => resolve({ changed: false }))),
      interrupt: () => {
        interrupts += 1;
        ends.shift()?.();
        return Promise.resolve({ ok: true, result: "requested", removed: 0 });
      },
    });
    at.keys.push("/compact\r");
    await expect.poll(() => ends.length).toBe(1);
    ends.shift()?.();
    await at.shows("there is nothing to compact");
    at.keys.push("/compact\r");
    await expect.poll(() => ends.length).toBe(1);
    at.keys.push("\u0003");
    await expect.poll(() => interrupts).toBe(1);
    at.keys.push("\u0003");
    expect(await at.done).toBe(0);
  });

  it("empties the line with Ctrl-C when nothing runs, and leaves when it is empty", async () => {
    const at = onTerminal();
    at.keys.push("half a thought");
    await at.shows("❯ half a thought");
    at.keys.push("\u0003");
    await at.shows(/❯$/);
    at.keys.push("\u0003");
    expect(await at.done).toBe(0);
  });

  it("says what the session refused, and that what is on its way may not have arrived", async () => {
    const at = onTerminal({
      send: (text) =>
        Promise.reject(
          text === "large"
            ? new LonghaulError("MESSAGE_TOO_LARGE", "too large")
            : new LonghaulError("NO_WORKER", "no worker"),
        ),
    });
    at.keys.push("large\r");
    await at.shows("not sent: large (MESSAGE_TOO_LARGE: too large)");
    at.keys.push("later\r");
    await at.shows("waiting: no worker\nsending  later");
    at.keys.push("/quit\r");
    await at.done;
    expect(at.screen.text()).toMatch(/perhaps not sent: later\ncome back$/);
  });

  it("shows what else is written to stderr without breaking the prompt, and fits another size", async () => {
    const at = onTerminal();
    at.keys.push("typing");
    await at.shows("❯ typing");
    at.stderr("a line from the worker\n");
    await at.shows("a line from the worker\n\n");
    at.stdout.columns = 30;
    at.screen.columns = 30;
    at.resize();
    at.tell(delta("words that are more than thirty columns long"));
    await at.shows("words that are more than\nthirty columns long");
    at.keys.push("\u000c");
    await vi.waitFor(() => {
      expect(at.screen.visible()).toMatch(/❯ typing$/);
      expect(at.screen.visible()).not.toContain("Session");
    });
    at.keys.push("\u0015/quit\r");
    await at.done;
  });

  it("ends when the session is closed, and by a signal with its exit code", async () => {
    const closed = onTerminal();
    closed.log("session/close", {});
    expect(await closed.done).toBe(0);
    expect(closed.screen.text()).toBe("Session s-1\nsession closed");
    const stopped = onTerminal();
    await stopped.shows("❯");
    stopped.stop.abort(stops.SIGTERM);
    expect(await stopped.done).toBe(143);
    expect(stopped.raw).toEqual([true, false]);
  });

  it("gives the terminal back when the session cannot be read", async () => {
    const at = onTerminal({
      // oxlint-disable-next-line require-yield -- it fails before
      async *watch() {
        throw new LonghaulError("SESSION_NOT_FOUND", "there is no session");
      },
    });
    await expect(at.done).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(at.raw).toEqual([true, false]);
  });
});

describe("a chat in a pipe", () => {
  function piped(stdin: string, kind: Outcome["kind"], parts: Partial<Session> = {}) {
    const sent: string[] = [];
    const io = fakeIo({ stdin });
    const session = fakeSession({
      view: () => Promise.resolve({ lastSeq: 3 } as SessionView),
      send: (text, { id = "", mode } = {}) => {
        sent.push(`${mode}: ${text}`);
        return Promise.resolve({ ok: true, id, seq: 3 + sent.length });
      },
      async *watch({ after, signal } = {}) {
        expect(after).toBe(3);
        yield {
          type: "entry",
          entry: { type: "assistant/message", seq: 5, time: 0, data: said("answer") },
        };
        await new Promise((resolve) => signal?.addEventListener("abort", resolve));
      },
      waitIdle: () => Promise.resolve({ lastSeq: 5 } as SessionView),
      outcome: () => Promise.resolve({ kind, canceledUnrun: false }),
      ...parts,
    });
    const code = plainChat(io, session, new Promise<never>(() => undefined));
    return { code, io, sent };
  }

  it("sends each line and prints the answers; the exit code says how the last turn ended", async () => {
    const { code, io, sent } = piped("one\r\n\n/todo is no command here\nthree", "completed");
    expect(await code).toBe(0);
    expect(sent).toEqual([
      "followup: one",
      "followup: /todo is no command here",
      "followup: three",
    ]);
    expect(io.out.text).toBe("answer\n");
    expect(await piped("one\n", "error").code).toBe(1);
    expect(await piped("", "none").code).toBe(0);
  });

  it("says which message was refused and exits 1", async () => {
    const { code, io } = piped("one\n", "completed", {
      send: () => Promise.reject(new LonghaulError("SESSION_CLOSED", "it is closed")),
    });
    expect(await code).toBe(1);
    expect(io.err.text).toBe("error: SESSION_CLOSED: it is closed\n");
  });
});
