import {
  jobEnds,
  type JobOutcome,
  type JobReport,
  type JobTail,
  type StoredOutput,
} from "../contracts/jobs.js";
import { utf8Bytes } from "./guards.js";
import { headBytes, tailBytes } from "./job-bytes.js";
import { jobDetails, jsonOf, outputMark } from "./job-texts.js";
import { fieldsOf } from "./fields.js";

/** Longest detail that is kept, bytes: it stands in every list and in the notice. */
const maxDetailBytes = 4_096;
/** Longest final output inline; a worker sends more by reference (J14). */
const maxOutputBytes = 65_536;
const maxTailBytes = 4_096;

/**
 * A report that came by signal, checked; undefined when it names no job. A settled one always gives an outcome: what breaks
 * the contract is a failure with a warning, so that a job never waits for a second report.
 */
export function parseReport(
  input: unknown,
): { readonly report: JobReport; readonly warnings: readonly string[] } | undefined {
  const { id, nonce, owner, report, outcome, message } = fieldsOf(input);
  if (typeof id !== "string" || typeof nonce !== "string") return undefined;
  if (owner !== undefined && typeof owner !== "string") return undefined;
  const head = { id, nonce, ...(owner === undefined ? {} : { owner }) };
  if (report === "cancel-failed") {
    const said = typeof message === "string" ? message : jsonOf(message);
    return {
      report: { ...head, report: "cancel-failed", message: headBytes(said, maxDetailBytes) },
      warnings: [],
    };
  }
  if (report !== "settled") return undefined;
  const parsed = parseOutcome(outcome);
  const broken = !jobEnds.some((one) => one === fieldsOf(outcome)["status"]);
  return {
    report: { ...head, report: "settled", outcome: parsed },
    warnings: broken ? [`job ${id}: ${parsed.detail ?? parsed.status}`] : [],
  };
}

/** Whether the host a report is from answered for it; undefined when the report does not tell. */
export function answerIn(
  input: unknown,
): { readonly host: string; readonly answered: boolean } | undefined {
  const { report, host, silent } = fieldsOf(input);
  if (report !== "settled" || typeof host !== "string") return undefined;
  return { host, answered: silent !== true };
}

function parseOutcome(input: unknown): JobOutcome {
  const { status, detail, output, ref, tails, lost } = fieldsOf(input);
  const end = jobEnds.find((one) => one === status);
  if (end === undefined) {
    return { status: "failed", detail: jobDetails.strangeOutcome(headBytes(jsonOf(status), 100)) };
  }
  const stored = parseRef(ref);
  // Not `map`: it would skip the holes of a list.
  const kept = Array.isArray(tails)
    ? Array.from<unknown, JobTail | undefined>(tails, parseTail)
    : undefined;
  return {
    status: end,
    ...(typeof detail === "string" ? { detail: headBytes(detail, maxDetailBytes) } : {}),
    ...(typeof output === "string" ? { output: capOutput(output) } : {}),
    ...(stored === undefined ? {} : { ref: stored }),
    ...(kept?.every((tail) => tail !== undefined) === true ? { tails: kept } : {}),
    ...(lost === true ? { lost } : {}),
  };
}

/** A worker that forgot the reference: the end is kept. */
function capOutput(output: string): string {
  if (utf8Bytes(output) <= maxOutputBytes) return output;
  const mark = `${outputMark.slice(1)}\n`;
  return mark + tailBytes(output, maxOutputBytes - utf8Bytes(mark));
}

function parseRef(input: unknown): StoredOutput | undefined {
  const { ref, bytes, digest } = fieldsOf(input);
  if (typeof ref !== "string" || typeof digest !== "string" || !isOffset(bytes)) return undefined;
  return { ref, bytes, digest };
}

/** A tail that is too long, or makes no sense, is read from the store instead. */
function parseTail(input: unknown): JobTail | undefined {
  const { stream, from, to, text } = fieldsOf(input);
  if (typeof stream !== "string" || typeof text !== "string") return undefined;
  if (!isOffset(from) || !isOffset(to) || to < from) return undefined;
  return utf8Bytes(text) > 3 * maxTailBytes ? undefined : { stream, from, to, text };
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
