import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelProvider } from "../../src/contracts/model.js";
import { gatedTool } from "../support/gated-tool.js";
import { textOfStream } from "../support/model-stream-text.js";
import { test as base, type Lab } from "../support/temporal.js";
import { eventually, untilStreaming } from "../support/until.js";

/** How often each session's model was asked; the first time it streams and then waits until it is told to stop. */
const asked = new Map<string, number>();
const stalling: ModelProvider = {
  provider: "stalling",
  model: () => ({
    async *stream({ sessionId }, signal) {
      const times = (asked.get(sessionId) ?? 0) + 1;
      asked.set(sessionId, times);
      yield { type: "text", text: `try ${times}` };
      if (times > 1) return yield { type: "finish", reason: "stop" };
      if (!signal.aborted) await once(signal, "abort");
      yield { type: "failure", failure: { code: "ABORTED", message: "told to stop" } };
    },
  }),
};
const gated = gatedTool("alone");

const test = base.extend({
  workerOptions: [{ models: [stalling], tools: [gated.tool] }, { scope: "file" as const }],
});

const namespace = "default";
const counting = {
  turns: [
    {
      steps: [
        {
          calls: [
            {
              tool: "bash",
              args: { command: "echo run >> runs; sleep ${turn}0", description: "Count" },
            },
          ],
        },
        { text: "went on" },
      ],
    },
    { repeat: 5, steps: [{ text: "next" }] },
  ],
};
const quick = JSON.parse(
  JSON.stringify(counting).replace("; sleep ${turn}0", ""),
) as typeof counting;

describe.concurrent("an operator's Reset of an activity", () => {
  test("[harness/R12] while a command runs ends it and never runs it again", async ({ lab }) => {
    const session = await lab.session(counting);
    await session.followup("go");
    await eventually(async () => expect(await runsOf(session)).toBe(1));
    await resetActivity(lab, session, "tool/1.1.call-1-1-1");
    await session.waitIdle();
    expect(await runsOf(session)).toBe(1);
    const log = await lab.entries(session);
    expect(codesOf(log)).toEqual(["TOOL_OUTCOME_UNKNOWN"]);
    expect(log.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
    await lab.witness(session);
  });

  test("while a tool body runs that does not heed it gives one result of one run", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [{ steps: [{ calls: [{ tool: "alone", args: { n: "1" } }] }, { text: "went on" }] }],
    });
    await session.followup("go");
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    await resetActivity(lab, session, "tool/1.1.call-1-1-1");
    await session.waitIdle();
    expect(gated.begun(session.id)).toBe(1);
    expect(codesOf(await lab.entries(session))).toEqual(["TOOL_OUTCOME_UNKNOWN"]);
  });

  test("while it waits in the queue of a host that is away runs it once when the host is back", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace();
    await place.start({ roles: ["session"] });
    const host = await place.start({ roles: ["host"] });
    const session = await lab.session(quick, { at: place });
    await host.stop();
    await session.followup("go");
    const activity = "tool/1.1.call-1-1-1";
    await eventually(async () => {
      const { raw } = await lab.handle(session.id).describe();
      expect(raw.pendingActivities?.map((one) => one.activityId)).toContain(activity);
    });
    await resetActivity(lab, session, activity);
    await place.start({ roles: ["host"] });
    await session.waitIdle();
    expect(await runsOf(session)).toBe(1);
    expect(codesOf(await lab.entries(session))).toEqual([undefined]);
  });
});

test.concurrent("a model call that is paused and unpaused in Temporal is made again: one reply, of the last execution", async ({
  lab,
}) => {
  const session = await lab.session(counting, {
    config: { worldTools: false, request: { provider: "stalling", model: "m" } },
  });
  await session.followup("go");
  await untilStreaming(session);
  const call = {
    namespace,
    execution: { workflowId: session.id },
    id: "model/1.1.0",
    identity: "operator",
  };
  await lab.temporal.workflowService.pauseActivity(call);
  await eventually(async () => {
    const { raw } = await lab.handle(session.id).describe();
    expect(raw.pendingActivities?.[0]).toMatchObject({ paused: true, state: 4 });
  });
  await lab.temporal.workflowService.unpauseActivity({ ...call, resetAttempts: true });
  await session.waitIdle();
  expect(asked.get(session.id)).toBe(2);
  const log = await lab.entries(session);
  const replies = log.filter((entry) => entry.type === "assistant/message");
  expect(replies).toHaveLength(1);
  expect(replies[0]?.data.message.content).toEqual([{ type: "text", text: "try 2" }]);
  expect(await textOfStream(lab.store, session.id, replies[0]?.data.stream?.stream ?? "")).toBe(
    "try 2",
  );
  expect(log.some((entry) => entry.type === "llm/retry")).toBe(false);
});

describe.concurrent("an operator's Reset of the session's workflow", () => {
  test("to the task before a command takes the command's record instead of a second run, and the session goes on", async ({
    lab,
  }) => {
    const session = await lab.session(quick);
    const before = await lab.play(session);
    await resetToTool(lab, session);
    await eventually(async () => expect((await session.view()).lastEnd?.turn).toBe(1));
    await session.waitIdle();
    expect(await runsOf(session)).toBe(1);
    const after = await lab.entries(session);
    expect(after.map((entry) => entry.type)).toEqual(before.map((entry) => entry.type));
    expect(codesOf(after)).toEqual([undefined]);
    expect((await lab.play(session, "and on")).at(-1)).toMatchObject({
      type: "turn/end",
      data: { turn: 2, reason: { kind: "completed" } },
    });
  });

  test("while the command runs ends it, and the new run is told that its outcome is unknown", async ({
    lab,
  }) => {
    const session = await lab.session(counting);
    await session.followup("go");
    await eventually(async () => expect(await runsOf(session)).toBe(1));
    await resetToTool(lab, session);
    await eventually(async () => expect((await session.view()).lastEnd?.turn).toBe(1));
    expect(await runsOf(session)).toBe(1);
    expect(codesOf(await lab.entries(session))).toEqual(["TOOL_OUTCOME_UNKNOWN"]);
  });
});

async function runsOf(session: SessionClient): Promise<number> {
  const { cwd = "" } = (await session.view()).config;
  const text = await readFile(join(cwd, "runs"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line === "run").length;
}

function codesOf(log: readonly LogEntry[]): (string | undefined)[] {
  return log.flatMap((entry) => (entry.type === "tool/result" ? [entry.data.error?.code] : []));
}

async function resetActivity(lab: Lab, session: SessionClient, id: string): Promise<void> {
  await lab.temporal.workflowService.resetActivity({
    namespace,
    execution: { workflowId: session.id },
    id,
    identity: "operator",
  });
}

/** Resets to the workflow task that scheduled the first tool. */
async function resetToTool(lab: Lab, session: SessionClient): Promise<void> {
  const history = await lab.history(session.id);
  const tool = history.events?.find(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === "tool.run",
  );
  const task = tool?.activityTaskScheduledEventAttributes?.workflowTaskCompletedEventId;
  expect(task).toBeDefined();
  await lab.temporal.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: session.id },
    reason: "by an operator",
    requestId: randomUUID(),
    ...(task === undefined || task === null ? {} : { workflowTaskFinishEventId: task }),
  });
}
