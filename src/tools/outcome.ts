import * as z from "zod";

import { type ErrorCode, errorCodes } from "../contracts/errors.js";
import type { ToolOutcome } from "../contracts/tools.js";

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const imageRef = z.object({
  mediaType: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
  stream: z.string().min(1).max(500),
  bytes: z.int().min(1),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
});

const toolReturn = z.object({
  text: z.string(),
  meta: z.record(z.string(), scalar).optional(),
  images: z.array(imageRef).max(16).optional(),
  error: z.object({ code: z.enum(errorCodes) }).optional(),
  concludesTurn: z.boolean().optional(),
  additionalContexts: z.array(z.string()).optional(),
});

/** An error as the model sees it: `Error: <message>`. */
export function errorOutcome(code: ErrorCode, message: string): ToolOutcome {
  return {
    content: [{ type: "text", text: wellFormed(`Error: ${message}`) }],
    isError: true,
    error: { name: "ToolError", code },
  };
}

/** Checks what a body returned; INVALID_TOOL_OUTPUT when it is no text and no `ToolReturn`. */
export function outcomeOf(tool: string, value: unknown): ToolOutcome {
  const parsed = toolReturn.safeParse(typeof value === "string" ? { text: value } : value);
  if (!parsed.success) {
    return errorOutcome(
      "INVALID_TOOL_OUTPUT",
      `tool ${tool} returned an invalid value: ${violations(parsed.error)}`,
    );
  }
  const { text, meta, images, error, concludesTurn, additionalContexts } = parsed.data;
  return {
    content: [{ type: "text", text: wellFormed(text) }],
    ...(images === undefined || images.length === 0 ? {} : { images }),
    isError: error !== undefined,
    ...(error === undefined ? {} : { error: { name: "ToolError", code: error.code } }),
    ...(meta === undefined ? {} : { meta }),
    ...(concludesTurn === true && error === undefined ? { concludesTurn } : {}),
    ...(additionalContexts === undefined || additionalContexts.length === 0
      ? {}
      : { additionalContexts }),
  };
}

/** All violations in one line, `<path>: <message>` joined by `; `. */
export function violations(error: z.ZodError): string {
  return error.issues
    .map((issue) =>
      issue.path.length === 0
        ? issue.message
        : `${issue.path.map(String).join(".")}: ${issue.message}`,
    )
    .join("; ");
}

/** Half a surrogate pair has no UTF-8, so it would not survive storage. */
function wellFormed(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
