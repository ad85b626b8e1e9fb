import { createHash } from "node:crypto";
import { Context } from "@temporalio/activity";
import type { RunToolInput, SealToolInput } from "../contracts/activities.js";
import { LonghaulError } from "../contracts/errors.js";
import type { Store } from "../contracts/store.js";
import type { ToolOutcome } from "../contracts/tools.js";
import { sealClaim } from "../process/claim.js";
import type { ToolRegistry } from "../tools/registry.js";
import { whileBeating } from "./heartbeat.js";
import { liveEntry, type SessionSource } from "./session-source.js";

export interface RunToolDeps {
  readonly tools: ToolRegistry;
  readonly store: Store;
  readonly source: Pick<SessionSource, "log">;
  /** Data directory of this host. */
  readonly home: string;
}

/** Runs a world tool's body once (design D6). What a tool does is a value; on every cancellation its processes end first. */
export function createRunTool(deps: RunToolDeps): (input: RunToolInput) => Promise<ToolOutcome> {
  return async function runTool(input) {
    const context = Context.current();
    return whileBeating(
      context,
      () => ({ tool: input.tool, claim: input.claim }),
      async () => {
        const args = await rawArguments(deps.source, input, context.cancellationSignal);
        const outcome = await deps.tools.run(
          {
            sessionId: input.sessionId,
            claim: input.claim,
            callId: input.callId,
            tool: input.tool,
            args,
            ...(input.cwd === undefined ? {} : { cwd: input.cwd }),
            permissions: input.permissions,
            ...(input.timeoutMs === undefined ? {} : { timeoutMs: input.timeoutMs }),
            maxInlineBytes: input.maxInlineBytes,
          },
          { store: deps.store, home: deps.home, signal: context.cancellationSignal },
        );
        const asked = context.cancellationDetails?.cancelRequested === true;
        return outcome.error?.code === "ABORTED" && !asked ? cutShort(input, outcome) : outcome;
      },
    );
  };
}

/** Ends what a lost worker's call left running and bars the claim (design D6). */
export function createSealTool(
  deps: Pick<RunToolDeps, "home">,
): (input: SealToolInput) => Promise<void> {
  return async function sealTool(input) {
    await sealClaim({ home: deps.home, sessionId: input.sessionId, claim: input.claim });
  };
}

async function rawArguments(
  source: Pick<SessionSource, "log">,
  input: RunToolInput,
  signal: AbortSignal,
): Promise<string> {
  if ("inline" in input.args) return input.args.inline;
  const { seq, digest } = input.args;
  // Never archived: no roll-over cuts a step.
  const entry = await liveEntry(source, input, seq, signal);
  const raw = entry?.type === "tool/call" ? entry.data.arguments : "";
  if (createHash("sha256").update(raw, "utf8").digest("hex") !== digest) {
    throw new LonghaulError(
      "SURFACE_MISMATCH",
      `log entry ${seq} of session ${input.sessionId} is not the call whose arguments were asked for`,
    );
  }
  return raw;
}

/** Ended though the session did not ask for it: the worker stopped, or an operator reset the activity. */
function cutShort(input: RunToolInput, outcome: ToolOutcome): ToolOutcome {
  const text = `Error: ${input.tool} was ended before it was done, because its worker stopped or the activity was reset; it may have had effects and is not run again: check before you repeat it`;
  return {
    ...outcome,
    content: [
      { type: "text", text },
      ...outcome.content.filter((block) => !block.text.startsWith("Error:")),
    ],
    error: { name: "TOOL_OUTCOME_UNKNOWN", code: "TOOL_OUTCOME_UNKNOWN" },
  };
}
