import type { Client, WorkflowExecutionInfo } from "@temporalio/client";
import { LonghaulError } from "../contracts/errors.js";
import {
  sessionStates,
  workflowTypes,
  type SearchAttributeName,
  type SessionStateName,
} from "../contracts/names.js";
import { attemptUntil, type Bounded } from "./attempts.js";
import type { ListFilter, SessionSummary } from "./types.js";

/**
 * Sessions by visibility, newest first among those visibility names first (open ones before closed ones). Visibility
 * lags behind by up to a second. INVALID_INPUT for a query Temporal does not understand.
 */
export async function listSessions(
  client: Client,
  bounds: Bounded,
  filter: ListFilter,
  attributes: readonly SearchAttributeName[],
  timeoutMs: number,
): Promise<readonly SessionSummary[]> {
  const { state, limit = 1000 } = filter;
  if (!Number.isInteger(limit) || limit < 1) {
    throw new LonghaulError(
      "INVALID_INPUT",
      `list: expected \`limit\` to be an integer of at least 1, got ${String(limit)}`,
    );
  }
  const query = listQuery(filter, attributes);
  // The deadline is that of a page.
  const allowedMs = timeoutMs * Math.ceil(limit / pageRows);
  const found = await attemptUntil(
    bounds,
    {
      deadline: Date.now() + allowedMs,
      attemptMs: Math.max(10_000, allowedMs),
      gone: () =>
        Promise.resolve(
          new LonghaulError("NAMESPACE_NOT_FOUND", "the namespace does not exist any more"),
        ),
      late: (last) =>
        Promise.resolve(
          new LonghaulError(
            "TEMPORAL_UNREACHABLE",
            `Temporal did not answer within ${allowedMs / 1000} s (${last.message})`,
          ),
        ),
    },
    async () => {
      const summaries = new Map<string, SessionSummary>();
      for await (const info of client.workflow.list({
        query,
        pageSize: Math.min(limit, pageRows),
      })) {
        // One row a session, of its last run: one that failed NO_HOST may have been created again, others roll over.
        if (info.status.name === "CONTINUED_AS_NEW") continue;
        const summary = summarize(info);
        const known = summaries.get(summary.id);
        if (known !== undefined && known.startedAt >= summary.startedAt) continue;
        if (state === undefined || summary.state === state) summaries.set(summary.id, summary);
        if (summaries.size >= limit) break;
      }
      return [...summaries.values()];
    },
  );
  return found.toSorted((a, b) => b.startedAt - a.startedAt);
}

/** The most that a page of the server has by default. */
const pageRows = 1000;

/** Exported for tests. */
export function listQuery(
  { state, overdue, query }: ListFilter,
  attributes: readonly SearchAttributeName[],
  now: number = Date.now(),
): string {
  const terms = [`WorkflowType = '${workflowTypes.session}'`];
  // Of a session that goes on in a new run only that one counts.
  if (state === undefined) terms.push("ExecutionStatus != 'ContinuedAsNew'");
  if (state !== undefined) terms.push(stateTerm(state, attributes.includes("LonghaulState")));
  if (overdue === true) {
    terms.push("ExecutionStatus = 'Running'");
    if (attributes.includes("LonghaulNextReminder"))
      terms.push(`LonghaulNextReminder <= '${new Date(now).toISOString()}'`);
  }
  if (query !== undefined && query.trim() !== "") terms.push(`(${query})`);
  return terms.join(" AND ");
}

/** Exported for tests. */
export function summarize(info: SessionInfo): SessionSummary {
  const { memo = {}, searchAttributes: attributes } = info;
  const { createdAt } = memo;
  const title = textOf(memo["title"]);
  const host = firstText(attributes["LonghaulHost"]) ?? textOf(memo["host"]);
  const next = firstTime(attributes["LonghaulNextReminder"]);
  const parent = firstText(attributes["LonghaulParent"]) ?? textOf(memo["parent"]);
  return {
    id: info.workflowId,
    state: stateOf(info.status.name, firstText(attributes["LonghaulState"])),
    startedAt: typeof createdAt === "number" ? createdAt : info.startTime.getTime(),
    ...(next === undefined || info.closeTime !== undefined ? {} : { nextReminder: next }),
    ...(title === undefined ? {} : { title }),
    ...(host === undefined ? {} : { host }),
    ...(parent === undefined ? {} : { parent }),
    ...(info.closeTime === undefined ? {} : { closedAt: info.closeTime.getTime() }),
  };
}

export interface SessionInfo {
  readonly workflowId: string;
  readonly status: { readonly name: WorkflowExecutionInfo["status"]["name"] };
  readonly startTime: Date;
  readonly closeTime?: Date;
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly searchAttributes: Readonly<Record<string, unknown>>;
}

/** A filter that may let more through than asked for; what comes back is checked again. */
function stateTerm(state: SessionSummary["state"], registered: boolean): string {
  switch (state) {
    case "closed":
      return "ExecutionStatus = 'Completed'";
    case "terminated":
      return "(ExecutionStatus = 'Terminated' OR ExecutionStatus = 'Canceled')";
    case "failed":
      return "(ExecutionStatus = 'Failed' OR ExecutionStatus = 'TimedOut')";
    case "unknown":
      return "ExecutionStatus = 'Running'";
    default:
      return registered
        ? `ExecutionStatus = 'Running' AND LonghaulState = '${state}'`
        : "ExecutionStatus = 'Running'";
  }
}

function stateOf(
  status: WorkflowExecutionInfo["status"]["name"],
  attribute: string | undefined,
): SessionSummary["state"] {
  switch (status) {
    case "COMPLETED":
      return "closed";
    case "TERMINATED":
    case "CANCELLED":
      return "terminated";
    case "FAILED":
    case "TIMED_OUT":
      return "failed";
    default:
      return isSessionState(attribute) ? attribute : "unknown";
  }
}

function isSessionState(value: string | undefined): value is SessionStateName {
  return sessionStates.some((state) => state === value);
}

function firstText(value: unknown): string | undefined {
  return Array.isArray(value) ? textOf(value[0]) : textOf(value);
}

function firstTime(value: unknown): number | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return first instanceof Date ? first.getTime() : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
