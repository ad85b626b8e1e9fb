import * as z from "zod";

import type { ImageRef } from "../contracts/content.js";
import { type ErrorCode, LonghaulError } from "../contracts/errors.js";
import type { JsonObject } from "../contracts/header.js";
import type { Store } from "../contracts/store.js";
import type { ToolPermissions, ToolRow } from "../contracts/tools.js";
import type { JobKind } from "./define-job-kind.js";

export {
  defineJobKind,
  type JobContext,
  type JobKind,
  type JobKindDefinition,
  type JobKindMap,
  type JobKindSpec,
  type JobResult,
} from "./define-job-kind.js";

/** What a tool body knows about its call. */
export interface ToolContext {
  readonly sessionId: string;
  readonly callId: string;
  /** The same for every try of this call: the idempotency key to hand to other services (design D9). */
  readonly claim: string;
  /** Directory that belongs to this call on disk; absent for idempotent tools. */
  readonly claimDirectory?: string;
  /** Absolute workspace of the session. */
  readonly cwd?: string;
  readonly permissions: ToolPermissions;
  /** Aborts on cancel and at the tool's deadline; the body is waited for, so it should give up soon. */
  readonly signal: AbortSignal;
  readonly store: Store;
  /** Data directory of this host. */
  readonly home: string;
  /** Inline limit of the result text, UTF-8 bytes. Longer text is moved to the store. */
  readonly maxInlineBytes: number;
}

/** A body's result when plain text is not enough. */
export interface ToolReturn {
  readonly text: string;
  /** Flat JSON for cards and checks; not shown to the model. */
  readonly meta?: { readonly [key: string]: string | number | boolean | null };
  /** Pictures already in the store, at most 16; the text must name them for models that cannot see. */
  readonly images?: readonly ImageRef[];
  /** Makes the result an error with this code; its text should then begin with `Error: `. */
  readonly error?: { readonly code: ErrorCode };
  /** Ends the tool loop after this step. */
  readonly concludesTurn?: boolean;
  /** Messages for the next step, after all results of this one. */
  readonly additionalContexts?: readonly string[];
}

/** Arguments as `execute` gets them: without unknown top-level keys, which are tolerated (spec/jobs §10). */
export type ToolArguments<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape>>;

export interface ToolSpec<Shape extends z.ZodRawShape> {
  readonly name: string;
  readonly description: string;
  readonly parameters: z.ZodObject<Shape, z.core.$ZodObjectConfig>;
  execute(
    args: ToolArguments<Shape>,
    context: ToolContext,
  ): Promise<string | ToolReturn> | string | ToolReturn;
  /** Deadline of one call, ms; absent: none. */
  readonly timeoutMs?: number;
  /** May overlap with other parallel calls of a step. Default false. */
  readonly parallel?: boolean;
  /** May be run again after a lost worker, so it takes no claim. Default false. */
  readonly idempotent?: boolean;
  /** Needs the session's host; false: may run on any worker. Default true. */
  readonly workspace?: boolean;
  /** Move long results to the store; false for a tool that bounds its own text. Default true. */
  readonly spill?: boolean;
  /**
   * A call with `run_in_background: true` starts a job of this kind with the call's arguments instead of running the body;
   * declare that parameter too. Needs the session's host.
   */
  readonly jobKind?: JobKind;
}

export interface ToolDefinition {
  readonly row: ToolRow;
  readonly spill: boolean;
  /** Checks parsed arguments; gives the body ready to run, or all violations. */
  prepare(args: unknown): Promise<PreparedCall>;
}

export type PreparedCall =
  | { readonly ok: true; readonly execute: (context: ToolContext) => unknown }
  | { readonly ok: false; readonly error: z.ZodError };

/** Declares a world tool. Throws INVALID_CONFIG when the declaration cannot be offered to a model. */
export function defineTool<Shape extends z.ZodRawShape>(spec: ToolSpec<Shape>): ToolDefinition {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(spec.name)) {
    throw invalid(`a tool name has 1 to 64 of A-Z a-z 0-9 _ -, got ${JSON.stringify(spec.name)}`);
  }
  if (spec.description.trim() === "") throw invalid(`tool ${spec.name} needs a description`);
  const { timeoutMs } = spec;
  if (
    timeoutMs !== undefined &&
    !(Number.isSafeInteger(timeoutMs) && timeoutMs > 0 && timeoutMs < 2 ** 31)
  ) {
    throw invalid(
      `timeoutMs of tool ${spec.name} is whole milliseconds from 1 to ${2 ** 31 - 1}, got ${timeoutMs}`,
    );
  }
  if (spec.jobKind !== undefined && spec.workspace === false)
    throw invalid(`tool ${spec.name} has a jobKind, so it cannot have workspace: false`);
  const parameters = spec.parameters.strip();
  const row: ToolRow = {
    name: spec.name,
    description: spec.description,
    parameters: schemaOf(spec.name, parameters),
    where: spec.workspace === false ? "shared" : "host",
    parallel: spec.parallel === true,
    idempotent: spec.idempotent === true,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(spec.jobKind === undefined ? {} : { jobKind: spec.jobKind }),
  };
  return {
    row,
    spill: spec.spill !== false,
    async prepare(args) {
      const parsed = await parameters.safeParseAsync(args);
      if (!parsed.success) return { ok: false, error: parsed.error };
      return { ok: true, execute: (context) => spec.execute(parsed.data, context) };
    },
  };
}

function schemaOf(name: string, parameters: z.ZodObject): JsonObject {
  try {
    const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: "input" });
    const plain: JsonObject = JSON.parse(JSON.stringify(schema));
    return plain;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new LonghaulError(
      "INVALID_CONFIG",
      `parameters of tool ${name} have no JSON Schema: ${reason}`,
      { cause: error },
    );
  }
}

function invalid(message: string): LonghaulError {
  return new LonghaulError("INVALID_CONFIG", message);
}
