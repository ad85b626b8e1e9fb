import type { ImageRef, TextBlock } from "./content.js";
import type { ErrorCode } from "./errors.js";
import type { ToolSchema } from "./header.js";
import type { JobKindRow } from "./jobs.js";

/** Where a tool runs: in workflow code, on the bound host, or on any worker of the shared queue (design D3). */
export type ToolPlace = "state" | "host" | "shared";

/** One row of the logged tool table (`session/tools`). */
export interface ToolRow extends ToolSchema {
  readonly where: ToolPlace;
  /** May overlap with other parallel calls of the step. */
  readonly parallel: boolean;
  /** May be run again after a lost worker. */
  readonly idempotent: boolean;
  /** Deadline of one call, ms; absent: none. */
  readonly timeoutMs?: number;
  /** A call with `run_in_background: true` starts a job of this kind with the call's arguments (spec/jobs §9). */
  readonly jobKind?: string;
}

/** What a host or the shared queue offers. */
export interface ToolTable {
  readonly tools: readonly ToolRow[];
  readonly jobKinds: readonly JobKindRow[];
}

/** The answer of `host.tools`. */
export interface HostAnswer extends ToolTable {
  readonly host: string;
}

export interface ToolError {
  readonly name: string;
  readonly code: ErrorCode;
}

/** What one tool call produced; the text is already within the inline limit. */
export interface ToolOutcome {
  readonly content: readonly TextBlock[];
  /** Pictures for models that see; the text names them too. */
  readonly images?: readonly ImageRef[];
  readonly isError: boolean;
  readonly error?: ToolError;
  /** Plain JSON for cards and checks, e.g. `{exitCode: 3}`. Not shown to the model. */
  readonly meta?: { readonly [key: string]: string | number | boolean | null };
  /** Ends the tool loop after this step. */
  readonly concludesTurn?: true;
  /** Messages for the next step's inbox, after all results of this step (spec/harness §3). */
  readonly additionalContexts?: readonly string[];
}

/** Arguments of a world tool call: inline up to 256 bytes, else read from the session's `tool/call` entry (design D2). */
export type ArgumentsRef =
  | { readonly inline: string }
  | { readonly seq: number; readonly bytes: number; readonly digest: string };

export interface ToolPermissions {
  /** May files outside the workspace be read and written? */
  readonly outsideWorkspace: boolean;
}
