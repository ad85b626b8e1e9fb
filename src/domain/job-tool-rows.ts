import type { JsonObject } from "../contracts/header.js";
import type { ToolRow } from "../contracts/tools.js";

export const jobToolNames = { output: "job_output", list: "job_list", kill: "job_kill" } as const;

export const outputParameters: JsonObject = {
  type: "object",
  properties: {
    job_id: { type: "string", description: "Id from the tool that launched the job." },
    wait: {
      type: "boolean",
      description:
        "Block until the job ends or the time is up; on time-out the reply shows `[status: running]` and the job lives on.",
    },
    timeout_ms: {
      type: "number",
      description:
        "Longest wait, used only with `wait: true`; default and ceiling come from configuration.",
    },
  },
  required: ["job_id"],
};

export const killParameters: JsonObject = {
  type: "object",
  properties: {
    job_id: { type: "string", description: "Id from the tool that launched the job." },
    reason: { type: "string", description: "Short note, logged and passed to the job." },
  },
  required: ["job_id"],
};

/** Rows of the tool table: exclusive, and without a deadline of the generic kind (spec/jobs §10). */
export const jobToolRows: readonly ToolRow[] = [
  row(
    jobToolNames.output,
    "Read one background job. A streaming job yields only what it produced since your last read; a result-only job yields its result after it ends. Each reply closes with a `[status: ...]` line. Returns at once unless `wait: true`, which blocks up to the configured ceiling.",
    outputParameters,
  ),
  row(
    jobToolNames.list,
    "Show the background jobs you can see, live and ended, with id, kind and status.",
    { type: "object", properties: {} },
  ),
  row(
    jobToolNames.kill,
    "Ask a running background job to stop. Replies immediately; the job is recorded as killed when its work has really ended.",
    killParameters,
  ),
];

/** A row as this session offers it: without the parameter that starts a job where none may be started (spec/jobs §9). */
export function offered(
  offer: ToolRow,
  { enableRunInBackground }: { readonly enableRunInBackground: boolean },
): ToolRow {
  const { properties } = offer.parameters;
  if (offer.jobKind === undefined || enableRunInBackground) return offer;
  if (typeof properties !== "object" || properties === null || Array.isArray(properties))
    return offer;
  const kept = Object.entries(properties).filter(([name]) => name !== "run_in_background");
  return { ...offer, parameters: { ...offer.parameters, properties: Object.fromEntries(kept) } };
}

/** Does the session itself answer this tool? */
export function isJobTool(name: string): boolean {
  return jobToolRows.some((one) => one.name === name);
}

/** Does a tool table serve background jobs (J26)? */
export function servesJobs(tools: readonly { readonly name: string }[]): boolean {
  return jobToolRows.every((one) => tools.some((tool) => tool.name === one.name));
}

/** How a user interface shows a call. */
export interface JobCallCard {
  readonly card: "generic";
  readonly title: string;
  readonly kind: "read" | "execute";
  /** The job id as the model gave it. */
  readonly rawInput?: unknown;
}

/** `input`: the parsed arguments, of any shape. */
export function jobCallCard(name: string, input: unknown): JobCallCard | undefined {
  const id: unknown =
    typeof input === "object" && input !== null && "job_id" in input ? input.job_id : undefined;
  const named = typeof id === "string" ? id : "";
  switch (name) {
    case jobToolNames.output:
      return card(`Read output from background job ${named}`, "read", id);
    case jobToolNames.list:
      return { card: "generic", title: "List background jobs", kind: "read" };
    case jobToolNames.kill:
      return card(`Kill background job ${named}`, "execute", id);
    default:
      return undefined;
  }
}

function card(title: string, kind: JobCallCard["kind"], rawInput: unknown): JobCallCard {
  return { card: "generic", title, kind, ...(rawInput === undefined ? {} : { rawInput }) };
}

function row(name: string, description: string, parameters: JsonObject): ToolRow {
  return { name, description, parameters, where: "state", parallel: false, idempotent: false };
}
