import type { RollOverConfig } from "./archive.js";
import type { CompactionConfig } from "./compaction.js";
import type { RequestConfig } from "./header.js";
import type { JobsConfig } from "./jobs.js";
import type { ScheduleConfig } from "./schedule.js";

/** Frozen into the session at creation, changed only by `session/config` (design D12). */
export interface SessionConfig {
  readonly request: RequestConfig;
  readonly system?: string;
  /** spec/todo §3: required, no default. */
  readonly allowParallelInProgress: boolean;
  /** Offer world tools, and so bind to a host (design D5). */
  readonly worldTools: boolean;
  /** Absolute workspace on the host. */
  readonly cwd?: string;
  readonly outsideWorkspace: boolean;
  /** Tool names that are refused / that need an approval (refused until approvals exist). */
  readonly deny: readonly string[];
  readonly ask: readonly string[];
  readonly limits: SessionLimits;
  /** Background jobs; what is left out has its default (spec/jobs §13). */
  readonly jobs?: Partial<JobsConfig>;
  /** Reminders; absent or false: off (spec/schedule §1). */
  readonly schedule?: boolean | Partial<ScheduleConfig>;
  /** The model is told the time (spec/schedule §8); absent or false: off. */
  readonly timeContext?: boolean | TimeContextConfig;
  /** When the transcript is summarised (spec/harness §6); absent or true: the defaults, false: only on demand. */
  readonly compaction?: boolean | Partial<CompactionConfig>;
  /** When the session goes on in a new run (design D8); what is left out has its default. */
  readonly rollOver?: Partial<RollOverConfig>;
}

export interface TimeContextConfig {
  /** At most one reading in so many ms; 0: at every step. */
  readonly refreshIntervalMs: number;
}

export interface SessionLimits {
  /** Parallel-safe calls in flight, at least 1. */
  readonly maxParallelToolCalls: number;
  /** Inline limit of a tool result, UTF-8 bytes. */
  readonly maxInlineBytes: number;
  /** Retries of one model request (spec/harness §2). */
  readonly maxModelRetries: number;
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
  /** Deadline of one model call, ms. */
  readonly modelTimeoutMs: number;
}

export const defaultLimits: SessionLimits = {
  maxParallelToolCalls: 10,
  maxInlineBytes: 50_000,
  maxModelRetries: 5,
  retryBaseMs: 500,
  retryCapMs: 10_000,
  modelTimeoutMs: 1_800_000,
};
