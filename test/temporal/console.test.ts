import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { commands } from "../../src/contracts/names.js";
import { eventsOf, scheduledOf } from "../support/history.js";
import { gatedTool } from "../support/gated-tool.js";
import { detailsOf, test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";
import { takeSharedQueue } from "../support/shared-queue.js";

const gated = gatedTool("alone");
const test = base.extend({
  workerOptions: [{ tools: [gated.tool], sessionQueue: "longhaul" }, { scope: "file" as const }],
});

let release: (() => Promise<void>) | undefined;
beforeAll(async () => {
  release = await takeSharedQueue();
}, 240_000);
afterAll(() => release?.());

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
    // Nothing of it is kept in history: what changes the memo is the mark of a task alone (docs/facts.md §0.34).
    const changed = eventsOf(
      await lab.history(session.id),
      "workflowPropertiesModifiedEventAttributes",
    ).flatMap(({ upsertedMemo }) => Object.keys(upsertedMemo?.fields ?? {}));
    expect(changed.filter((key) => key !== "LonghaulTask")).toEqual([]);
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
    const upserts = (await upsertsOf(lab, session.id)).filter((keys) => keys.length > 0);
    // Host; running, idle, closed.
    expect(upserts.length).toBeLessThanOrEqual(5);
  });

  test("a job's page has its label, what it printed so far and how it ended; its session lists it", async ({
    lab,
  }) => {
    const command = "echo first; until [ -e go ]; do sleep 0.1; done; echo `last`";
    const args = { command, description: "Wait", run_in_background: true };
    const cwd = await lab.workspace();
    const session = await lab.session(
      { turns: [{ repeat: 2, steps: [{ calls: [{ tool: "bash", args }] }, { text: "started" }] }] },
      { config: { cwd, jobs: { completionDelivery: "quiet" } } },
    );
    await lab.play(session);
    expect(await detailsOf(lab, session.id)).toContain(
      `### Jobs\n\n- \`bash-1\` running — ${command}`,
    );
    await eventually(() => isListed(lab, session.id, "LonghaulOpenJobs = 1"));
    const { workflowId } = (await session.jobs()).jobs[0] ?? { workflowId: "" };
    expect(workflowId).toMatch(new RegExp(`^${session.id}/job/bash-1/[0-9a-f]{12}$`, "u"));
    const description = await lab.handle(workflowId).describe();
    expect(await description.staticSummary()).toBe(command);
    await eventually(async () => {
      const { raw } = await lab.handle(workflowId).describe();
      const [beat] = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads ?? [];
      expect(JSON.parse(Buffer.from(beat?.data ?? []).toString() || "{}")).toMatchObject({
        stdout: 6,
        lastLine: "first",
      });
    });
    await eventually(async () => {
      expect(await detailsOf(lab, workflowId)).toContain(
        "Output so far: 6 bytes\n\n```\nfirst\n```",
      );
    });
    await writeFile(join(cwd, "go"), "");
    await session.waitJob("bash-1");
    await eventually(async () => {
      const details = await detailsOf(lab, workflowId);
      expect(details).toContain("**[status: completed, exit code: 0]**");
    });
    await eventually(() => isListed(lab, session.id, "LonghaulOpenJobs = 0"));
    expect(await detailsOf(lab, session.id)).not.toContain("### Jobs");
  });

  test("the next reminder stands in the details, in the writer's time too, in a search attribute and on its timer", async ({
    lab,
  }) => {
    const create = (at: string) => ({
      tool: "schedule_create",
      args: { prompt: "water the *plants*", at },
    });
    const session = await lab.session(
      {
        turns: [
          { steps: [{ calls: [create("2099-08-06T01:00:00Z")] }, { text: "set" }] },
          {
            steps: [
              { calls: [{ tool: "schedule_delete", args: { id: "schedule-1" } }] },
              { text: "gone" },
            ],
          },
        ],
      },
      { config: { worldTools: false, schedule: true } },
    );
    await lab.handle(session.id).executeUpdate(commands.send, {
      args: [{ id: "m1", mode: "followup", content: "go", timeZone: "Asia/Shanghai" }],
    });
    await session.waitIdle();
    expect(await detailsOf(lab, session.id)).toContain(
      "Next reminder: `schedule-1` 6 Aug 2099, 09:00 Asia/Shanghai (2099-08-06T01:00:00.000Z) — water the *plants*",
    );
    const far = 'LonghaulNextReminder > "2099-08-05T00:00:00Z"';
    await eventually(() => isListed(lab, session.id, far));
    const { events } = await lab.history(session.id);
    const timers = (events ?? []).filter((event) => event.timerStartedEventAttributes);
    expect(timers).toHaveLength(1);
    expect(Buffer.from(timers[0]?.userMetadata?.summary?.data ?? []).toString()).toContain(
      "reminder schedule-1 due 2099-08-06T01:00:00.000Z",
    );
    await lab.play(session);
    await eventually(() => isListed(lab, session.id, "LonghaulNextReminder IS NULL"));
    expect(await detailsOf(lab, session.id)).not.toContain("reminder");
  });

  test("where no attribute is registered none is upserted", async ({ lab }) => {
    const session = await lab.session({ turns: [{ steps: [{ text: "ok" }] }] }, { attributes: [] });
    await lab.play(session);
    await session.close();
    expect((await upsertsOf(lab, session.id)).flat()).toEqual([]);
  });
});

/** What each upsert of a session changed, but for the SDK's own attribute of patches, which every server has. */
async function upsertsOf(lab: Lab, id: string): Promise<readonly (readonly string[])[]> {
  return eventsOf(await lab.history(id), "upsertWorkflowSearchAttributesEventAttributes").map(
    ({ searchAttributes }) =>
      Object.keys(searchAttributes?.indexedFields ?? {}).filter(
        (key) => key !== "TemporalChangeVersion",
      ),
  );
}

async function isListed(lab: Lab, id: string, query: string): Promise<void> {
  const found: string[] = [];
  for await (const one of lab.temporal.workflow.list({ query: `WorkflowId="${id}" AND ${query}` }))
    found.push(one.workflowId);
  expect({ query, found }).toEqual({ query, found: [id] });
}
