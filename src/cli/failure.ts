import { LonghaulError } from "../contracts/errors.js";
import { oneLine } from "./render/clean.js";

/** One line for stderr; the stack follows only when it is asked for (LONGHAUL_DEBUG=1). */
export function failureText(error: unknown, debug: boolean): string {
  const line =
    error instanceof LonghaulError
      ? `error: ${error.code}: ${oneLine(error.message)}`
      : `error: ${oneLine(messageOf(error))}`;
  return debug && error instanceof Error ? `${line}\n${stackOf(error)}\n` : `${line}\n`;
}

/** `{"error":{"code","message"}}` on one line, for programs (`--json`); `code` is null for what has none. */
export function failureJson(error: unknown, debug: boolean): string {
  const code = error instanceof LonghaulError ? error.code : null;
  const stack = debug && error instanceof Error ? { stack: stackOf(error) } : {};
  return `${JSON.stringify({ error: { code, message: oneLine(messageOf(error)), ...stack } })}\n`;
}

/** 2 when the command line is wrong, else 1. */
export function failureCode(error: unknown): number {
  return error instanceof LonghaulError && error.code === "USAGE" ? 2 : 1;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? error.name : error.message;
}

function stackOf(error: Error): string {
  const cause: unknown = error.cause;
  return (error.stack ?? "") + (cause instanceof Error ? `\ncaused by ${stackOf(cause)}` : "");
}
