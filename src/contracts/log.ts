import type { CompactionEventData } from "./compaction.js";
import type { AssistantMessage, UserMessage } from "./content.js";
import type { SessionConfig } from "./config.js";
import type { ErrorCode } from "./errors.js";
import type { RequestHeader } from "./header.js";
import type { JobEventData, JobKindRow } from "./jobs.js";
import type { ModelFailure, StreamRef, Usage } from "./model.js";
import type { ScheduleEventData } from "./schedule.js";
import type { TodoItem } from "./todo.js";
import type { ToolError, ToolOutcome, ToolRow } from "./tools.js";

/** Immutable, beside the log (spec/harness §1). */
export interface SessionHeader {
  readonly version: 0;
  readonly id: string;
  /** Epoch ms, workflow time. */
  readonly createdAt: number;
  readonly cwd?: string;
  readonly parentSession?: string;
  readonly seedLength?: number;
  readonly origin?: "subagent";
  readonly delegationDepth?: number;
}

export type InboxTarget = "next-turn" | "next-step";

export type AbortReason = "user" | "parent" | "hook" | "disposed";

export type EndReason =
  | { readonly kind: "completed" }
  | { readonly kind: "aborted"; readonly reason: AbortReason }
  | { readonly kind: "blocked"; readonly message?: string }
  | {
      readonly kind: "error";
      readonly message: string;
      readonly code: ErrorCode;
      readonly status?: number;
    }
  | { readonly kind: "max-tokens" }
  | { readonly kind: "interrupted" };

/** Data of each entry type. Types of the harness keep its names; Longhaul's own are exported as `ignorable`. */
export interface EventData extends CompactionEventData, JobEventData, ScheduleEventData {
  "user/message": { readonly message: UserMessage };
  "assistant/message": {
    readonly turn: number;
    readonly step: number;
    readonly message: AssistantMessage;
    readonly usage?: Usage;
    readonly interrupted?: true;
    /** Longhaul's own key, only when the reply did not end by itself. */
    readonly finish?: "max-tokens" | "content-filter";
    /** The side stream its text went through (design D7); takes the place of cited chunks. */
    readonly stream?: StreamRef;
  };
  "tool/call": {
    readonly turn: number;
    readonly step: number;
    readonly callId: string;
    readonly name: string;
    readonly arguments: string;
  };
  "tool/result": {
    readonly turn: number;
    readonly step: number;
    readonly message: UserMessage;
    readonly error?: ToolError;
    readonly meta?: NonNullable<ToolOutcome["meta"]>;
  };
  "turn/start": { readonly turn: number };
  "turn/end": { readonly turn: number; readonly reason: EndReason };
  "step/start": { readonly turn: number; readonly step: number };
  "step/end": { readonly turn: number; readonly step: number };
  "agent/inbox/spliced": {
    readonly target: InboxTarget;
    readonly start: number;
    readonly removedCount?: number;
    readonly inserted: readonly UserMessage[];
    readonly outcome?: "canceled";
    /** Longhaul's own key: this insertion opens a turn when the session is idle (followup and steer, not inject). */
    readonly wake?: true;
  };
  "request/header": {
    readonly header: RequestHeader;
    readonly reason: "initial" | "resume" | "change";
  };
  "request/context": {
    readonly provider: string;
    readonly model: string;
    readonly contextWindow?: number;
  };
  "llm/retry": {
    readonly retryId: string;
    readonly turn: number;
    readonly step: number;
    readonly provider: string;
    readonly mode: "auto";
    readonly policy: string;
    readonly retry: number;
    readonly max: number;
    readonly delayMs: number;
    readonly failure: ModelFailure;
  };
  "llm/retry-started": { readonly retryId: string; readonly turn: number; readonly step: number };
  /** `opId` is Longhaul's own key: a write from outside the agent loop, whose verdict is remembered (spec/todo T3). */
  "approval/asked": {
    readonly requestId: string;
    readonly turn: number;
    readonly step: number;
    readonly callId: string;
    readonly tool: string;
    readonly reason?: string;
  };
  /** `policy`: nobody was asked. */
  "approval/decided": {
    readonly requestId: string;
    readonly outcome: "rejected";
    readonly by: "policy";
  };
  "todo/write": { readonly todos: readonly TodoItem[]; readonly opId?: string };
  "todo/rejected": { readonly opId: string; readonly message: string; readonly code?: ErrorCode };
  "session/end-seed": Record<string, never>;
  "session/open": { readonly header: SessionHeader; readonly config: SessionConfig };
  "session/config": { readonly config: SessionConfig };
  "session/tools": {
    readonly epoch: number;
    readonly tools: readonly ToolRow[];
    readonly jobKinds: readonly JobKindRow[];
  };
  "session/bound": { readonly host: string; readonly epoch: number };
  /** `live`: reminders and wakes may open turns. Not live: suspended, or the host does not answer (`cold`), or both. */
  "session/live": {
    readonly live: boolean;
    readonly why: string;
    readonly suspended?: true;
    /** Absent in entries that tell no `suspended`: it is what `live` is not. */
    readonly cold?: boolean;
  };
  /** The running turn is to end; what was queued before it waits for the next wake. */
  "session/interrupt": { readonly reason: AbortReason; readonly keepInbox: boolean };
  "session/close": { readonly reason?: string };
  /** A signal that was refused: nobody waits for a verdict, so the log keeps it (design D10). */
  "session/rejected": {
    readonly command: string;
    readonly id?: string;
    readonly code: ErrorCode;
    readonly message: string;
  };
}

export type EventType = keyof EventData;

/** How an entry changes the surface; positions are surface positions (spec/harness §1). */
export type SurfaceOp =
  | "append"
  | { readonly op: "replace"; readonly start: number; readonly end: number };

export interface EntryOf<T extends EventType> {
  readonly type: T;
  /** Position in the log, contiguous from 0. */
  readonly seq: number;
  /** Epoch ms, workflow time. */
  readonly time: number;
  readonly data: EventData[T];
  readonly ignorable?: true;
  readonly surfaceOp?: SurfaceOp;
  readonly sourceEventSeqs?: readonly number[];
}

export type LogEntry = { [T in EventType]: EntryOf<T> }[EventType];

/** An entry before it has a place in the log. */
export type NewEntry = {
  [T in EventType]: {
    readonly type: T;
    readonly data: EventData[T];
    readonly surfaceOp?: SurfaceOp;
    readonly sourceEventSeqs?: readonly number[];
  };
}[EventType];
