import { refuse, type Refusal } from "../contracts/errors.js";
import { commands } from "../contracts/names.js";
import type { JobKillCommand, JobStartCommand } from "../contracts/session.js";
import { fieldsOf } from "./fields.js";
import { describeValue, maxMessageBytes, utf8Bytes } from "./guards.js";
import { checkLossless } from "./lossless.js";

type Parsed<T> = { readonly ok: true; readonly value: T } | Refusal;

/** Whatever came in a `job.start`, checked: it may come from any Temporal client. */
export function parseJobStart(input: unknown): Parsed<JobStartCommand> {
  const { opId, kind, label, input: given } = fieldsOf(input);
  if (!isId(opId)) return invalid(commands.jobStart, "an `opId` of 1 to 200 characters", opId);
  if (typeof kind !== "string" || kind === "")
    return invalid(commands.jobStart, "a `kind` of job", kind);
  if (typeof label !== "string" || label.trim() === "")
    return invalid(commands.jobStart, "a `label` that is not blank", label);
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return invalid(commands.jobStart, "`input` to be an object", given);
  const lossy = checkLossless(given);
  if (lossy !== undefined) {
    return refuse("INVALID_INPUT", `${commands.jobStart}: \`input\` must be JSON: ${lossy}`);
  }
  const bytes = utf8Bytes(JSON.stringify(given)) + utf8Bytes(label);
  if (bytes > maxMessageBytes) {
    return refuse(
      "MESSAGE_TOO_LARGE",
      `${commands.jobStart}: label and input hold at most ${maxMessageBytes} bytes, these have ${bytes}; put the text in a file of the workspace and name it`,
    );
  }
  return {
    ok: true,
    value: { opId, kind, label, input: given as JobStartCommand["input"] },
  };
}

export function parseJobKill(input: unknown): Parsed<JobKillCommand> {
  const { opId, jobId, reason } = fieldsOf(input);
  if (!isId(opId)) return invalid(commands.jobKill, "an `opId` of 1 to 200 characters", opId);
  if (typeof jobId !== "string" || jobId === "")
    return invalid(commands.jobKill, "a `jobId`", jobId);
  if (reason === undefined) return { ok: true, value: { opId, jobId } };
  if (typeof reason === "string" && reason.length <= 1_000)
    return { ok: true, value: { opId, jobId, reason } };
  return invalid(commands.jobKill, "`reason` to be text of at most 1,000 characters", reason);
}

function isId(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 200;
}

function invalid(command: string, expected: string, got: unknown): Refusal {
  return refuse("INVALID_INPUT", `${command} expects ${expected}, got ${describeValue(got)}`);
}
