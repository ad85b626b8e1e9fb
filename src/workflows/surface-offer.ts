import { proxySinks, workflowInfo } from "@temporalio/workflow";
import type { SessionSinks } from "../contracts/activities.js";
import type { Session } from "../domain/session.js";

const { surface } = proxySinks<SessionSinks>();

/**
 * Hands what is new of the surface to the process this workflow runs in, which most likely also makes the model call: it then
 * has nothing to ask for. Any other asks, and either proves what it has by the digest (design D2).
 */
export function offerSurface(session: Session, to: number): void {
  const from = session.offered;
  session.offered = to;
  if (!workflowInfo().unsafe.isReplaying && to > from) {
    const { surface: nodes } = session.log;
    const fresh = Array.from({ length: to - from }, (_, index) => nodes.nodeAt(from + index));
    surface.offer(
      from,
      fresh.filter((node) => node !== undefined),
    );
  }
}
