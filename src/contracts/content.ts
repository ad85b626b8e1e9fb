/** Message content as the model sees it. Everything here is plain JSON. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

/** Provider reasoning, kept and sent back where a provider needs it. */
export interface ReasoningBlock {
  readonly type: "reasoning";
  readonly text: string;
  /** Opaque provider state (signatures), as JSON. */
  readonly replay?: unknown;
}

export interface ToolCallBlock {
  readonly type: "tool-call";
  readonly callId: string;
  readonly name: string;
  /** The raw argument string as the model produced it. */
  readonly arguments: string;
}

/**
 * A picture that belongs to a tool result, by reference: its bytes are a stream of the session in the store. The
 * result's text says what it is, for models that cannot see; whoever sends it checks length and digest first.
 */
export interface ImageRef {
  readonly mediaType: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  readonly stream: string;
  readonly bytes: number;
  /** SHA-256 of the bytes, hex. */
  readonly digest: string;
}

export interface ToolResultBlock {
  readonly type: "tool-result";
  readonly callId: string;
  readonly content: readonly TextBlock[];
  /** Absent: none. */
  readonly images?: readonly ImageRef[];
  readonly isError: boolean;
}

export type UserBlock = TextBlock | ToolResultBlock;
export type AssistantBlock = TextBlock | ReasoningBlock | ToolCallBlock;

/** Where a message came from, e.g. `{kind: "user"}`, `{kind: "tool", callId}`, `{kind: "plugin", name}`. */
export interface MessageSource {
  readonly kind: string;
  readonly [detail: string]: string;
}

export interface UserMessage {
  readonly id: string;
  readonly role: "user";
  readonly content: readonly UserBlock[];
  readonly source: MessageSource;
}

export interface AssistantMessage {
  readonly id: string;
  readonly role: "assistant";
  readonly content: readonly AssistantBlock[];
  /** `{kind: "model", provider, model}`. */
  readonly source: MessageSource;
}

export type Message = UserMessage | AssistantMessage;
