import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { expect, inject, test } from "vitest";
import { LonghaulClient } from "../../src/client/index.js";
import { defaultLimits } from "../../src/contracts/config.js";
import type { ModelPart, ModelProvider, ModelRequest } from "../../src/contracts/model.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker } from "../../src/worker/index.js";
import { compareWithHistory, readHistory, type HistoryJson } from "../support/witness-history.js";
import { compareRequests, readRecorded, witnessRequests } from "../support/witness.js";
import { takeSharedQueue } from "../support/shared-queue.js";

const todos = JSON.stringify({ todos: [{ content: "look", status: "in_progress" }] });

/** Replies by (turn, step, retry): world and state tools side by side, a failure, an empty reply, plain text. */
const replies: Record<string, readonly ModelPart[]> = {
  "1.1.0": [
    { type: "failure", failure: { code: "SERVER", message: "overloaded", retryAfterMs: 1 } },
  ],
  "1.1.1": [
    { type: "text", text: "Looking." },
    {
      type: "tool-call",
      callId: "c1",
      name: "bash",
      arguments: '{"command":"echo one","description":"say one"}',
    },
    { type: "tool-call", callId: "c2", name: "todo_write", arguments: todos },
    { type: "tool-call", callId: "c3", name: "no_such_tool", arguments: "{}" },
    { type: "finish", reason: "tool-calls" },
  ],
  "1.2.0": [
    {
      type: "tool-call",
      callId: "c4",
      name: "bash",
      arguments: '{"command":"exit 3","description":"fail"}',
    },
    { type: "finish", reason: "tool-calls" },
  ],
  "1.3.0": [
    { type: "text", text: "Done." },
    { type: "finish", reason: "stop" },
  ],
};
const later: readonly ModelPart[] = [
  { type: "text", text: "And again." },
  { type: "finish", reason: "stop" },
];

test(
  "[harness/H10] every request a model was shown can be rebuilt from the log alone, and every outside word in the log stands in history",
  { timeout: 900_000 },
  async () => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), "longhaul-witness-")));
    const id = `witness-${randomUUID()}`;
    const recorded: string[] = [];
    const provider: ModelProvider = {
      provider: "recording",
      model: () => ({
        async *stream(request: ModelRequest) {
          recorded.push(JSON.stringify(request));
          yield* replies[`${request.turn}.${request.step}.${request.retry}`] ?? later;
        },
      }),
    };
    const address = inject("temporalAddress");
    const store = await openDirectoryStore(join(home, "store"));
    const release = await takeSharedQueue();
    const worker = await startWorker({
      connection: { address },
      home,
      store,
      hostId: id,
      models: [provider],
      workflowBundlePath: inject("workflowBundlePath"),
      maxCachedWorkflows: Number(process.env["LONGHAUL_TEST_CACHE"]),
    });
    const client = await LonghaulClient.connect({ connection: { address }, store });
    const connection = await Connection.connect({ address });
    try {
      const session = await client.createSession({
        id,
        host: id,
        config: {
          request: { provider: "recording", model: "m" },
          system: "Be brief.",
          allowParallelInProgress: false,
          worldTools: true,
          cwd: home,
          outsideWorkspace: false,
          deny: [],
          ask: [],
          limits: defaultLimits,
        },
      });
      await session.followup("What is here?");
      await session.waitIdle();
      await session.inject("By the way: it rains.");
      await session.configure({ config: { system: "Be briefer." } });
      await session.followup("Anything else?");
      await session.waitIdle();

      const log = JSON.parse(JSON.stringify((await session.logPage()).entries)) as unknown[];
      const witnessed = witnessRequests(log);
      expect(
        witnessed.map(({ turn, step, retry, outcome }) => `${turn}.${step}.${retry} ${outcome}`),
      ).toEqual(["1.1.0 retry", "1.1.1 reply", "1.2.0 reply", "1.3.0 reply", "2.1.0 reply"]);
      expect(compareRequests(witnessed, readRecorded(recorded.join("\n"), id))).toEqual([]);
      expect(witnessed.at(-1)?.system).toContain("Be briefer.");

      const history = await new Client({ connection }).workflow.getHandle(id).fetchHistory();
      const facts = readHistory([JSON.parse(historyToJSON(history)) as HistoryJson]);
      expect(facts.sends.map((send) => send.content)).toEqual([
        "What is here?",
        "By the way: it rains.",
        "Anything else?",
      ]);
      expect(facts.activities.filter((activity) => activity.type === "tool.run")).toHaveLength(2);
      expect(compareWithHistory(log, facts)).toEqual([]);
      await session.close();
    } finally {
      await connection.close();
      await client.close();
      await worker.stop();
      await release();
      rmSync(home, { recursive: true, force: true });
    }
  },
);
