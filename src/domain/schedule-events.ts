import {
  minEverySeconds,
  scheduleErrorCodes,
  type ScheduleChange,
  type ScheduleEventType,
  type ScheduleRecord,
} from "../contracts/schedule.js";
import { isId } from "./schedule-ids.js";
import { parseInstant } from "./schedule-instant.js";

/** The `schedule/*` entries that are Longhaul's own, for the list of those types: exported as `ignorable`. */
export const ownScheduleTypes = [
  "schedule/accepted",
  "schedule/rejected",
] as const satisfies readonly ScheduleEventType[];

export function isScheduleEvent(type: string): type is ScheduleEventType {
  return type === "schedule/change" || ownScheduleTypes.some((one) => one === type);
}

export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

/** The data of a `schedule/change`, strictly: exactly its keys and canonical values; a frozen copy (spec/schedule §6). */
export function decodeChange(data: unknown): Decoded<ScheduleChange> {
  if (!isRecord(data)) return bad("the payload must be an object");
  const { version, operation, id, schedule } = data;
  if (version !== 1) return bad("version must be 1");
  switch (operation) {
    case "create": {
      const record = decodeRecord(schedule);
      if (!record.ok) return record;
      return (
        strangeKeys(data, ["version", "operation", "schedule"]) ??
        good({ version, operation, schedule: record.value })
      );
    }
    case "delete":
      if (!isId(id)) return bad("id must be text without outer whitespace");
      return strangeKeys(data, ["version", "operation", "id"]) ?? good({ version, operation, id });
    case "dispatch":
      return decodeDispatch(data);
    default:
      return bad("operation must be create, delete or dispatch");
  }
}

function decodeDispatch(data: { readonly [key: string]: unknown }): Decoded<ScheduleChange> {
  const { id, acceptedAt } = data;
  if (!isId(id)) return bad("id must be text without outer whitespace");
  const head = { version: 1, operation: "dispatch", id } as const;
  if (!Object.hasOwn(data, "acceptedAt"))
    return strangeKeys(data, ["version", "operation", "id"]) ?? good(head);
  if (!isInstantText(acceptedAt)) return bad("acceptedAt must be a canonical instant");
  return (
    strangeKeys(data, ["version", "operation", "id", "acceptedAt"]) ?? good({ ...head, acceptedAt })
  );
}

/** A stored record, strictly. */
export function decodeRecord(record: unknown): Decoded<ScheduleRecord> {
  if (!isRecord(record)) return bad("a reminder must be an object");
  const { id, kind, prompt, afterSeconds, everySeconds, scheduledAt } = record;
  if (!isId(id)) return bad("the id of a reminder must be text without outer whitespace");
  if (typeof prompt !== "string" || prompt === "" || prompt.trim() !== prompt)
    return bad("the prompt of a reminder must be non-empty and trimmed");
  if (!isInstantText(scheduledAt)) return bad("scheduledAt must be a canonical instant");
  const common = ["id", "kind", "prompt", "scheduledAt"];
  switch (kind) {
    case "after":
      if (!Number.isSafeInteger(afterSeconds) || Number(afterSeconds) < 1)
        return bad("afterSeconds must be a positive whole number");
      return (
        strangeKeys(record, [...common, "afterSeconds"]) ??
        good({ id, kind, prompt, afterSeconds: Number(afterSeconds), scheduledAt })
      );
    case "at":
      return strangeKeys(record, common) ?? good({ id, kind, prompt, scheduledAt });
    case "every":
      if (!isInterval(everySeconds))
        return bad(`everySeconds must be a whole number of at least ${minEverySeconds}`);
      return (
        strangeKeys(record, [...common, "everySeconds"]) ??
        good({ id, kind, prompt, everySeconds, scheduledAt })
      );
    default:
      return bad("the kind of a reminder must be after, at or every");
  }
}

/**
 * What is wrong with the data of Longhaul's own `schedule/*` entries; undefined when nothing is. Looks only at what folding
 * relies on. `schedule/change` is judged by the fold, for a bad one must not cost the conversation (spec/schedule C13).
 */
export function checkScheduleEvent(type: ScheduleEventType, data: unknown): string | undefined {
  if (!isRecord(data)) return `${type} must be an object`;
  if (type === "schedule/change") return undefined;
  if (typeof data["requestId"] !== "string" || data["requestId"] === "")
    return `${type} requestId must be non-empty text`;
  return type === "schedule/accepted"
    ? checkAnswer(data["answer"])
    : checkReject(data["code"], data["message"]);
}

export function checkAnswer(answer: unknown): string | undefined {
  const { operation, id, scheduledAt, deleted }: { [K in keyof AnyAnswer]?: unknown } = isRecord(
    answer,
  )
    ? answer
    : {};
  const told =
    (operation === "create" && isInstantText(scheduledAt)) ||
    (operation === "delete" && typeof deleted === "boolean");
  return told && isId(id) ? undefined : "the answer of a change must be that of create or delete";
}

export function checkReject(code: unknown, message: unknown): string | undefined {
  const known = code === "INVALID_INPUT" || scheduleErrorCodes.some((one) => one === code);
  return known && typeof message === "string"
    ? undefined
    : "the refusal of a change must have a known code and a message";
}

type AnyAnswer = { [K in "operation" | "id" | "scheduledAt" | "deleted"]: unknown };

export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isInstantText(text: unknown): text is string {
  return parseInstant(text) !== undefined;
}

function isInterval(seconds: unknown): seconds is number {
  return (
    Number.isSafeInteger(seconds) &&
    Number(seconds) >= minEverySeconds &&
    Number.isSafeInteger(Number(seconds) * 1_000)
  );
}

/** Keys whose value is undefined count as present. */
function strangeKeys(
  data: { readonly [key: string]: unknown },
  expected: readonly string[],
): { readonly ok: false; readonly problem: string } | undefined {
  const keys = Reflect.ownKeys(data);
  const exact =
    keys.length === expected.length && expected.every((key) => Object.hasOwn(data, key));
  return exact ? undefined : bad(`its keys must be exactly ${expected.join(", ")}`);
}

function good<T extends object>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value: Object.freeze(value) };
}

function bad(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}
