import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { ImageRef, ToolResultBlock } from "../../src/contracts/content.js";
import type { ModelRequest } from "../../src/contracts/model.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { Store } from "../../src/contracts/store.js";
import { toolResult, userMessage } from "../support/model-request.js";
import { eventStream } from "../support/protocol-server.js";
import { anthropicWire, deepseekWire, openaiWire, type Wire } from "../support/protocol-wires.js";
import { openLine } from "../support/provider-line.js";

const picture = Buffer.from("not really a picture, but bytes \u0000 \u00FF", "latin1");
const base64 = picture.toString("base64");

/** Hands out the picture in small pieces; nothing else is there. */
const store: Pick<Store, "read"> = {
  read: (_, stream, offset, limit) =>
    stream === "spill/kept"
      ? Promise.resolve(picture.subarray(offset, offset + Math.min(limit, 7)))
      : Promise.reject(new LonghaulError("STREAM_NOT_FOUND", stream)),
};

function ref(change: Partial<ImageRef> = {}): ImageRef {
  const digest = createHash("sha256").update(picture).digest("hex");
  return { mediaType: "image/png", stream: "spill/kept", bytes: picture.length, digest, ...change };
}

function transcript(...images: readonly ImageRef[]): Pick<ModelRequest, "messages"> {
  const { content, ...rest } = toolResult("c1", "[image a.png]");
  const block = content[0] as ToolResultBlock;
  return {
    messages: [
      userMessage("look"),
      {
        id: "a",
        role: "assistant",
        content: ["c1", "c2"].map((callId) => ({
          type: "tool-call" as const,
          callId,
          name: "read",
          arguments: "{}",
        })),
        source: { kind: "model" },
      },
      { ...rest, content: [{ ...block, images }] },
      toolResult("c2", "text of b"),
      userMessage("well?"),
    ],
  };
}

async function sent(wire: Wire, images: readonly ImageRef[], sees: boolean): Promise<unknown[]> {
  const settings = { models: { [`${wire.provider}/${wire.model}`]: { images: sees } } };
  const { ask, server } = await openLine(
    wire,
    eventStream(wire.events({ text: "ok" })),
    settings,
    store,
  );
  expect(await ask(transcript(...images))).toMatchObject({ kind: "reply" });
  return (server.requests[0]?.body["messages"] ?? []) as unknown[];
}

test.each([openaiWire, deepseekWire])(
  "$provider gets the pictures of a step after all its results",
  async (wire) => {
    expect((await sent(wire, [ref()], true)).slice(2)).toMatchObject([
      { role: "tool", tool_call_id: "c1", content: "[image a.png]" },
      { role: "tool", tool_call_id: "c2", content: "text of b" },
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } }],
      },
      { role: "user", content: "well?" },
    ]);
  },
);

test("anthropic gets a picture inside the result", async () => {
  expect((await sent(anthropicWire, [ref()], true))[2]).toMatchObject({
    content: [
      {
        type: "tool_result",
        tool_use_id: "c1",
        content: [
          { type: "text", text: "[image a.png]" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } },
        ],
      },
      { type: "tool_result", tool_use_id: "c2" },
      { type: "text", text: "well?" },
    ],
  });
});

test.each([openaiWire, deepseekWire, anthropicWire])(
  "a model of $provider that cannot see gets the text alone",
  async (wire) => {
    expect(JSON.stringify(await sent(wire, [ref()], false))).not.toContain(base64.slice(0, 20));
  },
);

test("a picture that is gone, or is not what its reference says, is left out", async () => {
  const wrong = [
    ref({ stream: "spill/gone" }),
    ref({ digest: "00".repeat(32) }),
    ref({ bytes: picture.length - 1 }),
    ref({ bytes: picture.length + 1 }),
  ];
  for (const image of wrong)
    expect(JSON.stringify(await sent(openaiWire, [image], true))).not.toContain("image_url");
});
