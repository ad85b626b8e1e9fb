import { describe, expect } from "vitest";
import * as z from "zod";
import type { SessionClient } from "../../src/client/session-client.js";
import { defineTool } from "../../src/tools/define.js";
import { test } from "../support/temporal.js";
import { unwritable } from "../support/unwritable-store.js";

const bare = { config: { worldTools: false } };
const text =
  "These are words of a reply, streamed in small pieces: ä, 日本, 🦀, and more of them. ".repeat(8);
const told = {
  turns: [
    { steps: [{ reasoning: "thinking aloud", text, chunk: 5, delayMs: 5 }, { text: "unused" }] },
  ],
};

describe.concurrent("streamed text", () => {
  test("watched deltas are the final text, in order, and every entry comes once", async ({
    lab,
  }) => {
    const session = await lab.session(told, bare);
    const watching = watched(session);
    await session.followup("go");
    const { entries, shown, reasoning } = await watching;
    expect(shown).toBe(text);
    expect(reasoning).toBe("thinking aloud");
    expect(entries).toEqual(Array.from({ length: entries.length }, (_, seq) => seq));
    await lab.witness(session);
  });

  test("a store that cannot be written neither fails nor delays the turn; watchers get the text from the log", async ({
    lab,
  }) => {
    const broken = unwritable(lab.store);
    const place = await lab.place({ store: broken.store });
    const session = await lab.session(told, { ...bare, at: place });
    const watching = watched(session);
    await session.followup("go");
    const { shown } = await watching;
    expect(broken.refused()).toBeGreaterThan(0);
    expect(shown).toBe(text);
    const log = await lab.entries(session);
    const reply = log.find((entry) => entry.type === "assistant/message");
    expect(reply?.data.stream).toBeUndefined();
    expect(log.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
  });

  test("[harness/T12] a result of 60 KB is cut to its limit and the whole is in the store; without the store it stays whole", async ({
    lab,
  }) => {
    const line = `${"x".repeat(99)}\n`.repeat(600);
    const scenario = {
      turns: [{ steps: [{ calls: [{ tool: "long", args: {} }] }, { text: "done" }] }],
    };
    const long = defineTool({
      name: "long",
      description: "Long.",
      parameters: z.object({}),
      execute: () => line,
    });
    const broken = unwritable(lab.store);
    const [good, bad] = await Promise.all([
      lab.place({ tools: [long] }),
      lab.place({ tools: [long], store: broken.store }),
    ]);
    const [cut, whole] = await Promise.all([
      lab.session(scenario, { at: good }),
      lab.session(scenario, { at: bad }),
    ]);
    const textOf = async (session: SessionClient): Promise<string> => {
      const result = (await lab.play(session)).find((entry) => entry.type === "tool/result");
      const [block] = result?.data.message.content ?? [];
      return block?.type === "tool-result" ? block.content.map((one) => one.text).join("") : "";
    };
    const short = await textOf(cut);
    expect(Buffer.byteLength(short)).toBeLessThanOrEqual(50_000);
    const stream = "spill/1.1.call-1-1-1";
    expect(short).toContain(lab.store.locator(cut.id, stream));
    expect(await lab.store.size(cut.id, stream)).toBe(line.length);
    expect(await textOf(whole)).toBe(line);
  });
});

/** Watches until the first turn ends. */
async function watched(
  session: SessionClient,
): Promise<{ entries: number[]; shown: string; reasoning: string }> {
  const entries: number[] = [];
  let shown = "";
  let reasoning = "";
  for await (const event of session.watch()) {
    if (event.type === "restart") shown = reasoning = "";
    if (event.type === "delta" && event.kind === "text") shown += event.text;
    if (event.type === "delta" && event.kind === "reasoning") reasoning += event.text;
    if (event.type !== "entry") continue;
    entries.push(event.entry.seq);
    if (event.entry.type === "turn/end") break;
  }
  return { entries, shown, reasoning };
}
