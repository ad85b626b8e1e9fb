import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import type { ToolOutcome, ToolPermissions, ToolRow } from "../contracts/tools.js";
import { openClaim, recordOutcome } from "../process/claim.js";
import type { ToolContext, ToolDefinition } from "./define.js";
import { errorOutcome, outcomeOf, violations } from "./outcome.js";
import { spillLongText } from "./spill.js";

/** A world tool call with its arguments at hand (`RunToolInput` after the reference is resolved). */
export interface ToolCall {
  readonly sessionId: string;
  readonly claim: string;
  readonly callId: string;
  readonly tool: string;
  /** The raw argument string of the model. */
  readonly args: string;
  readonly cwd?: string;
  readonly permissions: ToolPermissions;
  /** Deadline of the logged table, ms; absent: the definition's, if it has one. */
  readonly timeoutMs?: number;
  readonly maxInlineBytes: number;
}

/** What the worker lends to a call. */
export interface ToolPorts {
  readonly store: Store;
  /** Data directory of this host. */
  readonly home: string;
  /** Aborts when the caller cancels. */
  readonly signal: AbortSignal;
}

export interface ToolRegistry {
  /** Rows for the logged tool table, in the order given. */
  table(): readonly ToolRow[];
  /** Always one outcome, never a throw for what a tool or a model did; returns when the body has ended (spec/harness §3). */
  run(call: ToolCall, ports: ToolPorts): Promise<ToolOutcome>;
}

/** Throws INVALID_CONFIG for a name given twice or one that the session itself answers. */
export function createToolRegistry(tools: readonly ToolDefinition[]): ToolRegistry {
  const byName = new Map<string, ToolDefinition>();
  for (const tool of tools) {
    const { name } = tool.row;
    if (isReservedName(name)) {
      throw new LonghaulError(
        "INVALID_CONFIG",
        `tool name ${name} is reserved for the session's own tools; choose another`,
      );
    }
    if (byName.has(name))
      throw new LonghaulError(
        "INVALID_CONFIG",
        `tool ${name} is defined twice; give each its own name`,
      );
    byName.set(name, tool);
  }

  return {
    table: () => tools.map((tool) => tool.row),
    async run(call, ports) {
      const tool = byName.get(call.tool);
      if (tool === undefined) {
        const known = [...byName.keys()].join(", ");
        return errorOutcome(
          "TOOL_UNAVAILABLE",
          `tool ${call.tool} is not available here; available: ${known}`,
        );
      }
      const prepared = await tool.prepare(parseArguments(call.args));
      if (!prepared.ok) {
        return errorOutcome(
          "INVALID_ARGS",
          `invalid arguments for ${call.tool}: ${violations(prepared.error)}`,
        );
      }
      if (ports.signal.aborted)
        return errorOutcome("ABORTED_BEFORE_DISPATCH", "the call was cancelled before it started");
      return await runClaimed(tool, prepared.execute, call, ports);
    },
  };
}

/** Is this the name of a tool that the session answers itself, now or later? */
export function isReservedName(name: string): boolean {
  return /^(?:todo_write$|job_|schedule_)/.test(name);
}

type Body = (context: ToolContext) => unknown;

function parseArguments(raw: string): unknown {
  if (raw.trim() === "") return {};
  try {
    return JSON.parse(raw);
  } catch {
    return raw;
  }
}

/** A call that must not run twice takes its claim first; whoever comes second gets the record, or "unknown" (design D6). */
async function runClaimed(
  tool: ToolDefinition,
  execute: Body,
  call: ToolCall,
  ports: ToolPorts,
): Promise<ToolOutcome> {
  if (tool.row.idempotent) return await runBounded(tool, execute, call, ports);
  const opened = await openClaim({
    home: ports.home,
    sessionId: call.sessionId,
    claim: call.claim,
  });
  if (opened.kind === "recorded") return opened.outcome;
  if (opened.kind === "taken") {
    return errorOutcome(
      "TOOL_OUTCOME_UNKNOWN",
      `call ${call.callId} of ${call.tool} was started before and its outcome is unknown; check what it did before you repeat it`,
    );
  }
  const outcome = await runBounded(tool, execute, call, ports, opened.claim.directory);
  // Without the record a second start answers "unknown", which is true enough.
  await recordOutcome(opened.claim, outcome).catch(() => {});
  return outcome;
}

async function runBounded(
  tool: ToolDefinition,
  execute: Body,
  call: ToolCall,
  ports: ToolPorts,
  claimDirectory?: string,
): Promise<ToolOutcome> {
  const outcome = await runBody(tool, execute, call, ports, claimDirectory);
  if (!tool.spill) return outcome;
  return await spillLongText(outcome, {
    store: ports.store,
    session: call.sessionId,
    stream: `spill/${call.claim}`,
    maxInlineBytes: call.maxInlineBytes,
  });
}

/** Runs the body under the caller's signal and the deadline; which came first decides what a success turns into. */
async function runBody(
  tool: ToolDefinition,
  execute: Body,
  call: ToolCall,
  ports: ToolPorts,
  claimDirectory: string | undefined,
): Promise<ToolOutcome> {
  const stop = new AbortController();
  let cause: "ABORTED" | "TOOL_TIMEOUT" | undefined;
  const onAbort = (): void => {
    cause ??= "ABORTED";
    stop.abort(ports.signal.reason);
  };
  ports.signal.addEventListener("abort", onAbort, { once: true });
  const timeoutMs = call.timeoutMs ?? tool.row.timeoutMs;
  const onDeadline = (): void => {
    cause ??= "TOOL_TIMEOUT";
    stop.abort(new DOMException("the tool's deadline has passed", "TimeoutError"));
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(onDeadline, timeoutMs);
  const context: ToolContext = {
    sessionId: call.sessionId,
    callId: call.callId,
    claim: call.claim,
    ...(claimDirectory === undefined ? {} : { claimDirectory }),
    ...(call.cwd === undefined ? {} : { cwd: call.cwd }),
    permissions: call.permissions,
    signal: stop.signal,
    store: ports.store,
    home: ports.home,
    maxInlineBytes: call.maxInlineBytes,
  };
  try {
    const outcome = outcomeOf(tool.row.name, await execute(context));
    return outcome.isError || cause === undefined ? outcome : stopped(cause, timeoutMs);
  } catch (error) {
    // A body that gave up because it was told to has no failure of its own.
    if (cause !== undefined && (cause === "TOOL_TIMEOUT" || isAbort(error, stop.signal)))
      return stopped(cause, timeoutMs);
    if (error instanceof LonghaulError) return errorOutcome(error.code, error.message);
    return errorOutcome("TOOL_FAILED", error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
    ports.signal.removeEventListener("abort", onAbort);
  }
}

function stopped(cause: "ABORTED" | "TOOL_TIMEOUT", timeoutMs: number | undefined): ToolOutcome {
  if (cause === "ABORTED") return errorOutcome("ABORTED", "the call was cancelled while it ran");
  return errorOutcome("TOOL_TIMEOUT", `the call did not end within ${timeoutMs} ms`);
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}
