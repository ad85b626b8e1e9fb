/**
 * Entries as the harness writes them (spec/harness §1) and as they are kept here. The differences, in both directions:
 *
 * | here | harness |
 * |---|---|
 * | `user/message` data `{message}` | the message itself |
 * | `callId` of a call's and a result's block | `id`, `toolCallId` |
 * | a replacement's surface positions, end excluded | the `seq` of its first and last node |
 * | an aborted turn's `reason` as text, a failed one's fields in the reason | `{kind}`, `{error}` |
 * | `inputTokens` with the cached ones, `cachedInputTokens` | without them, `cacheReadTokens` |
 * | `retryAfterMs` of a failure | `providerRetryAfterMs` |
 *
 * Keys keep their order and strange ones stay, so that there and back is the same text. Of an entry of another shape
 * everything that is not understood is passed on: whoever loads it judges it.
 */
export interface Fields {
  readonly [key: string]: unknown;
}

/** Data of an entry in the harness's words. */
export function toReferenceData(type: string, data: Fields): Fields {
  switch (type) {
    case "user/message":
      return isFields(data["message"]) ? changed(data["message"], { content: outContent }) : data;
    case "assistant/message":
      return changed(data, { message: outMessage, usage: outUsage });
    case "tool/result":
      return changed(data, { message: outMessage });
    case "agent/inbox/spliced":
      return changed(data, { inserted: (list) => each(list, outMessage) });
    case "turn/end":
      return changed(data, { reason: outReason });
    case "llm/retry":
      return changed(data, {
        failure: (failure) => renamed(failure, { retryAfterMs: "providerRetryAfterMs" }),
      });
    case "compaction/summary":
      return changed(data, { usage: outUsage });
    default:
      return data;
  }
}

/** Data of an entry in our words. */
export function fromReferenceData(type: string, data: Fields): Fields {
  switch (type) {
    case "user/message":
      return { message: inMessage(data) };
    case "assistant/message":
      return changed(data, { message: inMessage, usage: inUsage });
    case "tool/result":
      return changed(data, { message: inMessage });
    case "agent/inbox/spliced":
      return changed(data, { inserted: (list) => each(list, inMessage) });
    case "turn/end":
      return changed(data, { reason: inReason });
    case "llm/retry":
      return changed(data, {
        failure: (failure) => renamed(failure, { providerRetryAfterMs: "retryAfterMs" }),
      });
    case "compaction/summary":
      return changed(data, { usage: inUsage });
    default:
      return data;
  }
}

/** The `seq` of each surface node, in surface order, while a log is gone through. */
export class SurfaceSeqs {
  readonly #seqs: number[] = [];

  /** A replacement by positions as one by `seq`; anything else as it is. */
  toReference(op: unknown): unknown {
    if (!isReplace(op)) return op;
    const [first, last] = [this.#seqs[op.start], this.#seqs[op.end - 1]];
    return first === undefined || last === undefined ? op : { ...op, start: first, end: last };
  }

  /** A replacement by `seq` as one by positions; one of nodes that are not there has the range -1..0, which no log takes. */
  fromReference(op: unknown): unknown {
    if (!isReplace(op)) return op;
    const [start, last] = [this.#seqs.indexOf(op.start), this.#seqs.indexOf(op.end)];
    return start === -1 || last === -1
      ? { ...op, start: -1, end: 0 }
      : { ...op, start, end: last + 1 };
  }

  /** Places an entry whose positions are ours. */
  apply(seq: number, op: unknown): void {
    if (op === "append") this.#seqs.push(seq);
    else if (isReplace(op)) this.#seqs.splice(op.start, op.end - op.start, seq);
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isReplace(
  op: unknown,
): op is { readonly op: "replace"; readonly start: number; readonly end: number } {
  return (
    isFields(op) &&
    op["op"] === "replace" &&
    typeof op["start"] === "number" &&
    typeof op["end"] === "number"
  );
}

function outMessage(message: unknown): unknown {
  return isFields(message) ? changed(message, { content: outContent }) : message;
}

function outContent(content: unknown): unknown {
  return each(content, (block) => {
    if (!isFields(block)) return block;
    if (block["type"] === "tool-call") return renamed(block, { callId: "id" });
    return block["type"] === "tool-result" ? renamed(block, { callId: "toolCallId" }) : block;
  });
}

function inMessage(message: unknown): unknown {
  return isFields(message) ? changed(message, { content: inContent }) : message;
}

function inContent(content: unknown): unknown {
  return each(content, (block) => {
    if (!isFields(block)) return block;
    if (block["type"] === "tool-call") return renamed(block, { id: "callId" });
    if (block["type"] !== "tool-result") return block;
    const result = renamed(block, { toolCallId: "callId" }) as Fields;
    return Object.hasOwn(result, "isError") ? result : { ...result, isError: false };
  });
}

function outReason(reason: unknown): unknown {
  if (!isFields(reason)) return reason;
  if (reason["kind"] === "aborted" && typeof reason["reason"] === "string") {
    const { reason: kind, detail, ...rest } = reason;
    const told = detail ?? (kind === "hook" ? "" : undefined);
    return { ...rest, reason: { kind, ...(told === undefined ? {} : { reason: told }) } };
  }
  if (reason["kind"] !== "error") return reason;
  const { kind, ...error } = reason;
  return { kind, error };
}

function inReason(reason: unknown): unknown {
  if (!isFields(reason)) return reason;
  const { kind, error, reason: cause, ...rest } = reason;
  if (kind === "error" && isFields(error)) return { kind, ...error };
  if (kind !== "aborted" || !isFields(cause)) return reason;
  const told = cause["reason"];
  return {
    kind,
    ...rest,
    // A log from before causes were kept says `legacy`.
    reason: cause["kind"] === "legacy" ? "user" : cause["kind"],
    ...(told === undefined || told === "" ? {} : { detail: told }),
  };
}

function outUsage(usage: unknown): unknown {
  if (!isFields(usage)) return usage;
  const cached = countOf(usage["cachedInputTokens"]) + countOf(usage["cacheWriteTokens"]);
  return renamed(
    changed(usage, {
      inputTokens: (total) => (typeof total === "number" ? total - cached : total),
    }),
    { cachedInputTokens: "cacheReadTokens" },
  );
}

function inUsage(usage: unknown): unknown {
  if (!isFields(usage)) return usage;
  const cached = countOf(usage["cacheReadTokens"]) + countOf(usage["cacheWriteTokens"]);
  return renamed(
    changed(usage, { inputTokens: (rest) => (typeof rest === "number" ? rest + cached : rest) }),
    { cacheReadTokens: "cachedInputTokens" },
  );
}

function countOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function each(list: unknown, change: (item: unknown) => unknown): unknown {
  return Array.isArray(list) ? list.map((item) => change(item)) : list;
}

/** Some values changed, those that are there. */
function changed(
  value: Fields,
  changes: { readonly [key: string]: (inner: unknown) => unknown },
): Fields {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      Object.hasOwn(changes, key) ? changes[key]?.(inner) : inner,
    ]),
  );
}

function renamed(value: unknown, names: { readonly [from: string]: string }): unknown {
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      Object.hasOwn(names, key) ? (names[key] ?? key) : key,
      inner,
    ]),
  );
}
