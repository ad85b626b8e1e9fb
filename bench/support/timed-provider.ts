import { setTimeout } from "node:timers/promises";
import { startProtocolServer, type Answer } from "../../test/support/protocol-server.js";
import { event, openaiWire } from "../../test/support/protocol-wires.js";

/** What the provider says in one turn. */
export interface Script {
  /** Steps that call this tool once each; a step with text alone ends the turn. */
  readonly steps: number;
  readonly tool?: { readonly name: string; readonly arguments: string };
  /** Of the last reply: one word each. */
  readonly tokens: number;
  /** Between two of them, ms. */
  readonly tokenMs: number;
}

export interface TimedProvider {
  readonly url: string;
  /** The script of the turn that begins now. Gives the times at which its requests come, `performance.now()`. */
  play(script: Script): readonly number[];
  close(): Promise<void>;
}

/** A provider of the chat completions protocol on this machine that answers without thinking. */
export async function startTimedProvider(): Promise<TimedProvider> {
  const server = await startProtocolServer();
  let calls = 0;
  return {
    url: server.url,
    play({ steps, tool, tokens, tokenMs }) {
      const arrivals: number[] = [];
      server.answer(async (response, request) => {
        arrivals.push(performance.now());
        if (tool === undefined || arrivals.length > steps)
          return speak(tokens, tokenMs)(response, request);
        const call = { ...tool, callId: `call-${(calls += 1)}` };
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(openaiWire.events({ text: "On it.", calls: [call], delta: 100 }).join(""));
      });
      return arrivals;
    },
    close: () => server.close(),
  };
}

function speak(tokens: number, tokenMs: number): Answer {
  const events = openaiWire.events({ text: "word ".repeat(tokens), delta: 5 });
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const [index, one] of events.entries()) {
      // The first event carries no text and the first token follows at once.
      if (index > 1 && one !== event("[DONE]")) await setTimeout(tokenMs);
      if (response.destroyed) return;
      response.write(one);
    }
    response.end();
  };
}
