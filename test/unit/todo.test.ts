import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import { todoStatuses, type TodoItem, type TodoStatus } from "../../src/contracts/todo.js";
import {
  decideTodoWrite,
  type TodoContext,
  type TodoDecision,
} from "../../src/domain/todo-command.js";
import { todoCallCard, todoParameters, todoToolRow } from "../../src/domain/todo-tool.js";
import {
  applyTodoWrite,
  checkTodoEvent,
  checkTodoPolicy,
  emptyTodoState,
  foldTodos,
  foldTodoState,
  todoLimits,
  type TodoState,
} from "../../src/domain/todo.js";

const parallel = { allowParallelInProgress: true };
const single = { allowParallelInProgress: false };

function item(content: string, status: TodoStatus = "pending"): TodoItem {
  return { content, status };
}

/** A log of one: decides commands, appends what they cause and folds it, as the session does. */
class Outside {
  state: TodoState = emptyTodoState;
  readonly entries: LogEntry[] = [];
  openTurn: number | undefined = 1;
  policy = parallel;

  write(command: unknown): TodoDecision {
    const context: TodoContext = {
      ...this.policy,
      openTurn: this.openTurn,
      nextSeq: this.entries.length,
    };
    const decision = decideTodoWrite(this.state, command, context);
    for (const event of decision.events) this.append(event);
    return decision;
  }

  append(event: NewEntry): void {
    const entry = entryOf(event, this.entries.length);
    this.entries.push(entry);
    this.state = foldTodoState(this.state, entry);
  }

  get lists(): readonly (readonly TodoItem[])[] {
    return this.entries.flatMap((entry) => (entry.type === "todo/write" ? [entry.data.todos] : []));
  }
}

function entryOf(event: NewEntry, seq: number): LogEntry {
  return { ...event, seq, time: seq };
}

const note: NewEntry = {
  type: "user/message",
  data: {
    message: {
      id: "m1",
      role: "user",
      content: [{ type: "text", text: "go" }],
      source: { kind: "user" },
    },
  },
};
const turnEnd: NewEntry = { type: "turn/end", data: { turn: 1, reason: { kind: "completed" } } };

describe("the tool todo_write", () => {
  it("[todo/1] declares only `todos`: closed items with content and status, statuses in order", () => {
    const { parameters, name, where, parallel: overlaps, idempotent } = todoToolRow(true);
    expect({ name, where, overlaps, idempotent }).toEqual({
      name: "todo_write",
      where: "state",
      overlaps: false,
      idempotent: false,
    });
    expect(parameters).toMatchObject({
      type: "object",
      required: ["todos"],
      properties: {
        todos: {
          type: "array",
          items: {
            type: "object",
            required: ["content", "status"],
            additionalProperties: false,
            properties: {
              content: { type: "string" },
              status: { enum: ["pending", "in_progress", "completed"] },
            },
          },
        },
      },
    });
    expect(keysAt(parameters, ["properties"])).toEqual(["todos"]);
    expect(keysAt(parameters, ["properties", "todos", "items", "properties"])).toEqual([
      "content",
      "status",
    ]);
    expect(JSON.parse(JSON.stringify(parameters))).toEqual(parameters);
  });

  it("[todo/10] describes several active items when parallel is allowed, at most one when it is not", () => {
    const several = todoToolRow(true).description;
    const one = todoToolRow(false).description;
    expect(several).toContain(
      "with parallel work (subagents, background commands) that may be several",
    );
    expect(several).not.toContain("At most one todo");
    expect(one).toContain(
      "At most one todo may be `in_progress`; while work remains there should be exactly one.",
    );
    expect(one).not.toContain("may be several");
    for (const text of [several, one]) {
      expect(text).toMatch(
        /^Keep a structured task list for the work at hand\. Send the WHOLE list/u,
      );
      expect(text).toMatch(/The three statuses mean: not begun, under way, finished\.$/u);
    }
  });

  it("[todo/15] shows a call as a generic card with the list as raw input", () => {
    const todos = [item("plan")];
    const card = todoCallCard({ todos, extra: 1 });
    expect(card).toEqual({
      card: "generic",
      title: "Update todo list",
      kind: "other",
      rawInput: todos,
    });
    expect(todoCallCard("{broken").rawInput).toBe("{broken");
  });
});

describe("what a new list must be", () => {
  it("[todo/3] trims contents", () => {
    expect(applyTodoWrite({ todos: [item("  plan the work  ")] }, parallel)).toMatchObject({
      ok: true,
      todos: [item("plan the work")],
    });
  });

  it.each([
    [
      "[todo/5] an unknown status",
      { todos: [{ content: "a", status: "doing" }] },
      '"todos[0].status" must be one of ["pending","in_progress","completed"]',
    ],
    ["[todo/6] a list that is no array", { todos: "nope" }, '"todos" must be an array'],
    [
      "[todo/13] an undeclared item key",
      { todos: [{ ...item("a"), children: [] }] },
      '"todos[0].children" is not a declared property (additionalProperties: false)',
    ],
    ["a missing list", {}, 'missing required property "todos"'],
    ["arguments that are no object", "{broken", "arguments must be an object"],
    [
      "several of these, all of them",
      { todos: [item("a"), { content: 1, id: 2 }] },
      'missing required property "todos[1].status"; "todos[1].content" must be a string; "todos[1].id" is not a declared property (additionalProperties: false)',
    ],
  ])("refuses by the schema: %s", (_, input, violations) => {
    expect(applyTodoWrite(input, parallel)).toEqual({
      ok: false,
      code: "INVALID_ARGS",
      message: `invalid arguments: ${violations}`,
    });
  });

  it("[todo/7] accepts several active items when parallel is allowed", () => {
    const todos = [item("a", "in_progress"), item("b", "in_progress"), item("c")];
    expect(applyTodoWrite({ todos }, parallel)).toEqual({
      ok: true,
      todos,
      counts: { pending: 1, inProgress: 2, completed: 0 },
      text: "Updated todo list: 1 pending, 2 in progress, 0 completed.",
    });
  });

  it("[todo/9] accepts one active item and none when parallel is not allowed", () => {
    expect(applyTodoWrite({ todos: [item("a", "in_progress"), item("b")] }, single)).toMatchObject({
      ok: true,
    });
    expect(applyTodoWrite({ todos: [item("a"), item("b")] }, single)).toMatchObject({ ok: true });
  });

  it.each([
    ["[todo/11] empty content", ["   "], "invalid todo: `content` must be a non-empty string"],
    ["[todo/12] a repeat", ["dup", "dup"], 'invalid todos: duplicate content "dup"'],
    [
      "[todo/12] a repeat after trimming",
      ["dup", " dup "],
      'invalid todos: duplicate content "dup"',
    ],
    ["the first of two faults", ["a", "a", ""], 'invalid todos: duplicate content "a"'],
  ])("refuses %s", (_, contents, message) => {
    const todos = contents.map((content) => item(content));
    expect(applyTodoWrite({ todos }, parallel)).toEqual({
      ok: false,
      code: "INVALID_TODOS",
      message,
    });
  });

  it("takes contents that differ in case for different ones", () => {
    expect(applyTodoWrite({ todos: [item("Dup"), item("dup")] }, parallel)).toMatchObject({
      ok: true,
    });
  });

  it("reports an item's fault before the number of active items, and the schema before both", () => {
    const active = [item("a", "in_progress"), item("a", "in_progress")];
    expect(applyTodoWrite({ todos: active }, single)).toMatchObject({
      message: 'invalid todos: duplicate content "a"',
    });
    expect(applyTodoWrite({ todos: [...active, 1] }, single)).toMatchObject({
      message: 'invalid arguments: "todos[2]" must be an object',
    });
  });

  it("[todo/29] tolerates extra arguments beside the list", () => {
    const verdict = applyTodoWrite({ todos: [item("a")], reason: "x" }, parallel);
    expect(verdict).toMatchObject({ ok: true, todos: [item("a")] });
    expect(verdict).not.toHaveProperty("reason");
  });

  it("returns items of its own: later changes of the input do not reach them", () => {
    const todos = [{ content: "a", status: "pending" }];
    const verdict = applyTodoWrite({ todos }, parallel);
    todos[0]!.content = "changed";
    todos.push({ content: "b", status: "pending" });
    expect(verdict).toMatchObject({ todos: [item("a")] });
  });
});

describe("sizes (spec/todo T9)", () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => item(`task ${index}`));

  it.each([
    ["200 items", many(200)],
    ["an item of 2,000 characters once trimmed", [item(` ${"x".repeat(2_000)} `)]],
    ["an item of 2,000 emoji", [item("🙂".repeat(2_000))]],
  ])("accepts %s", (_, todos) => {
    expect(applyTodoWrite({ todos }, parallel)).toMatchObject({ ok: true });
  });

  it.each([
    ["201 items", many(201), "201 items, at most 200"],
    [
      "an item of 2,001 characters",
      [item("a"), item("x".repeat(2_001))],
      "item 2 has 2001 characters, at most 2000",
    ],
    [
      "an item of 2,001 emoji",
      [item("🙂".repeat(2_001))],
      "item 1 has 2001 characters, at most 2000",
    ],
  ])("refuses %s", (_, todos, what) => {
    expect(applyTodoWrite({ todos }, parallel)).toEqual({
      ok: false,
      code: "INVALID_TODOS",
      message: `invalid todos: list too large (${what})`,
    });
  });

  it("counts the bytes of a list in UTF-8: 131,072 are accepted, one more is not", () => {
    const wide = Array.from({ length: 23 }, (_, index) =>
      item(String(index).padStart(2, "0") + "€".repeat(1_870)),
    );
    const spent = Buffer.byteLength(JSON.stringify([...wide, item("")]));
    const room = todoLimits.bytes - spent;
    expect(room).toBeGreaterThan(0);
    expect(room).toBeLessThan(2_000);
    const exact = [...wide, item("x".repeat(room))];
    expect(Buffer.byteLength(JSON.stringify(exact))).toBe(131_072);
    expect(applyTodoWrite({ todos: exact }, parallel)).toMatchObject({ ok: true });
    const over = [...wide, item("x".repeat(room + 1))];
    expect(applyTodoWrite({ todos: over }, parallel)).toMatchObject({
      ok: false,
      message: "invalid todos: list too large (131073 bytes, at most 131072)",
    });
  });
});

describe("the configured policy", () => {
  it("[todo/25] is required and boolean: the two load errors of the value", () => {
    expect(checkTodoPolicy(undefined)).toBe("$.allowParallelInProgress missing required value");
    for (const wrong of ["no", null, 0]) {
      expect(checkTodoPolicy(wrong)).toBe("$.allowParallelInProgress expected boolean");
    }
    expect(checkTodoPolicy(false)).toBeUndefined();
    expect(checkTodoPolicy(true)).toBeUndefined();
  });
});

describe("the todos projection", () => {
  const list = [item("a")];
  const written = entryOf({ type: "todo/write", data: { todos: list } }, 0);

  it("[todo/19] keeps the list past the turn's end and clears it at the next turn's start", () => {
    const shown = foldTodos(foldTodos(null, written), entryOf(turnEnd, 1));
    expect(shown).toEqual(list);
    expect(foldTodos(shown, entryOf({ type: "turn/start", data: { turn: 2 } }, 2))).toBeNull();
  });

  it("returns the same reference for entries that do not concern it", () => {
    for (const entry of [entryOf(turnEnd, 1), entryOf(note, 1)]) {
      expect(foldTodos(list, entry)).toBe(list);
      expect(foldTodos(null, entry)).toBeNull();
      const state: TodoState = { todos: list, recentOps: [] };
      expect(foldTodoState(state, entry)).toBe(state);
    }
  });

  it("[todo/28] an empty list is a list, not null", () => {
    const verdict = applyTodoWrite({ todos: [] }, single);
    expect(verdict).toMatchObject({
      ok: true,
      todos: [],
      text: "Updated todo list: 0 pending, 0 in progress, 0 completed.",
    });
    expect(foldTodos(null, entryOf({ type: "todo/write", data: { todos: [] } }, 0))).toEqual([]);
  });

  it("is the last list written since the last turn started, in any log", () => {
    const entry = fc.oneof(
      fc.array(anyItem, { maxLength: 4 }).map((todos): NewEntry => ({
        type: "todo/write",
        data: { todos },
      })),
      fc.nat(9).map((turn): NewEntry => ({ type: "turn/start", data: { turn } })),
      fc.constant(turnEnd),
      fc.constant(note),
    );
    fc.assert(
      fc.property(fc.array(entry), (events) => {
        const log = events.map(entryOf);
        const since = log.slice(log.findLastIndex(({ type }) => type === "turn/start") + 1);
        const last = since.findLast((each) => each.type === "todo/write");
        let folded: readonly TodoItem[] | null = null;
        for (const each of log) folded = foldTodos(folded, each);
        expect(folded).toBe(last?.type === "todo/write" ? last.data.todos : null);
      }),
    );
  });
});

describe("the shape of a stored todo/write", () => {
  it.each([
    ["no list", {}, "todo/write todos must be an array"],
    ["no data", undefined, "todo/write todos must be an array"],
    ["a list that is no array", { todos: "x" }, "todo/write todos must be an array"],
    ["a null entry", { todos: [null] }, "todo/write entries must be objects"],
    ["a number as entry", { todos: [42] }, "todo/write entries must be objects"],
    [
      "content 42",
      { todos: [{ content: 42, status: "pending" }] },
      "todo/write content must be non-empty and already trimmed",
    ],
    [
      "empty content",
      { todos: [item("")] },
      "todo/write content must be non-empty and already trimmed",
    ],
    [
      "padded content",
      { todos: [item(" a")] },
      "todo/write content must be non-empty and already trimmed",
    ],
    ["a repeat", { todos: [item("a"), item("a")] }, 'todo/write repeats content "a"'],
    [
      "status 42",
      { todos: [{ content: "a", status: 42 }] },
      "todo/write carries unknown status 42",
    ],
    [
      "status paused",
      { todos: [{ content: "a", status: "paused" }] },
      'todo/write carries unknown status "paused"',
    ],
    ["no status", { todos: [{ content: "a" }] }, "todo/write carries unknown status undefined"],
  ])("[todo/22] rejects %s", (_, data, message) => {
    expect(checkTodoEvent(data)).toBe(message);
  });

  it("[todo/21] is silent about the number of active items, sizes and extra keys", () => {
    const active = Array.from({ length: 300 }, (_, n) => ({
      ...item(`${n}`, "in_progress"),
      id: n,
    }));
    expect(checkTodoEvent({ todos: active })).toBeUndefined();
  });
});

describe("a write from outside the agent loop", () => {
  it("[todo/2] stores the list and answers counts and position", () => {
    const outside = new Outside();
    outside.append({ type: "turn/start", data: { turn: 1 } });
    const todos = [item("plan", "in_progress"), item("build")];
    const { result } = outside.write({ opId: "op-1", turn: 1, todos });
    expect(result).toEqual({
      ok: true,
      seq: 1,
      text: "Updated todo list: 1 pending, 1 in progress, 0 completed.",
    });
    expect(applyTodoWrite({ todos }, parallel)).toMatchObject({
      todos,
      counts: { pending: 1, inProgress: 1, completed: 0 },
    });
    expect(outside.entries[1]).toMatchObject({ type: "todo/write", seq: 1, data: { todos } });
    expect(outside.state.todos).toEqual(todos);
  });

  it("[todo/4] replaces the whole list by the second write", () => {
    const outside = new Outside();
    outside.write({ opId: "op-1", turn: 1, todos: [item("a"), item("b")] });
    outside.write({ opId: "op-2", turn: 1, todos: [item("b", "completed")] });
    expect(outside.lists.at(-1)).toEqual([item("b", "completed")]);
    expect(outside.state.todos).toEqual([item("b", "completed")]);
  });

  it("[todo/8] refuses two active items when parallel is not allowed, changes nothing and logs why", () => {
    const outside = new Outside();
    outside.policy = single;
    const todos = [item("a", "in_progress"), item("b", "in_progress")];
    const message = "invalid todos: at most one task may be in_progress (got 2)";
    expect(outside.write({ opId: "op-1", turn: 1, todos }).result).toEqual({
      ok: false,
      code: "INVALID_TODOS",
      message,
    });
    expect(outside.entries).toMatchObject([
      { type: "todo/rejected", data: { opId: "op-1", message } },
    ]);
    expect(outside.lists).toEqual([]);
    expect(outside.state.todos).toBeNull();
  });

  it("[todo/14] in place of an owning agent: needs the open turn, and an invalid list says so first", () => {
    const outside = new Outside();
    const refused = outside.write({ opId: "late", turn: 2, todos: [item("a")] });
    expect(refused.result).toEqual({
      ok: false,
      code: "INVALID_INPUT",
      message: "turn 2 is not open, turn 1 is: a todo list is written only within the open turn",
    });
    outside.openTurn = undefined;
    expect(outside.write({ opId: "later", turn: 1, todos: [item("a")] }).result).toMatchObject({
      message:
        "turn 1 is not open, no turn is open: a todo list is written only within the open turn",
    });
    expect(outside.write({ opId: "bad", turn: 1, todos: [item("")] }).result).toMatchObject({
      message: "invalid todo: `content` must be a non-empty string",
    });
    expect(outside.lists).toEqual([]);
  });

  it("answers a repeated opId with the first verdict, also when the turn is over or the policy changed", () => {
    const outside = new Outside();
    const todos = [item("a", "in_progress"), item("b", "in_progress")];
    const first = outside.write({ opId: "op-1", turn: 1, todos });
    const refused = outside.write({ opId: "op-2", turn: 1, todos: [item("")] });
    outside.openTurn = undefined;
    outside.policy = single;
    outside.append({ type: "turn/start", data: { turn: 2 } });
    expect(outside.write({ opId: "op-1", turn: 1, todos })).toEqual({
      result: first.result,
      events: [],
    });
    expect(outside.write({ opId: "op-2", turn: 1, todos })).toEqual({
      result: refused.result,
      events: [],
    });
    expect(outside.lists).toHaveLength(1);
  });

  it.each([
    ["undefined", undefined, "an `opId` of 1 to 200 characters, got none"],
    ["null", null, "an `opId` of 1 to 200 characters, got none"],
    ["a string", "todos", "an `opId` of 1 to 200 characters, got none"],
    ["an empty id", { opId: "" }, "an `opId` of 1 to 200 characters, got an empty string"],
    [
      "a huge id",
      { opId: "x".repeat(201) },
      "an `opId` of 1 to 200 characters, got a string of 201 characters",
    ],
    ["a list as id", { opId: [] }, "an `opId` of 1 to 200 characters, got a value of type array"],
  ])("refuses a payload without a usable id: %s", (_, command, reason) => {
    const outside = new Outside();
    const message = `todo.write needs {opId, turn, todos} with ${reason}`;
    expect(outside.write(command)).toEqual({
      result: { ok: false, code: "INVALID_INPUT", message },
      events: [
        {
          type: "session/rejected",
          data: { command: "todo.write", code: "INVALID_INPUT", message },
        },
      ],
    });
    expect(outside.state).toBe(emptyTodoState);
  });

  it.each([undefined, null, "1", 0, 1.5, Number.NaN])("refuses %j as a turn", (turn) => {
    const outside = new Outside();
    const { result, events } = outside.write({ opId: "op-1", turn, todos: [] });
    expect(result).toMatchObject({
      ok: false,
      code: "INVALID_INPUT",
      message: expect.stringContaining(
        "needs {opId, turn, todos} with the number of the open turn",
      ),
    });
    expect(events).toMatchObject([{ type: "todo/rejected", data: { opId: "op-1" } }]);
  });

  it("never throws and logs lossless JSON, whatever the payload", () => {
    const command = fc.oneof(
      fc.anything(),
      fc.record(
        { opId: fc.oneof(fc.string(), fc.anything()), turn: fc.anything(), todos: fc.anything() },
        { requiredKeys: [] },
      ),
    );
    fc.assert(
      fc.property(command, (given) => {
        const { result, events } = new Outside().write(given);
        expect(JSON.parse(JSON.stringify({ result, events }))).toEqual({ result, events });
        expect(events).toHaveLength(1);
      }),
    );
  });

  it("takes a logged refusal without a code for one of the list", () => {
    const outside = new Outside();
    outside.append({ type: "todo/rejected", data: { opId: "op-1", message: "no" } });
    expect(outside.write({ opId: "op-1", turn: 1, todos: [] })).toEqual({
      result: { ok: false, code: "INVALID_TODOS", message: "no" },
      events: [],
    });
  });

  it("remembers the last 200 verdicts: the 201st pushes the first out", () => {
    const outside = new Outside();
    for (let n = 0; n < 201; n += 1) outside.write({ opId: `op-${n}`, turn: 1, todos: [] });
    expect(outside.state.recentOps).toHaveLength(200);
    expect(outside.write({ opId: "op-1", turn: 1, todos: [] }).events).toEqual([]);
    expect(outside.write({ opId: "op-0", turn: 1, todos: [] }).events).toHaveLength(1);
  });

  it("keeps the remembered verdicts below 64 KB also when every message is long", () => {
    const outside = new Outside();
    const content = "\u0001".repeat(2_000);
    for (let n = 0; n < 200; n += 1) {
      outside.write({ opId: `op-${n}`, turn: 1, todos: [item(content), item(content)] });
    }
    const { recentOps } = outside.state;
    expect(recentOps.at(-1)?.opId).toBe("op-199");
    expect(recentOps.length).toBeGreaterThanOrEqual(5);
    const size = recentOps.reduce(
      (sum, { opId, result }) => sum + opId.length + (result.ok ? 0 : result.message.length),
      0,
    );
    expect(size).toBeLessThanOrEqual(64 * 1024);
  });

  it("any mix of repeated and reordered writes: one entry an id, one verdict an id, and the same state from the log alone", () => {
    const command = fc.record({
      opId: fc.constantFrom("a", "b", "c", "d"),
      turn: fc.constantFrom(1, 2),
      todos: fc.array(anyItem, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 30 }), fc.boolean(), (commands, allow) => {
        const outside = new Outside();
        outside.policy = { allowParallelInProgress: allow };
        const verdicts = new Map<string, unknown>();
        for (const each of commands) {
          const { result } = outside.write(each);
          if (!verdicts.has(each.opId)) verdicts.set(each.opId, result);
          expect(result).toEqual(verdicts.get(each.opId));
        }
        expect(outside.entries).toHaveLength(verdicts.size);
        const replayed = outside.entries.reduce(foldTodoState, emptyTodoState);
        expect(replayed).toEqual(outside.state);
        expect(JSON.parse(JSON.stringify(replayed))).toEqual(replayed);
      }),
    );
  });
});

describe("the verdict on random lists", () => {
  it("accepts a list exactly when every rule of the spec holds, and then stores what passes the event check", () => {
    fc.assert(
      fc.property(
        fc.array(looseItem, { maxLength: 6 }),
        fc.boolean(),
        (todos, allowParallelInProgress) => {
          const verdict = applyTodoWrite({ todos }, { allowParallelInProgress });
          expect(verdict.ok).toBe(isValidList(todos, allowParallelInProgress));
          if (!verdict.ok) return;
          expect(checkTodoEvent({ todos: verdict.todos })).toBeUndefined();
          const { pending, inProgress, completed } = verdict.counts;
          expect(pending + inProgress + completed).toBe(todos.length);
          expect(applyTodoWrite({ todos: verdict.todos }, { allowParallelInProgress })).toEqual(
            verdict,
          );
        },
      ),
      { numRuns: 500 },
    );
  });
});

const content = fc.oneof(
  fc.constantFrom("a", " a", "a ", "b", "B", "", "  ", "\t"),
  fc.string({ maxLength: 6 }),
);
const anyItem = fc.record({ content, status: fc.constantFrom(...todoStatuses) });
const looseItem = fc.oneof(
  { weight: 12, arbitrary: anyItem },
  { weight: 1, arbitrary: fc.record({ content, status: fc.constantFrom("doing", "", 1, null) }) },
  {
    weight: 1,
    arbitrary: fc.record({ content: fc.constantFrom(1, null), status: fc.constant("pending") }),
  },
  { weight: 1, arbitrary: anyItem.map((each) => ({ ...each, id: 1 })) },
  { weight: 1, arbitrary: fc.constantFrom(null, 42, "a", [], { content: "a" }) },
);

/** The rules of spec/todo §2, put down once more without the code's help. */
function isValidList(todos: readonly unknown[], allowParallel: boolean): boolean {
  const names: string[] = [];
  let active = 0;
  for (const each of todos) {
    if (each === null || typeof each !== "object") return false;
    const pairs = new Map<string, unknown>(Object.entries(each));
    const text = pairs.get("content");
    if (pairs.size !== 2 || typeof text !== "string" || !/\S/u.test(text)) return false;
    if (!["pending", "in_progress", "completed"].includes(String(pairs.get("status"))))
      return false;
    if (pairs.get("status") === "in_progress") active += 1;
    names.push(text.trim());
  }
  return new Set(names).size === names.length && (allowParallel || active <= 1);
}

function keysAt(value: unknown, path: readonly string[]): string[] {
  let at: unknown = value;
  for (const key of path) at = (at as Record<string, unknown>)[key];
  return Object.keys(at as object);
}

describe("the schema the model is offered", () => {
  it("is the one that lists are checked by", () => {
    expect(todoToolRow(false).parameters).toBe(todoParameters);
  });
});
