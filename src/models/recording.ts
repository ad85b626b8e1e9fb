import { createHash } from "node:crypto";
import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { LonghaulError } from "../contracts/errors.js";
import type { ModelRequest } from "../contracts/model.js";

/** Appends a request as one line of JSON to `<directory>/<sessionId>.ndjson`; INVALID_CONFIG when it cannot. */
export async function recordRequest(directory: string, request: ModelRequest): Promise<void> {
  const path = join(directory, `${fileNameOf(request.sessionId)}.ndjson`);
  try {
    await mkdir(directory, { recursive: true });
    await appendFile(path, `${JSON.stringify(request)}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new LonghaulError(
      "INVALID_CONFIG",
      `cannot record model requests in ${directory}: ${reason}`,
      { cause: error },
    );
  }
}

/** The id itself where it is a safe name; else escaped, and cut with a digest when that gets long. */
function fileNameOf(sessionId: string): string {
  // Through UTF-8, which replaces unpaired surrogates; they could not be escaped.
  const name = encodeURIComponent(Buffer.from(sessionId).toString());
  if (name.length <= 150) return name;
  return `${name.slice(0, 100)}~${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
}
