import type { SessionConfig, SessionLimits } from "../contracts/config.js";
import type {
  CloseCommand,
  ConfigureCommand,
  InterruptCommand,
  SendCommand,
  SendMode,
} from "../contracts/session.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import { checkLossless } from "./lossless.js";
import { loadCompactionConfig } from "./compaction-config.js";
import { loadJobsConfig } from "./job-config.js";
import { loadRollOverConfig } from "./roll-over-config.js";
import { loadScheduleConfig } from "./schedule-config.js";
import { timeContextProblem } from "./time-context-config.js";
import { checkRequest } from "./request.js";
import { checkTodoPolicy } from "./todo.js";
import { fieldsOf } from "./fields.js";

/** Largest message a sender may put in, UTF-8 bytes (design D10). */
export const maxMessageBytes = 262_144;

const maxIdCharacters = 200;
/** Of notices and reminders (design §2): a sender's id must not bar one. */
const ownPrefixes = ["job/", "schedule/"];
/** An id is printed wherever a message is. */
const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Its shape; whoever sends it has looked it up. */
const zoneName = /^[A-Za-z][A-Za-z0-9_+./-]{0,99}$/u;
const modes: readonly SendMode[] = ["followup", "steer", "inject"];

type Parsed<T> = { readonly ok: true; readonly value: T } | Refusal;

/** Whatever came in a `session.send`, checked: it may come from any Temporal client. */
export function parseSend(input: unknown): Parsed<SendCommand> {
  const { id, mode, content, timeZone } = fieldsOf(input);
  if (typeof id !== "string" || id === "" || id.length > maxIdCharacters) {
    return invalid("session.send", `an \`id\` of 1 to ${maxIdCharacters} characters`, id);
  }
  if (controls.test(id)) {
    return invalid("session.send", "an `id` without control characters", id);
  }
  const reserved = ownPrefixes.find((prefix) => id.startsWith(prefix));
  if (reserved !== undefined) {
    return refuse(
      "INVALID_INPUT",
      `session.send: message ids that begin with ${JSON.stringify(reserved)} are the session's own; send this one under another id`,
    );
  }
  const known = modes.find((one) => one === mode);
  if (known === undefined)
    return invalid("session.send", `\`mode\` to be one of ${modes.join(", ")}`, mode);
  if (typeof content !== "string" || content.trim() === "") {
    return invalid("session.send", "`content` to be non-empty text", content);
  }
  const bytes = utf8Bytes(content);
  if (bytes > maxMessageBytes) {
    return refuse(
      "MESSAGE_TOO_LARGE",
      `a message holds at most ${maxMessageBytes} bytes, this one has ${bytes}; put the text in a file of the workspace and name it`,
    );
  }
  if (timeZone !== undefined && (typeof timeZone !== "string" || !zoneName.test(timeZone))) {
    return invalid("session.send", "`timeZone` such as Europe/Berlin", timeZone);
  }
  return {
    ok: true,
    value: { id, mode: known, content, ...(timeZone === undefined ? {} : { timeZone }) },
  };
}

/** Of `session.interrupt` and `session.cancel`. */
export function parseInterrupt(command: string, input: unknown): Parsed<InterruptCommand> {
  const strange = strangePayload(command, input);
  if (strange !== undefined) return strange;
  const { reason } = fieldsOf(input);
  if (reason === undefined) return { ok: true, value: {} };
  if (reason === "user" || reason === "parent") return { ok: true, value: { reason } };
  return invalid(command, "`reason` to be user or parent", reason);
}

export function parseClose(input: unknown): Parsed<CloseCommand> {
  const strange = strangePayload("session.close", input);
  if (strange !== undefined) return strange;
  const { reason } = fieldsOf(input);
  if (reason === undefined) return { ok: true, value: {} };
  if (typeof reason === "string" && reason.length <= 1_000) return { ok: true, value: { reason } };
  return invalid("session.close", "`reason` to be text of at most 1,000 characters", reason);
}

/** The changed part of a configuration, merged into `config` and checked. */
export function parseConfigure(
  input: unknown,
  config: SessionConfig,
): Parsed<{ readonly config?: SessionConfig; readonly refreshTools: boolean }> {
  const strange = strangePayload("session.configure", input);
  if (strange !== undefined) return strange;
  const { config: change, refreshTools } = fieldsOf(input) as {
    [K in keyof ConfigureCommand]?: unknown;
  };
  if (refreshTools !== undefined && typeof refreshTools !== "boolean") {
    return invalid("session.configure", "`refreshTools` to be true or false", refreshTools);
  }
  if (change === undefined) return { ok: true, value: { refreshTools: refreshTools === true } };
  if (typeof change !== "object" || change === null || Array.isArray(change)) {
    return invalid("session.configure", "`config` to be an object", change);
  }
  for (const [key, value] of Object.entries(change)) {
    const problem = configProblem(key, value);
    if (problem !== undefined) return refuse("INVALID_CONFIG", `session.configure: ${problem}`);
  }
  const lossy = checkLossless(change);
  if (lossy !== undefined) {
    return refuse("INVALID_CONFIG", `session.configure: \`config\` must be JSON: ${lossy}`);
  }
  return {
    ok: true,
    value: { config: { ...config, ...change }, refreshTools: refreshTools === true },
  };
}

/** Keys that cannot change once a session has opened, and the kinds of the others. */
function configProblem(key: string, value: unknown): string | undefined {
  switch (key) {
    case "request":
      return checkRequest(value);
    case "system":
      return typeof value === "string" ? undefined : "`system` is text";
    case "allowParallelInProgress":
      return checkTodoPolicy(value);
    case "outsideWorkspace":
      return typeof value === "boolean" ? undefined : "`outsideWorkspace` is true or false";
    case "deny":
    case "ask":
      return Array.isArray(value) && value.every((name) => typeof name === "string")
        ? undefined
        : `\`${key}\` is a list of tool names`;
    case "limits":
      return checkLimits(value);
    case "schedule": {
      const schedule = loadScheduleConfig(value);
      return schedule.ok ? undefined : schedule.message;
    }
    case "timeContext":
      return timeContextProblem(value);
    case "compaction": {
      const compaction = loadCompactionConfig(value);
      return compaction.ok ? undefined : compaction.message;
    }
    case "rollOver": {
      const rollOver = loadRollOverConfig(value);
      return rollOver.ok ? undefined : rollOver.message;
    }
    case "jobs": {
      const jobs = loadJobsConfig(value);
      return jobs.ok ? undefined : jobs.message;
    }
    default:
      return `\`${key}\` cannot be changed in an open session`;
  }
}

/** Smallest value of each limit; all are whole numbers. */
const leastLimits: SessionLimits = {
  maxParallelToolCalls: 1,
  maxInlineBytes: 0,
  maxModelRetries: 0,
  retryBaseMs: 0,
  retryCapMs: 0,
  modelTimeoutMs: 1,
};

function checkLimits(value: unknown): string | undefined {
  const given = fieldsOf(value);
  const names = Object.keys(leastLimits);
  const strange = Object.keys(given).find((name) => !names.includes(name));
  if (strange !== undefined) return `\`limits\` has no key ${JSON.stringify(strange)}`;
  for (const [name, least] of Object.entries(leastLimits)) {
    const limit = given[name];
    if (!Number.isSafeInteger(limit) || Object.is(limit, -0) || Number(limit) < least) {
      return `\`limits\` needs every one of ${names.join(", ")}; \`${name}\` is a whole number of at least ${least}`;
    }
  }
  return undefined;
}

/** UTF-8 length of a string, without encoding it; a lone surrogate counts 3, as the replacement character it becomes. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) bytes += 1;
    if (unit > 0x7ff) bytes += 1;
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      index++;
    }
  }
  return bytes;
}

/** A payload that is neither missing nor an object. */
function strangePayload(command: string, input: unknown): Refusal | undefined {
  if (input === undefined || input === null) return undefined;
  if (typeof input === "object" && !Array.isArray(input)) return undefined;
  return invalid(command, "an object", input);
}

function invalid(command: string, expected: string, got: unknown): Refusal {
  return refuse("INVALID_INPUT", `${command} expects ${expected}, got ${describeValue(got)}`);
}

/** What came, for a refusal: texts may be huge or secret, so only their length. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return `text of ${value.length} characters`;
  if (typeof value === "number" || typeof value === "boolean") return `${value}`;
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value;
}
