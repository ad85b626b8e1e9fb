import { refuse, type Refusal } from "../contracts/errors.js";
import type { NewEntry } from "../contracts/log.js";
import { commands } from "../contracts/names.js";
import type { TodoWriteResult } from "../contracts/session.js";
import { applyTodoWrite, type AcceptedTodos, type TodoPolicy, type TodoState } from "./todo.js";

const maxIdCharacters = 200;

export interface TodoContext extends TodoPolicy {
  /** Number of the open turn; undefined: none is open. */
  readonly openTurn: number | undefined;
  /** `seq` the next log entry will get. */
  readonly nextSeq: number;
}

export interface TodoDecision {
  readonly result: TodoWriteResult;
  /**
   * At most one entry, to append at `nextSeq`: the list, or the refusal, for a signal's sender does not wait (T2).
   * None for a repeat. Folding it (`foldTodoState`) is what remembers the verdict.
   */
  readonly events: readonly NewEntry[];
}

/**
 * A `todo.write` from outside the agent loop, of any shape (spec/todo T2-T4). An opId in the window gets its first verdict
 * again. Refusals: INVALID_INPUT for the payload and for a turn that is not open, else those of `applyTodoWrite`.
 */
export function decideTodoWrite(
  state: TodoState,
  command: unknown,
  context: TodoContext,
): TodoDecision {
  const { opId, turn, todos } = fieldsOf(command);
  if (typeof opId !== "string" || opId === "" || opId.length > maxIdCharacters) {
    const result = refuse(
      "INVALID_INPUT",
      payloadMessage(`an \`opId\` of 1 to ${maxIdCharacters} characters`, opId),
    );
    const { code, message } = result;
    // Without an id there is nothing for `todo/rejected` to name.
    return {
      result,
      events: [{ type: "session/rejected", data: { command: commands.todoWrite, code, message } }],
    };
  }
  const earlier = state.recentOps.find((op) => op.opId === opId);
  if (earlier !== undefined) return { result: earlier.result, events: [] };

  const verdict = judge(turn, todos, context);
  if (!verdict.ok) {
    const { code, message } = verdict;
    return { result: verdict, events: [{ type: "todo/rejected", data: { opId, message, code } }] };
  }
  return {
    result: { ok: true, text: verdict.text, seq: context.nextSeq },
    events: [{ type: "todo/write", data: { todos: verdict.todos, opId } }],
  };
}

/** The turn comes last, as the owner does in spec/todo §2: an invalid list says so first. */
function judge(turn: unknown, todos: unknown, context: TodoContext): AcceptedTodos | Refusal {
  if (typeof turn !== "number" || !Number.isSafeInteger(turn) || turn < 1) {
    return refuse("INVALID_INPUT", payloadMessage("the number of the open turn as `turn`", turn));
  }
  const verdict = applyTodoWrite(todos === undefined ? {} : { todos }, context);
  if (!verdict.ok || turn === context.openTurn) return verdict;
  const now = context.openTurn === undefined ? "no turn is open" : `turn ${context.openTurn} is`;
  return refuse(
    "INVALID_INPUT",
    `turn ${turn} is not open, ${now}: a todo list is written only within the open turn`,
  );
}

function payloadMessage(expected: string, got: unknown): string {
  return `${commands.todoWrite} needs {opId, turn, todos} with ${expected}, got ${describe(got)}`;
}

function describe(value: unknown): string {
  if (value === undefined) return "none";
  if (typeof value === "number") return `${value}`;
  if (typeof value === "string")
    return value === "" ? "an empty string" : `a string of ${value.length} characters`;
  return value === null
    ? "null"
    : `a value of type ${Array.isArray(value) ? "array" : typeof value}`;
}

function fieldsOf(command: unknown): {
  readonly opId?: unknown;
  readonly turn?: unknown;
  readonly todos?: unknown;
} {
  return typeof command === "object" && command !== null ? command : {};
}
