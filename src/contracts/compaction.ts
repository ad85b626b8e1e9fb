import type { TextBlock } from "./content.js";
import type { Usage } from "./model.js";

/** Surface entries that a replacement hides: `start` and `end` are the `seq` of the first and the last of them. */
export interface Shadowed {
  readonly shadowedRange: { readonly start: number; readonly end: number };
  /** All of them, in surface order. */
  readonly shadowedSeqs: readonly number[];
  /** Estimate. */
  readonly shadowedTokenCount: number;
}

/** Data of the `compaction/*` entries, for `EventData` (spec/harness §6). The replacement follows its entry at once. */
export interface CompactionEventData {
  /** Takes the lock. `turn`: the open turn that owns the run, or null for a manual one. */
  "compaction/start": { readonly compactionId: string; readonly turn: number | null };
  "compaction/summary": Shadowed & {
    readonly compactionId: string;
    readonly summary: readonly TextBlock[];
    readonly provider: string;
    readonly model: string;
    readonly maxTokens?: number;
    readonly usage?: Usage;
  };
  /** The lock is free again; `error`: the surface is what it was before the bracket. */
  "compaction/end": {
    readonly compactionId: string;
    readonly turn: number | null;
    readonly error?: string;
  };
  /** One tool result is shortened; the original stays in the log. */
  "compaction/prune": Shadowed;
}
