import type { RequestConfig } from "./header.js";
import type { ModelOutcome, ModelRoute } from "./model.js";
import type { ArgumentsRef, HostAnswer, ToolOutcome, ToolPermissions, ToolTable } from "./tools.js";

/** Inputs of activities are a versioned contract: a worker accepts the release before (design D16). */
export interface SessionRef {
  readonly v: 1;
  readonly sessionId: string;
  readonly runId: string;
}

/** A model call by reference (design D2). */
export interface CallModelInput extends SessionRef {
  readonly turn: number;
  readonly step: number;
  /** How often this request was already retried after a provider failure, from 0. */
  readonly retry: number;
  /** `seq` of the `request/header` entry in force. */
  readonly headerSeq: number;
  /** Digest of the archived segment the surface starts from; empty string when there is none. */
  readonly base: string;
  /** Number of surface nodes the model is shown. */
  readonly length: number;
  /** Chain digest over those nodes, hex. */
  readonly digest: string;
  /** Deadline of the call, ms. */
  readonly timeoutMs: number;
}

export interface RunToolInput extends SessionRef {
  /** `<turn>.<step>.<callId>`: the claim on disk and the idempotency key (design D6). */
  readonly claim: string;
  readonly callId: string;
  readonly tool: string;
  readonly args: ArgumentsRef;
  readonly cwd?: string;
  readonly permissions: ToolPermissions;
  readonly timeoutMs?: number;
  /** Inline limit of the result text, UTF-8 bytes. */
  readonly maxInlineBytes: number;
  /** Binding epoch of the session. */
  readonly epoch: number;
}

export interface SealToolInput extends SessionRef {
  readonly claim: string;
}

export interface SharedToolsInput extends SessionRef {
  /** The route whose capacity and defaults are asked for along with the tools. */
  readonly request: RequestConfig;
}

export interface SharedAnswer extends ToolTable {
  readonly route: ModelRoute;
}

/** On the session workers' queue `longhaul`. */
export interface SessionActivities {
  callModel(input: CallModelInput): Promise<ModelOutcome>;
  "tools.shared"(input: SharedToolsInput): Promise<SharedAnswer>;
  "tool.run"(input: RunToolInput): Promise<ToolOutcome>;
}

/** On a host's queues; `host.tools` also on `longhaul.hosts`. */
export interface HostActivities {
  "host.tools"(input: SessionRef): Promise<HostAnswer>;
  "tool.run"(input: RunToolInput): Promise<ToolOutcome>;
  "tool.seal"(input: SealToolInput): Promise<void>;
}
