import type { ModelPart } from "../contracts/model.js";

/** What of a model's reply goes to its side stream `model/<turn>.<step>.<nonce>` (design D7). */
export type StreamedPart = Extract<
  ModelPart,
  { readonly type: "text" | "reasoning" | "tool-call" }
>;

const newline = 0x0a;

/** The side stream is NDJSON in UTF-8: one part a line, as JSON. */
export function encodeStreamedPart(part: StreamedPart): Uint8Array {
  return Buffer.from(`${JSON.stringify(part)}\n`, "utf8");
}

export interface StreamedPartDecoder {
  /** The parts completed by these bytes; what follows the last newline is kept for the next call. */
  push(bytes: Uint8Array): readonly StreamedPart[];
}

/** Decodes a side stream cut at any byte. Lines of unknown kinds are skipped, so that a newer writer can be read. */
export function createStreamedPartDecoder(): StreamedPartDecoder {
  let rest: Uint8Array[] = [];
  return {
    push(bytes) {
      const parts: StreamedPart[] = [];
      let start = 0;
      for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
        const part = parseLine(
          Buffer.concat([...rest, bytes.subarray(start, end)]).toString("utf8"),
        );
        if (part !== undefined) parts.push(part);
        rest = [];
        start = end + 1;
      }
      if (start < bytes.length) rest.push(Uint8Array.from(bytes.subarray(start)));
      return parts;
    },
  };
}

function parseLine(line: string): StreamedPart | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  return isStreamedPart(value) ? value : undefined;
}

function isStreamedPart(value: unknown): value is StreamedPart {
  if (typeof value !== "object" || value === null || !("type" in value)) return false;
  if (value.type === "text" || value.type === "reasoning")
    return "text" in value && typeof value.text === "string";
  return (
    value.type === "tool-call" &&
    ["callId", "name", "arguments"].every((key) => typeof Reflect.get(value, key) === "string")
  );
}
