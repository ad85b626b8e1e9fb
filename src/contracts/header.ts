/** Route and sampling of a request (spec/harness §4). */
export interface RequestConfig {
  readonly provider: string;
  readonly model: string;
  readonly reasoningEffort?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  readonly stop?: readonly string[];
}

/** A tool as the model is offered it. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
}

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Everything but the messages of a model request; empty system and tools are absent (spec/harness §4). */
export interface RequestHeader {
  readonly config: RequestConfig;
  readonly adapterDefaults?: { readonly reasoningEffort?: true; readonly maxTokens?: true };
  readonly system?: string;
  readonly tools?: readonly ToolSchema[];
}
