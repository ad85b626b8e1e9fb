import { isDeepStrictEqual } from "node:util";
import type { SessionLimits } from "../../../src/contracts/config.js";
import type { AssistantBlock } from "../../../src/contracts/content.js";
import type { LogEntry } from "../../../src/contracts/log.js";
import { key } from "../../support/protocol-wires.js";
import { retriedCodes } from "./failures.js";
import type { PlannedTurn } from "./plan.js";
import type { FailureOutcome, ReplyOutcome, Shot } from "./shot.js";

type EntryOf<T extends LogEntry["type"]> = Extract<LogEntry, { readonly type: T }>;

/** How a turn ended, e.g. `completed` or `error SERVER`; undefined when it has not. */
export function endIn(log: readonly LogEntry[]): string | undefined {
  const end = log.find((entry) => entry.type === "turn/end");
  if (end === undefined) return undefined;
  const { reason } = end.data;
  return reason.kind === "error" ? `error ${reason.code}` : reason.kind;
}

export function statedEnd({ end: { kind, code } }: PlannedTurn): string {
  return code === undefined ? kind : `${kind} ${code}`;
}

/** In what the entries of one turn differ from what its shots must have come to; empty when they agree. */
export function turnProblems(
  { shots, ...turn }: PlannedTurn,
  log: readonly LogEntry[],
  limits: SessionLimits,
): string[] {
  const problems: string[] = [];
  const stated = statedEnd({ shots, ...turn });
  const end = endIn(log);
  if (end !== stated) problems.push(`ended ${end ?? "not at all"}, stated is ${stated}`);
  const replies = shots.flatMap(({ outcome }) => (outcome.kind === "reply" ? [outcome] : []));
  return [
    ...problems,
    ...retryProblems(retriedOf(shots), all(log, "llm/retry"), limits),
    ...replyProblems(replies, all(log, "assistant/message")),
    ...resultProblems(replies, all(log, "tool/result")),
    ...all(log, "turn/end").flatMap(({ data: { reason } }) =>
      reason.kind === "error" ? messageProblems(reason.message) : [],
    ),
  ];
}

/** Failures that another request follows. */
function retriedOf(shots: readonly Shot[]): FailureOutcome[] {
  return shots.flatMap(({ outcome }, index) =>
    outcome.kind === "failure" && retriedCodes.has(outcome.code) && index < shots.length - 1
      ? [outcome]
      : [],
  );
}

function retryProblems(
  expected: readonly FailureOutcome[],
  retries: readonly EntryOf<"llm/retry">[],
  limits: SessionLimits,
): string[] {
  const codes = retries.map(({ data }) => data.failure.code);
  const stated = expected.map(({ code }) => code);
  if (!isDeepStrictEqual(codes, stated))
    return [
      `retried after ${codes.join(", ") || "nothing"}, stated is ${stated.join(", ") || "nothing"}`,
    ];
  return retries.flatMap(({ data: { retry, delayMs, failure } }, index) => {
    const backoff = Math.min(limits.retryCapMs, limits.retryBaseMs * 2 ** (retry - 1));
    const [low, high] = expected[index]?.waitMs ?? [
      Math.floor(backoff * 0.9),
      Math.ceil(backoff * 1.1),
    ];
    return [
      ...(delayMs < low || delayMs > high
        ? [`waits ${delayMs} ms after ${failure.code}, stated is ${low} to ${high}`]
        : []),
      ...messageProblems(failure.message),
    ];
  });
}

function replyProblems(
  replies: readonly ReplyOutcome[],
  logged: readonly EntryOf<"assistant/message">[],
): string[] {
  // What had come before an interrupt is a matter of time.
  const whole = logged.filter(({ data }) => data.interrupted !== true);
  if (whole.length !== replies.length)
    return [`${whole.length} replies in the log, the provider gave ${replies.length}`];
  return replies.flatMap(({ said, cut }, index) => {
    const data = whole[index]?.data;
    const expected = contentOf(said);
    const content = data?.message.content ?? [];
    return [
      ...(isDeepStrictEqual(plain(content), expected)
        ? []
        : [
            `reply ${index + 1} is ${JSON.stringify(content)}, said was ${JSON.stringify(expected)}`,
          ]),
      ...(data?.finish === cut ? [] : [`reply ${index + 1} is marked ${data?.finish ?? "whole"}`]),
    ];
  });
}

function contentOf({ reasoning = "", text = "", calls = [] }: ReplyOutcome["said"]): object[] {
  return [
    ...(reasoning === "" ? [] : [{ type: "reasoning", text: reasoning }]),
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...calls.map((call) => ({ type: "tool-call", ...call })),
  ];
}

function plain(content: readonly AssistantBlock[]): object[] {
  return content.map((block) =>
    block.type === "reasoning" ? { type: "reasoning", text: block.text } : { ...block },
  );
}

function resultProblems(
  replies: readonly ReplyOutcome[],
  results: readonly EntryOf<"tool/result">[],
): string[] {
  const codes = results.map(({ data }) => data.error?.code);
  const stated = replies.flatMap((reply) => reply.results);
  if (!isDeepStrictEqual(codes, stated))
    return [`tool results ${shown(codes)}, stated is ${shown(stated)}`];
  const calls = replies.flatMap(({ said }) => said.calls ?? []);
  return results.flatMap(({ data }, index) => {
    if (data.error !== undefined) return [];
    const [block] = data.message.content;
    const text = block?.type === "tool-result" ? block.content.map((one) => one.text).join("") : "";
    const { text: argument } = JSON.parse(calls[index]?.arguments ?? "{}") as { text?: string };
    return text === `echo: ${argument}` ? [] : [`call ${index + 1} gave ${JSON.stringify(text)}`];
  });
}

const shown = (codes: readonly (string | undefined)[]): string =>
  `[${codes.map((code) => code ?? "good").join(", ")}]`;

/** One line that a person can read, without the key. */
function messageProblems(message: string): string[] {
  return message === "" ||
    message.length > 600 ||
    /\p{Cc}|<(?:!doctype|html|title|h1)/iu.test(message) ||
    message.includes(key)
    ? [`a failure is told as ${JSON.stringify(message)}`]
    : [];
}

function all<T extends LogEntry["type"]>(log: readonly LogEntry[], type: T): EntryOf<T>[] {
  return log.filter((entry): entry is EntryOf<T> => entry.type === type);
}
