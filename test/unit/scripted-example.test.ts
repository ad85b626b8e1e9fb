import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod";
import type { AssistantMessage, Message, ToolCallBlock } from "../../src/contracts/content.js";
import { todoStatuses } from "../../src/contracts/todo.js";
import { collectReply } from "../../src/models/collect.js";
import { createScriptedProvider } from "../../src/models/scripted.js";
import { modelRequest, toolResult, userMessage } from "../support/model-request.js";

const example = fileURLToPath(new URL("../../examples/first-session.yaml", import.meta.url));

const argumentsOf = {
  bash: z.strictObject({ command: z.string(), description: z.string() }),
  read: z.strictObject({ path: z.string() }),
  write: z.strictObject({ path: z.string(), content: z.string() }),
  todo_write: z.strictObject({
    todos: z.array(z.strictObject({ content: z.string().min(1), status: z.enum(todoStatuses) })),
  }),
};

test(
  "the first session's commands and files do what its script expects",
  { timeout: 30_000 },
  async () => {
    const workspace = await mkdtemp(join(tmpdir(), "longhaul-example-"));
    try {
      const model = createScriptedProvider().model(example);
      const tools = Object.keys(argumentsOf).map((name) => ({
        name,
        description: "",
        parameters: {},
      }));
      const messages: Message[] = [userMessage("How long does sunlight travel to the planets?")];
      const { signal } = new AbortController();
      let closing: string | undefined;
      for (let step = 1; closing === undefined; step += 1) {
        const outcome = await collectReply(
          model.stream(modelRequest({ step, tools, messages }), signal),
          signal,
        );
        expect(outcome).toMatchObject({ kind: "reply" });
        if (outcome.kind !== "reply") break;
        const { content, finish } = outcome;
        messages.push({
          id: `a-${step}`,
          role: "assistant",
          content,
          source: { kind: "model" },
        } satisfies AssistantMessage);
        const calls = content.filter((block) => block.type === "tool-call");
        for (const call of calls)
          messages.push(toolResult(call.callId, await run(call, workspace)));
        if (finish === "stop")
          closing = content.map((block) => (block.type === "text" ? block.text : "")).join("");
      }
      expect(closing).toMatch(/^Done: sunlight\.md/);
      expect(messages.filter(({ role }) => role === "assistant")).toHaveLength(6);
      expect(await readFile(join(workspace, "sunlight.md"), "utf8")).toContain(
        "| Neptune | 250.1 |",
      );
    } finally {
      await rm(workspace, { recursive: true, force: true });
    }
  },
);

/** Does what the tool of that name does, in the words its result has. */
async function run(call: ToolCallBlock, workspace: string): Promise<string> {
  const given: unknown = JSON.parse(call.arguments);
  if (call.name === "bash") {
    const { command } = argumentsOf.bash.parse(given);
    return (await promisify(execFile)("bash", ["-c", command], { cwd: workspace })).stdout;
  }
  if (call.name === "write") {
    const { path, content } = argumentsOf.write.parse(given);
    await writeFile(join(workspace, path), content);
    return `Wrote ${path}.`;
  }
  if (call.name === "read")
    return readFile(join(workspace, argumentsOf.read.parse(given).path), "utf8");
  const { todos } = argumentsOf.todo_write.parse(given);
  const count = (status: string): number => todos.filter((todo) => todo.status === status).length;
  return `Updated todo list: ${count("pending")} pending, ${count("in_progress")} in progress, ${count("completed")} completed.`;
}
