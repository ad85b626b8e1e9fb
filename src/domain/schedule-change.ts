import type { NewEntry } from "../contracts/log.js";
import type {
  ScheduleChangeAnswer,
  ScheduleChangeResult,
  ScheduleConfig,
  ScheduleEntry,
  ScheduleRejectCode,
} from "../contracts/schedule.js";
import { commands } from "../contracts/names.js";
import { fieldsOf } from "./fields.js";
import { describeValue } from "./guards.js";
import { checkCreate, decideCreate } from "./schedule-create.js";
import { decideDelete } from "./schedule-delete.js";
import { refuseSchedule } from "./schedule-errors.js";
import type { ScheduleState } from "./schedule.js";

const command = commands.scheduleChange;
const maxIdCharacters = 200;
const createKeys = new Set([
  "requestId",
  "operation",
  "prompt",
  "afterSeconds",
  "everySeconds",
  "at",
]);
const createNames = { after: "afterSeconds", every: "everySeconds" } as const;

export interface ScheduleChangeDecision {
  readonly result: ScheduleChangeResult;
  /** To append in one block: the change and its verdict, or the refusal. None for a repeat. */
  readonly events: readonly (ScheduleEntry | NewEntry)[];
}

type Judged =
  | {
      readonly ok: true;
      readonly answer: ScheduleChangeAnswer;
      readonly entries: readonly ScheduleEntry[];
    }
  | Extract<ScheduleChangeResult, { ok: false }>;

/**
 * A `schedule.change` from outside the agent loop, of any shape (spec/schedule C1). A requestId in the window gets its first
 * verdict again; folding the events is what remembers it. INVALID_INPUT for the payload, else the codes of the tools.
 */
export function decideScheduleChange(
  state: ScheduleState,
  input: unknown,
  context: { readonly now: number; readonly config: ScheduleConfig },
): ScheduleChangeDecision {
  const { requestId } = fieldsOf(input);
  if (typeof requestId !== "string" || requestId === "" || requestId.length > maxIdCharacters) {
    const message = payload(`a \`requestId\` of 1 to ${maxIdCharacters} characters`, requestId);
    const refusal = { code: "INVALID_INPUT", message } as const;
    // Without an id there is nothing for `schedule/rejected` to name.
    return {
      result: { ok: false, ...refusal },
      events: [{ type: "session/rejected", data: { command, ...refusal } }],
    };
  }
  const earlier = outcomeOf(state, requestId);
  if (earlier !== undefined) return { result: earlier, events: [] };
  const judged = judge(state, fieldsOf(input), context);
  if (!judged.ok) {
    const { code, message } = judged;
    return {
      result: judged,
      events: [{ type: "schedule/rejected", data: { requestId, code, message } }],
    };
  }
  const { answer, entries } = judged;
  return {
    result: { ok: true, answer },
    events: [...entries, { type: "schedule/accepted", data: { requestId, answer } }],
  };
}

/** The verdict on a change, while it is remembered: for a query after a signal. */
export function outcomeOf(
  state: ScheduleState,
  requestId: string,
): ScheduleChangeResult | undefined {
  return state.outcomes.find((one) => one.requestId === requestId)?.result;
}

function judge(
  state: ScheduleState,
  fields: { readonly [key: string]: unknown },
  context: { readonly now: number; readonly config: ScheduleConfig },
): Judged {
  const { operation, id } = fields;
  if (operation === "create") return judgeCreate(state, fields, context);
  if (operation !== "delete") return invalid("`operation` create or delete", operation);
  if (typeof id !== "string" || id.length > maxIdCharacters)
    return invalid(`the \`id\` of a reminder, at most ${maxIdCharacters} characters`, id);
  const decided = decideDelete(state, id);
  if (!decided.ok) return decided;
  const { deleted } = decided.answer;
  return { ok: true, answer: { operation, id, deleted }, entries: decided.entries };
}

function judgeCreate(
  state: ScheduleState,
  fields: { readonly [key: string]: unknown },
  context: { readonly now: number; readonly config: ScheduleConfig },
): Judged {
  const { prompt, afterSeconds: after, everySeconds: every, at } = fields;
  if (typeof prompt !== "string") return invalid("`prompt` text", prompt);
  if (!isNumberOrAbsent(after)) return invalid("`afterSeconds` as a number", after);
  if (!isNumberOrAbsent(every)) return invalid("`everySeconds` as a number", every);
  const strange = Object.keys(fields).find((key) => !createKeys.has(key));
  const checked = checkCreate(
    {
      prompt,
      ...(after === undefined ? {} : { after }),
      ...(every === undefined ? {} : { every }),
      ...(at === undefined ? {} : { at }),
      ...(strange === undefined ? {} : { strange }),
    },
    createNames,
    context.config,
  );
  if (!checked.ok) return checked;
  const { rule } = checked.request;
  if (rule.kind === "at" && typeof rule.at !== "string")
    return refuseSchedule(
      "invalid_rule",
      `\`at\` must be text with an offset such as 2026-08-06T01:00:00Z, got ${describeValue(rule.at)}; whoever sends ${command} resolves a local time first`,
    );
  const decided = decideCreate(state, checked.request, context);
  if (!decided.ok) return decided;
  const { record } = decided;
  return {
    ok: true,
    answer: { operation: "create", id: record.id, scheduledAt: record.scheduledAt },
    entries: [
      { type: "schedule/change", data: { version: 1, operation: "create", schedule: record } },
    ],
  };
}

function invalid(
  expected: string,
  got: unknown,
): { readonly ok: false; readonly code: ScheduleRejectCode; readonly message: string } {
  return { ok: false, code: "INVALID_INPUT", message: payload(expected, got) };
}

function payload(expected: string, got: unknown): string {
  return `${command} needs {requestId, operation, …} with ${expected}, got ${got === undefined ? "none" : describeValue(got)}`;
}

function isNumberOrAbsent(value: unknown): value is number | undefined {
  return value === undefined || typeof value === "number";
}
