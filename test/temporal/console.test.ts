import { describe, expect } from "vitest";
import { eventsOf, scheduledOf } from "../support/history.js";
import { gatedTool } from "../support/gated-tool.js";
import { test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const gated = gatedTool("alone");
const test = base.extend({
  workerOptions: [{ tools: [gated.tool], sessionQueue: "longhaul" }, { scope: "file" as const }],
});

const todos = [
  { content: "look around", status: "completed" },
  { content: "write *it* down", status: "in_progress" },
];
const working = {
  turns: [
    {
      steps: [
        { calls: [{ tool: "todo_write", args: { todos } }] },
        { calls: [{ tool: "alone", args: { n: "1" } }] },
        { text: "done", failures: [{ code: "SERVER" as const, retryAfterMs: 1 }] },
      ],
    },
  ],
};

describe.concurrent("Temporal UI is the console", () => {
  test("the summary and details of a session name it, its model, workspace and host", async ({
    lab,
  }) => {
    const cwd = await lab.workspace();
    const model = await lab.scenario({ turns: [{ steps: [{ text: "ok" }] }] });
    const { request, ...rest } = (
      await (await lab.session({ turns: [{ steps: [{ text: "ok" }] }] })).view()
    ).config;
    const session = await lab.client.createSession({
      host: lab.own.hostId,
      title: "Fix the gate",
      config: { ...rest, cwd, request: { ...request, model } },
    });
    lab.adopt(session.id);
    const description = await lab.handle(session.id).describe();
    expect(await description.staticSummary()).toBe("Fix the gate");
    const details = await description.staticDetails();
    for (const part of [model, cwd, lab.own.hostId]) expect(details).toContain(part);
  });

  test("current details say what it is doing: turn, step, todo list, what waits, the host; and they cost no history", async ({
    lab,
  }) => {
    const session = await lab.session(working);
    expect(await detailsOf(lab, session.id)).toContain("**idle**");
    await session.followup("go");
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    await session.followup("next", { id: "queued" });
    const details = await detailsOf(lab, session.id);
    expect(details).toContain("**running** · running alone");
    expect(details).toContain("Turn 1, step 2");
    expect(details).toContain("look around");
    expect(details).toContain("1 for the next turn");
    expect(details).toContain(lab.own.hostId);
    await session.cancel();
    gated.release(session.id, "1");
    await session.waitIdle();
    expect(await detailsOf(lab, session.id)).toContain("Turn 1 ended: aborted");
    await session.close();
    expect(await detailsOf(lab, session.id)).toContain("**closed**");
    expect(
      eventsOf(await lab.history(session.id), "workflowPropertiesModifiedEventAttributes"),
    ).toEqual([]);
  });

  test("every activity and timer has a summary of one line", async ({ lab }) => {
    const session = await lab.session(working);
    await session.followup("go");
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    gated.release(session.id, "1");
    await session.waitIdle();
    const history = await lab.history(session.id);
    const scheduled = scheduledOf(history);
    for (const { summary } of scheduled) {
      expect(summary).not.toBe("");
      expect(summary).not.toContain("\n");
    }
    expect(scheduled.map((one) => one.id)).toEqual(
      expect.arrayContaining(["model/1.1.0", "tool/1.2.call-1-2-1", "model/1.3.1"]),
    );
    expect(scheduled.find((one) => one.id === "model/1.3.1")?.summary).toMatch(
      /^scripted\/.* turn 1, step 3, retry 1$/u,
    );
    const timers = history.events?.filter((event) => event.timerStartedEventAttributes) ?? [];
    expect(timers).toHaveLength(1);
    expect(Buffer.from(timers[0]?.userMetadata?.summary?.data ?? []).toString()).toContain(
      "retry 1 of 5 after SERVER",
    );
  });

  test("LonghaulState and LonghaulHost find a session in lists, and change only when they do", async ({
    lab,
  }) => {
    const session = await lab.session(working);
    const listed = async (query: string): Promise<boolean> => {
      for await (const one of lab.temporal.workflow.list({
        query: `WorkflowId="${session.id}" AND ${query}`,
      }))
        if (one.workflowId === session.id) return true;
      return false;
    };
    await eventually(async () =>
      expect(await listed(`LonghaulState="idle" AND LonghaulHost="${lab.own.hostId}"`)).toBe(true),
    );
    await session.followup("go");
    await eventually(async () => expect(await listed(`LonghaulState="running"`)).toBe(true));
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    gated.release(session.id, "1");
    await session.waitIdle();
    await eventually(async () => expect(await listed(`LonghaulState="idle"`)).toBe(true));
    await session.close();
    await eventually(async () => expect(await listed(`LonghaulState="closed"`)).toBe(true));
    const upserts = eventsOf(
      await lab.history(session.id),
      "upsertWorkflowSearchAttributesEventAttributes",
    );
    // Host; running, idle, closed.
    expect(upserts.length).toBeLessThanOrEqual(5);
  });

  test("where no attribute is registered none is upserted", async ({ lab }) => {
    const session = await lab.session({ turns: [{ steps: [{ text: "ok" }] }] }, { attributes: [] });
    await lab.play(session);
    await session.close();
    expect(
      eventsOf(await lab.history(session.id), "upsertWorkflowSearchAttributesEventAttributes"),
    ).toEqual([]);
  });
});

async function detailsOf(lab: Lab, id: string): Promise<string> {
  const metadata = await lab
    .handle(id)
    .query<{ currentDetails?: string }>("__temporal_workflow_metadata");
  return metadata.currentDetails ?? "";
}
