import { isFields, type Fields } from "./reference-entry.js";

/** A shape that this release does not read is not damage (spec/harness §1). */
export interface ShapeFlaw {
  readonly code: "LOG_CORRUPT" | "LOG_UNSUPPORTED";
  readonly problem: string;
}

/**
 * What is wrong with the data of an entry that came from outside: only what the session goes by when it is folded or shown
 * to a model. Types with a check of their own (todo, jobs, reminders) are judged by the log.
 */
export function entryFlaw(type: string, data: unknown): ShapeFlaw | undefined {
  if (!isFields(data)) return corrupt("its data must be an object");
  switch (type) {
    case "turn/start":
      return isNumber(data["turn"]) ? undefined : corrupt("it needs the number of its turn");
    case "turn/end":
      return isNumber(data["turn"]) ? reasonFlaw(data["reason"]) : corrupt("it needs its turn");
    case "step/start":
    case "step/end":
      return stepFlaw(data);
    case "user/message":
      return messageFlaw(data["message"], "user");
    case "assistant/message":
      return stepFlaw(data) ?? messageFlaw(data["message"], "assistant");
    case "tool/result":
      return stepFlaw(data) ?? resultFlaw(data["message"]);
    case "tool/call":
      return stepFlaw(data) ?? (isCall(data) ? undefined : corrupt("it must name a call"));
    case "agent/inbox/spliced":
      return spliceFlaw(data);
    case "request/header":
      return headerFlaw(data["header"]);
    case "request/context":
      return isRoute(data) ? undefined : corrupt("it must name a route");
    case "session/open":
      return isFields(data["header"]) && isFields(data["config"])
        ? undefined
        : corrupt("it needs a header and a configuration");
    default:
      return undefined;
  }
}

const endKinds = ["completed", "aborted", "blocked", "error", "max-tokens", "interrupted"];

function reasonFlaw(reason: unknown): ShapeFlaw | undefined {
  if (!isFields(reason) || typeof reason["kind"] !== "string") return corrupt("it needs a reason");
  const { kind, code, message } = reason;
  if (!endKinds.includes(kind))
    return { code: "LOG_UNSUPPORTED", problem: `it ends for the unknown reason ${show(kind)}` };
  if (kind === "aborted" && typeof reason["reason"] !== "string")
    return corrupt("it needs a cause");
  return kind === "error" && (typeof code !== "string" || typeof message !== "string")
    ? corrupt("its error needs a code and a message")
    : undefined;
}

function stepFlaw({ turn, step }: Fields): ShapeFlaw | undefined {
  return isNumber(turn) && isNumber(step) ? undefined : corrupt("it needs its turn and its step");
}

function messageFlaw(message: unknown, role: string): ShapeFlaw | undefined {
  if (!isFields(message)) return corrupt("it needs a message");
  const { id, content, source } = message;
  if (typeof id !== "string" || message["role"] !== role || !Array.isArray(content))
    return corrupt(`its message must have an id, the role ${role} and content`);
  if (!isFields(source) || typeof source["kind"] !== "string")
    return corrupt("its message must say where it came from");
  return firstFlaw(content, blockFlaw);
}

function resultFlaw(message: unknown): ShapeFlaw | undefined {
  const flaw = messageFlaw(message, "user");
  if (flaw !== undefined) return flaw;
  const { content } = message as { readonly content: readonly Fields[] };
  return content.length === 1 && content[0]?.["type"] === "tool-result"
    ? undefined
    : corrupt("its message must be one result");
}

function blockFlaw(block: unknown): ShapeFlaw | undefined {
  if (!isFields(block)) return corrupt("a block of its content must be an object");
  const { type, text, callId, content, isError } = block;
  switch (type) {
    case "text":
    case "reasoning":
      return typeof text === "string" ? undefined : corrupt(`a ${type} block needs text`);
    case "tool-call":
      return isCall(block) ? undefined : corrupt("a call needs its id, name and arguments");
    case "tool-result":
      return typeof callId === "string" && Array.isArray(content) && typeof isError === "boolean"
        ? firstFlaw(content, blockFlaw)
        : corrupt("a result needs the id of its call and content");
    default:
      return {
        code: "LOG_UNSUPPORTED",
        problem: `it has content of the unknown type ${show(type)}`,
      };
  }
}

function spliceFlaw(data: Fields): ShapeFlaw | undefined {
  const { target, start, removedCount = 0, inserted } = data;
  if (target !== "next-turn" && target !== "next-step") return corrupt("it needs a known target");
  if (!isCount(start) || !isCount(removedCount) || !Array.isArray(inserted))
    return corrupt("it must say what it removes and inserts");
  return firstFlaw(inserted, (message) => messageFlaw(message, "user"));
}

function headerFlaw(header: unknown): ShapeFlaw | undefined {
  return isFields(header) && isFields(header["config"]) && isRoute(header["config"])
    ? undefined
    : corrupt("its header must name a route");
}

function firstFlaw(
  list: readonly unknown[],
  flawOf: (item: unknown) => ShapeFlaw | undefined,
): ShapeFlaw | undefined {
  for (const item of list) {
    const flaw = flawOf(item);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}

function isCall(value: Fields): boolean {
  return [value["callId"], value["name"], value["arguments"]].every(
    (one) => typeof one === "string",
  );
}

function isRoute(value: Fields): boolean {
  return typeof value["provider"] === "string" && typeof value["model"] === "string";
}

function isNumber(value: unknown): boolean {
  return isCount(value) && Number(value) >= 1;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : typeof value;
}

function corrupt(problem: string): ShapeFlaw {
  return { code: "LOG_CORRUPT", problem };
}
