import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";
import type { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { defineSessionConfig } from "../../src/client/session-config.js";
import type { ModelProvider } from "../../src/contracts/model.js";
import type { PeerActivities } from "./peer/activities.js";
import { peerQueue } from "./peer/worker.js";
import type { peerAgent } from "./peer/workflows.js";
import { streamCall } from "./streaming-call.js";
import type { Reply } from "./workload.js";

/** When what happened, `performance.now()`; undefined: nobody there to see it. */
export interface Moments {
  readonly sent: number;
  firstToken?: number;
  /** By a watcher of the client that sent, and by one of another client. */
  watched?: number;
  watchedElsewhere?: number;
}

/** A way to have the same agent loop run. Turns are one at a time. */
export interface Way {
  /** Makes the next turns those of a fresh session. */
  renew(): Promise<void>;
  /** One turn to its end. */
  turn(): Promise<Moments>;
  close(): Promise<void>;
}

/** The loop in this process, with nothing around it. */
export function bareWay(url: string): Way {
  let transcript: object[] = [];
  return {
    renew: async () => void (transcript = []),
    async turn() {
      const moments: Moments = { sent: performance.now() };
      transcript.push({ role: "user", content: "go" });
      for (;;) {
        const reply = await streamCall(url, transcript, () => first(moments));
        transcript.push({ role: "assistant", content: reply.text });
        if (reply.calls.length === 0) return moments;
        for (const call of reply.calls) transcript.push({ role: "tool", content: runTool(call) });
      }
    },
    close: async () => {},
  };
}

/** The loop in a workflow on the bare SDK, the request in an activity. Give the activities to a worker. */
export function sdkWay(client: Client, url: string): Way & { readonly activities: PeerActivities } {
  let moments: Moments = { sent: 0 };
  let ended = (): void => {};
  let done = 0;
  const start = () =>
    client.workflow.start<typeof peerAgent>("peerAgent", {
      taskQueue: peerQueue,
      workflowId: `peer-${randomUUID()}`,
    });
  let handle: Awaited<ReturnType<typeof start>> | undefined;
  return {
    activities: {
      async model() {
        const reply = await streamCall(url, [{ role: "user", content: "go" }], () =>
          first(moments),
        );
        if (reply.calls.length === 0) ended();
        return reply;
      },
      tool: async (call) => runTool(call),
      say: async (text) => text,
    },
    async renew() {
      await handle?.terminate();
      handle = await start();
      done = 0;
    },
    async turn() {
      const end = new Promise<void>((resolve) => (ended = resolve));
      moments = { sent: performance.now() };
      await handle?.executeUpdate("peer.send", { args: ["go", "any"] });
      await end;
      done++;
      while ((await handle?.query<number>("peer.done")) !== done) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return moments;
    },
    close: async () => void (await handle?.terminate()),
  };
}

/** A session. `elsewhere` is a client of its own that only looks on. */
export function longhaulWay(
  client: LonghaulClient,
  elsewhere: LonghaulClient,
  cwd: string,
): Way & { timed(provider: ModelProvider): ModelProvider } {
  let moments: Moments = { sent: 0 };
  let turn = 0;
  let session: SessionClient | undefined;
  let watchers = new AbortController();
  const watch = async (by: LonghaulClient, seen: "watched" | "watchedElsewhere"): Promise<void> => {
    if (session === undefined) return;
    for await (const event of by.session(session.id).watch({ signal: watchers.signal }))
      // What is left of the turn before may still come.
      if (event.type === "delta" && event.turn === turn) moments[seen] ??= performance.now();
  };
  const leave = async (): Promise<void> => {
    watchers.abort();
    await session?.close();
  };
  return {
    timed: (provider) => ({
      ...provider,
      model: (name) => ({
        async *stream(request, signal) {
          for await (const part of provider.model(name).stream(request, signal)) {
            if (part.type === "text") first(moments);
            yield part;
          }
        },
      }),
    }),
    async renew() {
      await leave();
      watchers = new AbortController();
      turn = 0;
      const model = "openai-compatible/any-model";
      const choices = { model, allowParallelInProgress: true, cwd };
      session = await client.createSession({ config: defineSessionConfig(choices) });
      void watch(client, "watched");
      void watch(elsewhere, "watchedElsewhere");
    },
    async turn() {
      turn++;
      moments = { sent: performance.now() };
      const sent = await session?.followup("go");
      await session?.waitIdle({ after: sent?.seq ?? 0 });
      const end = (await session?.view())?.lastEnd;
      if (end?.kind !== "completed") throw new Error(`the turn ended ${JSON.stringify(end)}`);
      while (moments.watched === undefined || moments.watchedElsewhere === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return moments;
    },
    close: leave,
  };
}

function first(moments: Moments): void {
  moments.firstToken ??= performance.now();
}

/** The body of the tool, as Longhaul's `produce` has it; a todo list is taken note of. */
function runTool(call: Reply["calls"][number]): string {
  if (call.name === "todo_write") return "ok";
  const { bytes } = JSON.parse(call.arguments) as { readonly bytes: number };
  return "y".repeat(bytes);
}
