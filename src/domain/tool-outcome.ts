import type { ErrorCode } from "../contracts/errors.js";
import type { ToolOutcome } from "../contracts/tools.js";

/** A failed call: one text block `Error: <message>` (spec/todo, conventions). */
export function errorOutcome(code: ErrorCode, message: string, name: string = code): ToolOutcome {
  return { content: [{ type: "text", text: `Error: ${message}` }], isError: true, error: { name, code } };
}
