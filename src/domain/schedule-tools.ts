import type { ErrorCode } from "../contracts/errors.js";
import type {
  DeleteAnswer,
  LocalTime,
  ScheduleConfig,
  ScheduleEntry,
  ScheduleError,
  ScheduleRefusal,
  ScheduleView,
} from "../contracts/schedule.js";
import type { ToolOutcome } from "../contracts/tools.js";
import { checkArguments, invalidArguments } from "./argument-schema.js";
import { fieldsOf } from "./fields.js";
import {
  checkCreate,
  decideCreate,
  type CreateContext,
  type CreateRequest,
} from "./schedule-create.js";
import { decideDelete } from "./schedule-delete.js";
import { corruptLog } from "./schedule-errors.js";
import { parseLocal } from "./schedule-time.js";
import { createParameters, deleteParameters } from "./schedule-tool-rows.js";
import { viewOf } from "./schedule-views.js";
import type { ScheduleState } from "./schedule.js";
import { errorOutcome } from "./tool-outcome.js";

/** What a tool of reminders answers. A domain failure is a value of a call that succeeded (spec/schedule §3). */
export interface ScheduleToolResult {
  readonly outcome: ToolOutcome;
  /** At most one, logged right before the result and only with it. */
  readonly entries: readonly ScheduleEntry[];
  /** The canonical value; the model is shown its JSON. Absent: the call itself failed. */
  readonly value?: ScheduleView | readonly ScheduleView[] | DeleteAnswer | ScheduleError;
}

export type CreatePlan =
  | { readonly kind: "done"; readonly result: ScheduleToolResult }
  /** Ask what the local time means, then finish with the answer. */
  | { readonly kind: "resolve"; readonly local: LocalTime; readonly request: CreateRequest }
  | { readonly kind: "finish"; readonly request: CreateRequest };

const createKeys = new Set(["prompt", "after_seconds", "every_seconds", "at"]);
const createNames = { after: "after_seconds", every: "every_seconds" } as const;

/** First part of `schedule_create`: what is to be looked up before it decides. `args` may have any shape. */
export function planScheduleCreate(
  state: ScheduleState,
  args: unknown,
  config: ScheduleConfig,
): CreatePlan {
  const violations = checkArguments(createParameters, args);
  if (violations.length > 0) return { kind: "done", result: invalidArgs(violations) };
  const { prompt, after_seconds, every_seconds, at } = fieldsOf(args) as {
    readonly prompt: string;
    readonly after_seconds?: number;
    readonly every_seconds?: number;
    readonly at?: unknown;
  };
  const strange = Object.keys(fieldsOf(args)).find((key) => !createKeys.has(key));
  const checked = checkCreate(
    {
      prompt,
      ...(after_seconds === undefined ? {} : { after: after_seconds }),
      ...(every_seconds === undefined ? {} : { every: every_seconds }),
      ...(at === undefined ? {} : { at }),
      ...(strange === undefined ? {} : { strange }),
    },
    createNames,
    config,
  );
  if (!checked.ok) return { kind: "done", result: refused(checked) };
  const { request } = checked;
  if (request.rule.kind !== "at" || typeof request.rule.at === "string")
    return { kind: "finish", request };
  const local = parseLocal(request.rule.at);
  return state.fault === undefined && local.ok
    ? { kind: "resolve", local: local.local, request }
    : { kind: "finish", request };
}

/** Last part of `schedule_create`, by the state and clock as they are now. `aborted`: nothing is created. */
export function finishScheduleCreate(
  state: ScheduleState,
  request: CreateRequest,
  context: CreateContext & { readonly aborted?: boolean },
): ScheduleToolResult {
  if (context.aborted === true) return abortedCall("no reminder was created");
  const decided = decideCreate(state, request, context);
  if (!decided.ok) return refused(decided);
  const { record } = decided;
  const view = viewOf(record, context.now);
  return {
    outcome: outcomeOf(view, { scheduleId: record.id, scheduledAt: record.scheduledAt }),
    entries: [
      {
        type: "schedule/change",
        data: { version: 1, operation: "create", schedule: record },
      },
    ],
    value: view,
  };
}

/** Every active reminder in the order of its creation; an empty list is `[]`. */
export function runScheduleList(state: ScheduleState, now: number): ScheduleToolResult {
  if (state.fault !== undefined) return refused(corruptLog(state.fault));
  const value = state.records.map((record) => viewOf(record, now));
  return { outcome: outcomeOf(value, { schedules: value.length }), entries: [], value };
}

/** Unknown, deleted and finished ids all answer `deleted: false`. `args` may have any shape. */
export function runScheduleDelete(
  state: ScheduleState,
  args: unknown,
  aborted = false,
): ScheduleToolResult {
  const violations = checkArguments(deleteParameters, args);
  if (violations.length > 0) return invalidArgs(violations);
  if (aborted) return abortedCall("no reminder was deleted");
  const decided = decideDelete(state, String(fieldsOf(args)["id"]));
  if (!decided.ok) return refused(decided);
  const { answer, entries } = decided;
  return {
    outcome: outcomeOf(answer, { scheduleId: answer.id, deleted: answer.deleted }),
    entries,
    value: answer,
  };
}

function refused({ code, message }: ScheduleRefusal): ScheduleToolResult {
  const value: ScheduleError = { code, message };
  return { outcome: outcomeOf(value, { code }), entries: [], value };
}

function outcomeOf(value: unknown, meta: NonNullable<ToolOutcome["meta"]>): ToolOutcome {
  return { content: [{ type: "text", text: JSON.stringify(value) }], isError: false, meta };
}

function invalidArgs(violations: readonly string[]): ScheduleToolResult {
  return failed("INVALID_ARGS", invalidArguments(violations));
}

function abortedCall(what: string): ScheduleToolResult {
  return failed("ABORTED", `the call was cancelled; ${what}`);
}

function failed(code: ErrorCode, message: string): ScheduleToolResult {
  return { outcome: errorOutcome(code, message), entries: [] };
}
