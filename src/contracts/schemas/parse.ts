import type * as z from "zod";
import { LonghaulError, type ErrorCode } from "../errors.js";

/**
 * Checks a value that came from outside. Refused: LonghaulError in one line that names `what`, the place and the
 * expectation, e.g. `session id: expected 1-200 characters of A-Z a-z 0-9 . _ -, got "a b"`.
 */
export function parseInput<T>(
  schema: z.ZodType<T>,
  value: unknown,
  what: string,
  code: ErrorCode = "INVALID_INPUT",
): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue === undefined) throw new LonghaulError(code, `${what}: not accepted`);
  const place = issue.path.length === 0 ? what : `${what}: ${issue.path.join(".")}`;
  const more =
    result.error.issues.length > 1 ? ` (and ${result.error.issues.length - 1} more)` : "";
  throw new LonghaulError(
    code,
    `${place}: ${oneLine(issue.message)}, got ${brief(at(value, issue.path))}${more}`,
  );
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null
        ? (Reflect.get(inner, key) as unknown)
        : undefined,
    value,
  );
}

function brief(value: unknown): string {
  if (value === undefined) return "nothing";
  let text: string;
  try {
    text = JSON.stringify(value) ?? typeof value;
  } catch {
    // A cycle, a bigint, nesting without end: what is wrong with it was said.
    text = typeof value;
  }
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function oneLine(message: string): string {
  return message.replace(/\s*\n\s*/gu, " ").replace(/^Invalid input: /u, "");
}
