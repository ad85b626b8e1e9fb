import {
  startProtocolServer,
  type ProtocolServer,
  type ReceivedRequest,
} from "../../support/protocol-server.js";
import type { PlannedSession, PlannedTurn } from "./plan.js";

/** A provider that treats each turn as planned, whatever the order in which sessions come. */
export interface FuzzedProvider {
  readonly url: string;
  /** Requests of a turn so far, in order. */
  received(turn: PlannedTurn): readonly ReceivedRequest[];
  /** Requests so far for a summary of what these turns said; each is told that it is too large as well. */
  summaries(turns: readonly PlannedTurn[]): number;
  /** Requests that belong to no turn, or that no turn has planned. */
  readonly strays: readonly string[];
  close(): Promise<void>;
}

export async function startFuzzedProvider(
  sessions: readonly PlannedSession[],
): Promise<FuzzedProvider> {
  const turns = new Map(
    sessions.flatMap((session) =>
      session.turns.map((turn) => {
        const requests: ReceivedRequest[] = [];
        return [turn.tag, { turn, requests, summaries: 0 }] satisfies [string, object];
      }),
    ),
  );
  const strays: string[] = [];
  const server: ProtocolServer = await startProtocolServer(async (response, request) => {
    const [newest = "", ...older] = tagsIn(request.body);
    const asking = newest === "" ? turns.get(older.find((tag) => tag !== "") ?? "") : undefined;
    if (asking !== undefined) {
      asking.summaries += 1;
      response.writeHead(413).end();
      return;
    }
    const found = turns.get(newest);
    const shot = found?.turn.shots[found.requests.length];
    found?.requests.push(request);
    if (shot === undefined) {
      strays.push(`a request that nobody planned: ${found?.turn.tag ?? request.text.slice(-200)}`);
      response.writeHead(400).end();
      return;
    }
    await shot.answer(response, request);
  });
  return {
    url: server.url,
    summaries: (asked) => asked.reduce((sum, { tag }) => sum + (turns.get(tag)?.summaries ?? 0), 0),
    received: ({ tag }) => turns.get(tag)?.requests ?? [],
    strays,
    close: () => server.close(),
  };
}

/** The tags in the user's messages, the newest first; empty for a message without one, as that which asks for a summary. */
function tagsIn({ messages }: ReceivedRequest["body"]): string[] {
  return (messages as readonly { readonly role: string; readonly content: unknown }[])
    .filter(({ role }) => role === "user")
    .map(({ content }) => /\[s\d+\.t\d+\]/.exec(JSON.stringify(content))?.[0] ?? "")
    .toReversed();
}
