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
  "compaction/start": {
    readonly compactionId: string;
    readonly turn: number | null;
    /** Longhaul's own key: the id under which a manual one was asked for. */
    readonly opId?: string;
  };
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
    /** Longhaul's own key: why, for people. */
    readonly message?: string;
  };
  /** One tool result is shortened; the original stays in the log. */
  "compaction/prune": Shadowed;
}

/** When and how far a transcript is compacted (spec/harness §6). */
export interface CompactionPolicy {
  /** Share of the route's context window from which on it is compacted. */
  readonly thresholdRatio: number;
  /** Share of the window that stays as it was, at the end; `retainTokens` says it absolutely. */
  readonly retainRatio: number;
  readonly retainTokens?: number;
  /** Cap of a summary, tokens. */
  readonly summaryTokens: number;
  /** More summaries in a row when the first does not lead below the threshold. */
  readonly extraPasses: number;
  /** Retries of a request that was too large for its model; 0: none. */
  readonly maxOverflowRetries: number;
}

export interface CompactionConfig extends CompactionPolicy {
  /** Off: only on demand. */
  readonly auto: boolean;
  /** Shorten large tool results before anything is summarised. */
  readonly prune: boolean;
  /** Policies of exact routes, in part. */
  readonly routes: readonly (Partial<CompactionPolicy> & {
    readonly provider: string;
    readonly model: string;
  })[];
}

/** @public */
export const defaultCompactionConfig: CompactionConfig = {
  thresholdRatio: 0.8,
  retainRatio: 0.16,
  summaryTokens: 8_192,
  extraPasses: 1,
  maxOverflowRetries: 1,
  auto: true,
  prune: true,
  routes: [],
};

/** Why a compaction that was asked for came to nothing. */
export type CompactionProblem = "busy" | "cancelled" | "changed" | "commit" | "summary";
