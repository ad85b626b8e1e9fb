import { LonghaulError, type ErrorCode } from "../contracts/errors.js";
import type { ModelProvider } from "../contracts/model.js";
import type { Store } from "../contracts/store.js";
import { createAiSdkProvider } from "./ai-sdk.js";
import { longestSilenceMs, type SilenceLimits } from "./call-watch.js";
import { knownModels, modelFacts, type ModelFacts } from "./known-models.js";
import { nearestFirst } from "./nearest.js";
import {
  baseUrlOf,
  baseUrlProblem,
  keyOf,
  keyProblem,
  type Environment,
  type Found,
} from "./provider-access.js";
import { providerFetch } from "./provider-fetch.js";
import { providerKinds, type ProviderKind } from "./provider-kinds.js";

/** `providers.<name>` of the settings. */
export interface ProviderSettings extends Partial<SilenceLimits> {
  /** Where the provider is; its environment variable wins. */
  readonly baseUrl?: string;
}

/** What may be set about the built-in providers; the names are those of `config.yaml`. */
export interface ProvidersSettings {
  readonly providers?: Readonly<Record<string, ProviderSettings>>;
  /** By `provider/model`. */
  readonly models?: Readonly<Record<string, ModelFacts>>;
}

/** Something that keeps a model from answering, or may: one line, with what to do. */
export interface ModelProblem {
  readonly code: ErrorCode;
  readonly message: string;
  /** False when only a call can tell, as with a model that is newer than this table. */
  readonly certain: boolean;
}

/**
 * The built-in providers `deepseek`, `anthropic`, `openai` and `openai-compatible`, with keys and base URLs out of
 * `env` (docs/models.md). All are there whether their key is set or not: what is missing is said when it is needed.
 * Pictures of tool results are read from `store`; without one no model sees them.
 * Throws INVALID_CONFIG for settings of a provider that does not exist.
 */
export function providersFromEnv(
  env: Environment,
  settings: ProvidersSettings = {},
  store?: Pick<Store, "read">,
): readonly ModelProvider[] {
  checkNames(settings);
  return Object.entries(providerKinds).map(([name, kind]) =>
    open(name, kind, env, settings, store),
  );
}

/** What is wrong with a route before any call is made; undefined when nothing is known to be. */
export function checkModel(
  route: { readonly provider: string; readonly model: string },
  env: Environment,
  settings: ProvidersSettings = {},
): ModelProblem | undefined {
  const { provider, model } = route;
  const kind = kindOf(provider);
  if (kind === undefined) {
    const known = nearestFirst(provider, [...Object.keys(providerKinds), "scripted"]).join(", ");
    const message = `unknown provider "${provider}": expected one of: ${known}`;
    return { code: "MODEL_NOT_FOUND", message, certain: true };
  }
  const url = baseUrlOf(provider, kind, env, settings.providers?.[provider]?.baseUrl);
  const problem = accessProblem(provider, kind, keyOf(kind, env), url);
  if (problem !== undefined) return problem;
  const known = modelNames(provider, settings);
  const elsewhere = url.value !== kind.baseUrl;
  if (known.length === 0 || elsewhere || factsOf(provider, model, settings) !== undefined)
    return undefined;
  const names = nearestFirst(model, known).slice(0, 10).join(", ");
  return {
    code: "MODEL_NOT_FOUND",
    message: `model "${model}" is not known to be one of ${provider}; known here: ${names}`,
    certain: false,
  };
}

function open(
  name: string,
  kind: ProviderKind,
  env: Environment,
  settings: ProvidersSettings,
  store: Pick<Store, "read"> | undefined,
): ModelProvider {
  const own = settings.providers?.[name] ?? {};
  const key = keyOf(kind, env);
  const url = baseUrlOf(name, kind, env, own.baseUrl);
  const problem = accessProblem(name, kind, key, url);
  const { firstTokenMs, idleMs } = own;
  return createAiSdkProvider({
    provider: name,
    dialect: kind.dialect,
    silence: {
      ...(firstTokenMs !== undefined && { firstTokenMs: Math.min(firstTokenMs, longestSilenceMs) }),
      ...(idleMs !== undefined && { idleMs: Math.min(idleMs, longestSilenceMs) }),
    },
    ...(store !== undefined && {
      images: { store, seenBy: (model) => factsOf(name, model, settings)?.images === true },
    }),
    failures: () => ({
      secrets: key.value === undefined ? [] : [key.value],
      keyFrom: key.from,
      known: modelNames(name, settings),
      ...(problem === undefined &&
        url.value !== undefined && { origin: new URL(url.value).origin }),
    }),
    contextWindow: (model) => factsOf(name, model, settings)?.contextWindow,
    defaults(model) {
      const { maxTokens, reasoningEffort } = factsOf(name, model, settings) ?? {};
      return {
        ...(maxTokens !== undefined && { maxTokens }),
        ...(reasoningEffort !== undefined && { reasoningEffort }),
      };
    },
    languageModel(model, watch) {
      if (problem !== undefined) throw new LonghaulError(problem.code, problem.message);
      return kind.open({
        model,
        baseUrl: url.value ?? "",
        ...(key.value !== undefined && { key: key.value }),
        fetch: (rewriteBody) =>
          providerFetch(watch, {
            baseUrlFrom: url.from,
            ...(rewriteBody !== undefined && { rewriteBody }),
          }),
      });
    },
  });
}

function accessProblem(
  name: string,
  kind: ProviderKind,
  key: Found,
  url: Found,
): ModelProblem | undefined {
  const wrongUrl = baseUrlProblem(url);
  if (wrongUrl !== undefined) return { code: "INVALID_CONFIG", message: wrongUrl, certain: true };
  const wrongKey = keyProblem(name, kind, key);
  return wrongKey === undefined ? undefined : { code: "AUTH", message: wrongKey, certain: true };
}

function kindOf(provider: string): ProviderKind | undefined {
  return Object.hasOwn(providerKinds, provider) ? providerKinds[provider] : undefined;
}

function factsOf(
  provider: string,
  model: string,
  { models = {} }: ProvidersSettings,
): ModelFacts | undefined {
  const name = `${provider}/${model}`;
  const set = Object.hasOwn(models, name) ? models[name] : undefined;
  const known = modelFacts(provider, model);
  return set === undefined && known === undefined ? undefined : { ...known, ...set };
}

/** Models to name when another is asked for: those of the table and those of the settings. */
function modelNames(provider: string, { models = {} }: ProvidersSettings): readonly string[] {
  const prefix = `${provider}/`;
  const set = Object.keys(models).filter((name) => name.startsWith(prefix));
  return [...new Set([...set.map((name) => name.slice(prefix.length)), ...knownModels(provider)])];
}

function checkNames({ providers = {}, models = {} }: ProvidersSettings): void {
  const used = [
    ...Object.keys(providers).map((name) => ["providers", name] as const),
    ...Object.keys(models).map((name) => ["models", name.split("/", 1)[0] ?? ""] as const),
  ];
  for (const [key, name] of used) {
    if (kindOf(name) !== undefined) continue;
    const known = nearestFirst(name, Object.keys(providerKinds)).join(", ");
    throw new LonghaulError(
      "INVALID_CONFIG",
      `${key}: unknown provider "${name}", expected one of: ${known}`,
    );
  }
}
