import type { AssistantMessage, UserMessage } from "../../src/contracts/content.js";
import type { ModelRequest } from "../../src/contracts/model.js";

/** A request for the first step of the first turn, unless told otherwise. */
export function modelRequest(changes: Partial<ModelRequest> = {}): ModelRequest {
  return {
    sessionId: "s-1",
    turn: 1,
    step: 1,
    retry: 0,
    config: { provider: "scripted", model: "test" },
    tools: [],
    messages: [userMessage("hello")],
    ...changes,
  };
}

export function userMessage(text: string): UserMessage {
  return {
    id: `u-${text}`,
    role: "user",
    content: [{ type: "text", text }],
    source: { kind: "user" },
  };
}

export function assistantMessage(text: string): AssistantMessage {
  return {
    id: `a-${text}`,
    role: "assistant",
    content: [{ type: "text", text }],
    source: { kind: "model" },
  };
}

export function toolResult(callId: string, text: string, isError = false): UserMessage {
  return {
    id: `r-${callId}`,
    role: "user",
    content: [{ type: "tool-result", callId, content: [{ type: "text", text }], isError }],
    source: { kind: "tool", callId },
  };
}
