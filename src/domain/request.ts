import type { SessionConfig } from "../contracts/config.js";
import type { RequestConfig, RequestHeader, ToolSchema } from "../contracts/header.js";
import type { NewEntry } from "../contracts/log.js";
import type { AdapterDefaults } from "../contracts/model.js";
import type { ToolRow } from "../contracts/tools.js";
import { canonicalJson } from "./canonical.js";
import { jobsPromptSection } from "./job-texts.js";
import { servesJobs } from "./job-tool-rows.js";
import { checkLossless } from "./lossless.js";

/** The header in force and where it stands (spec/harness §4). Plain JSON. */
export interface HeaderState {
  readonly seq: number;
  readonly header: RequestHeader;
}

/**
 * Header of the next request: route, prompt text, and the logged tool table in its order. What the adapter would fill
 * in is written out and marked, so that a switch of provider fills it in anew (spec/harness §4).
 */
export function buildHeader(
  request: RequestConfig,
  defaults: AdapterDefaults | undefined,
  system: string | undefined,
  tools: readonly ToolRow[],
): RequestHeader {
  const effort = request.reasoningEffort === undefined ? defaults?.reasoningEffort : undefined;
  const maxTokens = request.maxTokens === undefined ? defaults?.maxTokens : undefined;
  const marks: NonNullable<RequestHeader["adapterDefaults"]> = {
    ...(effort === undefined ? {} : { reasoningEffort: true as const }),
    ...(maxTokens === undefined ? {} : { maxTokens: true as const }),
  };
  return {
    config: {
      ...request,
      ...(effort === undefined ? {} : { reasoningEffort: effort }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
    },
    ...(Object.keys(marks).length === 0 ? {} : { adapterDefaults: marks }),
    ...(system === undefined || system === "" ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools: tools.map(schemaOf) }),
  };
}

/** The prompt's sections that come from the session itself. */
export function systemPrompt(
  config: SessionConfig,
  place: {
    readonly host?: string;
    readonly live: boolean;
    readonly tools: readonly { readonly name: string }[];
  },
): string | undefined {
  const sections: string[] = [];
  if (config.system !== undefined && config.system !== "") sections.push(config.system);
  if (config.worldTools && config.cwd !== undefined) {
    sections.push(`Your workspace is ${config.cwd}. Relative paths are resolved against it.`);
  }
  if (servesJobs(place.tools)) sections.push(jobsPromptSection.text);
  if (config.worldTools && !place.live) {
    sections.push(
      `The workspace host${place.host === undefined ? "" : ` ${place.host}`} does not answer at the moment: tools that need it are missing until it is back.`,
    );
  }
  return sections.length === 0 ? undefined : sections.join("\n\n");
}

/** `request/header` when there is none yet or when it differs in any field or in the order of tools. */
export function decideHeader(
  current: HeaderState | undefined,
  next: RequestHeader,
): readonly NewEntry[] {
  if (current === undefined)
    return [{ type: "request/header", data: { header: next, reason: "initial" } }];
  if (canonicalJson(current.header) === canonicalJson(next)) return [];
  return [{ type: "request/header", data: { header: next, reason: "change" } }];
}

/** Capacity of the route, as last logged. */
export interface RouteContext {
  readonly provider: string;
  readonly model: string;
  readonly contextWindow?: number;
}

/** `request/context` when the route or its capacity changed (spec/harness §4). */
export function decideContext(
  current: RouteContext | undefined,
  next: RouteContext,
): readonly NewEntry[] {
  const same =
    current !== undefined &&
    current.provider === next.provider &&
    current.model === next.model &&
    current.contextWindow === next.contextWindow;
  return same ? [] : [{ type: "request/context", data: next }];
}

const requestKeys = new Set([
  "provider",
  "model",
  "reasoningEffort",
  "temperature",
  "maxTokens",
  "stop",
]);

/** What is wrong with a request's config, from a command or a policy; undefined when nothing is. */
export function checkRequest(request: unknown): string | undefined {
  if (typeof request !== "object" || request === null || Array.isArray(request)) {
    return "`request` must be an object";
  }
  const lossy = checkLossless(request);
  if (lossy !== undefined) return `\`request\` must be JSON: ${lossy}`;
  const strange = Object.keys(request).find((key) => !requestKeys.has(key));
  if (strange !== undefined) return `\`request\` has no key ${JSON.stringify(strange)}`;
  const { provider, model, reasoningEffort, temperature, maxTokens, stop } = request as {
    readonly [key in keyof RequestConfig]?: unknown;
  };
  if (
    typeof provider !== "string" ||
    provider === "" ||
    typeof model !== "string" ||
    model === ""
  ) {
    return "`request` needs a `provider` and a `model`";
  }
  if (reasoningEffort !== undefined && typeof reasoningEffort !== "string") {
    return "`request.reasoningEffort` is text";
  }
  if (temperature !== undefined && typeof temperature !== "number") {
    return "`request.temperature` is a number";
  }
  if (maxTokens !== undefined && !(Number.isSafeInteger(maxTokens) && Number(maxTokens) > 0)) {
    return "`request.maxTokens` is a whole number above 0";
  }
  if (
    stop !== undefined &&
    !(Array.isArray(stop) && stop.every((one) => typeof one === "string"))
  ) {
    return "`request.stop` is a list of texts";
  }
  return undefined;
}

function schemaOf(row: ToolRow): ToolSchema {
  return { name: row.name, description: row.description, parameters: row.parameters };
}

/** `provider/model` for people; of a scenario file its name alone. */
export function routeName({ provider, model }: RequestConfig): string {
  return `${provider}/${model.startsWith("/") ? model.slice(model.lastIndexOf("/") + 1) : model}`;
}
