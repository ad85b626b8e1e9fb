import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PollSource } from "../../src/client/session-poller.js";
import type { WatchEvent, WatchOptions } from "../../src/client/types.js";
import { Watchers } from "../../src/client/watch.js";
import type { AssistantBlock } from "../../src/contracts/content.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { JobsFrame, PublicJob } from "../../src/contracts/jobs.js";
import type { EventData, EventType, LogEntry } from "../../src/contracts/log.js";
import type { SessionStateName } from "../../src/contracts/names.js";
import type { LogPage, Projections } from "../../src/contracts/session.js";
import type { Store } from "../../src/contracts/store.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { encodeStreamedPart } from "../../src/store/model-stream.js";

/** A session whose log, state and reachability the test decides. */
class FakeSession implements PollSource {
  readonly session = "s";
  readonly entries: LogEntry[] = [];
  jobs: readonly PublicJob[] | undefined;
  /** How often the set of jobs was asked for. */
  asked = 0;
  state: SessionStateName = "running";
  open = true;
  away: Error | undefined;
  pages = 0;
  inFlight = 0;
  mostInFlight = 0;

  async page(after: number, limit: number): Promise<LogPage> {
    this.pages++;
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    await Promise.resolve();
    this.inFlight--;
    if (this.away !== undefined) throw this.away;
    return {
      entries: this.entries.filter((entry) => entry.seq > after).slice(0, limit),
      lastSeq: this.entries.length - 1,
      state: this.state,
    };
  }

  projections(): Promise<Projections> {
    this.asked++;
    if (this.away !== undefined) return Promise.reject(this.away);
    const { jobs } = this;
    return Promise.resolve({
      asOfSeq: this.entries.length - 1,
      values: jobs === undefined ? {} : { jobs },
    });
  }

  isOpen(): Promise<boolean> {
    return Promise.resolve(this.open);
  }

  add<T extends EventType>(type: T, data: EventData[T]): void {
    this.entries.push({ type, data, seq: this.entries.length, time: 0 } as LogEntry);
  }

  says(turn: number, step: number, content: readonly AssistantBlock[], stream?: string): void {
    this.add("assistant/message", {
      turn,
      step,
      message: { id: `${turn}.${step}`, role: "assistant", content, source: { kind: "model" } },
      ...(stream === undefined ? {} : { stream: { stream, bytes: 0 } }),
    });
  }

  finish(): void {
    this.add("session/close", {});
    this.state = "closed";
    this.open = false;
  }
}

/** Takes events until the watch ends, so that a test can look at what has come so far. */
function collect(watch: AsyncIterable<WatchEvent>): { events: WatchEvent[]; done: Promise<void> } {
  const events: WatchEvent[] = [];
  const done = (async () => {
    for await (const event of watch) events.push(event);
  })();
  done.catch(() => undefined);
  return { events, done };
}

const seqs = (events: readonly WatchEvent[]) =>
  events.flatMap((event) => (event.type === "entry" ? [event.entry.seq] : []));

/** Short names in order: entries by type, deltas by text. */
const brief = (events: readonly WatchEvent[]) =>
  events.flatMap((event) => {
    if (event.type === "entry") return [event.entry.type];
    if (event.type === "delta") return [`${event.kind === "text" ? "" : "~"}${event.text}`];
    return event.type === "restart" ? ["RESTART"] : [];
  });

/** Joins deltas that follow each other: how streamed text is cut is a matter of timing. */
function joined(names: readonly string[]): string[] {
  const out: string[] = [];
  let text = "";
  for (const name of names) {
    if (name === "RESTART" || name.includes("/") || name.startsWith("~")) {
      if (text !== "") out.push(text);
      text = "";
      out.push(name);
    } else text += name;
  }
  return text === "" ? out : [...out, text];
}

let session: FakeSession;
let watchers: Watchers;
const fast: WatchOptions = { intervalMs: 1 };

beforeEach(() => {
  session = new FakeSession();
  watchers = new Watchers(() => session);
});

afterEach(() => {
  watchers.close();
  expect(watchers.polled).toBe(0);
});

describe("a watch", () => {
  test("gives every entry once and in order, however many there are, and ends after the last of a closed session", async () => {
    for (let turn = 0; turn < 1300; turn++) session.add("turn/start", { turn });
    session.finish();
    const { events, done } = collect(watchers.watch("s", fast));
    await done;
    expect(seqs(events)).toEqual(session.entries.map((entry) => entry.seq));
    expect(events.filter((event) => event.type === "state")).toEqual([
      { type: "state", state: "closed" },
    ]);
  });

  test("starts after the position asked for", async () => {
    for (let turn = 0; turn < 10; turn++) session.add("turn/start", { turn });
    session.finish();
    const { events, done } = collect(watchers.watch("s", { ...fast, after: 6 }));
    await done;
    expect(seqs(events)).toEqual([7, 8, 9, 10]);
  });

  test("gives the state when it is known and when it changes, not when it stays", async () => {
    const { events } = collect(watchers.watch("s", fast));
    const states = () => events.flatMap((event) => (event.type === "state" ? [event.state] : []));
    await expect.poll(states).toEqual(["running"]);
    session.state = "idle";
    await expect.poll(states).toEqual(["running", "idle"]);
    const before = session.pages;
    await expect.poll(() => session.pages).toBeGreaterThan(before + 2);
    expect(states()).toEqual(["running", "idle"]);
  });

  test("shares one poller with all watchers of its session, each from its own position", async () => {
    for (let turn = 0; turn < 700; turn++) session.add("turn/start", { turn });
    const first = collect(watchers.watch("s", fast));
    const second = collect(watchers.watch("s", { ...fast, after: 650 }));
    await expect.poll(() => seqs(second.events).length).toBe(49);
    const third = collect(watchers.watch("s", fast));
    session.add("turn/start", { turn: 700 });
    session.finish();
    await Promise.all([first.done, second.done, third.done]);
    const all = session.entries.map((entry) => entry.seq);
    expect(seqs(first.events)).toEqual(all);
    expect(seqs(second.events)).toEqual(all.slice(651));
    expect(seqs(third.events)).toEqual(all);
    expect(session.mostInFlight).toBe(1);
  });

  test("that is not read does not hold up the others, and is given all of it later", async () => {
    for (let turn = 0; turn < 2500; turn++) session.add("turn/start", { turn });
    session.finish();
    const slow = watchers.watch("s", fast);
    const begun = await slow.next();
    const quick = collect(watchers.watch("s", fast));
    await quick.done;
    expect(seqs(quick.events)).toHaveLength(2501);
    const rest = collect(slow);
    await rest.done;
    expect(begun.done).toBe(false);
    expect(seqs([begun.value as WatchEvent, ...rest.events])).toEqual(
      session.entries.map((entry) => entry.seq),
    );
  });

  test("says once that the session is away and once that it is back, and goes on without a gap or a repeat", async () => {
    session.add("turn/start", { turn: 1 });
    const { events, done } = collect(watchers.watch("s", fast));
    await expect.poll(() => seqs(events)).toEqual([0]);
    session.away = new LonghaulError("NO_WORKER", "no worker");
    const ups = () => events.flatMap((event) => (event.type === "connection" ? [event.up] : []));
    await expect.poll(ups).toEqual([false]);
    const before = session.pages;
    await expect.poll(() => session.pages, { timeout: 5000 }).toBeGreaterThan(before);
    session.add("turn/end", { turn: 1, reason: { kind: "completed" } });
    session.away = undefined;
    session.finish();
    await done;
    expect(ups()).toEqual([false, true]);
    expect(seqs(events)).toEqual([0, 1, 2]);
    const back = events.findIndex((event) => event.type === "connection" && event.up);
    expect(seqs(events.slice(back))).toEqual([1, 2]);
  });

  test("rejects when the session does not exist, and never again", async () => {
    session.away = new LonghaulError("SESSION_NOT_FOUND", "no such session");
    const watch = watchers.watch("s", fast);
    await expect(watch.next()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(watch.next()).resolves.toEqual({ done: true, value: undefined });
  });

  test("ends when the session was terminated, which its log does not say", async () => {
    session.add("turn/start", { turn: 1 });
    session.open = false;
    const { events, done } = collect(watchers.watch("s", fast));
    await done;
    expect(seqs(events)).toEqual([0]);
  });

  test("ends cleanly by its signal, before and while it waits", async () => {
    const stop = new AbortController();
    const { events, done } = collect(watchers.watch("s", { ...fast, signal: stop.signal }));
    await expect.poll(() => events).toEqual([{ type: "state", state: "running" }]);
    stop.abort();
    await done;
    expect(watchers.polled).toBe(0);
    await expect(watchers.watch("s", { signal: stop.signal }).next()).resolves.toEqual({
      done: true,
      value: undefined,
    });
  });

  test("releases the poller when its loop is left early", async () => {
    session.add("turn/start", { turn: 1 });
    for await (const event of watchers.watch("s", fast)) {
      expect(event.type).toBe("entry");
      expect(watchers.polled).toBe(1);
      break;
    }
    expect(watchers.polled).toBe(0);
  });

  test("reads nothing before it is iterated", async () => {
    watchers.watch("s", fast);
    await Promise.resolve();
    expect(session.pages).toBe(0);
    expect(watchers.polled).toBe(0);
  });

  test("refuses options that mean nothing", () => {
    expect(() => watchers.watch("s", { after: -2 })).toThrow("expected `after`");
    expect(() => watchers.watch("s", { intervalMs: 0 })).toThrow("expected `intervalMs`");
  });

  test("looks at once when it is told of a write", async () => {
    session.state = "idle";
    const { events } = collect(watchers.watch("s", { intervalMs: 60_000 }));
    await expect.poll(() => events).toHaveLength(1);
    session.add("turn/start", { turn: 1 });
    watchers.nudge("s");
    await expect.poll(() => seqs(events)).toEqual([0]);
  });
});

describe("streamed text", () => {
  let root: string;
  let store: Store;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "longhaul-watch-"));
    store = await openDirectoryStore(root);
    watchers = new Watchers(() => session, store);
  });

  afterEach(async () => {
    watchers.close();
    await rm(root, { recursive: true });
  });

  async function stream(
    name: string,
    ...parts: readonly (readonly ["text" | "reasoning", string])[]
  ): Promise<void> {
    for (const [type, text] of parts) {
      await store.append(
        "s",
        name,
        (await store.size("s", name)) ?? 0,
        encodeStreamedPart({ type, text }),
      );
    }
  }

  test("comes as it is written, and is complete before the message", async () => {
    session.add("step/start", { turn: 1, step: 1 });
    const { events, done } = collect(watchers.watch("s", fast));
    await stream("model/1.1.a", ["reasoning", "hm"], ["text", "Hel"]);
    await expect.poll(() => joined(brief(events))).toEqual(["step/start", "~hm", "Hel"]);
    await stream("model/1.1.a", ["text", "lo"]);
    await expect.poll(() => joined(brief(events))).toEqual(["step/start", "~hm", "Hello"]);
    session.says(
      1,
      1,
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "Hello, world" },
      ],
      "model/1.1.a",
    );
    session.finish();
    await done;
    expect(joined(brief(events))).toEqual([
      "step/start",
      "~hm",
      "Hello, world",
      "assistant/message",
      "session/close",
    ]);
    expect(events).toContainEqual({
      type: "delta",
      turn: 1,
      step: 1,
      kind: "reasoning",
      text: "hm",
    });
  });

  test("of a call that was run again begins anew after a restart", async () => {
    session.add("step/start", { turn: 1, step: 1 });
    const { events, done } = collect(watchers.watch("s", fast));
    await stream("model/1.1.a", ["text", "lost"]);
    await expect.poll(() => brief(events)).toContain("lost");
    await stream("model/1.1.b", ["text", "found"]);
    await expect
      .poll(() => joined(brief(events)))
      .toEqual(["step/start", "lost", "RESTART", "found"]);
    session.says(1, 1, [{ type: "text", text: "found it" }], "model/1.1.b");
    session.finish();
    await done;
    expect(joined(brief(events))).toEqual([
      "step/start",
      "lost",
      "RESTART",
      "found it",
      "assistant/message",
      "session/close",
    ]);
  });

  const retry = {
    retryId: "r",
    turn: 1,
    step: 1,
    provider: "p",
    mode: "auto",
    policy: "default",
    retry: 1,
    max: 5,
    delayMs: 500,
    failure: { code: "SERVER", message: "no" },
  } as const;

  test("of a failed attempt comes before the entry that says it is tried again, all of it", async () => {
    session.add("step/start", { turn: 1, step: 1 });
    const { events, done } = collect(watchers.watch("s", { intervalMs: 60_000 }));
    await expect.poll(() => brief(events)).toEqual(["step/start"]);
    await stream("model/1.1.a", ["text", "half an "], ["text", "answer"]);
    session.add("llm/retry", retry);
    watchers.nudge("s");
    await expect.poll(() => brief(events)).toContain("llm/retry");
    session.add("llm/retry-started", { retryId: "r", turn: 1, step: 1 });
    await stream("model/1.1.b", ["text", "whole"]);
    session.says(1, 1, [{ type: "text", text: "whole" }], "model/1.1.b");
    session.finish();
    watchers.nudge("s");
    await done;
    expect(joined(brief(events))).toEqual([
      "step/start",
      "half an answer",
      "llm/retry",
      "llm/retry-started",
      "RESTART",
      "whole",
      "assistant/message",
      "session/close",
    ]);
  });

  test("of the next attempt never comes before that entry", async () => {
    session.add("step/start", { turn: 1, step: 1 });
    session.add("llm/retry", retry);
    await stream("model/1.1.a", ["text", "lost"]);
    // Between the page with the retry and the look at its text the next attempt begins.
    let begun = false;
    const { list, read } = { list: store.list.bind(store), read: store.read.bind(store) };
    watchers = new Watchers(() => session, {
      read,
      async list(name, prefix) {
        if (!begun) {
          begun = true;
          session.add("llm/retry-started", { retryId: "r", turn: 1, step: 1 });
          await stream("model/1.1.b", ["text", "whole"]);
        }
        return list(name, prefix);
      },
    });
    const { events, done } = collect(watchers.watch("s", fast));
    await expect.poll(() => brief(events)).toContain("whole");
    expect(begun).toBe(true);
    session.says(1, 1, [{ type: "text", text: "whole" }], "model/1.1.b");
    session.finish();
    await done;
    expect(brief(events)).toEqual([
      "step/start",
      "llm/retry",
      "whole",
      "llm/retry-started",
      "assistant/message",
      "session/close",
    ]);
  });

  test("of another execution than the one the log names is dropped by a restart", async () => {
    session.add("step/start", { turn: 1, step: 1 });
    const { events, done } = collect(watchers.watch("s", fast));
    await stream("model/1.1.b", ["text", "same"]);
    await expect.poll(() => brief(events)).toContain("same");
    session.says(1, 1, [{ type: "text", text: "same, but other" }], "model/1.1.a");
    session.finish();
    await done;
    expect(joined(brief(events))).toEqual([
      "step/start",
      "same",
      "RESTART",
      "same, but other",
      "assistant/message",
      "session/close",
    ]);
  });

  test("comes with the log where there is no store, or none can be read", async () => {
    const broken = {
      list: () => Promise.reject(new LonghaulError("STORE_UNAVAILABLE", "gone")),
      read: store.read.bind(store),
    };
    session.add("step/start", { turn: 1, step: 1 });
    session.says(
      1,
      1,
      [
        { type: "text", text: "Hi" },
        { type: "tool-call", callId: "c", name: "bash", arguments: "{}" },
      ],
      "model/1.1.a",
    );
    session.add("step/end", { turn: 1, step: 1 });
    session.add("step/start", { turn: 1, step: 2 });
    session.finish();
    for (const some of [new Watchers(() => session), new Watchers(() => session, broken)]) {
      const { events, done } = collect(some.watch("s", fast));
      await done;
      expect(brief(events)).toEqual([
        "step/start",
        "Hi",
        "assistant/message",
        "step/end",
        "step/start",
        "session/close",
      ]);
    }
  });

  test("of the step under way is given whole to a watcher that comes later, also one that starts inside the step", async () => {
    session.add("turn/start", { turn: 1 });
    session.add("step/start", { turn: 1, step: 1 });
    session.add("request/context", { provider: "p", model: "m" });
    const first = collect(watchers.watch("s", fast));
    await stream("model/1.1.a", ["text", "one "], ["text", "two "]);
    await expect.poll(() => joined(brief(first.events)).at(-1)).toBe("one two ");
    const later = collect(watchers.watch("s", fast));
    const inside = collect(watchers.watch("s", { ...fast, after: 2 }));
    await expect.poll(() => joined(brief(later.events)).at(-1)).toBe("one two ");
    await expect.poll(() => joined(brief(inside.events))).toEqual(["one two "]);
    session.says(1, 1, [{ type: "text", text: "one two three" }], "model/1.1.a");
    session.finish();
    await Promise.all([first.done, later.done, inside.done]);
    expect(joined(brief(inside.events))).toEqual([
      "one two three",
      "assistant/message",
      "session/close",
    ]);
    expect(joined(brief(later.events))).toEqual(joined(brief(first.events)));
  });

  test("of a step that ended without a message is not mixed with the next one's", async () => {
    session.add("step/start", { turn: 1, step: 1 });
    const { events, done } = collect(watchers.watch("s", fast));
    await stream("model/1.1.a", ["text", "cut"]);
    await expect.poll(() => brief(events)).toContain("cut");
    session.add("step/end", { turn: 1, step: 1 });
    session.add("step/start", { turn: 2, step: 1 });
    await stream("model/2.1.a", ["text", "new"]);
    await expect.poll(() => brief(events)).toContain("new");
    session.says(2, 1, [{ type: "text", text: "new" }], "model/2.1.a");
    session.finish();
    await done;
    expect(joined(brief(events))).toEqual([
      "step/start",
      "cut",
      "step/end",
      "step/start",
      "new",
      "assistant/message",
      "session/close",
    ]);
  });
});

describe("the jobs of a watched session", () => {
  const started = 1_000;
  const running: PublicJob = {
    id: "bash-1",
    kind: "bash",
    label: "sleep 60",
    status: "running",
    startedAt: started,
  };
  const frames = (events: readonly WatchEvent[]) =>
    events.filter((event): event is JobsFrame => event.type === "session/jobs");

  function begin(job: PublicJob): void {
    session.jobs = [...(session.jobs ?? []), job];
    const { id, kind, label, startedAt } = job;
    session.add("job/start", { id, kind, label, startedAt, output: "stream", nonce: "n" });
  }

  function stop(id: string): void {
    session.jobs = session.jobs?.map((job) =>
      job.id === id ? { ...job, status: "stopping" } : job,
    );
    session.add("job/stopping", { id });
  }

  function settle(id: string): void {
    const end = { status: "killed", detail: "signal: SIGTERM", finishedAt: started + 9 } as const;
    session.jobs = session.jobs?.map((job) => (job.id === id ? { ...job, ...end } : job));
    session.add("job/settled", { id, ...end });
  }

  test("[jobs/91] come whole at each change of a whole life, without reading output, and empty when they are gone", async () => {
    const reads: string[] = [];
    watchers = new Watchers(() => session, {
      list: (_session, prefix) => {
        reads.push(prefix);
        return Promise.resolve([]);
      },
      read: () => Promise.reject(new Error("nothing is to be read")),
    });
    const { events, done } = collect(watchers.watch("s", fast));
    begin(running);
    await expect.poll(() => frames(events)).toHaveLength(1);
    expect(Object.keys(frames(events)[0]?.jobs[0] ?? {}).toSorted()).toEqual([
      "id",
      "kind",
      "label",
      "startedAt",
      "status",
    ]);
    stop("bash-1");
    await expect.poll(() => frames(events)).toHaveLength(2);
    settle("bash-1");
    await expect.poll(() => frames(events)).toHaveLength(3);
    session.jobs = [];
    session.add("job/removed", { ids: ["bash-1"] });
    session.finish();
    await done;
    const killed = { status: "killed", detail: "signal: SIGTERM", finishedAt: started + 9 };
    expect(frames(events)).toEqual(
      [[running], [{ ...running, status: "stopping" }], [{ ...running, ...killed }], []].map(
        (jobs) => ({ type: "session/jobs", sessionId: "s", jobs }),
      ),
    );
    expect(reads).toEqual([]);
  });

  test("[jobs/92] come first only when there are some, to each watcher for itself, and never where no job ever was", async () => {
    session.add("turn/start", { turn: 1 });
    const quiet = collect(watchers.watch("s", fast));
    await expect.poll(() => seqs(quiet.events)).toEqual([0]);
    session.add("turn/end", { turn: 1, reason: { kind: "completed" } });
    await expect.poll(() => seqs(quiet.events)).toEqual([0, 1]);
    expect({ asked: session.asked, frames: frames(quiet.events) }).toEqual({
      asked: 0,
      frames: [],
    });

    begin(running);
    await expect.poll(() => frames(quiet.events)).toHaveLength(1);
    const newcomer = collect(watchers.watch("s", { ...fast, after: 2 }));
    await expect.poll(() => frames(newcomer.events)).toHaveLength(1);
    expect(frames(newcomer.events)).toEqual(frames(quiet.events));
    expect(session.asked).toBe(1);

    const other = new FakeSession();
    other.add("turn/start", { turn: 1 });
    const elsewhere = new Watchers(() => other);
    const without = collect(elsewhere.watch("other", { ...fast, after: 0 }));
    await expect.poll(() => other.asked).toBe(1);
    other.finish();
    await without.done;
    elsewhere.close();
    expect(frames(without.events)).toEqual([]);
  });

  test("are the baseline of a watcher that starts behind their entries, given once", async () => {
    begin(running);
    const { events } = collect(watchers.watch("s", { ...fast, after: 0 }));
    await expect.poll(() => frames(events)).toHaveLength(1);
    const { pages } = session;
    await expect.poll(() => session.pages).toBeGreaterThan(pages + 3);
    expect(frames(events)).toEqual([{ type: "session/jobs", sessionId: "s", jobs: [running] }]);
    expect(session.asked).toBe(1);
  });

  test("are asked for again when the session did not answer", async () => {
    const { events } = collect(watchers.watch("s", fast));
    await expect.poll(() => session.pages).toBeGreaterThan(1);
    session.away = new LonghaulError("NO_WORKER", "nobody");
    begin(running);
    await expect.poll(() => events.some((event) => event.type === "connection")).toBe(true);
    session.away = undefined;
    await expect.poll(() => frames(events), { timeout: 5_000 }).toHaveLength(1);
  });
});
