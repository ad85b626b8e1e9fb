import type { JobKillRequest, JobProgress } from "../contracts/jobs.js";
import { fieldsOf } from "./fields.js";
import { headBytes, tailBytes } from "./job-bytes.js";

const texts = ["session", "token", "jobId", "nonce", "host", "kind", "label"] as const;
const counts = ["heartbeatMs", "heartbeatTimeoutMs", "orphanGraceMs", "outputBytes"] as const;

/** What is wrong with the start input of a job's workflow; undefined when nothing is. */
export function jobInputProblem(input: unknown): string | undefined {
  const given = fieldsOf(input);
  if (given["v"] !== 1) return "expected the start input of a job, {v: 1, session, jobId, …}";
  for (const key of texts) {
    if (typeof given[key] !== "string" || given[key] === "")
      return `\`${key}\` is text that is not empty`;
  }
  for (const key of counts) {
    if (!Number.isSafeInteger(given[key]) || Number(given[key]) < 0)
      return `\`${key}\` is a whole number from 0`;
  }
  const { input: what, cwd, outsideWorkspace } = given;
  if (typeof what !== "object" || what === null) return "`input` is an object";
  if (cwd !== undefined && typeof cwd !== "string") return "`cwd` is text";
  return typeof outsideWorkspace === "boolean" ? undefined : "`outsideWorkspace` is true or false";
}

/** Of any shape: whoever signals a kill means one. */
export function parseKillRequest(input: unknown): JobKillRequest {
  const { reason } = fieldsOf(input);
  return typeof reason === "string" ? { reason: headBytes(reason, 4_096) } : {};
}

export function parseProgress(input: unknown): JobProgress | undefined {
  const { bytes, tail } = fieldsOf(input);
  if (typeof bytes !== "number" || typeof tail !== "string") return undefined;
  return { bytes, tail: tailBytes(tail, 4_096) };
}
