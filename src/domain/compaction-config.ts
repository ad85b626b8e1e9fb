import {
  defaultCompactionConfig,
  type CompactionConfig,
  type CompactionPolicy,
} from "../contracts/compaction.js";
import { refuse, type Refusal } from "../contracts/errors.js";
import { isFields, type Fields } from "./reference-entry.js";
import type { RouteContext } from "./request.js";

type Loaded = { readonly ok: true; readonly config: CompactionConfig } | Refusal;

/** The `compaction` key of a configuration: true or absent is the default, false is on demand only. @public */
export function loadCompactionConfig(given: unknown): Loaded {
  if (given === undefined || given === true) return { ok: true, config: defaultCompactionConfig };
  if (given === false) return { ok: true, config: { ...defaultCompactionConfig, auto: false } };
  if (!isFields(given)) return bad("`compaction` is true, false or an object");
  const { auto = true, prune = true, routes = [], ...policy } = given;
  const problem = policyProblem(policy);
  if (problem !== undefined) return bad(`compaction: ${problem}`);
  if (typeof auto !== "boolean" || typeof prune !== "boolean")
    return bad("compaction: `auto` and `prune` are true or false");
  if (!Array.isArray(routes)) return bad("compaction: `routes` is a list");
  const config = { ...defaultCompactionConfig, ...policy, auto, prune, routes } as CompactionConfig;
  const names = new Set<string>();
  for (const route of routes as readonly unknown[]) {
    const flaw = routeProblem(route, config);
    if (flaw !== undefined) return bad(`compaction: ${flaw}`);
    const name = nameOf(route as RouteContext);
    if (names.has(name)) return bad(`compaction: the route ${name} is there twice`);
    names.add(name);
  }
  const ratio = ratioProblem(config);
  return ratio === undefined ? { ok: true, config } : bad(`compaction: ${ratio}`);
}

/** The policy of a route: its own where it has one. */
export function policyOf(config: CompactionConfig, route: RouteContext): CompactionPolicy {
  const own = config.routes.find((one) => nameOf(one) === nameOf(route));
  if (own === undefined) return config;
  const { retainTokens, ...rest } = config;
  // Either form of the retained part takes the place of both.
  const inherited =
    own.retainRatio !== undefined || retainTokens === undefined ? {} : { retainTokens };
  return { ...rest, ...inherited, ...own };
}

/** Budgets of a route in tokens. */
export interface CompactionBudget {
  readonly threshold: number;
  readonly retain: number;
}

/** Undefined when the capacity of the route is not known, or when the retained part would not fit below the threshold. */
export function budgetOf(
  policy: CompactionPolicy,
  contextWindow: number | undefined,
): CompactionBudget | undefined {
  if (contextWindow === undefined) return undefined;
  const threshold = Math.floor(contextWindow * policy.thresholdRatio);
  const retain = policy.retainTokens ?? Math.floor(contextWindow * policy.retainRatio);
  return retain < threshold ? { threshold, retain } : undefined;
}

const counts: { readonly [key: string]: number } = {
  retainTokens: 0,
  summaryTokens: 1,
  extraPasses: 0,
  maxOverflowRetries: 0,
};

function policyProblem(policy: Fields): string | undefined {
  for (const [key, value] of Object.entries(policy)) {
    const least = Object.hasOwn(counts, key) ? counts[key] : undefined;
    if (least !== undefined) {
      if (!Number.isSafeInteger(value) || Number(value) < least)
        return `\`${key}\` is a whole number from ${least}`;
    } else if (key === "thresholdRatio" || key === "retainRatio") {
      if (typeof value !== "number" || !(value > 0 && value <= 1))
        return `\`${key}\` is a number above 0, at most 1`;
    } else return `there is no key ${JSON.stringify(key)}`;
  }
  return policy["retainTokens"] !== undefined && policy["retainRatio"] !== undefined
    ? "give `retainRatio` or `retainTokens`, not both"
    : undefined;
}

function routeProblem(route: unknown, config: CompactionConfig): string | undefined {
  if (!isFields(route)) return "a route is an object";
  const { provider, model, ...policy } = route;
  if (typeof provider !== "string" || typeof model !== "string")
    return "a route needs its provider and its model";
  const problem =
    policyProblem(policy) ??
    ratioProblem(policyOf({ ...config, routes: [route as never] }, { provider, model }));
  return problem === undefined ? undefined : `route ${provider}/${model}: ${problem}`;
}

function ratioProblem(policy: CompactionPolicy): string | undefined {
  return policy.retainTokens === undefined && policy.retainRatio >= policy.thresholdRatio
    ? "`retainRatio` must be below `thresholdRatio`"
    : undefined;
}

function nameOf({
  provider,
  model,
}: {
  readonly provider: string;
  readonly model: string;
}): string {
  return `${provider}/${model}`;
}

function bad(message: string): Refusal {
  return refuse("INVALID_CONFIG", message);
}
