import * as fc from "fast-check";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import { todoStatuses, type TodoItem, type TodoStatus } from "../../src/contracts/todo.js";

export const parallel = { allowParallelInProgress: true };
export const single = { allowParallelInProgress: false };

export function item(content: string, status: TodoStatus = "pending"): TodoItem {
  return { content, status };
}

export function entryOf(event: NewEntry, seq: number): LogEntry {
  return { ...event, seq, time: seq };
}

export const note: NewEntry = {
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

export const turnEnd: NewEntry = {
  type: "turn/end",
  data: { turn: 1, reason: { kind: "completed" } },
};

/** Contents that trim to each other, differ in case or are empty. */
export const anyContent = fc.oneof(
  fc.constantFrom("a", " a", "a ", "b", "B", "", "  ", "\t"),
  fc.string({ maxLength: 6 }),
);

export const anyItem = fc.record({ content: anyContent, status: fc.constantFrom(...todoStatuses) });
