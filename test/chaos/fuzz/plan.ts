import type { ErrorCode } from "../../../src/contracts/errors.js";
import { deepseekWire, openaiWire, type Wire } from "../../support/protocol-wires.js";
import type { Random } from "../random.js";
import { failings, retriedCodes, type Failing } from "./failures.js";
import { callingReply, oddReplies, plainReply, type OddReply } from "./replies.js";
import { someText, unevenStream, type Making, type Shot } from "./shot.js";

/** Requests of one turn, in order, and how it must end. */
export interface PlannedTurn {
  /** In the user's text, by which the provider knows the turn. */
  readonly tag: string;
  readonly fault: string;
  readonly shots: readonly Shot[];
  readonly end: TurnEnd;
}

export interface TurnEnd {
  readonly kind: "completed" | "max-tokens" | "error" | "aborted";
  readonly code?: ErrorCode;
}

export interface PlannedSession {
  readonly wire: Wire;
  readonly turns: readonly PlannedTurn[];
}

/** Retries of one request in every planned session. */
export const maxModelRetries = 2;

export interface PlanSize {
  readonly turns: number;
  readonly sessions: number;
  /** A request is met with silence once at most. */
  readonly short: boolean;
}

/** Turns with something wrong in each, dealt out to sessions. */
export function planSessions(
  random: Random,
  { turns, sessions, short }: PlanSize,
): PlannedSession[] {
  const deck = dealFaults(random, turns);
  return Array.from({ length: sessions }, (_, index) => {
    const wire = index % 3 === 2 ? deepseekWire : openaiWire;
    const own = deck.filter((_fault, at) => at % sessions === index);
    let calls = 0;
    const making: Making = {
      random: random.fork(`session ${index}`),
      wire,
      callId: () => `call-${index}-${(calls += 1)}`,
    };
    return {
      wire,
      turns: own.map((fault, turn) => planTurn(making, fault, `[s${index}.t${turn + 1}]`, short)),
    };
  });
}

type Fault =
  | { readonly kind: "reply"; readonly name: string; readonly reply: OddReply }
  | { readonly kind: "failure"; readonly name: string; readonly failing: Failing }
  | { readonly kind: "mixed" | "interrupt"; readonly name: string };

const faults: readonly Fault[] = [
  ...oddReplies.map((reply) => ({ kind: "reply" as const, name: reply.name, reply })),
  ...failings.map((failing) => ({ kind: "failure" as const, name: failing.name, failing })),
  { kind: "mixed", name: "several failures in a row" },
  { kind: "interrupt", name: "a stall, interrupted" },
];

/** Every fault as often as every other, as far as the number allows. */
function dealFaults(random: Random, count: number): Fault[] {
  const deck: Fault[] = [];
  while (deck.length < count) deck.push(...random.shuffle(faults));
  return deck.slice(0, count);
}

function planTurn(making: Making, fault: Fault, tag: string, short: boolean): PlannedTurn {
  const { random } = making;
  // Some turns have done something good before the fault.
  const before = random.between(0, 2) === 0 ? [callingReply.shot(making)] : [];
  const faulty = faultyShots(making, fault, short);
  const shots = [...before, ...faulty, ...closing(making, faulty)];
  return { tag, fault: fault.name, shots, end: endOf(shots) };
}

function faultyShots(making: Making, fault: Fault, short: boolean): readonly Shot[] {
  const { random } = making;
  switch (fault.kind) {
    case "reply":
      return [fault.reply.shot(making)];
    case "failure": {
      const { failing } = fault;
      const again = retriedCodes.has(failing.code);
      const once = failing.slow === "deadline" || (short && failing.slow !== undefined);
      const exhausts = again && !once && random.between(0, 3) === 0;
      const most = once || !again ? 1 : maxModelRetries;
      const times = exhausts ? maxModelRetries + 1 : random.between(1, most);
      return Array.from({ length: times }, () => failureShot(making, failing));
    }
    case "mixed": {
      const quick = failings.filter((one) => one.slow === undefined && retriedCodes.has(one.code));
      const times = random.between(2, maxModelRetries + 1);
      return Array.from({ length: times }, () => failureShot(making, random.pick(quick)));
    }
    case "interrupt": {
      const events = making.wire.events({ text: someText(random), finish: null });
      return [
        { answer: unevenStream(random, events, { ending: "stall" }), outcome: { kind: "held" } },
      ];
    }
  }
}

function failureShot(making: Making, failing: Failing): Shot {
  const { code, waitMs } = failing;
  return {
    answer: failing.answer(making),
    outcome: { kind: "failure", code, ...(waitMs !== undefined && { waitMs }) },
  };
}

/** The requests that follow when the fault did not end the turn. */
function closing(making: Making, faulty: readonly Shot[]): readonly Shot[] {
  const { outcome } = faulty.at(-1) ?? {};
  const plain = plainReply.shot(making);
  if (outcome?.kind === "reply") return outcome.said.calls?.length ? [plain] : [];
  if (outcome?.kind !== "failure" || !retriedCodes.has(outcome.code)) return [];
  if (faulty.length > maxModelRetries) return [];
  return making.random.between(0, 2) === 0 ? [callingReply.shot(making), plain] : [plain];
}

/** spec/harness §2: the last request decides; a reply that was cut by its limit marks the turn. */
function endOf(shots: readonly Shot[]): TurnEnd {
  const { outcome } = shots.at(-1) ?? {};
  if (outcome?.kind === "held") return { kind: "aborted" };
  if (outcome?.kind === "failure") return { kind: "error", code: outcome.code };
  const cut = shots.some(
    (shot) => shot.outcome.kind === "reply" && shot.outcome.cut === "max-tokens",
  );
  return { kind: cut ? "max-tokens" : "completed" };
}
