import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import type { TodoItem } from "../../src/contracts/todo.js";
import {
  decideTodoWrite,
  type TodoContext,
  type TodoDecision,
} from "../../src/domain/todo-command.js";
import {
  applyTodoWrite,
  emptyTodoState,
  foldTodoState,
  type TodoState,
} from "../../src/domain/todo.js";
import { anyItem, entryOf, item, parallel, single } from "../support/todo-lists.js";

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
