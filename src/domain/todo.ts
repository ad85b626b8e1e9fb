import { refuse, type Refusal } from "../contracts/errors.js";
import type { LogEntry } from "../contracts/log.js";
import type { TodoWriteResult } from "../contracts/session.js";
import {
  todoStatuses,
  type TodoCounts,
  type TodoItem,
  type TodoStatus,
} from "../contracts/todo.js";
import { checkArguments, invalidArguments } from "./argument-schema.js";
import { todoParameters } from "./todo-tool.js";

/** Our own limits (spec/todo T9). */
export const todoLimits = { items: 200, characters: 2_000, bytes: 128 * 1024 } as const;

const windowOps = 200;
/** Ids and texts of the window together: they travel with every checkpoint. */
const windowCharacters = 64 * 1024;

export interface TodoPolicy {
  /** spec/todo §3: may more than one item be `in_progress`? */
  readonly allowParallelInProgress: boolean;
}

export interface AcceptedTodos {
  readonly ok: true;
  /** Fresh objects with trimmed contents: the data of `todo/write`. */
  readonly todos: readonly TodoItem[];
  readonly counts: TodoCounts;
  /** What the model is told. */
  readonly text: string;
}

/**
 * The verdict on a whole new list, the same for the model's call and for callers outside (spec/todo §2, T1).
 * `input` is the parsed arguments `{todos}`. Refusals: INVALID_ARGS for the schema, INVALID_TODOS for the rest; the first hit wins.
 */
export function applyTodoWrite(input: unknown, policy: TodoPolicy): AcceptedTodos | Refusal {
  const violations = checkArguments(todoParameters, input);
  if (violations.length > 0 || !hasTodos(input))
    return refuse("INVALID_ARGS", invalidArguments(violations));
  if (input.todos.length > todoLimits.items)
    return tooLarge(`${input.todos.length} items, at most ${todoLimits.items}`);

  const todos: TodoItem[] = [];
  const seen = new Set<string>();
  for (const [index, item] of input.todos.entries()) {
    const content = item.content.trim();
    if (content === "")
      return refuse("INVALID_TODOS", "invalid todo: `content` must be a non-empty string");
    const length = characters(content);
    if (length > todoLimits.characters) {
      return tooLarge(
        `item ${index + 1} has ${length} characters, at most ${todoLimits.characters}`,
      );
    }
    if (seen.has(content))
      return refuse("INVALID_TODOS", `invalid todos: duplicate content ${JSON.stringify(content)}`);
    seen.add(content);
    todos.push({ content, status: item.status });
  }
  const bytes = new TextEncoder().encode(JSON.stringify(todos)).length;
  if (bytes > todoLimits.bytes) return tooLarge(`${bytes} bytes, at most ${todoLimits.bytes}`);

  const counts = countTodos(todos);
  if (!policy.allowParallelInProgress && counts.inProgress > 1) {
    return refuse(
      "INVALID_TODOS",
      `invalid todos: at most one task may be in_progress (got ${counts.inProgress})`,
    );
  }
  return { ok: true, todos, counts, text: todoText(counts) };
}

function countTodos(todos: readonly TodoItem[]): TodoCounts {
  const counts = { pending: 0, in_progress: 0, completed: 0 };
  for (const { status } of todos) counts[status] += 1;
  return { pending: counts.pending, inProgress: counts.in_progress, completed: counts.completed };
}

/** What the writer of a list is told. */
function todoText({ pending, inProgress, completed }: TodoCounts): string {
  return `Updated todo list: ${pending} pending, ${inProgress} in progress, ${completed} completed.`;
}

/** The `todos` projection, from `null` (spec/todo §4). The same reference comes back when the entry does not concern it. */
export function foldTodos(
  todos: readonly TodoItem[] | null,
  entry: LogEntry,
): readonly TodoItem[] | null {
  if (entry.type === "todo/write") return entry.data.todos;
  return entry.type === "turn/start" ? null : todos;
}

/** Folded from the log, carried over in checkpoints: plain JSON, never changed in place (spec/todo T6). */
export interface TodoState {
  /** The projection. */
  readonly todos: readonly TodoItem[] | null;
  /** Verdicts on writes from outside, oldest first: at most 200 and about 64 KB. */
  readonly recentOps: readonly TodoOp[];
}

export interface TodoOp {
  readonly opId: string;
  readonly result: TodoWriteResult;
}

export const emptyTodoState: TodoState = { todos: null, recentOps: [] };

/** The list and the verdicts given. The same reference comes back when the entry concerns neither. */
export function foldTodoState(state: TodoState, entry: LogEntry): TodoState {
  const todos = foldTodos(state.todos, entry);
  const op = opOf(entry);
  if (op !== undefined) return { todos, recentOps: remember(state.recentOps, op) };
  return todos === state.todos ? state : { ...state, todos };
}

/**
 * What is wrong with the data of a `todo/write`, stored or replayed; undefined when nothing is (spec/todo §5).
 * Silent about the policy, sizes and extra keys, so that old logs stay valid when those are tightened.
 */
export function checkTodoEvent(data: unknown): string | undefined {
  const todos: unknown = isRecord(data) ? data["todos"] : undefined;
  if (!Array.isArray(todos)) return "todo/write todos must be an array";
  const seen = new Set<string>();
  for (const item of todos) {
    if (!isRecord(item)) return "todo/write entries must be objects";
    const { content, status } = item;
    if (typeof content !== "string" || content === "" || content.trim() !== content) {
      return "todo/write content must be non-empty and already trimmed";
    }
    if (seen.has(content)) return `todo/write repeats content ${JSON.stringify(content)}`;
    seen.add(content);
    if (!todoStatuses.some((known) => known === status)) {
      return `todo/write carries unknown status ${JSON.stringify(status) ?? "undefined"}`;
    }
  }
  return undefined;
}

/** What is wrong with a configured `allowParallelInProgress`; undefined when nothing is (spec/todo §3: no default). */
export function checkTodoPolicy(value: unknown): string | undefined {
  if (value === undefined) return "$.allowParallelInProgress missing required value";
  return typeof value === "boolean" ? undefined : "$.allowParallelInProgress expected boolean";
}

function opOf(entry: LogEntry): TodoOp | undefined {
  if (entry.type === "todo/rejected") {
    const { opId, message, code = "INVALID_TODOS" } = entry.data;
    return { opId, result: refuse(code, message) };
  }
  if (entry.type !== "todo/write" || entry.data.opId === undefined) return undefined;
  const { opId, todos } = entry.data;
  return { opId, result: { ok: true, text: todoText(countTodos(todos)), seq: entry.seq } };
}

function remember(ops: readonly TodoOp[], op: TodoOp): readonly TodoOp[] {
  const kept = [...ops, op].slice(-windowOps);
  let size = 0;
  for (const each of kept) size += weight(each);
  while (size > windowCharacters && kept.length > 1) size -= weight(kept.shift() ?? op);
  return kept;
}

function weight({ opId, result }: TodoOp): number {
  return opId.length + (result.ok ? result.text.length : result.message.length);
}

function tooLarge(what: string): Refusal {
  return refuse("INVALID_TODOS", `invalid todos: list too large (${what})`);
}

/** Code points, so that an emoji is one. */
function characters(text: string): number {
  if (text.length <= todoLimits.characters) return text.length;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Holds for everything that passed the schema. */
function hasTodos(input: unknown): input is {
  readonly todos: readonly { readonly content: string; readonly status: TodoStatus }[];
} {
  return isRecord(input) && Array.isArray(input["todos"]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
