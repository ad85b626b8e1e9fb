import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { eventsOf } from "../support/history.js";
import { test, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

/** Part of a command: ends when the test has written a file. */
const untilTold = "until [ -e go ]; do sleep 0.02; done";

/** A call of bash in the background. */
export function background(command: string) {
  return { tool: "bash", args: { command, description: "go", run_in_background: true } };
}

const output = (job: string, more: object = {}) => ({
  tool: "job_output",
  args: { job_id: job, ...more },
});

describe.concurrent("a background job of a session", () => {
  test("[jobs/85] [jobs/87] runs on after its turn, and its end opens a turn in which the model reads its output", async ({
    lab,
  }) => {
    const command = `echo bg-ok; ${untilTold}; echo more >&2`;
    const session = await lab.session({
      turns: [
        { steps: [{ calls: [background(command)] }, { text: "started" }] },
        { steps: [{ calls: [output("bash-1")] }, { text: "read it" }] },
      ],
    });
    const log = await endedAfterItsTurn(lab, session);
    expect(resultTexts(log)).toEqual([
      "started background job bash-1",
      "bg-ok\n[stderr]\nmore\n[status: completed, exit code: 0]",
    ]);
    expect(noticesOf(log)).toEqual([
      `background job bash-1 (bash: ${command}) finished [status: completed, exit code: 0]. Read its output with job_output.`,
    ]);
    const history = await lab.history(session.id);
    const jobEvents = eventsOf(history, "startChildWorkflowExecutionInitiatedEventAttributes");
    expect(jobEvents).toHaveLength(1);
    expect((await session.jobs()).jobs).toMatchObject([
      { id: "bash-1", status: "completed", reported: true },
    ]);
    await lab.witness(session);
  });

  test("[jobs/85] ends by a signal, by job_kill, and both are killed by SIGTERM", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [
        {
          steps: [
            { calls: [background("kill -TERM $$")] },
            { calls: [output("bash-1", { wait: true })] },
            { calls: [background("sleep 60")] },
            { calls: [{ tool: "job_kill", args: { job_id: "bash-2", reason: "enough" } }] },
            { calls: [output("bash-2", { wait: true })] },
            { calls: [{ tool: "job_list", args: {} }] },
            { text: "done" },
          ],
        },
      ],
    });
    const log = await lab.play(session);
    expect(resultTexts(log)).toEqual([
      "started background job bash-1",
      "(no new output)\n[status: killed, signal: SIGTERM]",
      "started background job bash-2",
      "requested cancellation of job bash-2",
      "(no new output)\n[status: killed, signal: SIGTERM]",
      "bash-1 [bash] killed — kill -TERM $$\nbash-2 [bash] killed — sleep 60",
    ]);
    expect(noticesOf(log)).toEqual([]);
    expect(entriesOf(log, "job/stopping").map(({ data }) => data)).toMatchObject([
      { id: "bash-2", reason: "enough" },
    ]);
  });

  test("adds four events to its session's history beside workflow tasks, and a kill at most four more", async ({
    lab,
  }) => {
    const todo = { tool: "todo_write", args: { todos: [] } };
    const turn = { steps: [{ calls: [todo] }, { text: "done" }] };
    const collect = { steps: [{ calls: [output("bash-1")] }, { text: "done" }] };
    const kill = { tool: "job_kill", args: { job_id: "bash-1" } };
    const plain = await lab.session({ turns: [turn, turn] }, { attributes: [] });
    await lab.play(plain);
    await lab.play(plain);
    const told = await lab.session(
      {
        turns: [
          { steps: [{ calls: [background(`${untilTold}; echo x`)] }, { text: "done" }] },
          collect,
        ],
      },
      { attributes: [] },
    );
    await endedAfterItsTurn(lab, told);
    const killed = await lab.session(
      {
        turns: [
          { steps: [{ calls: [background("sleep 60")] }, { text: "done" }] },
          { steps: [{ calls: [kill] }, { text: "done" }] },
        ],
      },
      { attributes: [] },
    );
    await lab.play(killed);
    await lab.play(killed);
    await killed.waitJob("bash-1");
    for (const { id } of [told, killed]) {
      await eventually(async () => {
        const history = await lab.history(id);
        expect(eventsOf(history, "childWorkflowExecutionCompletedEventAttributes")).toHaveLength(1);
        // Nothing is on its way to it: the last task may have ended with a command, such as the end of a timer.
        const last = history.events?.at(-1);
        expect(last?.workflowTaskScheduledEventAttributes).toBeFalsy();
        expect(last?.workflowTaskStartedEventAttributes).toBeFalsy();
        expect(last?.childWorkflowExecutionCompletedEventAttributes).toBeFalsy();
        expect(last?.workflowExecutionSignaledEventAttributes).toBeFalsy();
      });
    }
    // Three of the job's and one of the kill's bring a workflow task, which is three events more: 13 and 7; a task that leaves
    // no event of its own is marked by one: 16 and 8 at most.
    const two = await ownEvents(lab, plain.id);
    // The second prompt of the plain session is an update, two events.
    expect((await ownEvents(lab, told.id)) - (two - 2)).toBe(4);
    const killing = (await ownEvents(lab, killed.id)) - two - 4;
    // The signal and its answer; and a timer, unless the job ends before it would be armed.
    expect([2, 4]).toContain(killing);
    const marksOf = async (id: string): Promise<number> =>
      (await marks(lab, id)) - (await marks(lab, plain.id));
    expect(await marksOf(told.id)).toBeLessThanOrEqual(3);
    expect(await marksOf(killed.id)).toBeLessThanOrEqual(4);
  });

  test("is killed within seconds by whoever may, and killed twice is killed once", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [{ steps: [{ calls: [background("trap '' TERM; sleep 300")] }, { text: "started" }] }],
    });
    await lab.play(session);
    await eventually(async () => expect((await session.jobs()).jobs[0]?.status).toBe("running"));
    await session.killJob("bash-1", { reason: "by hand" });
    await session.killJob("bash-1");
    const ended = await session.waitJob("bash-1");
    expect(ended).toMatchObject({ status: "killed" });
    expect(await session.killJob("bash-1")).toMatchObject({ result: "already-finished" });
  });

  test("[harness/B6] is read twice, and the second read has only what is new", async ({ lab }) => {
    const workspace = await lab.workspace();
    const command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; sleep 60";
    const read = { steps: [{ calls: [output("bash-1")] }, { text: "read" }] };
    const session = await lab.session(
      {
        turns: [
          { steps: [{ calls: [background(command)] }, { text: "started" }] },
          read,
          read,
          read,
        ],
      },
      { config: { cwd: workspace } },
    );
    const stored = async (text: string): Promise<void> =>
      eventually(async () => {
        let all = "";
        for await (const piece of session.jobOutput("bash-1")) all += piece.text;
        expect(all).toBe(text);
      });
    await lab.play(session);
    await stored("one\n");
    await lab.play(session);
    await writeFile(join(workspace, "go"), "");
    await stored("one\ntwo\n");
    await lab.play(session);
    expect(resultTexts(await lab.play(session)).slice(1)).toEqual([
      "one\n[status: running]",
      "two\n[status: running]",
      "(no new output)\n[status: running]",
    ]);
    await session.close();
  });

  test("[harness/B7] [jobs/86] that may not start starts no process, and says why", async ({
    lab,
  }) => {
    const place = await lab.place();
    const nowhere = {
      ...background("touch ran"),
      args: { ...background("touch ran").args, workdir: "/nowhere" },
    };
    const session = await lab.session(
      {
        turns: [
          { steps: [{ calls: [nowhere, output("bash-1", { wait: true })] }, { text: "done" }] },
        ],
      },
      { at: place },
    );
    const off = await lab.session(
      { turns: [{ steps: [{ calls: [background("touch ran")] }, { text: "done" }] }] },
      { at: place, config: { jobs: { enableRunInBackground: false } } },
    );
    const [, result] = resultTexts(await lab.play(session));
    expect(result).toMatch(/^\(no new output\)\n\[status: failed, spawn failed: .*\/nowhere/u);
    expect(resultTexts(await lab.play(off))).toEqual([
      "Error: run_in_background is disabled for this deployment (enableRunInBackground: false)",
    ]);
    const spools = await readdir(join(place.home, "host/jobs"), { recursive: true }).catch(
      () => [],
    );
    expect(spools.filter((name) => name.endsWith("identity.json"))).toEqual([]);
  });

  test("is ended with its session, which waits for it", async ({ lab }) => {
    const session = await lab.session({
      turns: [
        { steps: [{ calls: [background("sleep 300"), background("sleep 301")] }, { text: "ok" }] },
      ],
    });
    await lab.play(session);
    await session.close();
    const log = await lab.entries(session);
    expect(entriesOf(log, "job/settled").map(({ data }) => data)).toMatchObject([
      { status: "killed", detail: "signal: SIGTERM" },
      { status: "killed", detail: "signal: SIGTERM" },
    ]);
    expect(entriesOf(log, "job/removed")).toHaveLength(1);
    expect(noticesOf(log)).toEqual([]);
  });
});

/** Plays a turn that starts such a job, lets the job end, and returns the log when the turn that its end opens is over. */
async function endedAfterItsTurn(lab: Lab, session: SessionClient): Promise<LogEntry[]> {
  await lab.play(session);
  const { config } = await session.view();
  await writeFile(join(config.cwd ?? "", "go"), "");
  await eventually(async () => {
    expect((await session.view()).turn).toMatchObject({ number: 2, open: false });
  });
  return lab.entries(session);
}

/** How many events its history has beside workflow tasks, whose number depends on what comes at the same time. */
async function ownEvents(lab: Lab, id: string): Promise<number> {
  const { events } = await lab.history(id);
  return (events ?? []).filter(
    (event) =>
      !event.workflowTaskScheduledEventAttributes &&
      !event.workflowTaskStartedEventAttributes &&
      !event.workflowTaskCompletedEventAttributes &&
      !event.workflowTaskTimedOutEventAttributes &&
      !event.workflowTaskFailedEventAttributes &&
      // The mark of a task that left no other (docs/facts.md §0.34).
      !event.workflowPropertiesModifiedEventAttributes,
  ).length;
}

async function marks(lab: Lab, id: string): Promise<number> {
  return eventsOf(await lab.history(id), "workflowPropertiesModifiedEventAttributes").length;
}

function entriesOf<T extends LogEntry["type"]>(
  log: readonly LogEntry[],
  type: T,
): readonly Extract<LogEntry, { type: T }>[] {
  return log.filter((entry): entry is Extract<LogEntry, { type: T }> => entry.type === type);
}

function resultTexts(log: readonly LogEntry[]): readonly string[] {
  return entriesOf(log, "tool/result").map(({ data }) => {
    const [block] = data.message.content;
    return block?.type === "tool-result" ? (block.content[0]?.text ?? "") : "";
  });
}

function noticesOf(log: readonly LogEntry[]): readonly string[] {
  return entriesOf(log, "user/message").flatMap(({ data: { message } }) => {
    const [block] = message.content;
    return message.id.startsWith("job/") && block?.type === "text" ? [block.text] : [];
  });
}
