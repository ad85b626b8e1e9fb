import type { SessionConfig } from "../contracts/config.js";
import type { NewEntry } from "../contracts/log.js";
import type { ScheduleConfig } from "../contracts/schedule.js";
import type { ToolOutcome, ToolRow } from "../contracts/tools.js";
import { jobToolRows } from "./job-tool-rows.js";
import type { PolicyCall } from "./policy.js";
import { scheduleToolRows } from "./schedule-tool-rows.js";
import { errorOutcome } from "./tool-outcome.js";
import { applyTodoWrite } from "./todo.js";
import { todoToolName, todoToolRow } from "./todo-tool.js";

/** What a state tool decided: its result, and the entries that are logged right before it (design D3). */
export interface StateToolResult {
  readonly outcome: ToolOutcome;
  readonly entries: readonly NewEntry[];
}

type StateTool = (call: PolicyCall, config: SessionConfig) => StateToolResult;

const stateTools: { readonly [name: string]: StateTool } = {
  [todoToolName]: (call, config) => {
    const verdict = applyTodoWrite(call.args, config);
    if (!verdict.ok) return { outcome: errorOutcome(verdict.code, verdict.message), entries: [] };
    const { pending, inProgress, completed } = verdict.counts;
    return {
      outcome: {
        content: [{ type: "text", text: verdict.text }],
        isError: false,
        meta: { pending, inProgress, completed },
      },
      entries: [{ type: "todo/write", data: { todos: verdict.todos } }],
    };
  },
};

/** The rows of the tool table that run in workflow code. `schedule`: limits of reminders, undefined when they are off. */
export function stateToolRows(
  config: SessionConfig,
  schedule?: ScheduleConfig,
): readonly ToolRow[] {
  return [
    todoToolRow(config.allowParallelInProgress),
    // Jobs run on the host that a session with world tools is bound to.
    ...(config.worldTools ? jobToolRows : []),
    ...scheduleToolRows(schedule),
  ];
}

/** Runs a tool in workflow code, by the configuration of its step; atomic with its result. */
export function runStateTool(call: PolicyCall, config: SessionConfig): StateToolResult {
  const tool = Object.hasOwn(stateTools, call.name) ? stateTools[call.name] : undefined;
  if (tool === undefined) {
    return {
      outcome: errorOutcome(
        "TOOL_UNAVAILABLE",
        `this worker's build has no tool ${JSON.stringify(call.name)}`,
      ),
      entries: [],
    };
  }
  return tool(call, config);
}
