import { describe, expect } from "vitest";
import { commands } from "../../src/contracts/names.js";
import { gatedTool } from "../support/gated-tool.js";
import type { History } from "../support/history.js";
import {
  answering,
  changesIn,
  command,
  createCall,
  deleteReminder,
  dispatchesIn,
  remind,
  remindersIn,
  remindersOn,
  remindersView,
  resultsIn,
  shownTo,
  untilClock,
  untilTurn,
} from "../support/reminder-script.js";
import { test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";
import { startWorkerProcess } from "../support/worker-process.js";

const gated = gatedTool("gated", { workspace: false });
const test = base.extend({ workerOptions: [{ tools: [gated.tool] }, { scope: "file" as const }] });

/** A turn that lasts until the test lets it go on. */
const held = (n: string) => ({ steps: [{ calls: [{ tool: "gated", args: { n } }] }, { text: n }] });

describe.concurrent("a reminder survives", () => {
  test("[schedule/T1] a worker that is killed over its time: it comes once, with the target it was promised", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace();
    const worker = await startWorkerProcess(lab, place, { roles: ["session"] });
    try {
      const session = await lab.session(answering(), { ...remindersOn, at: place });
      const due = await remind(lab, session, { afterSeconds: 15 });
      await worker.kill();
      await untilClock(due + 4_000);
      await place.start({ roles: ["session"] });
      const log = await untilTurn(lab, session, 1);
      const promised = new Date(due).toISOString();
      expect(remindersIn(log)).toMatchObject([
        {
          id: `schedule/schedule-1/${promised}`,
          text: expect.stringContaining(promised) as string,
        },
      ]);
      expect(dispatchesIn(log)).toHaveLength(1);
      expect(dispatchesIn(log)[0]?.time).toBeGreaterThan(due + 3_000);
      await lab.witness(session);
    } finally {
      await worker.kill();
    }
  });

  test("[schedule/T15] a stop and a suspension while it is queued: it has its turn after the one, and after the end of the other", async ({
    lab,
  }) => {
    const { session, due } = await queuedBehind(lab);
    await session.interrupt();
    const log = await untilTurn(lab, session, 3);
    expect(shownTo(log).map(({ id }) => id)).toEqual(["first", "parked", idOf(due)]);
    // Suspended this time: nothing comes before it is resumed.
    const again = await queuedBehind(lab);
    await command(lab, again.session, commands.suspend);
    await untilTurn(lab, again.session, 2);
    expect((await again.session.view()).inbox.nextTurn).toEqual([idOf(again.due)]);
    expect((await again.session.view()).state).toBe("suspended");
    await command(lab, again.session, commands.resume);
    const resumed = await untilTurn(lab, again.session, 3);
    expect(shownTo(resumed).map(({ id }) => id)).toEqual(["first", "parked", idOf(again.due)]);
    expect(dispatchesIn(resumed)).toHaveLength(1);
    await lab.witness(again.session);
  });

  test("[schedule/T6] a delete that comes after its dispatch: nothing is there any more, and its turn runs", async ({
    lab,
  }) => {
    const { session, due } = await queuedBehind(lab);
    expect(await deleteReminder(lab, session, "schedule-1")).toMatchObject({
      ok: true,
      answer: { deleted: false },
    });
    gated.release(session.id, "2");
    const log = await untilTurn(lab, session, 3);
    expect(remindersIn(log).map(({ id }) => id)).toEqual([idOf(due)]);
    expect(changesIn(log).map(({ operation }) => operation)).toEqual(["create", "dispatch"]);
  });

  test.for([["before"], ["after"]] as const)(
    "[schedule/T5] not a delete in the same task as its timer, sent %s the timer fires",
    async ([when], { lab }) => {
      const place = await lab.place({ roles: ["session"] });
      const session = await lab.session(answering(), { ...remindersOn, at: place });
      const handle = lab.handle(session.id);
      const due = await remind(lab, session, { afterSeconds: 15 });
      await place.stop();
      const remove = { requestId: "gone", operation: "delete", id: "schedule-1" };
      if (when === "before") await handle.signal(commands.scheduleChange, remove);
      await eventually(async () =>
        expect(kindsOf(await lab.history(session.id))).toContain("timerFired"),
      );
      if (when === "after") await handle.signal(commands.scheduleChange, remove);
      await place.start({ roles: ["session"] });
      await eventually(async () => {
        const { outcome, records } = await remindersView(lab, session, { requestId: "gone" });
        expect(outcome).toMatchObject({ ok: true, answer: { deleted: true } });
        expect(records).toEqual([]);
      });
      await untilClock(due + 2_000);
      const log = await lab.entries(session);
      expect(remindersIn(log)).toEqual([]);
      expect(changesIn(log).map(({ operation }) => operation)).toEqual(["create", "delete"]);
      const kinds = kindsOf(await lab.history(session.id));
      const [signalled, fired] = [kinds.indexOf("signal"), kinds.indexOf("timerFired")];
      expect(signalled < fired).toBe(when === "before");
      expect(kinds.slice(Math.min(signalled, fired), Math.max(signalled, fired))).not.toContain(
        "taskStarted",
      );
    },
  );

  test("[schedule/T19] beside a background job, which does not hold it back", async ({ lab }) => {
    const background = {
      tool: "bash",
      args: { command: "sleep 300", description: "go", run_in_background: true },
    };
    const session = await lab.session(
      {
        turns: [
          { steps: [{ calls: [background, createCall({ after_seconds: 1 })] }, { text: "set" }] },
          { steps: [{ text: "told" }] },
        ],
      },
      { config: { schedule: true } },
    );
    await session.followup("go");
    const log = await untilTurn(lab, session, 2);
    expect(remindersIn(log)).toHaveLength(1);
    expect((await session.jobs()).jobs).toMatchObject([{ id: "bash-1", status: "running" }]);
    await session.close();
  });

  test("[schedule/T20] its limits: the cap and a prompt of one byte too many are refused, the rest is taken", async ({
    lab,
  }) => {
    const far = { after_seconds: 3_600 };
    const session = await lab.session(
      {
        turns: [
          {
            steps: [
              {
                calls: [
                  createCall({ ...far, prompt: "é".repeat(8) }),
                  createCall({ ...far, prompt: `${"é".repeat(8)}.` }),
                  createCall({ ...far, prompt: "second" }),
                ],
              },
              { text: "done" },
            ],
          },
        ],
      },
      { config: { worldTools: false, schedule: { maxActive: 1, maxPromptBytes: 16 } } },
    );
    const results = resultsIn(await lab.play(session)).map((text) => JSON.parse(text) as object);
    expect(results).toMatchObject([
      { id: "schedule-1" },
      { code: "invalid_prompt" },
      { code: "too_many_schedules" },
    ]);
  });
});

describe.concurrent("the end of a session with a reminder", () => {
  test("[schedule/74] does not wait for the one it waits for, and nothing comes after it", async ({
    lab,
  }) => {
    const session = await lab.session(answering(), remindersOn);
    await remind(lab, session, { afterSeconds: 3_600 });
    await session.close();
    const log = await lab.entries(session);
    expect(log.at(-1)?.type).toBe("session/close");
    expect(changesIn(log)).toMatchObject([{ operation: "create" }]);
    expect((await remindersView(lab, session)).records).toHaveLength(1);
  });

  test("[schedule/74] in the turn that it waits behind leaves it overdue", async ({ lab }) => {
    const session = await lab.session({ turns: [held("1")] }, remindersOn);
    await session.followup("go");
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    const due = await remind(lab, session, { afterSeconds: 1 });
    await untilClock(due + 1_000);
    await session.close();
    const log = await lab.entries(session);
    expect(changesIn(log)).toMatchObject([{ operation: "create" }]);
    expect(remindersIn(log)).toEqual([]);
  });

  test("[schedule/74] suspended and overdue: neither resuming too late nor the close tells it", async ({
    lab,
  }) => {
    const session = await lab.session(answering(), remindersOn);
    await command(lab, session, commands.suspend);
    const due = await remind(lab, session, { afterSeconds: 1 });
    await untilClock(due + 500);
    await session.close();
    await expect(command(lab, session, commands.resume)).rejects.toMatchObject({
      name: expect.stringMatching(/^(?:Workflow|Service)/u) as string,
    });
    expect(changesIn(await lab.entries(session))).toMatchObject([{ operation: "create" }]);
  });
});

/**
 * A session in its second turn, which the test holds (`2`), with a reminder dispatched and queued behind it: a stop had parked
 * a message, and the reminder woke that one first.
 */
async function queuedBehind(lab: Lab) {
  const session = await lab.session(
    { turns: [held("1"), held("2"), { steps: [{ text: "told" }], repeat: 5 }] },
    remindersOn,
  );
  await session.followup("go", { id: "first" });
  await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
  const due = await remind(lab, session, { afterSeconds: 1 });
  await session.followup("later", { id: "parked" });
  await untilClock(due);
  await session.interrupt();
  await eventually(() => expect(gated.running(session.id)).toEqual(["2"]));
  expect((await session.view()).inbox.nextTurn).toEqual([idOf(due)]);
  return { session, due };
}

function idOf(due: number): string {
  return `schedule/schedule-1/${new Date(due).toISOString()}`;
}

/** What a history says about tasks, signals, timers and activities, in its order. */
function kindsOf(history: History): readonly string[] {
  return (history.events ?? []).flatMap((event) => {
    if (event.workflowTaskStartedEventAttributes) return ["taskStarted"];
    if (event.workflowExecutionSignaledEventAttributes) return ["signal"];
    if (event.timerFiredEventAttributes) return ["timerFired"];
    const type = event.activityTaskScheduledEventAttributes?.activityType?.name;
    return type ? [type] : [];
  });
}
