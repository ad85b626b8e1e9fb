import type { JsonObject } from "../contracts/header.js";
import { todoStatuses } from "../contracts/todo.js";
import type { ToolRow } from "../contracts/tools.js";

export const todoToolName = "todo_write";

/** Closed items in an open root: extra arguments are tolerated, extra item keys are not (spec/todo §2). */
export const todoParameters: JsonObject = {
  type: "object",
  properties: {
    todos: {
      type: "array",
      description: "The complete list; it replaces the former one.",
      items: {
        type: "object",
        properties: {
          content: {
            type: "string",
            description: "What is to be done: one short line in the imperative.",
          },
          status: { type: "string", enum: todoStatuses },
        },
        required: ["content", "status"],
        additionalProperties: false,
      },
    },
  },
  required: ["todos"],
};

/** The row of `todo_write` in the tool table. Description and accepted input follow the same policy (spec/todo §2, §3). */
export function todoToolRow(allowParallelInProgress: boolean): ToolRow {
  const clause = allowParallelInProgress ? severalActive : oneActive;
  return {
    name: todoToolName,
    description: `${head} ${clause} ${tail}`,
    parameters: todoParameters,
    where: "state",
    parallel: false,
    idempotent: false,
  };
}

/** How a user interface shows a call. */
export interface TodoCallCard {
  readonly card: "generic";
  readonly title: string;
  readonly kind: "other";
  /** The list as the model gave it, unchecked. */
  readonly rawInput: unknown;
}

/** `input`: the parsed arguments; without a `todos` in them the card shows all of it. */
export function todoCallCard(input: unknown): TodoCallCard {
  const given =
    typeof input === "object" && input !== null && "todos" in input ? input.todos : input;
  return { card: "generic", title: "Update todo list", kind: "other", rawInput: given };
}

const head =
  "Keep a structured task list for the work at hand. Send the WHOLE list each time: it replaces the previous one; single items cannot be edited. Use it to plan multi-step work and to show progress, one todo per concrete step, written before you begin.";
const severalActive =
  "Every todo you are actually working on carries `in_progress`: with parallel work (subagents, background commands) that may be several, otherwise one, and never none while work remains.";
const oneActive =
  "At most one todo may be `in_progress`; while work remains there should be exactly one.";
const tail =
  "Set a todo to `completed` as soon as it is done, never in batches, and have no `in_progress` item only when everything is finished. Skip the list for trivial one-step tasks. The three statuses mean: not begun, under way, finished.";
