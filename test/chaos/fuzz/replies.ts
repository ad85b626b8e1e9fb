import { setTimeout } from "node:timers/promises";
import type { ErrorCode } from "../../../src/contracts/errors.js";
import { eventStream, type Answer } from "../../support/protocol-server.js";
import type { WireReply } from "../../support/protocol-wires.js";
import {
  echoCall,
  echoTool,
  goodReply,
  someText,
  unevenStream,
  varied,
  type Making,
  type ReplyOutcome,
  type Shot,
} from "./shot.js";

/** Something odd about a reply that is complete. */
export interface OddReply {
  readonly name: string;
  readonly shot: (making: Making) => Shot;
}

export const plainReply: OddReply = odd("nothing odd", (making) => ({
  text: someText(making.random),
}));

export const callingReply: OddReply = odd("one call", (making) => ({
  text: someText(making.random),
  calls: [echoCall(making)],
}));

export const oddReplies: readonly OddReply[] = [
  plainReply,
  odd("reasoning before the text", ({ random }) => ({
    reasoning: someText(random),
    text: someText(random),
  })),
  odd("20 KB of text", ({ random }) => ({
    text: someText(random, 20).repeat(400).slice(0, 20_000),
  })),
  odd("white space alone", () => ({ text: " \n" })),
  odd("no [DONE] after the end", ({ random }) => ({ text: someText(random) }), {
    events: (events) => events.filter((one) => !one.includes("[DONE]")),
  }),
  odd("a byte at a time", ({ random }) => ({ text: someText(random, 4) }), {
    answer: (events) => eventStream(events, { chunk: 1 }),
  }),
  odd("a slow first token", ({ random }) => ({ text: someText(random) }), {
    answer: (events, { random }) =>
      eventStream(events, { delayMs: random.between(200, 900), keepAlive: ": wait\n\n" }),
  }),
  odd("slow headers", ({ random }) => ({ text: someText(random) }), {
    answer: (events, { random }) => {
      const delayMs = random.between(200, 900);
      const stream = unevenStream(random, events);
      return async (response, request) => {
        await setTimeout(delayMs);
        await stream(response, request);
      };
    },
  }),
  odd("lines that end with CR LF", ({ random }) => ({ text: someText(random) }), {
    events: (events) => events.map((one) => one.replaceAll("\n", "\r\n")),
  }),
  odd("an emoji cut in two by a delta", () => ({ text: "😀", delta: 9 }), {
    // JSON escapes of the two halves, each in an event of its own.
    events: (events) =>
      events.flatMap((one) =>
        one.includes("😀") ? [one.replace("😀", "\\ud83d"), one.replace("😀", "\\ude00")] : [one],
      ),
  }),
  odd("two calls interleaved", (making) => ({
    text: someText(making.random),
    calls: [echoCall(making), echoCall(making)],
    delta: making.random.between(1, 4),
  })),
  odd("calls without text, finished as stop", (making) => ({
    calls: [echoCall(making)],
    finish: making.wire.words.stop,
  })),
  odd(
    "malformed arguments",
    ({ random, callId }) => ({
      calls: [
        {
          callId: callId(),
          name: echoTool,
          arguments: random.pick([
            '{"text": "half',
            "[1,2]",
            '"echo"',
            "{}",
            '{"text": 5}',
            "nul",
            "{'text': 'a'}",
            "<text>a</text>",
          ]),
        },
      ],
    }),
    { results: ["INVALID_ARGS"] },
  ),
  odd(
    "a malformed call beside a good one",
    (making) => ({
      calls: [{ callId: making.callId(), name: echoTool, arguments: '{"text":' }, echoCall(making)],
    }),
    { results: ["INVALID_ARGS", undefined] },
  ),
  odd(
    "a tool that does not exist",
    ({ callId }) => ({ calls: [{ callId: callId(), name: "ech o/\n", arguments: "{}" }] }),
    { results: ["UNKNOWN_TOOL"] },
  ),
  odd("a length finish", lengthReply, { cut: "max-tokens" }),
  odd("a length finish without content", ({ wire }) => ({ finish: wire.words.length }), {
    cut: "max-tokens",
  }),
  odd(
    "a content-filter finish",
    ({ random, wire }) => ({ text: someText(random), finish: wire.words.filter }),
    { cut: "content-filter" },
  ),
  odd("a content-filter finish without content", ({ wire }) => ({ finish: wire.words.filter }), {
    cut: "content-filter",
  }),
];

function lengthReply(making: Making): WireReply {
  return {
    text: someText(making.random),
    calls: [echoCall(making)],
    finish: making.wire.words.length,
  };
}

interface Oddity {
  /** Default: every call is good. */
  readonly results?: readonly (ErrorCode | undefined)[];
  readonly cut?: ReplyOutcome["cut"];
  readonly events?: (events: readonly string[]) => readonly string[];
  readonly answer?: (events: readonly string[], making: Making) => Answer;
}

function odd(name: string, say: (making: Making) => WireReply, oddity: Oddity = {}): OddReply {
  const { cut, events: change, answer } = oddity;
  return {
    name,
    shot(making) {
      const said = say(making);
      const events = () => making.wire.events({ ...varied(making), ...said });
      const calls = cut === "max-tokens" ? [] : (said.calls ?? []);
      return {
        answer:
          change === undefined && answer === undefined
            ? goodReply(making, said)
            : (answer ?? ((all, { random }) => unevenStream(random, all)))(
                (change ?? ((all) => all))(events()),
                making,
              ),
        outcome: {
          kind: "reply",
          said: { ...said, calls },
          results: oddity.results ?? calls.map(() => undefined),
          ...(cut !== undefined && { cut }),
        },
      };
    },
  };
}
