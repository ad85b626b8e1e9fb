import { WorkflowFailedError, type Client } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import { queries } from "../contracts/names.js";
import type { SessionView } from "../contracts/session.js";
import { attemptUntil, type Bounded } from "./attempts.js";
import { pause } from "./pause.js";
import { notFound, type Wire } from "./wire.js";
import { failureOf } from "./workflow-failure.js";

/** Longest a session takes to ask for its tools, ms: 30 s each for the shared ones and a host (design D3). */
const toolSearchMs = 60_000;
/** A session that closes waits at most this long for its jobs, ms (design D5). */
const closeWaitMs = 90_000;

/** What the beginning and the end of a session are seen with. */
export interface SessionEnds {
  readonly client: Client;
  readonly bounds: Bounded;
  readonly wire: Pick<Wire, "query" | "status">;
  readonly timeoutMs: number;
}

/** Resolves when the session has its tools; see `createSession` for what it rejects with. */
export async function untilReady(ends: SessionEnds, id: string): Promise<void> {
  const { wire, timeoutMs } = ends;
  const deadline = Date.now() + toolSearchMs + timeoutMs;
  while (Date.now() < deadline) {
    const view = await firstView(ends, id);
    if (view.ready) return;
    const { open = false } = (await wire.status(id)) ?? {};
    if (!open || view.state === "closed") await explainEnd(ends, id);
    await pause(100);
  }
  throw new LonghaulError(
    "NO_HOST",
    `session ${id} is open, but had no tools within ${(toolSearchMs + timeoutMs) / 1000} s; is a worker with the host role running (longhaul worker)?`,
  );
}

async function firstView({ wire, timeoutMs }: SessionEnds, id: string): Promise<SessionView> {
  try {
    return await wire.query<SessionView>(id, queries.view, {});
  } catch (error) {
    if (!(error instanceof LonghaulError) || error.code !== "NO_WORKER") throw error;
    throw new LonghaulError(
      "NO_WORKER",
      `session ${id} is started, but no worker took it within ${timeoutMs / 1000} s; start one (longhaul worker) and it goes on by itself`,
      { cause: error },
    );
  }
}

async function explainEnd({ client, bounds, timeoutMs }: SessionEnds, id: string): Promise<never> {
  const failure = await failureOf(client, bounds, id, timeoutMs);
  if (failure?.type === "NO_HOST") {
    throw new LonghaulError(
      "NO_HOST",
      `session ${id} has no host for its tools: ${failure.message}`,
    );
  }
  throw new LonghaulError(
    "SESSION_CLOSED",
    `session ${id} ended before it was ready${failure === undefined ? "" : `: ${failure.message}`}`,
  );
}

/** Resolves when the session has ended, in whichever run. TIMEOUT. */
export async function untilClosed(
  { client, bounds, wire }: SessionEnds,
  id: string,
): Promise<void> {
  // Also when Temporal has deleted it.
  if ((await wire.status(id))?.open === false) return;
  const handle = client.workflow.getHandle(id);
  await attemptUntil(
    bounds,
    {
      deadline: Date.now() + closeWaitMs,
      attemptMs: closeWaitMs,
      gone: () => Promise.resolve(notFound(id)),
      late: (last) =>
        Promise.resolve(
          new LonghaulError(
            "TIMEOUT",
            `session ${id} takes no more input, but had not closed within ${closeWaitMs / 1000} s (${last.message})`,
          ),
        ),
    },
    async () => {
      try {
        await handle.result();
      } catch (error) {
        // However it ended: it has.
        if (!(error instanceof WorkflowFailedError)) throw error;
      }
    },
  );
}
