import {
  condition,
  defineQuery,
  defineUpdate,
  proxyActivities,
  setHandler,
} from "@temporalio/workflow";
import type { PeerActivities, PeerMessage } from "./activities.js";
import type { Reply } from "../workload.js";

const { model, tool, say } = proxyActivities<PeerActivities>({ startToCloseTimeout: "1 minute" });

export const peerSend = defineUpdate<void, [content: string, load: string]>("peer.send");
export const peerDone = defineQuery<number>("peer.done");

/** The agent loop as a careful person writes it on the bare SDK: each thing passes through history by value, once. */
export async function peerAgent(): Promise<void> {
  const queue: { readonly content: string; readonly load: string }[] = [];
  const transcript: PeerMessage[] = [];
  let done = 0;
  setHandler(peerSend, (content, load) => void queue.push({ content, load }));
  setHandler(peerDone, () => done);
  for (;;) {
    await condition(() => queue.length > 0);
    const { content, load } = queue.shift() ?? { content: "", load: "" };
    transcript.push({ role: "user", text: content });
    for (let step = 1; load !== ""; step++) {
      const reply = await model({ load, step });
      transcript.push({ role: "assistant", ...reply });
      if (reply.calls.length === 0) break;
      const results = await Promise.all(reply.calls.map(run));
      for (const text of results) transcript.push({ role: "tool", text });
    }
    done++;
  }
}

/** A todo list is the workflow's own affair. */
async function run(call: Reply["calls"][number]): Promise<string> {
  return call.name === "todo_write" ? "ok" : tool(call);
}

/** The least that has had a turn: one update, one activity, one query. */
export async function peerIdle(): Promise<void> {
  let wanted = 0;
  let done = 0;
  setHandler(peerSend, () => void wanted++);
  setHandler(peerDone, () => done);
  for (;;) {
    await condition(() => wanted > done);
    await say("hello");
    done++;
  }
}
