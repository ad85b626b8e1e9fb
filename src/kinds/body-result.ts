import { createHash } from "node:crypto";
import * as z from "zod";

import { jobEnds, type JobOutcome } from "../contracts/jobs.js";
import type { Store } from "../contracts/store.js";
import { resultStream } from "../store/job-output.js";
import { violations } from "../tools/outcome.js";
import { whileAway } from "./body-output.js";

/** Longest final output that travels inline, bytes (spec/jobs J14). */
const inlineBytes = 65_536;
const pieceBytes = 1024 * 1024;

/** How a body ended, its output not yet stored. */
export type BodyEnd = Pick<JobOutcome, "status" | "detail" | "output">;

const result = z
  .object({
    status: z.enum(jobEnds).optional(),
    detail: z.string().optional(),
    output: z.string().optional(),
  })
  .optional();

/** What a body returned, as an outcome: completed unless it says otherwise. */
export function bodyEnd(value: unknown): BodyEnd {
  const parsed = result.safeParse(value);
  if (!parsed.success) {
    const detail = `producer contract violation: ${violations(parsed.error)}`;
    return { status: "failed", detail };
  }
  const { status = "completed", detail, output } = parsed.data ?? {};
  return {
    status,
    ...(detail === undefined ? {} : { detail }),
    ...(output === undefined ? {} : { output }),
  };
}

/** A final output: inline, or in the store with its digest. Waits for a store that is away. */
export async function storeResult(
  store: Store,
  session: string,
  start: string,
  output: string,
): Promise<Pick<JobOutcome, "output" | "ref">> {
  const bytes = Buffer.from(output, "utf8");
  if (bytes.length <= inlineBytes) return { output: bytes.toString("utf8") };
  const digest = createHash("sha256").update(bytes).digest("hex");
  const ref = resultStream(start, digest);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes);
    await whileAway(() => store.append(session, ref, at, piece));
  }
  await whileAway(() => store.sync(session, ref));
  return { ref: { ref, bytes: bytes.length, digest } };
}
