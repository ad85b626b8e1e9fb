import type { LogEntry } from "../contracts/log.js";

/** The lock of compaction and what is remembered of its last runs: a fold of the log (spec/harness §6). Plain JSON. */
export interface CompactionState {
  /** The bracket that is open. */
  readonly open?: {
    readonly id: string;
    /** The turn that owns it; null: asked for from outside. */
    readonly turn: number | null;
    /** One that no turn owns is to end. */
    readonly aborting?: true;
  };
  /** The turn in which a summary failed last: it would fail again at every step. */
  readonly failedIn?: number;
  /** What was last asked for from outside, and the `seq` of its `compaction/start`. */
  readonly asked?: { readonly opId: string; readonly seq: number };
}

export const noCompaction: CompactionState = {};

export function foldCompaction(state: CompactionState, entry: LogEntry): CompactionState {
  switch (entry.type) {
    case "compaction/start": {
      const { compactionId, turn, opId } = entry.data;
      const asked = opId === undefined ? {} : { asked: { opId, seq: entry.seq } };
      return { ...state, ...asked, open: { id: compactionId, turn } };
    }
    case "compaction/end": {
      const { open: _, failedIn: __, ...rest } = state;
      const { turn, error } = entry.data;
      return error === "summary" && turn !== null ? { ...rest, failedIn: turn } : rest;
    }
    case "session/interrupt":
      return state.open?.turn === null && state.open.aborting === undefined
        ? { ...state, open: { ...state.open, aborting: true } }
        : state;
    case "session/end-seed":
      // What a seed left open is dead (spec/harness §1, K8).
      return noCompaction;
    default:
      return state;
  }
}
