import { LonghaulError } from "../contracts/errors.js";
import type { ScheduleError } from "../contracts/schedule.js";
import { oneLine } from "./render/clean.js";

/** What the rules of reminders refuse, with the codes of that set (docs/reminders.md). */
export class ReminderRefused extends Error {
  override readonly name = "ReminderRefused";
  readonly refusal: ScheduleError & { readonly requestId?: string };

  constructor(refusal: ScheduleError & { readonly requestId?: string }) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** One line for stderr; the stack follows only when it is asked for (LONGHAUL_DEBUG=1). */
export function failureText(error: unknown, debug: boolean): string {
  const code = codeOf(error);
  const line = `error: ${code === undefined ? "" : `${code}: `}${oneLine(messageOf(error))}`;
  return debug && error instanceof Error ? `${line}\n${stackOf(error)}\n` : `${line}\n`;
}

/** `{"error":{"code","message"}}` on one line, for programs (`--json`); `code` is null for what has none. */
export function failureJson(error: unknown, debug: boolean): string {
  const stack = debug && error instanceof Error ? { stack: stackOf(error) } : {};
  return `${JSON.stringify({ error: { code: codeOf(error) ?? null, message: oneLine(messageOf(error)), ...factsOf(error), ...stack } })}\n`;
}

/** 2 when the command line is wrong, else 1. */
export function failureCode(error: unknown): number {
  return error instanceof LonghaulError && error.code === "USAGE" ? 2 : 1;
}

function codeOf(error: unknown): string | undefined {
  if (error instanceof LonghaulError) return error.code;
  return error instanceof ReminderRefused ? error.refusal.code : undefined;
}

/** Which operation on which reminder may or may not have been carried out. */
function factsOf(error: unknown): object {
  if (!(error instanceof ReminderRefused)) return {};
  const { operation, id, requestId } = error.refusal;
  return {
    ...(operation === undefined ? {} : { operation }),
    ...(id === undefined ? {} : { id }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? error.name : error.message;
}

function stackOf(error: Error): string {
  const cause: unknown = error.cause;
  return (error.stack ?? "") + (cause instanceof Error ? `\ncaused by ${stackOf(cause)}` : "");
}
