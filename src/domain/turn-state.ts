import type { AbortReason, EndReason, LogEntry } from "../contracts/log.js";

/** The turn that is open, or the last one; a fold of the log. */
export interface TurnState {
  /** Last turn number; 0 before the first. */
  readonly number: number;
  readonly open: boolean;
  /** Last step number of the turn; 0 before its first. */
  readonly step: number;
  readonly stepOpen: boolean;
  /** A reply of this turn was cut by its token limit: the turn ends `max-tokens` (sticky). */
  readonly cut: boolean;
  /** An abort was requested: first cause wins. */
  readonly aborting?: AbortReason;
  readonly lastEnd?: { readonly turn: number; readonly reason: EndReason };
}

export const noTurn: TurnState = { number: 0, open: false, step: 0, stepOpen: false, cut: false };

export function foldTurn(turn: TurnState, entry: LogEntry): TurnState {
  switch (entry.type) {
    case "turn/start":
      return {
        number: entry.data.turn,
        open: true,
        step: 0,
        stepOpen: false,
        cut: false,
        ...(turn.lastEnd === undefined ? {} : { lastEnd: turn.lastEnd }),
      };
    case "turn/end": {
      const { number, step } = turn;
      return {
        number,
        open: false,
        step,
        stepOpen: false,
        cut: false,
        lastEnd: { turn: number, reason: entry.data.reason },
      };
    }
    case "step/start":
      return { ...turn, step: entry.data.step, stepOpen: true };
    case "step/end":
      return { ...turn, stepOpen: false };
    case "assistant/message":
      return entry.data.finish === "max-tokens" && !turn.cut ? { ...turn, cut: true } : turn;
    case "session/interrupt":
      return turn.open && turn.aborting === undefined
        ? { ...turn, aborting: entry.data.reason }
        : turn;
    default:
      return turn;
  }
}
