import type { ModelPart, ModelProvider, ModelRequest } from "../../src/contracts/model.js";

/** What the model says: text, or calls of tools. */
export type HeldReply = string | readonly { readonly name: string; readonly args: object }[];

export interface SeenCall {
  /** When it was begun, `performance.now()`. */
  readonly at: number;
  readonly request: ModelRequest;
}

/** A model in the worker's own process that answers at once, and tells when it is called. */
export interface HeldModel {
  readonly provider: ModelProvider;
  /** The next replies of a session; then it says `ok`. */
  script(sessionId: string, replies: readonly HeldReply[]): void;
  /** The next call, whoever makes it. */
  nextCall(): Promise<SeenCall>;
}

export function createHeldModel(): HeldModel {
  const scripts = new Map<string, HeldReply[]>();
  let waiting: ((call: SeenCall) => void)[] = [];
  let calls = 0;
  return {
    provider: {
      provider: "bench",
      model: () => ({
        async *stream(request): AsyncGenerator<ModelPart> {
          const seen = { at: performance.now(), request };
          for (const tell of waiting) tell(seen);
          waiting = [];
          const reply = scripts.get(request.sessionId)?.shift() ?? "ok";
          if (typeof reply === "string") yield { type: "text", text: reply };
          else {
            for (const { name, args } of reply) {
              const callId = `call-${(calls += 1)}`;
              yield { type: "tool-call", callId, name, arguments: JSON.stringify(args) };
            }
          }
          yield { type: "finish", reason: typeof reply === "string" ? "stop" : "tool-calls" };
        },
      }),
    },
    script: (sessionId, replies) => void scripts.set(sessionId, [...replies]),
    nextCall: () => new Promise((resolve) => waiting.push(resolve)),
  };
}
