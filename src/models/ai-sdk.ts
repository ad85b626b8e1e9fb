import type { LanguageModelV2, LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { LonghaulError } from "../contracts/errors.js";
import type {
  AdapterDefaults,
  ModelPart,
  ModelProvider,
  ModelRequest,
} from "../contracts/model.js";
import type { Store } from "../contracts/store.js";
import { callOptions, type Dialect } from "./ai-sdk-prompt.js";
import { createReplyReader, type StreamPart } from "./ai-sdk-reply.js";
import { defaultSilence, watchCall, type CallWatch, type SilenceLimits } from "./call-watch.js";
import { failingModel, notFound } from "./failing.js";
import type { ModelFacts } from "./known-models.js";
import { cutOff, failureOfError, type FailureContext } from "./provider-failure.js";
import { imagesOf } from "./request-images.js";

/** A model object of the AI SDK, as its provider packages make them (interface version 3, or 2). */
export type AiSdkModel = LanguageModelV3 | LanguageModelV2;

export interface AiSdkProviderOptions {
  /** `provider` of the request config this answers to. */
  readonly provider: string;
  /** Makes the model for one call. What it throws is the call's failure. */
  readonly languageModel: (name: string, watch: CallWatch) => AiSdkModel;
  readonly contextWindow?: (name: string) => number | undefined;
  readonly defaults?: (name: string) => AdapterDefaults | undefined;
  readonly dialect?: Dialect;
  readonly silence?: Partial<SilenceLimits>;
  /** Where pictures of tool results are, and which models see them; default none does. */
  readonly images?: {
    readonly store: Pick<Store, "read">;
    readonly seenBy: (name: string) => boolean;
  };
  /** What failures are told with, beside provider and model. */
  readonly failures?: (name: string) => Omit<FailureContext, "provider" | "model">;
}

/**
 * Wraps AI SDK models as a provider. The models' own `doStream` is called, once a request: the AI SDK's `streamText`
 * above it would run tools, repeat failed requests and parse tool arguments, all of which the workflow does.
 */
export function createAiSdkProvider(options: AiSdkProviderOptions): ModelProvider {
  const { provider, contextWindow, defaults } = options;
  return {
    provider,
    model: (name) => ({ stream: (request, signal) => answer(options, name, request, signal) }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(defaults !== undefined && { defaults }),
  };
}

export interface FromAiSdkOptions extends ModelFacts {
  readonly silence?: Partial<SilenceLimits>;
  /** The model's name in a session's request; default the `modelId` of the object. */
  readonly name?: string;
  /** Texts to keep out of failures, e.g. the key the model was made with. */
  readonly secrets?: readonly string[];
  /** Where pictures are; they are sent when `images` is true. */
  readonly store?: Pick<Store, "read">;
}

/** One AI SDK model object as a provider with one model, for `startWorker({models: [fromAiSdk("mine", model)]})`. */
export function fromAiSdk(
  provider: string,
  model: AiSdkModel,
  options: FromAiSdkOptions = {},
): ModelProvider {
  const {
    name = model.modelId,
    contextWindow,
    maxTokens,
    reasoningEffort,
    silence,
    secrets = [],
    store,
    images = false,
  } = options;
  const wrapped = createAiSdkProvider({
    provider,
    languageModel: () => model,
    ...(silence !== undefined && { silence }),
    ...(store !== undefined && { images: { store, seenBy: () => images } }),
    failures: () => ({ secrets, known: [name] }),
  });
  const only =
    <T>(value: T) =>
    (asked: string) =>
      asked === name ? value : undefined;
  return {
    ...wrapped,
    model: (asked) =>
      asked === name ? wrapped.model(name) : failingModel(notFound("model", asked, [name])),
    contextWindow: only(contextWindow),
    defaults: only({
      ...(maxTokens !== undefined && { maxTokens }),
      ...(reasoningEffort !== undefined && { reasoningEffort }),
    }),
  };
}

/** The effort under the name its provider package knows it by. */
export function effortOption(
  namespace: string,
  { config }: ModelRequest,
): SharedV3ProviderOptions | undefined {
  const { reasoningEffort: effort } = config;
  if (effort === undefined) return undefined;
  return { [namespace]: namespace === "anthropic" ? { effort } : { reasoningEffort: effort } };
}

async function* answer(
  options: AiSdkProviderOptions,
  name: string,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelPart, void, undefined> {
  const { provider } = options;
  const context: FailureContext = {
    provider,
    model: name,
    ...(options.failures?.(name) ?? { secrets: [] }),
  };
  const watch = watchCall(signal, { ...defaultSilence, ...options.silence }, provider);
  const reply = createReplyReader(context);
  let reader: ReadableStreamDefaultReader<StreamPart> | undefined;
  try {
    signal.throwIfAborted();
    reader = (await watch.wait(open(options, name, request, watch))).getReader();
    while (true) {
      const { done, value } = await watch.wait(reader.read());
      if (done) return yield { type: "failure", failure: cutOff(provider) };
      watch.touch();
      const parts = reply.read(value);
      if (reply.begun) watch.begin();
      for (const part of parts) {
        yield part;
        if (part.type === "finish" || part.type === "failure") return;
      }
    }
  } catch (error) {
    const failure = signal.aborted
      ? { code: "ABORTED" as const, message: "the model request was aborted" }
      : failureOfError(error, context, watch.touched);
    yield { type: "failure", failure };
  } finally {
    watch.end();
    reader?.cancel().then(undefined, () => {});
  }
}

async function open(
  { dialect = {}, languageModel, images }: AiSdkProviderOptions,
  name: string,
  request: ModelRequest,
  watch: CallWatch,
): Promise<ReadableStream<StreamPart>> {
  const model: unknown = languageModel(name, watch);
  checkModelObject(model);
  const namespace = model.provider.split(".")[0]?.trim() ?? model.provider;
  const spoken = { options: (asked: ModelRequest) => effortOption(namespace, asked), ...dialect };
  const seen = images?.seenBy(name) === true ? await imagesOf(request, images.store) : new Map();
  const { stream } = await doStream(model, callOptions(request, spoken, seen, watch.signal));
  return stream;
}

async function doStream(
  model: AiSdkModel,
  options: ReturnType<typeof callOptions>,
): Promise<{ readonly stream: ReadableStream<StreamPart> }> {
  if (model.specificationVersion === "v3") return model.doStream(options);
  // oxlint-disable-next-line no-unsafe-type-assertion -- version 3 only adds parts that are not sent here
  return model.doStream(options as Parameters<LanguageModelV2["doStream"]>[0]);
}

function checkModelObject(model: unknown): asserts model is AiSdkModel {
  const version =
    typeof model === "object" && model !== null && "specificationVersion" in model
      ? model.specificationVersion
      : undefined;
  if (version === "v3" || version === "v2") return;
  const came = version === undefined ? typeof model : `one of version ${JSON.stringify(version)}`;
  throw new LonghaulError(
    "INVALID_CONFIG",
    `expected a model object of the AI SDK, version 3 or 2 of its model interface, got ${came}; use a provider package made for ai 5 or 6`,
  );
}
