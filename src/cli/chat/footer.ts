import { oneLine } from "../render/clean.js";
import { fit, glyphsOf, styled, type Terminal } from "../render/terminal.js";
import type { Outgoing } from "./outbox.js";
import type { Situation } from "./situation.js";

export interface FooterFacts {
  readonly situation: Pick<Situation, "running" | "thinking" | "away" | "waiting">;
  readonly outbox: { readonly waiting: readonly Outgoing[]; readonly trouble: string | undefined };
  /** The line about calls under way; empty for none. */
  readonly calls: string;
  /** The turn is being interrupted. */
  readonly interrupted: boolean;
  /** The user has not said anything yet. */
  readonly fresh: boolean;
}

const mostMessages = 4;

/** The lines between transcript and prompt: what the session is at, and the messages no request has taken yet. */
export function footerLines(facts: FooterFacts, terminal: Terminal): readonly string[] {
  const { waiting, away: sessionAway } = facts.situation;
  const unsent = facts.outbox.waiting.filter(({ id }) => waiting.every((one) => one.id !== id));
  const messages = [
    ...waiting.map(
      ({ target, text }) =>
        `${target === "next-step" ? "next step" : "next turn"}  ${oneLine(text)}`,
    ),
    ...unsent.map(({ text }) => `sending  ${oneLine(text)}`),
  ];
  const most = mostMessages - 1;
  const shown =
    messages.length > mostMessages
      ? [...messages.slice(0, most), `and ${messages.length - most} more`]
      : messages;
  const away = sessionAway ?? facts.outbox.trouble;
  const status = away === undefined ? statusOf(facts, terminal) : `waiting: ${oneLine(away)}`;
  const line = (text: string, style: "dim" | "yellow") =>
    styled(terminal, style, fit(text, terminal.columns - 1, glyphsOf(terminal).ellipsis));
  return [
    ...(status === "" ? [] : [line(status, away === undefined ? "dim" : "yellow")]),
    ...shown.map((text) => line(text, "dim")),
  ];
}

function statusOf(facts: FooterFacts, terminal: Terminal): string {
  const glyph = glyphsOf(terminal).running;
  if (!facts.situation.running)
    return facts.fresh ? "Enter sends, Alt+Enter a new line, /help" : "";
  if (facts.interrupted) return `${glyph} interrupting; Ctrl-C again leaves`;
  if (facts.calls !== "") return facts.calls;
  return `${glyph} ${facts.situation.thinking ? "thinking" : "working"}; Ctrl-C interrupts`;
}
