import type { JsonObject, RequestConfig } from "./header.js";
import type { JobOffsets, JobOutcome, JobStreamRead, StoredOutput } from "./jobs.js";
import type { ModelOutcome, ModelRoute } from "./model.js";
import type { LocalTime, ZoneAnswer } from "./schedule.js";
import type { SurfaceNode } from "./session.js";
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
  /** Name of the archived segment the log of this run goes on from; empty when there is none. */
  readonly base: string;
  /** Number of surface nodes the model is shown. */
  readonly length: number;
  /** Chain digest over those nodes, hex. */
  readonly digest: string;
  /** Deadline of the call, ms. */
  readonly timeoutMs: number;
  /** A summary for a compaction: this stands after those messages as a user's (spec/harness §6). */
  readonly summary?: { readonly instruction: string; readonly maxTokens: number };
}

/** Entries `from` to `to` of the log are to be archived; the text of their segment has the name `digest` (design D8). */
export interface ArchiveLogInput extends SessionRef {
  readonly from: number;
  readonly to: number;
  /** Name of the segment before, empty for the first. */
  readonly previous: string;
  readonly digest: string;
  /** Names of texts to be kept beside it. */
  readonly bodies: readonly string[];
}

/** Texts a checkpoint tells by name. */
export interface FetchBodiesInput extends SessionRef {
  readonly names: readonly string[];
}

/** JSON by name, as many as fit 1.5 MB: ask again for the rest. One that is not in the store is left out; none at all: none is there. */
export interface FetchBodiesAnswer {
  readonly bodies: { readonly [name: string]: string };
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

/** Names one job and the incarnation of the session that started it; activities of the `job` workflow. */
export interface JobRef {
  readonly v: 1;
  readonly sessionId: string;
  readonly jobId: string;
  readonly nonce: string;
  readonly token: string;
}

export interface BeginJobInput extends JobRef {
  readonly kind: string;
  readonly label: string;
  readonly input: JsonObject;
  readonly cwd?: string;
  readonly outsideWorkspace: boolean;
  readonly orphanGraceMs: number;
  readonly outputBytes: number;
}

/** Not begun: nothing ran and nothing will; `detail` is the settlement's. */
export type BeginJobAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly detail: string };

/** Attaches to a job that was begun; what it is stands on the host's disk. */
export interface FollowJobInput extends JobRef {
  readonly kind: string;
  readonly heartbeatMs: number;
  readonly outputBytes: number;
}

export interface EndJobInput extends FollowJobInput {
  readonly reason?: string;
}

export interface ReadJobInput extends SessionRef {
  readonly jobId: string;
  readonly nonce: string;
  /** Its streams, each from this offset (0 when it has none); a final output in the store; or in an archived entry. */
  readonly from:
    | { readonly streams: JobOffsets; readonly ended: boolean }
    | { readonly ref: StoredOutput }
    | { readonly archived: number; readonly segment: string };
}

export interface ReadJobAnswer {
  /** The first stream comes first (stdout); a final output is one read of the stream `output`. */
  readonly reads: readonly JobStreamRead[];
  /** Addresses of the full streams, for the line that says that output was dropped. */
  readonly locators: readonly string[];
}

export interface LookJobsInput {
  readonly v: 1;
  readonly workflowIds: readonly string[];
}

/** Status of each workflow in its order: `running`, or how it ended (`completed`, `terminated`, …); `missing` when there is none. */
export interface LookJobsAnswer {
  readonly statuses: readonly string[];
}

export interface ReadTimeInput {
  /** Workflow time, epoch ms. */
  readonly now: number;
  readonly turn: number;
  readonly step: number;
  /** Distinct time zones of the open turn's user messages. */
  readonly zones: readonly string[];
  /** Ms since the previous message the model saw (step 1), or since the previous reading; absent: there was none. */
  readonly sinceMs?: number;
}

/** Activities of the session workers: nothing that depends on zone data happens in workflow code (design D11). */
export interface ZoneActivities {
  "zone.resolve"(input: LocalTime): Promise<ZoneAnswer>;
  "time.reading"(input: ReadTimeInput): Promise<string>;
}

/** On the session workers' queue `longhaul`. */
export interface SessionActivities {
  callModel(input: CallModelInput): Promise<ModelOutcome>;
  "tools.shared"(input: SharedToolsInput): Promise<SharedAnswer>;
  "tool.run"(input: RunToolInput): Promise<ToolOutcome>;
  "job.read"(input: ReadJobInput): Promise<ReadJobAnswer>;
  "job.look"(input: LookJobsInput): Promise<LookJobsAnswer>;
}

/** On the session workers' queue too: what leaves history, and comes back (design D8). */
export interface ArchiveActivities {
  /** Idempotent. Answers with `digest`. Rejects with LOG_CORRUPT, not to be tried again, when what the session shows is not what the digest says. */
  "log.archive"(input: ArchiveLogInput): Promise<{ readonly segment: string }>;
  "log.bodies"(input: FetchBodiesInput): Promise<FetchBodiesAnswer>;
}

/** What a session tells the process its workflow runs in, beside history and never during a replay. */
export type SessionSinks = {
  readonly surface: {
    /** Nodes of the surface from position `from` on: the model call that comes next need not ask for them (design D2). */
    offer(from: number, nodes: readonly SurfaceNode[]): void;
  };
};

/** On a host's queues; `host.tools` also on `longhaul.hosts`. */
export interface HostActivities {
  "host.tools"(input: SessionRef): Promise<HostAnswer>;
  /** On `.control`: the host answers. */
  "host.present"(input: SessionRef): Promise<{ readonly host: string }>;
  "tool.run"(input: RunToolInput): Promise<ToolOutcome>;
  "tool.seal"(input: SealToolInput): Promise<void>;
  /** On `.control`: one attempt. */
  "job.begin"(input: BeginJobInput): Promise<BeginJobAnswer>;
  /** On `.jobs`: any number of attempts; cancelled by a kill. */
  "job.follow"(input: FollowJobInput): Promise<JobOutcome>;
  /** On `.control`: ends a job whose follower did not confirm its end. */
  "job.end"(input: EndJobInput): Promise<JobOutcome>;
}
