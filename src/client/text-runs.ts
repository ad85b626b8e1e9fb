import type { AssistantMessage } from "../contracts/content.js";

/** A stretch of streamed text of one kind. */
export interface TextRun {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}

/** Adds a piece at the end; pieces of the same kind that follow each other are one run. */
export function appendRun(runs: readonly TextRun[], piece: TextRun): readonly TextRun[] {
  if (piece.text === "") return runs;
  const last = runs.at(-1);
  if (last?.kind !== piece.kind) return [...runs, piece];
  return [...runs.slice(0, -1), { kind: piece.kind, text: last.text + piece.text }];
}

/** The text and reasoning of a message as it would have been streamed. */
export function runsOf(message: AssistantMessage): readonly TextRun[] {
  let runs: readonly TextRun[] = [];
  for (const block of message.content) {
    if (block.type !== "tool-call") runs = appendRun(runs, { kind: block.type, text: block.text });
  }
  return runs;
}

/** What follows `shown` in `whole`; undefined when `whole` does not begin with `shown`. */
export function runsAfter(
  whole: readonly TextRun[],
  shown: readonly TextRun[],
): readonly TextRun[] | undefined {
  const last = shown.at(-1);
  if (last === undefined) return whole;
  const index = shown.length - 1;
  for (const [at, run] of shown.slice(0, index).entries()) {
    if (whole[at]?.kind !== run.kind || whole[at].text !== run.text) return undefined;
  }
  const same = whole[index];
  if (same?.kind !== last.kind || !same.text.startsWith(last.text)) return undefined;
  const rest = whole.slice(index + 1);
  return same.text === last.text
    ? rest
    : [{ kind: same.kind, text: same.text.slice(last.text.length) }, ...rest];
}
