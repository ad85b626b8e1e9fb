import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { setImmediate, setTimeout } from "node:timers/promises";

/** A request as the server got it. */
export interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Record<string, unknown>;
  /** Has the client, or the answer's end, closed the connection? */
  readonly closed: () => boolean;
}

/** Answers one request; what it throws after the client has gone does not count. */
export type Answer = (response: ServerResponse, request: ReceivedRequest) => Promise<void> | void;

export interface ProtocolServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  /** The answers from now on, one a request; the last one again for all further ones. */
  answer(...answers: Answer[]): void;
  close(): Promise<void>;
}

/** A real HTTP server on a free port of this machine that speaks whatever bytes a test gives it. */
export async function startProtocolServer(...answers: Answer[]): Promise<ProtocolServer> {
  const requests: ReceivedRequest[] = [];
  let queue = [...answers];
  const server = createServer((message, response) => {
    void handle(message, response).catch(() => response.destroy());
  });
  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    let closed = false;
    response.on("close", () => (closed = true));
    response.on("error", () => {});
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    const request: ReceivedRequest = {
      path: message.url ?? "",
      headers: message.headers,
      text,
      body: JSON.parse(text) as Record<string, unknown>,
      closed: () => closed,
    };
    requests.push(request);
    const answer = queue.length > 1 ? queue.shift() : queue[0];
    if (answer === undefined) throw new Error("no answer is left");
    await answer(response, request);
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    answer: (...next) => void (queue = next),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export interface StreamOptions {
  /** Bytes a write; default all at once. */
  readonly chunk?: number;
  /** What becomes of the stream after the events; default it ends. */
  readonly ending?: "end" | "cut" | "stall";
  /** Before the first event, ms. */
  readonly delayMs?: number;
  /** Sent every 50 ms while waiting. */
  readonly keepAlive?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers with an event stream of these bytes. */
export function eventStream(events: readonly string[], options: StreamOptions = {}): Answer {
  const { ending = "end", delayMs = 0, keepAlive, headers = {} } = options;
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream", ...headers });
    response.flushHeaders();
    for (let left = delayMs; left > 0; left -= 50) {
      await setTimeout(Math.min(left, 50));
      if (keepAlive !== undefined) response.write(keepAlive);
    }
    const bytes = Buffer.from(events.join(""), "utf8");
    const size = options.chunk ?? Math.max(bytes.length, 1);
    for (let at = 0; at < bytes.length && !response.destroyed; at += size) {
      response.write(bytes.subarray(at, at + size));
      // A write a packet, so that the reader sees the pieces as they are cut here.
      if (options.chunk !== undefined) await setImmediate();
      if (response.writableNeedDrain && !response.destroyed)
        await Promise.race([once(response, "drain"), once(response, "close")]);
    }
    // Without the last chunk's mark, and after all that was written.
    if (ending === "cut") response.socket?.end();
    else if (ending !== "stall") response.end();
  };
}

/** Answers with a status and a body. */
export function status(
  code: number,
  body: string | object,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const json = typeof body !== "string";
  return (response) => {
    response.writeHead(code, {
      "content-type": json ? "application/json" : "text/html",
      ...headers,
    });
    response.end(json ? JSON.stringify(body) : body);
  };
}
