import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { todoCallCard, todoParameters, todoToolRow } from "../../src/domain/todo-tool.js";
import {
  applyTodoWrite,
  checkTodoEvent,
  checkTodoPolicy,
  todoLimits,
} from "../../src/domain/todo.js";
import { anyContent, anyItem, item, parallel, single } from "../support/todo-lists.js";

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

  it("offers the model the schema that lists are checked by", () => {
    expect(todoToolRow(false).parameters).toBe(todoParameters);
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

const looseItem = fc.oneof(
  { weight: 12, arbitrary: anyItem },
  {
    weight: 1,
    arbitrary: fc.record({ content: anyContent, status: fc.constantFrom("doing", "", 1, null) }),
  },
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
