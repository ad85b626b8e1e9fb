import { replyOf, type Reply, type Workload } from "../workload.js";

export type PeerMessage =
  | { readonly role: "user" | "tool"; readonly text: string }
  | ({ readonly role: "assistant" } & Reply);

export interface PeerActivities {
  /** Gets no transcript: it is taken to read it elsewhere, which costs the history nothing. */
  model(request: { readonly load: string; readonly step: number }): Promise<Reply>;
  tool(call: { readonly name: string; readonly arguments: string }): Promise<string>;
  say(text: string): Promise<string>;
}

export function createPeerActivities(loads: readonly Workload[]): PeerActivities {
  return {
    async model({ load, step }) {
      const workload = loads.find((one) => one.name === load);
      if (workload === undefined) throw new Error(`no workload ${load}`);
      return replyOf(workload, step);
    },
    async tool(call) {
      const { bytes } = JSON.parse(call.arguments) as { readonly bytes: number };
      return "y".repeat(bytes);
    },
    async say(text) {
      return text;
    },
  };
}
