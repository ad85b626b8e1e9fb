import { type Client, isGrpcServiceError, QueryNotRegisteredError } from "@temporalio/client";
import type { SessionRef } from "../contracts/activities.js";
import { LonghaulError, type Refusal } from "../contracts/errors.js";
import type { BodiesPage, BodiesQuery } from "../contracts/archive.js";
import type { LogEntry } from "../contracts/log.js";
import { askAgain, queries } from "../contracts/names.js";
import type { LogPage, LogQuery, SurfacePage, SurfaceQuery } from "../contracts/session.js";

/** What activities read of the session that called them: pages of exactly the run that asked (design D2). */
export interface SessionSource {
  nodes(ref: SessionRef, query: SurfaceQuery, signal: AbortSignal): Promise<SurfacePage>;
  log(ref: SessionRef, query: LogQuery, signal: AbortSignal): Promise<LogPage>;
  /** Texts that the checkpoint being made tells by name. */
  bodies(ref: SessionRef, names: readonly string[], signal: AbortSignal): Promise<BodiesPage>;
}

/** An entry that the run itself has; undefined when it is archived or there is none. */
export async function liveEntry(
  source: Pick<SessionSource, "log">,
  ref: SessionRef,
  seq: number,
  signal: AbortSignal,
): Promise<LogEntry | undefined> {
  const page = await source.log(ref, { after: seq - 1, limit: 1 }, signal);
  const [entry] = page.entries;
  return entry?.seq === seq ? entry : undefined;
}

/** How long a deadline or an exhausted server is retried, ms. */
const patienceMs = 60_000;
const callDeadlineMs = 15_000;

export function createSessionSource(client: Client): SessionSource {
  async function query<T>(
    ref: SessionRef,
    name: string,
    argument: LogQuery | SurfaceQuery | BodiesQuery,
    signal: AbortSignal,
  ): Promise<T> {
    const handle = client.workflow.getHandle(ref.sessionId, ref.runId);
    const until = Date.now() + patienceMs;
    for (let pause = 100; ; pause = Math.min(pause * 2, 2_000)) {
      signal.throwIfAborted();
      try {
        return await client.withDeadline(Date.now() + callDeadlineMs, () =>
          handle.query<T, [typeof argument]>(name, argument),
        );
      } catch (error) {
        if (!isTransient(error) || Date.now() + pause > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }
  return {
    async nodes(ref, range, signal) {
      const page = await query<SurfacePage | Refusal>(ref, queries.surface, range, signal);
      if ("ok" in page) throw new LonghaulError("SURFACE_MISMATCH", page.message);
      return page;
    },
    log: (ref, range, signal) => query<LogPage>(ref, queries.log, range, signal),
    bodies: (ref, names, signal) => query<BodiesPage>(ref, queries.bodies, { names }, signal),
  };
}

/** Numbers of google.rpc.Code. */
const transientCodes = new Set([1, 4, 8, 14]);

/** May the same query be answered a moment later? */
export function isTransient(error: unknown): boolean {
  if (error instanceof QueryNotRegisteredError) return error.message.includes(askAgain);
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return transientCodes.has(cause.code);
  }
  return false;
}
