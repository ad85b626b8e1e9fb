import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NewEntry } from "../../src/contracts/log.js";
import type { TodoItem } from "../../src/contracts/todo.js";
import {
  applyTodoWrite,
  checkTodoEvent,
  foldTodos,
  foldTodoState,
  type TodoState,
} from "../../src/domain/todo.js";
import { anyItem, entryOf, item, note, single, turnEnd } from "../support/todo-lists.js";

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
