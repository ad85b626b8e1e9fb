import { LonghaulError } from "../contracts/errors.js";
import type { SessionView } from "../contracts/session.js";
import { pause } from "./pause.js";
import type { SessionRunStatus } from "./wire.js";

export interface IdleSource {
  view(signal?: AbortSignal): Promise<SessionView>;
  status(): Promise<SessionRunStatus | undefined>;
}

/** Is the whole session quiet (spec/harness §2)? Leftovers of a turn that was blocked, failed or was aborted wait. */
export function isQuiet(view: SessionView, after = -1): boolean {
  if (view.state === "closed" || view.state === "faulted" || view.state === "suspended")
    return true;
  if (
    view.turn.open ||
    view.state === "running" ||
    view.state === "awaiting-approval" ||
    view.lastSeq <= after
  )
    return false;
  const parked =
    view.lastEnd !== undefined && ["blocked", "error", "aborted"].includes(view.lastEnd.kind);
  return parked || view.inbox.nextTurn.length === 0;
}

/**
 * Resolves with the view once the session is quiet; outlasts lost workers and servers. ABORTED by the signal,
 * SESSION_CLOSED when the session was ended from outside, SESSION_NOT_FOUND.
 */
export async function waitUntilQuiet(
  source: IdleSource,
  after: number | undefined,
  signal?: AbortSignal,
): Promise<SessionView> {
  let waitMs = 50;
  for (let round = 0; ; round++) {
    if (signal?.aborted === true)
      throw new LonghaulError("ABORTED", "waiting for the session was aborted by its signal");
    try {
      const view = await source.view(signal);
      if (isQuiet(view, after)) return view;
      waitMs = view.turn.open ? 100 : Math.min(waitMs * 1.5, 500);
      if (round % 10 === 9 && (await source.status())?.open === false) {
        const last = await source.view(signal);
        if (isQuiet(last, after)) return last;
        throw new LonghaulError(
          "SESSION_CLOSED",
          `session ${view.id} has ended while its work was under way`,
        );
      }
    } catch (error) {
      if (!(error instanceof LonghaulError) || !awayCodes.has(error.code)) throw error;
      waitMs = 1000;
    }
    await pause(waitMs, signal);
  }
}

/** Codes of calls that may succeed later. */
export const awayCodes: ReadonlySet<string> = new Set([
  "TEMPORAL_UNREACHABLE",
  "NO_WORKER",
  "SESSION_FAULTED",
  "STORE_UNAVAILABLE",
]);
