import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { ModelProvider } from "../../src/contracts/model.js";
import { test as base } from "../support/temporal.js";
import { eventually, untilStreaming } from "../support/until.js";

/** Sessions whose provider call was told to stop; the model never ends by itself. */
const aborted = new Set<string>();
const parked: ModelProvider = {
  provider: "parked",
  model: (name) => ({
    async *stream(request, signal) {
      yield { type: "reasoning", text: "hm" };
      yield { type: "text", text: "these words " };
      yield { type: "text", text: "were shown" };
      if (name === "calling")
        yield { type: "tool-call", callId: "c1", name: "bash", arguments: "{}" };
      if (!signal.aborted) await once(signal, "abort");
      aborted.add(request.sessionId);
      yield { type: "failure", failure: { code: "ABORTED", message: "told to stop" } };
    },
  }),
};

const test = base.extend({ workerOptions: [{ models: [parked] }, { scope: "file" as const }] });

describe.concurrent("a cancel", () => {
  test("[harness/A8] in the middle of a reply keeps what was streamed as interrupted and stops the provider", async ({
    lab,
  }) => {
    for (const model of ["talking", "calling"]) {
      const session = await lab.session(
        { turns: [{ steps: [{ text: "unused" }] }] },
        { config: { worldTools: false, request: { provider: "parked", model } } },
      );
      await session.followup("go");
      await untilStreaming(session);
      await session.cancel();
      await session.waitIdle();
      expect(aborted.has(session.id)).toBe(true);
      const log = await lab.entries(session);
      const reply = log.find((entry) => entry.type === "assistant/message");
      expect(reply?.data).toMatchObject({ interrupted: true });
      expect(reply?.data.message.content).toEqual([
        { type: "reasoning", text: "hm" },
        { type: "text", text: "these words were shown" },
      ]);
      expect(log.some((entry) => entry.type === "tool/call")).toBe(false);
      expect(log.at(-1)).toMatchObject({
        type: "turn/end",
        data: { reason: { kind: "aborted", reason: "user" } },
      });
    }
  });

  test("[harness/B5] during a running command ends its whole group: ABORTED, and nothing is left running", async ({
    lab,
  }) => {
    const session = await lab.session(sleeper);
    const pids = await untilRunning(session);
    await session.cancel();
    await session.waitIdle();
    const log = await lab.entries(session);
    const result = log.find((entry) => entry.type === "tool/result");
    expect(result?.data.error?.code).toBe("ABORTED");
    expect(JSON.stringify(result?.data.message.content)).toContain("was printed");
    expect(pids.map(isAlive)).toEqual([false, false]);
    expect(log.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "aborted" } } });
    await lab.witness(session);
  });

  test("closing a session ends its running command before the workflow ends", async ({ lab }) => {
    const session = await lab.session(sleeper);
    const pids = await untilRunning(session);
    await session.close();
    expect(pids.map(isAlive)).toEqual([false, false]);
    const log = await lab.entries(session);
    expect(log.at(-1)?.type).toBe("session/close");
    expect(log.find((entry) => entry.type === "turn/end")?.data.reason).toEqual({
      kind: "aborted",
      reason: "disposed",
    });
  });

  test("of the session's workflow in Temporal closes the session: idle or in the middle of a command", async ({
    lab,
  }) => {
    const idle = await lab.session({ turns: [{ steps: [{ text: "ok" }] }] });
    await lab.play(idle);
    const busy = await lab.session(sleeper);
    const pids = await untilRunning(busy);
    for (const session of [idle, busy]) {
      await lab.handle(session.id).cancel();
      await lab.handle(session.id).result();
      const log = await lab.entries(session);
      expect(log.at(-1)).toMatchObject({
        type: "session/close",
        data: { reason: "cancelled through Temporal" },
      });
      expect((await lab.handle(session.id).describe()).status.name).toBe("COMPLETED");
    }
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  test("by terminating the workflow leaves nothing running either", async ({ lab }) => {
    const session = await lab.session(sleeper);
    const pids = await untilRunning(session);
    await lab.handle(session.id).terminate("by an operator");
    await eventually(() => expect(pids.map(isAlive)).toEqual([false, false]));
    await expect(session.followup("anyone?")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });
});

const sleeper = {
  turns: [
    {
      steps: [
        {
          calls: [
            {
              tool: "bash",
              args: {
                command:
                  "echo was printed; sleep 300 & echo $$ $! > pids.new; mv pids.new pids; wait",
                description: "Sleep",
              },
            },
          ],
        },
        { text: "never" },
      ],
    },
  ],
};

/** Sends, and gives the process ids of the shell and of its child. */
async function untilRunning(session: SessionClient): Promise<number[]> {
  await session.followup("go");
  const { cwd = "" } = (await session.view()).config;
  const text = await eventually(() => readFile(join(cwd, "pids"), "utf8"));
  const pids = text.trim().split(" ").map(Number);
  expect(pids.map(isAlive)).toEqual([true, true]);
  return pids;
}

/** A process that has ended but was not collected yet is not running. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/su.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
