import { describe, expect, test } from "vitest";
import type { LogEntry, NewEntry, SessionHeader } from "../../src/contracts/log.js";
import { changeSchedule, writeTodos } from "../../src/domain/commands.js";
import { SessionLog } from "../../src/domain/log.js";
import { closersOf } from "../../src/domain/log-repair.js";
import { exportLog, importLog } from "../../src/domain/log-text.js";
import { endSeed, forkHeader, importHeader, planFork, seedFolds } from "../../src/domain/seed.js";
import { Session } from "../../src/domain/session.js";
import { deriveMessages } from "../../src/domain/surface.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import {
  config,
  openSession,
  run,
  saying,
  send,
  text,
  typesOf,
} from "../support/session-script.js";

const child = { id: "c1", createdAt: 99 };

/** Turn 1 ended; jobs, reminders, a todo list and a waiting message are there; turn 2 is open when `open`. */
function source(open = false): Session {
  const session = openJobSession([], {});
  session.record({
    type: "session/config",
    data: { config: { ...session.config, schedule: true } },
  });
  send(session, "followup", "m1");
  run(session, {
    model: saying(text("hello")),
    at: (effect) => {
      if (effect.kind !== "start" || effect.op.kind !== "model") return;
      writeTodos(session, { opId: "o1", turn: 1, todos: [{ content: "a", status: "pending" }] });
    },
  });
  const jobs = new JobsInSession(session);
  jobs.start();
  changeSchedule(session, { requestId: "r1", operation: "create", prompt: "p", afterSeconds: 60 });
  send(session, "inject", "waiting");
  if (open) session.record({ type: "turn/start", data: { turn: 2 } });
  return session;
}

/** A session on a seed, as it would be opened. */
function openOn(
  kind: "fork" | "import",
  seed: readonly LogEntry[],
  header: SessionHeader,
): Session {
  const log = new SessionLog();
  for (const entry of seed) expect(log.append(entry as NewEntry, entry.time).ok).toBe(true);
  let now = 1_000;
  const full = { ...config, schedule: true };
  const past = { log, folds: seedFolds(kind, log.entries, header, full) };
  const session = new Session(header.id, () => (now += 1), undefined, past);
  session.record(
    ...endSeed(log.entries),
    { type: "session/open", data: { header, config: full } },
    { type: "session/tools", data: { epoch: 0, tools: [], jobKinds: [] } },
  );
  return session;
}

const headerOf = (session: Session): SessionHeader =>
  session.folds.sessionHeader ?? { version: 0, id: "none", createdAt: 0 };

describe("a fork", () => {
  test("[harness/S8] at an earlier turn/end, while its source has an open turn, is that prefix, with its length", () => {
    const parent = source(true);
    const edge = parent.log.entries.findLast(({ type }) => type === "turn/end")?.seq ?? -1;
    const plan = planFork(parent.log.entries, edge);
    if (!plan.ok) throw new Error(plan.message);
    expect(plan.seed).toEqual(parent.log.entries.slice(0, edge + 1));
    const header = forkHeader(
      { ...headerOf(parent), cwd: "/w" },
      { ...child, seedLength: plan.seed.length },
    );
    expect(header).toEqual({
      version: 0,
      ...child,
      cwd: "/w",
      parentSession: "s1",
      seedLength: edge + 1,
    });
    const forked = openOn("fork", plan.seed, header);
    expect(forked.log.entries.slice(0, edge + 1)).toEqual(plan.seed);
    expect(typesOf(forked, edge)).toEqual(["session/end-seed", "session/open", "session/tools"]);
    expect(forked.folds.sessionHeader).toEqual(header);
  });

  test("[harness/S9] with its boundary inside a turn is refused, also when that turn has ended since", () => {
    const parent = source(true);
    expect(planFork(parent.log.entries)).toMatchObject({ ok: false, code: "OPEN_TURN" });
    const inside = parent.log.entries.find(({ type }) => type === "step/start")?.seq;
    expect(planFork(parent.log.entries, inside)).toMatchObject({ ok: false, code: "OPEN_TURN" });
    for (const boundary of [-1, 0.5, Number.NaN, parent.log.entries.length])
      expect(planFork(parent.log.entries, boundary)).toMatchObject({ code: "INVALID_BOUNDARY" });
    expect(planFork([])).toMatchObject({ code: "INVALID_BOUNDARY" });
  });

  test("has the transcript, the list and the header in force, and an inbox, jobs and reminders of its own, empty", () => {
    const parent = source();
    const header = forkHeader(headerOf(parent), {
      ...child,
      seedLength: parent.log.entries.length,
    });
    const forked = openOn("fork", parent.log.entries, header);
    const { inbox, jobs, schedule, todo, turn, place } = forked.folds;
    expect(inbox).toEqual({ nextTurn: [], nextStep: [], wake: false, seen: [] });
    expect(jobs).toEqual({ counters: {}, jobs: [] });
    expect(schedule).toEqual({ records: [], seen: { ranges: [], others: [] }, outcomes: [] });
    expect(todo).toEqual({ todos: [{ content: "a", status: "pending" }], recentOps: [] });
    expect([turn.number, turn.open, place.host]).toEqual([1, false, undefined]);
    expect(forked.folds.header).toEqual(parent.folds.header);
    expect(forked.log.surface.digest()).toBe(parent.log.surface.digest());
    send(forked, "followup", "m1");
    run(forked);
    expect(forked.folds.turn.number).toBe(2);
    const reminder = { requestId: "r1", operation: "create", prompt: "q", afterSeconds: 60 };
    expect(changeSchedule(forked, reminder)).toMatchObject({ answer: { id: "schedule-1" } });
    expect(parent.folds.schedule.records).toHaveLength(1);
    expect(forked.fault).toBeUndefined();
  });

  test("of a fork keeps to its own length", () => {
    const parent = source();
    const first = openOn(
      "fork",
      parent.log.entries,
      forkHeader(headerOf(parent), { ...child, seedLength: parent.log.entries.length }),
    );
    changeSchedule(first, { requestId: "r2", operation: "create", prompt: "q", afterSeconds: 60 });
    const header = forkHeader(headerOf(first), {
      id: "c2",
      createdAt: 100,
      seedLength: first.log.entries.length,
    });
    const second = openOn("fork", first.log.entries, header);
    expect(second.folds.schedule.records).toEqual([]);
    expect(header.parentSession).toBe("c1");
  });
});

describe("the end of a seed", () => {
  test("[harness/S5] a session that is reopened twice without doing anything has one mark", () => {
    const parent = source();
    const once = openOn("import", parent.log.entries, importHeader(headerOf(parent), child));
    const twice = openOn("import", once.log.entries, importHeader(headerOf(parent), child));
    const marks = twice.log.entries.filter(({ type }) => type === "session/end-seed");
    expect(marks.map(({ seq }) => seq)).toEqual([parent.log.entries.length]);
    send(twice, "inject", "something");
    expect(endSeed(twice.log.entries)).toHaveLength(1);
  });

  test("[harness/S6] an empty seed has its mark at 0, a fresh session has none", () => {
    const empty = openOn("fork", [], forkHeader(headerOf(source()), { ...child, seedLength: 0 }));
    expect(empty.log.entries[0]).toMatchObject({ type: "session/end-seed", seq: 0 });
    expect(openSession().log.entries.map(({ type }) => type)).not.toContain("session/end-seed");
  });
});

describe("an imported log", () => {
  test("[harness/R7] [harness/R8] goes on: history equal, numbers continue, what waited is delivered with the next turn", () => {
    const parent = source(true);
    const read = importLog(exportLog(headerOf(parent), parent.log.entries));
    if (!read.ok) throw new Error(read.message);
    const closed = closersOf(read.log.entries);
    if (!closed.ok) throw new Error(closed.message);
    const seed = [...read.log.entries, ...closed.closers];
    const session = openOn("import", seed, importHeader(read.header, child));
    expect(deriveMessages(session.log.surface.nodes)).toEqual(
      deriveMessages(parent.log.surface.nodes),
    );
    expect(session.folds.inbox.nextStep.map(({ id }) => id)).toEqual(["waiting"]);
    expect(session.folds.schedule.records.map(({ id }) => id)).toEqual(["schedule-1"]);
    expect(session.folds.jobs).toEqual({ counters: { bash: 1 }, jobs: [] });
    // Nothing runs by itself.
    expect(session.shouldRun()).toBe(false);
    const before = session.log.lastSeq;
    send(session, "followup", "m2");
    const { requests } = run(session);
    expect(session.folds.turn).toMatchObject({ number: 3, open: false });
    expect(session.log.entries.map(({ seq }) => seq)).toEqual(
      session.log.entries.map((_, index) => index),
    );
    expect(typesOf(session, before)).not.toContain("tool/result");
    expect(requests[0]?.messages).toMatchObject(
      ["m1", "m/1.1", "waiting", "m2"].map((id) => ({ id })),
    );
  });

  test("of a fork keeps what it had inherited apart", () => {
    const parent = source();
    const fork = openOn(
      "fork",
      parent.log.entries,
      forkHeader(headerOf(parent), { ...child, seedLength: parent.log.entries.length }),
    );
    send(fork, "inject", "own");
    const read = importLog(exportLog(headerOf(fork), fork.log.entries));
    if (!read.ok) throw new Error(read.message);
    const header = importHeader(read.header, { id: "i1", createdAt: 5 });
    expect(header.seedLength).toBe(parent.log.entries.length);
    const session = openOn("import", read.log.entries, header);
    expect(session.folds.inbox.nextStep.map(({ id }) => id)).toEqual(["own"]);
    expect(session.folds.schedule.records).toEqual([]);
  });

  test("with reminders that cannot be read has no reminders, and talks", () => {
    const parent = source();
    parent.log.append({ type: "schedule/change", data: { version: 9 } } as never, 1);
    const session = openOn("import", parent.log.entries, importHeader(headerOf(parent), child));
    expect(session.folds.schedule.fault).toBeDefined();
    send(session, "followup", "m2");
    run(session);
    expect(session.folds.turn.lastEnd?.reason.kind).toBe("completed");
  });
});
