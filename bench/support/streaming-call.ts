import type { Reply } from "./workload.js";

interface Chunk {
  readonly choices: readonly {
    readonly delta?: {
      readonly content?: string;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly function: { readonly name?: string; readonly arguments?: string };
      }[];
    };
  }[];
}

/** The bare provider call: one streaming request of the chat completions protocol, read to its end with `fetch` alone. */
export async function streamCall(
  url: string,
  messages: readonly object[],
  onFirstToken: () => void,
): Promise<Reply> {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer none" },
    body: JSON.stringify({ model: "any-model", stream: true, messages }),
  });
  if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
  const decoder = new TextDecoder();
  const calls: { name: string; arguments: string }[] = [];
  let pending = "";
  let text = "";
  for await (const bytes of response.body) {
    const lines = (pending + decoder.decode(bytes, { stream: true })).split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const delta = (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta;
      if (delta?.content !== undefined && delta.content !== "") {
        if (text === "") onFirstToken();
        text += delta.content;
      }
      for (const { index, function: piece } of delta?.tool_calls ?? []) {
        const call = (calls[index] ??= { name: "", arguments: "" });
        call.name += piece.name ?? "";
        call.arguments += piece.arguments ?? "";
      }
    }
  }
  return { text, calls };
}
