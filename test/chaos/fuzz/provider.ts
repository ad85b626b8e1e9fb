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
  /** Requests that belong to no turn, or that no turn has planned. */
  readonly strays: readonly string[];
  close(): Promise<void>;
}

export async function startFuzzedProvider(
  sessions: readonly PlannedSession[],
): Promise<FuzzedProvider> {
  const turns = new Map(
    sessions.flatMap((session) =>
      session.turns.map((turn) => [turn.tag, { turn, requests: [] as ReceivedRequest[] }] as const),
    ),
  );
  const strays: string[] = [];
  const server: ProtocolServer = await startProtocolServer(async (response, request) => {
    const found = turns.get(tagIn(request.body) ?? "");
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
    received: ({ tag }) => turns.get(tag)?.requests ?? [],
    strays,
    close: () => server.close(),
  };
}

/** The tag in the last message of the user. */
function tagIn({ messages }: ReceivedRequest["body"]): string | undefined {
  const last = (messages as readonly { readonly role: string; readonly content: unknown }[])
    .filter(({ role }) => role === "user")
    .at(-1);
  return /\[s\d+\.t\d+\]/.exec(JSON.stringify(last?.content ?? ""))?.[0];
}
