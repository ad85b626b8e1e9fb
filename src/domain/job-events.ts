import { jobEnds, type JobEventType } from "../contracts/jobs.js";
import { checkSnapshot } from "./job-views.js";

/** The `job/*` entries, for the list of Longhaul's own types: exported as `ignorable`. */
export const jobEventTypes = [
  "job/start",
  "job/stopping",
  "job/settled",
  "job/reported",
  "job/cursor",
  "job/removed",
  "job/woken",
] as const satisfies readonly JobEventType[];

export function isJobEvent(type: string): type is JobEventType {
  return jobEventTypes.some((one) => one === type);
}

/**
 * What is wrong with the data of a `job/*` entry, stored or replayed; undefined when nothing is. Looks only at what folding
 * relies on, so that old logs stay valid when more is asked of new ones.
 */
export function checkJobEvent(type: JobEventType, data: unknown): string | undefined {
  if (!isRecord(data)) return `${type} must be an object`;
  const { id, ids } = data;
  if (type === "job/removed" || type === "job/woken") {
    return Array.isArray(ids) && ids.every((one) => typeof one === "string")
      ? undefined
      : `${type} ids must be a list of texts`;
  }
  if (typeof id !== "string" || id === "") return `${type} id must be non-empty text`;
  switch (type) {
    case "job/start":
      return startProblem(data);
    case "job/settled":
      return settledProblem(data);
    case "job/stopping":
      return isTextOrAbsent(data["detail"]) ? undefined : "job/stopping detail must be text";
    case "job/cursor":
      return isRecord(data["offsets"]) && Object.values(data["offsets"]).every(isCount)
        ? undefined
        : "job/cursor offsets must be numbers of bytes";
    case "job/reported":
      return undefined;
  }
}

function startProblem(data: { readonly [key: string]: unknown }): string | undefined {
  const { id, kind, label, startedAt, limit, output, nonce, owner } = data;
  const flaw = checkSnapshot({ id, kind, label, startedAt, status: "running" }, undefined);
  if (flaw !== undefined) return `job/start: ${flaw}`;
  if (limit !== undefined && (!isCount(limit) || limit < 1))
    return "job/start limit must be a positive integer";
  if (output !== "stream" && output !== "final") return "job/start output must be stream or final";
  if (typeof nonce !== "string") return "job/start nonce must be text";
  if (owner === undefined) return undefined;
  return isRecord(owner) &&
    typeof owner["session"] === "string" &&
    typeof owner["token"] === "string"
    ? undefined
    : "job/start owner must have a session and a token";
}

function settledProblem(data: { readonly [key: string]: unknown }): string | undefined {
  const { status, detail, finishedAt, output, tails } = data;
  if (!jobEnds.some((end) => end === status)) return "job/settled status must be an end";
  if (!isTextOrAbsent(detail)) return "job/settled detail must be text";
  if (!isCount(finishedAt)) return "job/settled finishedAt must be an integer";
  if (!isTextOrAbsent(output)) return "job/settled output must be text";
  if (tails === undefined) return undefined;
  return Array.isArray(tails) && tails.every(isTail)
    ? undefined
    : "job/settled tails must be pieces of streams";
}

function isTail(tail: unknown): boolean {
  if (!isRecord(tail)) return false;
  const { stream, from, to, text } = tail;
  return typeof stream === "string" && typeof text === "string" && isCount(from) && isCount(to);
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
