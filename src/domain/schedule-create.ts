import {
  minEverySeconds,
  type ScheduleConfig,
  type ScheduleRecord,
  type ScheduleRefusal,
  type ZoneAnswer,
} from "../contracts/schedule.js";
import { utf8Bytes } from "./guards.js";
import { corruptLog, refuseSchedule, shown } from "./schedule-errors.js";
import { allocateId } from "./schedule-ids.js";
import { formatInstant, parseInstant } from "./schedule-instant.js";
import { checkFuture, checkRange, parseAt, parseLocal } from "./schedule-time.js";
import type { ScheduleState } from "./schedule.js";

/** What somebody asks to be reminded of, of the right types, and nothing else of it checked. */
export interface CreateInput {
  readonly prompt: string;
  readonly after?: number;
  readonly every?: number;
  /** Text with an offset, or the object of a local time. */
  readonly at?: unknown;
  /** A key that is none of these. */
  readonly strange?: string;
}

/** How the caller spells the keys, for messages. */
export interface CreateNames {
  readonly after: string;
  readonly every: string;
}

export interface CreateRequest {
  /** Trimmed. */
  readonly prompt: string;
  readonly rule:
    | { readonly kind: "after"; readonly seconds: number }
    | { readonly kind: "every"; readonly seconds: number }
    | { readonly kind: "at"; readonly at: unknown };
}

/** What needs no log and no clock: selector, prompt, seconds, in this order (spec/schedule §3.1, 3 to 6). */
export function checkCreate(
  input: CreateInput,
  names: CreateNames,
  config: ScheduleConfig,
): { readonly ok: true; readonly request: CreateRequest } | ScheduleRefusal {
  const { after, every, at, strange } = input;
  const choice = `${names.after}, ${names.every} or at`;
  const given = [after, every, at].filter((one) => one !== undefined).length;
  if (strange !== undefined)
    return refuseSchedule(
      "invalid_selector",
      `a reminder takes prompt and one of ${choice}; ${shown(strange)} is none of them`,
    );
  if (given !== 1)
    return refuseSchedule(
      "invalid_selector",
      `a reminder needs exactly one of ${choice}, got ${given === 0 ? "none" : given}`,
    );

  const prompt = input.prompt.trim();
  if (prompt === "") return refuseSchedule("invalid_prompt", "`prompt` must not be blank");
  const bytes = utf8Bytes(prompt);
  if (bytes > config.maxPromptBytes)
    return refuseSchedule(
      "invalid_prompt",
      `\`prompt\` may have at most ${config.maxPromptBytes} bytes, got ${bytes}`,
    );

  if (after !== undefined) {
    if (!Number.isSafeInteger(after) || after < 1)
      return refuseSchedule(
        "invalid_rule",
        `\`${names.after}\` must be a positive whole number of seconds, got ${shown(after)}`,
      );
    return { ok: true, request: { prompt, rule: { kind: "after", seconds: after } } };
  }
  if (every === undefined) return { ok: true, request: { prompt, rule: { kind: "at", at } } };
  if (!Number.isSafeInteger(every))
    return refuseSchedule(
      "invalid_rule",
      `\`${names.every}\` must be a whole number of seconds, got ${shown(every)}`,
    );
  if (every < minEverySeconds)
    return refuseSchedule(
      "frequency_too_high",
      `\`${names.every}\` must be at least ${minEverySeconds}, got ${every}`,
    );
  return { ok: true, request: { prompt, rule: { kind: "every", seconds: every } } };
}

export interface CreateContext {
  /** Workflow time, epoch ms. */
  readonly now: number;
  readonly config: ScheduleConfig;
  /** What a local time was resolved to; absent: nobody could say. */
  readonly zone?: ZoneAnswer | undefined;
}

/** The rest: the log, the time, the number of reminders (spec/schedule §3.1, 9 to 12). The record is not stored yet. */
export function decideCreate(
  state: ScheduleState,
  { prompt, rule }: CreateRequest,
  context: CreateContext,
): { readonly ok: true; readonly record: ScheduleRecord } | ScheduleRefusal {
  if (state.fault !== undefined) return corruptLog(state.fault);
  const { now, config } = context;
  const target =
    rule.kind === "at"
      ? instantOf(rule.at, context.zone)
      : ({ ok: true, ms: now + rule.seconds * 1_000 } as const);
  if (!target.ok) return target;
  const future = checkFuture(target.ms, now);
  if (!future.ok) return future;
  if (state.records.length >= config.maxActive)
    return refuseSchedule(
      "too_many_schedules",
      `at most ${config.maxActive} reminders may be active; delete one first`,
    );
  const id = allocateId(state.seen);
  const scheduledAt = formatInstant(future.ms);
  switch (rule.kind) {
    case "after":
      return {
        ok: true,
        record: { id, kind: "after", prompt, afterSeconds: rule.seconds, scheduledAt },
      };
    case "every":
      return {
        ok: true,
        record: { id, kind: "every", prompt, everySeconds: rule.seconds, scheduledAt },
      };
    case "at":
      return { ok: true, record: { id, kind: "at", prompt, scheduledAt } };
  }
}

function instantOf(
  at: unknown,
  zone: ZoneAnswer | undefined,
): { readonly ok: true; readonly ms: number } | ScheduleRefusal {
  if (typeof at === "string") return parseAt(at);
  const local = parseLocal(at);
  if (!local.ok) return local;
  if (zone?.ok === false) return zone;
  const ms = parseInstant(zone?.scheduledAt);
  return ms === undefined
    ? refuseSchedule(
        "internal_error",
        `the zone ${shown(local.local.time_zone)} could not be looked up; try again, or give \`at\` with an offset`,
      )
    : checkRange(ms);
}
