import type { SharedAnswer, SharedToolsInput } from "../contracts/activities.js";
import type { JobKindRow } from "../contracts/jobs.js";
import type { HostAnswer } from "../contracts/tools.js";
import type { Models } from "../models/registry.js";
import type { ToolRegistry } from "../tools/registry.js";

/** What this host offers (design D3). */
export function createHostTools(
  tools: ToolRegistry,
  jobKinds: readonly JobKindRow[],
  host: string,
): () => Promise<HostAnswer> {
  return async () => ({
    host,
    tools: tools.table().filter((row) => row.where === "host"),
    jobKinds,
  });
}

/** What any session worker offers, and what it knows of a route. */
export function createSharedTools(
  tools: ToolRegistry,
  models: Models,
): (input: SharedToolsInput) => Promise<SharedAnswer> {
  return async ({ request }) => ({
    tools: tools.table().filter((row) => row.where === "shared"),
    jobKinds: [],
    route: models.route(request),
  });
}
