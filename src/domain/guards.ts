import type { SessionConfig } from "../contracts/config.js";
import type { CloseCommand, ConfigureCommand, InterruptCommand, SendCommand, SendMode } from "../contracts/session.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import { checkTodoPolicy } from "./todo.js";

/** Largest message a sender may put in, UTF-8 bytes (design D10). */
export const maxMessageBytes = 262_144;

const maxIdCharacters = 200;
const modes: readonly SendMode[] = ["followup", "steer", "inject"];

type Parsed<T> = { readonly ok: true; readonly value: T } | Refusal;

/** Whatever came in a `session.send`, checked: it may come from any Temporal client. */
export function parseSend(input: unknown): Parsed<SendCommand> {
  const { id, mode, content } = fieldsOf(input);
  if (typeof id !== "string" || id === "" || id.length > maxIdCharacters) {
    return invalid("session.send", `an \`id\` of 1 to ${maxIdCharacters} characters`, id);
  }
  const known = modes.find((one) => one === mode);
  if (known === undefined) return invalid("session.send", `\`mode\` to be one of ${modes.join(", ")}`, mode);
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
  return { ok: true, value: { id, mode: known, content } };
}

export function parseInterrupt(input: unknown): Parsed<InterruptCommand> {
  const { reason } = fieldsOf(input);
  if (reason === undefined) return { ok: true, value: {} };
  if (reason === "user" || reason === "parent") return { ok: true, value: { reason } };
  return invalid("session.interrupt", "`reason` to be user or parent", reason);
}

export function parseClose(input: unknown): Parsed<CloseCommand> {
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
  const { config: change, refreshTools } = fieldsOf(input) as { [K in keyof ConfigureCommand]?: unknown };
  if (refreshTools !== undefined && typeof refreshTools !== "boolean") {
    return invalid("session.configure", "`refreshTools` to be true or false", refreshTools);
  }
  if (change === undefined) return { ok: true, value: { refreshTools: refreshTools === true } };
  if (typeof change !== "object" || change === null || Array.isArray(change)) {
    return invalid("session.configure", "`config` to be an object", change);
  }
  for (const [key, value] of Object.entries(change)) {
    const problem = configProblem(config, key, value);
    if (problem !== undefined) return refuse("INVALID_CONFIG", `session.configure: ${problem}`);
  }
  return { ok: true, value: { config: { ...config, ...change }, refreshTools: refreshTools === true } };
}

/** Keys that cannot change once a session has opened, and the kinds of the others. */
function configProblem(config: SessionConfig, key: string, value: unknown): string | undefined {
  switch (key) {
    case "request": {
      const { provider, model } = fieldsOf(value);
      return typeof provider === "string" && provider !== "" && typeof model === "string" && model !== ""
        ? undefined
        : "`request` needs a `provider` and a `model`";
    }
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
    case "limits": {
      const expected = Object.keys(config.limits);
      const given = fieldsOf(value);
      const complete = expected.every((name) => {
        const limit = given[name];
        return typeof limit === "number" && limit >= 0;
      });
      return complete ? undefined : `\`limits\` needs every one of ${expected.join(", ")} as a number`;
    }
    default:
      return `\`${key}\` cannot be changed in an open session`;
  }
}

/** UTF-8 length of a string, without encoding it. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) bytes += 1;
    if (unit > 0x7ff) bytes += 1;
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      bytes -= 1;
      index++;
    }
  }
  return bytes;
}

function fieldsOf(input: unknown): { readonly [key: string]: unknown } {
  return typeof input === "object" && input !== null ? (input as { readonly [key: string]: unknown }) : {};
}

function invalid(command: string, expected: string, got: unknown): Refusal {
  const shown = typeof got === "string" ? `text of ${got.length} characters` : got === null ? "null" : typeof got;
  return refuse("INVALID_INPUT", `${command} expects ${expected}, got ${shown}`);
}
