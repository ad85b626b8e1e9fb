import { describe, expect, test } from "vitest";
import type { TodoItem } from "../../src/contracts/todo.js";
import { configure, interrupt, writeTodos } from "../../src/domain/commands.js";
import { loadLog } from "../../src/domain/log.js";
import type { Session } from "../../src/domain/session.js";
import { deriveMessages } from "../../src/domain/surface.js";
import { projectionsOf } from "../../src/domain/views.js";
import {
  calls,
  entriesOf,
  once,
  openSession,
  resultTexts,
  row,
  run,
  saying,
  send,
  starting,
  typesOf,
  waitingFor,
} from "../support/session-script.js";
import { item } from "../support/todo-lists.js";

const write = (...todos: readonly TodoItem[]) => ({
  name: "todo_write",
  arguments: JSON.stringify({ todos }),
});

function turnWith(session: Session, ...replies: Parameters<typeof calls>[]): void {
  send(session, "followup", `m${session.log.lastSeq}`);
  run(session, { model: saying(...replies.map((made) => calls(...made))) });
}

function lists(session: Session) {
  return entriesOf(session, "todo/write").map(({ data }) => data.todos);
}

/** The table as it is without `todo_write`. */
function unload(session: Session): void {
  const tools = session.folds.place.tools.filter(({ name }) => name !== "todo_write");
  session.record({ type: "session/tools", data: { epoch: 0, tools, jobKinds: [] } });
}

describe("todo_write in the agent loop", () => {
  test("[todo/24] a call is logged, its list right before its non-error result, and a second call replaces the first", () => {
    const session = openSession();
    turnWith(
      session,
      [write(item("plan", "in_progress"))],
      [write(item("plan", "completed"), item("build"))],
    );
    expect(typesOf(session).filter((type) => /^(tool|todo)\//u.test(type))).toEqual([
      "tool/call",
      "todo/write",
      "tool/result",
      "tool/call",
      "todo/write",
      "tool/result",
    ]);
    expect(resultTexts(session)).toEqual([
      "Updated todo list: 0 pending, 1 in progress, 0 completed.",
      "Updated todo list: 1 pending, 0 in progress, 1 completed.",
    ]);
    expect(entriesOf(session, "tool/result")[0]?.data.meta).toEqual({
      pending: 0,
      inProgress: 1,
      completed: 0,
    });
    expect(session.folds.todo.todos).toEqual([item("plan", "completed"), item("build")]);
  });

  test("[harness/S10] of two writes the last is current, and derived messages are those of a session without them", () => {
    const session = openSession();
    turnWith(session, [write(item("a")), write(item("b"))]);
    expect(lists(session)).toHaveLength(2);
    expect(session.folds.todo.todos).toEqual([item("b")]);
    const without = loadLog(
      session.log.entries
        .filter(({ type }) => type !== "todo/write")
        .map((entry, seq) => ({ ...entry, seq, sourceEventSeqs: [] })),
    );
    if (!without.ok) throw new Error(without.message);
    expect(deriveMessages(without.log.surface.nodes)).toEqual(
      deriveMessages(session.log.surface.nodes),
    );
  });

  test("[todo/25] with parallel off the model reads the single rule, and two active items are refused without an event", () => {
    const session = openSession({ allowParallelInProgress: false });
    turnWith(session, [write(item("a", "in_progress"), item("b", "in_progress"))]);
    const header = entriesOf(session, "request/header")[0]?.data.header;
    expect(header?.tools?.[0]?.description).toContain("At most one todo may be `in_progress`");
    expect(resultTexts(session)).toEqual([
      "Error: invalid todos: at most one task may be in_progress (got 2)",
    ]);
    expect(entriesOf(session, "tool/result")[0]?.data.error?.code).toBe("INVALID_TODOS");
    expect(lists(session)).toEqual([]);
  });

  test("[todo/25] with parallel on several active items are accepted", () => {
    const session = openSession({ allowParallelInProgress: true });
    turnWith(session, [write(item("a", "in_progress"), item("b", "in_progress"))]);
    expect(lists(session)).toHaveLength(1);
  });

  test("a policy changed during a step moves description and accepted input together, at the next step", () => {
    const session = openSession({}, [row("t")]);
    const active = [item("a", "in_progress"), item("b", "in_progress")] as const;
    send(session, "followup", "m1");
    const { requests } = run(session, {
      model: saying(calls("t", write(...active)), calls(write(...active))),
      at: once(waitingFor("tool"), () =>
        configure(session, { config: { allowParallelInProgress: false } }),
      ),
      table: () => openSession(session.config).folds.place.tools,
    });
    const texts = requests.map(({ tools }) => JSON.stringify(tools?.[0]));
    expect(texts.map((text) => text.includes("At most one todo"))).toEqual([false, true, true]);
    expect(entriesOf(session, "tool/result").map(({ data }) => data.error?.code)).toEqual([
      undefined,
      undefined,
      "INVALID_TODOS",
    ]);
  });

  test("a list whose result is blocked or aborted is not written", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session, {
      model: saying(calls(write(item("a")))),
      policy: { postExecute: () => ({ kind: "block", feedback: "no lists" }) },
    });
    send(session, "followup", "m2");
    run(session, {
      model: saying(calls(write(item("a")))),
      at: once(starting("model"), () => interrupt(session, {})),
    });
    expect(lists(session)).toEqual([]);
    expect(entriesOf(session, "tool/result")).toHaveLength(2);
  });

  test("[todo/16] in place of unloading: a tool that is no longer in the table is gone from the schemas, and a call is unknown", () => {
    const session = openSession();
    turnWith(session, [write(item("a"))]);
    unload(session);
    turnWith(session, [write(item("b"))]);
    const header = entriesOf(session, "request/header").at(-1)?.data;
    expect(header).toMatchObject({ reason: "change" });
    expect(header?.header.tools).toBeUndefined();
    expect(entriesOf(session, "tool/result").at(-1)?.data.error?.code).toBe("UNKNOWN_TOOL");
    expect(lists(session)).toEqual([[item("a")]]);
  });
});

describe("the todos projection of a session", () => {
  test("[todo/17] is null when nothing was written, as of the last entry", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session);
    expect(projectionsOf(session)).toEqual({
      asOfSeq: session.log.lastSeq,
      values: { todos: null },
    });
  });

  test("[todo/18] is the second of two lists, whole, as of the last entry", () => {
    const session = openSession();
    turnWith(session, [write(item("a"), item("b"))], [write(item("b", "completed"))]);
    expect(projectionsOf(session)).toEqual({
      asOfSeq: session.log.lastSeq,
      values: { todos: [item("b", "completed")] },
    });
  });

  test("[todo/19] outlives the turn's end and is cleared by the next turn's start", () => {
    const session = openSession();
    turnWith(session, [write(item("a"))]);
    expect(projectionsOf(session).values).toEqual({ todos: [item("a")] });
    send(session, "followup", "m2");
    run(session, {
      at: once(waitingFor("model"), () =>
        expect(projectionsOf(session).values).toEqual({ todos: null }),
      ),
    });
  });

  test("[todo/20] has no key without the tool; with it null, then none again", () => {
    const session = openSession();
    expect(projectionsOf(session).values).toEqual({ todos: null });
    unload(session);
    expect(projectionsOf(session)).toEqual({ asOfSeq: session.log.lastSeq, values: {} });
  });
});

describe("todo/write in the log", () => {
  const several = [item("a", "in_progress"), item("b", "in_progress")];

  test("[todo/21] several active items stay valid after the policy is tightened, stored and live", () => {
    const session = openSession();
    turnWith(session, [write(...several)]);
    configure(session, { config: { allowParallelInProgress: false } });
    expect(session.folds.todo.todos).toEqual(several);
    expect(loadLog(JSON.parse(JSON.stringify(session.log.entries)) as unknown[]).ok).toBe(true);
    session.record({ type: "turn/start", data: { turn: 2 } });
    session.record({ type: "todo/write", data: { todos: several } });
    expect(session.fault).toBeUndefined();
  });

  test("[todo/23] in place of installing the check a log is loaded: other events are ignored, a bad list is corruption", () => {
    const session = openSession();
    turnWith(session, [write(item("a"))]);
    const entries = JSON.parse(JSON.stringify(session.log.entries)) as unknown[];
    expect(loadLog(entries).ok).toBe(true);
    const broken = entries.map((entry) => {
      const { type, data } = entry as { type: string; data: object };
      return type === "todo/write"
        ? { ...(entry as object), data: { ...data, todos: [42] } }
        : entry;
    });
    expect(loadLog(broken)).toMatchObject({
      ok: false,
      code: "LOG_CORRUPT",
      message: expect.stringContaining("todo/write entries must be objects"),
    });
  });

  test("must lie inside an open turn", () => {
    const session = openSession();
    turnWith(session, []);
    expect(session.log.check({ type: "todo/write", data: { todos: [] } })).toBe(
      "todo/write appended outside any open turn",
    );
  });

  test("[todo/26] does not follow the caller's list when that is changed after the append", () => {
    const session = openSession();
    session.record({ type: "turn/start", data: { turn: 1 } });
    const todos = [{ content: "a", status: "pending" as const }];
    session.record({ type: "todo/write", data: { todos } });
    todos.push({ content: "b", status: "pending" });
    if (todos[0]) todos[0].content = "changed";
    expect(lists(session)).toEqual([[item("a")]]);
    expect(session.folds.todo.todos).toEqual([item("a")]);
  });

  test("[todo/27] between messages leaves their number alone, is not on the surface, and replays identically", () => {
    const session = openSession();
    turnWith(session, [write(item("a"))]);
    const onSurface = new Set(session.log.surface.nodes.map(({ seq }) => seq));
    const [list] = entriesOf(session, "todo/write");
    expect(onSurface.has(list?.seq ?? -1)).toBe(false);
    const before = deriveMessages(session.log.surface.nodes).length;
    session.record({ type: "turn/start", data: { turn: 2 } });
    session.record({ type: "todo/write", data: { todos: [] } });
    expect(deriveMessages(session.log.surface.nodes)).toHaveLength(before);
    const loaded = loadLog(JSON.parse(JSON.stringify(session.log.entries)) as unknown[]);
    if (!loaded.ok) throw new Error(loaded.message);
    expect(loaded.log.entries).toEqual(session.log.entries);
    expect(loaded.log.surface.digest()).toBe(session.log.surface.digest());
  });
});

describe("a write from outside", () => {
  test("needs the open turn, is remembered by its opId, and answers its place in the log", () => {
    const session = openSession();
    expect(writeTodos(session, { opId: "early", turn: 1, todos: [] })).toMatchObject({ ok: false });
    send(session, "followup", "m1");
    run(session, {
      at: once(waitingFor("model"), () => {
        const written = writeTodos(session, { opId: "op", turn: 1, todos: [item("a")] });
        expect(written).toMatchObject({ ok: true, seq: session.log.lastSeq });
        expect(writeTodos(session, { opId: "op", turn: 9, todos: [] })).toEqual(written);
      }),
    });
    expect(session.folds.todo.todos).toEqual([item("a")]);
    expect(lists(session)).toHaveLength(1);
    expect(typesOf(session)[0]).toBe("todo/rejected");
  });
});
