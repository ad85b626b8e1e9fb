import type { ErrorCode } from "../contracts/errors.js";
import type { ToolOutcome } from "../contracts/tools.js";

/** A failed call: one text block `Error: <message>` (spec/todo, conventions). */
export function errorOutcome(code: ErrorCode, message: string): ToolOutcome {
  return {
    content: [{ type: "text", text: `Error: ${message}` }],
    isError: true,
    error: { name: code, code },
  };
}

/** What is wrong with what a tool returned, of any shape; undefined when nothing is (spec/harness §3, stage 7). */
export function checkOutcome(outcome: unknown): string | undefined {
  if (!isRecord(outcome)) return "it must be an object";
  const { content, isError, images, additionalContexts } = outcome;
  if (!Array.isArray(content) || !content.every(isTextBlock)) {
    return "`content` must be a list of text blocks";
  }
  if (typeof isError !== "boolean") return "`isError` must be true or false";
  if (images !== undefined && !Array.isArray(images)) return "`images` must be a list";
  if (additionalContexts === undefined) return undefined;
  return Array.isArray(additionalContexts) &&
    additionalContexts.every((one) => typeof one === "string")
    ? undefined
    : "`additionalContexts` must be a list of texts";
}

function isTextBlock(block: unknown): boolean {
  return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string";
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
