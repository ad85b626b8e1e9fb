import { ApplicationFailure, CancellationScope, isCancellation } from "@temporalio/workflow";
import type { SharedAnswer } from "../contracts/activities.js";
import type { RequestConfig } from "../contracts/header.js";
import type { ModelRoute } from "../contracts/model.js";
import type { HostAnswer, ToolRow } from "../contracts/tools.js";
import { livenessEntries } from "../domain/place.js";
import type { Session } from "../domain/session.js";
import { offered } from "../domain/job-tool-rows.js";
import { stateToolRows } from "../domain/state-tools.js";
import {
  hostCalls,
  presenceCalls,
  sessionCalls,
  sessionRef,
  standingHostCalls,
} from "./activity-calls.js";

/**
 * Binds a new session to its host and logs its first tool table (design D3, D5). Without a given host, whichever
 * answers within 30 s; nobody: NO_HOST, the session fails. A given host that does not answer: the session opens cold.
 */
export async function openTable(session: Session, given: string | undefined): Promise<void> {
  const { worldTools, request } = session.config;
  const { epoch } = session.folds.place;
  const [shared, answer] = await Promise.all([
    askShared(request),
    worldTools ? askHost(given) : undefined,
  ]);
  if (!worldTools) {
    logTable(session, shared, undefined);
    return;
  }
  // Moved to another host meanwhile, which is asked for its table next.
  if (session.folds.place.epoch !== epoch) return;
  if (answer === undefined && given === undefined) {
    throw ApplicationFailure.create({
      type: "NO_HOST",
      nonRetryable: true,
      message:
        "no host answered within 30 s; start one with `longhaul worker`, or create the session without world tools",
    });
  }
  session.record({
    type: "session/bound",
    data: { host: answer?.host ?? given ?? "", epoch: epoch + 1 },
  });
  if (answer === undefined) {
    const why = `host ${given ?? ""} did not answer within 30 s`;
    session.record(...livenessEntries(session.folds.place, { cold: true }, why));
  }
  if (answer !== undefined) session.answeredAt = session.now;
  logTable(session, shared, answer);
}

/** While the host does not answer: one standing question, which its return answers (design D5). Ends with its scope. */
export async function awaitHost(session: Session): Promise<void> {
  const { host, epoch } = session.folds.place;
  if (host === undefined) return;
  const answer = await standingHostCalls({ host, summary: `waiting for host ${host}` })[
    "host.tools"
  ](sessionRef());
  const shared = await askShared(session.config.request);
  if (session.folds.place.epoch !== epoch) return;
  hostAnswered(session);
  logTable(session, shared, answer);
}

/** After a move to another host: its table, or that it does not answer; turns wait for it. Nothing when it is cancelled. */
export async function rebindTable(session: Session, epoch: number): Promise<void> {
  const { host } = session.folds.place;
  if (host === undefined || session.folds.place.epoch !== epoch) return;
  const [shared, answer] = await Promise.all([askShared(session.config.request), askHost(host)]);
  if (session.folds.place.epoch !== epoch || CancellationScope.current().consideredCancelled)
    return;
  if (answer === undefined) {
    const why = `host ${host} did not answer within 30 s`;
    session.record(...livenessEntries(session.folds.place, { cold: true }, why));
  } else hostAnswered(session);
  logTable(session, shared, answer);
}

/** Does a host answer within 60 s? */
export async function isPresent(host: string): Promise<boolean> {
  try {
    await presenceCalls({ host, summary: `is host ${host} there?` })["host.present"](sessionRef());
    return true;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return false;
  }
}

function hostAnswered(session: Session): void {
  const { place } = session.folds;
  session.answeredAt = session.now;
  session.record(...livenessEntries(place, { cold: false }, `host ${place.host ?? ""} answered`));
}

/** Asks again and logs the table; what does not answer keeps its rows. */
export async function refreshTable(session: Session): Promise<void> {
  const shared = await askShared(session.config.request);
  const { host, live, epoch } = session.folds.place;
  const answer =
    host === undefined || !live
      ? undefined
      : await CancellationScope.nonCancellable(() => askHost(host));
  // Moved meanwhile: the new host's table is on its way.
  if (session.folds.place.epoch !== epoch) return;
  if (answer !== undefined) session.answeredAt = session.now;
  logTable(session, shared, answer);
}

/** Capacity and defaults of a route; undefined when no session worker could say. */
export async function routeOf(request: RequestConfig): Promise<ModelRoute | undefined> {
  return (await askShared(request))?.route;
}

function logTable(
  session: Session,
  shared: SharedAnswer | undefined,
  host: HostAnswer | undefined,
): void {
  const { place } = session.folds;
  if (shared !== undefined) keepRoute(session, shared.route);
  const kept = (where: ToolRow["where"]): readonly ToolRow[] =>
    place.tools.filter((row) => row.where === where);
  const rows = [
    ...stateToolRows(session.config, session.scheduleConfig),
    ...(shared?.tools ?? kept("shared")),
    ...(host?.tools ?? kept("host")),
  ];
  const taken = new Set<string>();
  const tools = rows
    .filter((row) => !taken.has(row.name) && taken.add(row.name))
    .map((row) => offered(row, session.jobsConfig));
  // Jobs run on the host alone.
  const jobKinds = host?.jobKinds ?? place.jobKinds;
  session.record({ type: "session/tools", data: { epoch: place.epoch, tools, jobKinds } });
}

/** What was last said of a route counts. */
function keepRoute(session: Session, route: ModelRoute): void {
  const others = session.routes.filter(
    ({ provider, model }) => provider !== route.provider || model !== route.model,
  );
  session.routes = [...others, route];
}

async function askShared(request: RequestConfig): Promise<SharedAnswer | undefined> {
  try {
    return await sessionCalls({ summary: "shared tools and model route" })["tools.shared"]({
      ...sessionRef(),
      request,
    });
  } catch {
    return undefined;
  }
}

/** Given up when its scope is cancelled. */
async function askHost(host: string | undefined): Promise<HostAnswer | undefined> {
  try {
    return await hostCalls({
      host,
      summary: host === undefined ? "which host answers?" : `tools of host ${host}`,
    })["host.tools"](sessionRef());
  } catch {
    return undefined;
  }
}
