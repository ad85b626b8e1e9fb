import { LonghaulError } from "../contracts/errors.js";
import type { RequestConfig } from "../contracts/header.js";
import type { Model, ModelProvider, ModelRoute } from "../contracts/model.js";
import { failingModel, failureOf, notFound } from "./failing.js";

export interface FoundModel {
  readonly model: Model;
  /** Tokens the route can hold, when the provider tells. */
  readonly contextWindow?: number;
}

export interface Models {
  /** The model of a route. Never throws: an unknown one answers each request with MODEL_NOT_FOUND. */
  find(config: RequestConfig): FoundModel;
  /** Capacity and defaults of a route, as far as its provider tells. Never throws. */
  route(config: RequestConfig): ModelRoute;
}

/** The models of these providers; INVALID_CONFIG when two have one name. */
export function createModels(providers: readonly ModelProvider[]): Models {
  const byName = new Map<string, ModelProvider>();
  for (const provider of providers) {
    if (byName.has(provider.provider)) {
      throw new LonghaulError(
        "INVALID_CONFIG",
        `expected one provider named "${provider.provider}", got two`,
      );
    }
    byName.set(provider.provider, provider);
  }
  return {
    route({ provider, model }) {
      const known = byName.get(provider);
      try {
        const contextWindow = known?.contextWindow?.(model);
        const defaults = known?.defaults?.(model);
        return {
          provider,
          model,
          ...(contextWindow !== undefined && { contextWindow }),
          ...(defaults !== undefined && { defaults }),
        };
      } catch {
        return { provider, model };
      }
    },
    find(config) {
      const provider = byName.get(config.provider);
      if (provider === undefined) {
        return { model: failingModel(notFound("provider", config.provider, [...byName.keys()])) };
      }
      try {
        const contextWindow = provider.contextWindow?.(config.model);
        return {
          model: provider.model(config.model),
          ...(contextWindow !== undefined && { contextWindow }),
        };
      } catch (error) {
        return { model: failingModel(failureOf(error)) };
      }
    },
  };
}
