import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import type { ErrorCode } from "../../../src/contracts/errors.js";
import type { Answer } from "../../support/protocol-server.js";
import type { Wire, WireReply } from "../../support/protocol-wires.js";
import type { Random } from "../random.js";

/** What the provider does with one request, and what the session must make of it (spec/harness §2). */
export interface Shot {
  readonly answer: Answer;
  readonly outcome: ReplyOutcome | FailureOutcome | { readonly kind: "held" };
}

/** The reply is logged as it was said; `results` are the error codes of its calls, in order. */
export interface ReplyOutcome {
  readonly kind: "reply";
  readonly said: Pick<WireReply, "reasoning" | "text" | "calls">;
  readonly results: readonly (ErrorCode | undefined)[];
  readonly cut?: "max-tokens" | "content-filter";
}

export interface FailureOutcome {
  readonly kind: "failure";
  readonly code: ErrorCode;
  /** Wait that the provider asks for, ms, lowest and highest; absent: the session's own back-off. */
  readonly waitMs?: readonly [number, number];
}

/** What shots are made with. */
export interface Making {
  readonly random: Random;
  readonly wire: Wire;
  /** Unlike every other of the session. */
  readonly callId: () => string;
}

export const echoTool = "echo";

const words = [
  "yes",
  "日本語",
  "naïve",
  "👩‍👩‍👧",
  "\n",
  "a\tb",
  "{}",
  "Ω",
  "e\u0301",
  "</p>",
  '"',
  "\\",
  "…",
];

export function someText(random: Random, most = 12): string {
  const count = random.between(1, most);
  return Array.from({ length: count }, () => random.pick(words)).join(" ");
}

/** A good call of the echo tool. */
export function echoCall(making: Making): NonNullable<WireReply["calls"]>[number] {
  const { random, callId } = making;
  return {
    callId: callId(),
    name: echoTool,
    arguments: JSON.stringify({ text: someText(random) }),
  };
}

/** A reply that is sent whole, at odd chunk boundaries and with pauses of any kind. */
export function goodReply(making: Making, said: WireReply): Answer {
  return unevenStream(making.random, making.wire.events({ ...varied(making), ...said }));
}

/** Characters a delta, and usage or none. */
export function varied({ random }: Making): Pick<WireReply, "delta" | "usage"> {
  return {
    delta: random.between(1, 20),
    ...(random.between(0, 3) > 0 && {
      usage: { inputTokens: random.between(1, 999), outputTokens: 1 },
    }),
  };
}

export interface UnevenOptions {
  /** What becomes of the stream after the events; default it ends. */
  readonly ending?: "end" | "cut" | "reset" | "stall";
  /** Largest piece, bytes; default from 1 to 400. */
  readonly most?: number;
}

/** Answers with an event stream in pieces of any size, cut anywhere, some of them late. */
export function unevenStream(
  random: Random,
  events: readonly string[],
  options: UnevenOptions = {},
): Answer {
  const bytes = Buffer.from(events.join(""), "utf8");
  const { ending = "end", most = random.pick([3, 17, 120, 400]) } = options;
  const pieces: { readonly bytes: Buffer; readonly pauseMs: number }[] = [];
  let pauses = 6;
  for (let at = 0; at < bytes.length;) {
    const size = random.between(1, most);
    const pauseMs = pauses > 0 && random.between(0, 9) === 0 ? random.between(1, 60) : 0;
    if (pauseMs > 0) pauses -= 1;
    pieces.push({ bytes: bytes.subarray(at, at + size), pauseMs });
    at += size;
  }
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    response.flushHeaders();
    for (const piece of pieces) {
      if (response.destroyed) return;
      if (piece.pauseMs > 0) await setTimeout(piece.pauseMs);
      await new Promise((resolve) => response.write(piece.bytes, resolve));
    }
    if (ending === "cut") response.socket?.end();
    else if (ending === "reset") response.socket?.resetAndDestroy();
    else if (ending === "stall") await once(response, "close");
    else response.end();
  };
}
