import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, vi } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelRequest } from "../../src/contracts/model.js";
import { defaultLimits } from "../../src/contracts/config.js";
import { commands, queues, signals } from "../../src/contracts/names.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { gatedTool } from "../support/gated-tool.js";
import { eventsOf, scheduledOf } from "../support/history.js";
import { command, remind, remindersOn, shownTo, untilTurn } from "../support/reminder-script.js";
import { takeSharedQueue } from "../support/shared-queue.js";
import { cacheSize, detailsOf, test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.js";

const gated = gatedTool("gated", { workspace: false });
const test = base.extend({ workerOptions: [{ tools: [gated.tool] }, { scope: "file" as const }] });

// Without a cache each of many runs is replayed all the time.
vi.setConfig({ testTimeout: 900_000 });

/** A new run at every edge after a step, and whenever the session is idle and something was logged. */
const always = { rollOver: { events: 1, minIntervalMs: 0 } } as const;

const bash = (text: string, more: object = {}) => ({
  tool: "bash",
  args: { command: text, description: "Try", ...more },
});
const todo = (content: string) => ({
  tool: "todo_write",
  args: { todos: [{ content, status: "in_progress" }] },
});
const output = (job: string) => ({ tool: "job_output", args: { job_id: job } });

const threeTurns = {
  turns: [
    { steps: [{ calls: [todo("look")] }, { calls: [bash("echo one")] }, { text: "first" }] },
    { steps: [{ calls: [bash("echo two"), bash("echo three")] }, { text: "second" }] },
    { steps: [{ text: "third" }] },
  ],
};

describe.concurrent("a session that goes on in a new run", () => {
  test("[harness/K12] after every step, also in the middle of a turn, has the log, and shows the model the messages, of one that never does", async ({
    lab,
  }) => {
    const [rolling, staying] = await Promise.all([
      lab.session(threeTurns, { config: always }),
      lab.session(threeTurns),
    ]);
    for (const session of [rolling, staying]) {
      for (const text of ["a", "b", "c"]) {
        await session.followup(text, { id: `message-${text}` });
        await session.waitIdle();
      }
    }
    await settled(lab, rolling);
    const [log, other] = await Promise.all([lab.entries(rolling), lab.entries(staying)]);
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index));
    expect(log.map(plain)).toEqual(other.map(plain));
    expect((await lab.requests(rolling.id)).map(asked)).toEqual(
      (await lab.requests(staying.id)).map(asked),
    );
    // Once after the table, at four edges inside of turns, and after each turn.
    expect((await lab.runs(rolling.id)).length).toBeGreaterThanOrEqual(7);
    expect(await lab.runs(staying.id)).toHaveLength(1);
    await lab.witness(rolling);
  });

  test("tells a job's end once and reads on where the run before stopped reading", async ({
    lab,
  }) => {
    const gate = join(await lab.workspace(), "go");
    const script = `echo first; until [ -e ${gate} ]; do sleep 0.1; done; echo second`;
    const session = await lab.session(
      {
        turns: [
          {
            steps: [
              { calls: [bash(script, { run_in_background: true })] },
              { calls: [bash("true")] },
              { text: "started" },
            ],
          },
          { steps: [{ calls: [output("bash-1")] }, { calls: [bash("true")] }, { text: "read" }] },
          {
            steps: [
              { calls: [output("bash-1")] },
              { calls: [{ tool: "job_list", args: {} }] },
              { text: "read" },
            ],
          },
        ],
      },
      { config: always },
    );
    await lab.play(session);
    await eventually(async () => {
      let printed = "";
      for await (const { text } of session.jobOutput("bash-1")) printed += text;
      expect(printed).toBe("first\n");
    });
    await lab.play(session, "what does it say?");
    await settled(lab, session);
    await writeFile(gate, "");
    const log = await untilTurn(lab, session, 3);
    expect(log.filter(({ type }) => type === "job/settled")).toHaveLength(1);
    expect(shownTo(log, "plugin").map(({ id }) => id)).toEqual(["job/bash-1/settled"]);
    const texts = resultTexts(log);
    expect(texts.filter((text) => /^first$/mu.test(text))).toHaveLength(1);
    expect(texts.at(-2)).toBe("second\n[status: completed, exit code: 0]");
    await lab.witness(session);
  });

  test("ends a job that an earlier run started, and starts the next under the next number", async ({
    lab,
  }) => {
    const session = await lab.session(
      {
        turns: [
          { steps: [{ calls: [bash("sleep 60", { run_in_background: true })] }, { text: "on" }] },
          {
            steps: [
              { calls: [{ tool: "job_kill", args: { job_id: "bash-1" } }] },
              { calls: [{ tool: "job_output", args: { job_id: "bash-1", wait: true } }] },
              { calls: [bash("true", { run_in_background: true })] },
              { text: "off" },
            ],
          },
          { repeat: 3, steps: [{ text: "noted" }] },
        ],
      },
      { config: always },
    );
    await lab.play(session);
    await settled(lab, session);
    await session.followup("end it");
    await untilTurn(lab, session, 2);
    await session.waitJob("bash-2");
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(resultTexts(log).slice(1)).toEqual([
      "requested cancellation of job bash-1",
      "(no new output)\n[status: killed, signal: SIGTERM]",
      "started background job bash-2",
    ]);
    const gone = eventsOf(
      await lab.history(session.id),
      "startChildWorkflowExecutionInitiatedEventAttributes",
    );
    expect(gone.length).toBeLessThanOrEqual(1);
  });

  test("[schedule/T7] delivers a reminder that is due and one that is to come once each, and goes on counting their ids", async ({
    lab,
  }) => {
    const session = await lab.session(
      { turns: [{ repeat: 20, steps: [{ text: "noted" }] }] },
      { config: { ...remindersOn.config, ...always } },
    );
    await command(lab, session, commands.suspend);
    const targets = [
      await remind(lab, session, { afterSeconds: 1 }, "one"),
      await remind(lab, session, { afterSeconds: 5 }, "two"),
    ];
    await eventually(() => expect(Date.now()).toBeGreaterThan(targets[0] ?? Infinity));
    const before = (await lab.runs(session.id)).length;
    await lab.handle(session.id).signal(signals.rollOver);
    await eventually(async () =>
      expect((await lab.runs(session.id)).length).toBeGreaterThan(before),
    );
    await command(lab, session, commands.resume);
    const log = await untilTurn(lab, session, 2);
    expect(shownTo(log, "plugin").map(({ id }) => id)).toEqual(
      targets.map((at, index) => `schedule/schedule-${index + 1}/${new Date(at).toISOString()}`),
    );
    await remind(lab, session, { afterSeconds: 3_600 }, "three");
    expect(
      (await lab.entries(session)).findLast(({ type }) => type === "schedule/change"),
    ).toMatchObject({ data: { schedule: { id: "schedule-3" } } });
    await settled(lab, session);
    await lab.witness(session);
  });

  test("takes 50 messages a second without losing or doubling one, and knows an id of an earlier run again", async ({
    lab,
  }) => {
    const session = await lab.session(
      // A steer may come in any step.
      { turns: [{ repeat: 500, steps: [{ text: "noted", repeat: 200 }] }] },
      { config: { worldTools: false, ...always } },
    );
    const ids = Array.from({ length: cacheSize === 0 ? 60 : 150 }, (_, index) => `m-${index}`);
    const receipts: Promise<{ readonly seq: number }>[] = [];
    const signalled: Promise<void>[] = [];
    const handle = lab.handle(session.id);
    for (const [index, id] of ids.entries()) {
      const mode = index % 8 === 0 ? "followup" : index % 2 === 0 ? "steer" : "inject";
      // Verdicts of one client are waited for one by one: a tenth of them is enough.
      if (index % 10 === 0) receipts.push(session.send(id, { id, mode }));
      else signalled.push(handle.signal(commands.send, { id, mode, content: id }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await Promise.all(signalled);
    const seqs = (await Promise.all(receipts)).map(({ seq }) => seq);
    await session.followup("last", { id: "last" });
    await session.waitIdle();
    await settled(lab, session);
    const again = await session.send("m-0", { id: "m-0", mode: "followup" });
    expect(again.seq).toBe(seqs[0]);
    await expect(session.send("other", { id: "m-0", mode: "followup" })).rejects.toMatchObject({
      code: "DUPLICATE_ID",
    });
    const log = await lab.entries(session);
    const shown = shownTo(log).map(({ id }) => id);
    expect(shown.toSorted()).toEqual([...ids, "last"].toSorted());
    const spliced = log.flatMap((entry) =>
      entry.type === "agent/inbox/spliced" ? [entry.seq] : [],
    );
    for (const seq of seqs) expect(spliced).toContain(seq);
    expect((await lab.runs(session.id)).length).toBeGreaterThan(5);
    await lab.witness(session);
  });

  test("and then is reset to the end of the run before goes on from there, with the log as it was archived", async ({
    lab,
  }) => {
    const session = await lab.session(threeTurns);
    const before = await lab.play(session, "a");
    await lab.handle(session.id).signal(signals.rollOver);
    await eventually(async () => expect(await lab.runs(session.id)).toHaveLength(2));
    const [first] = await lab.runs(session.id);
    const last = first?.events?.findLast((event) => event.workflowTaskCompletedEventAttributes);
    const runId =
      first?.events?.[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId;
    await lab.temporal.workflowService.resetWorkflowExecution({
      namespace: "default",
      workflowExecution: { workflowId: session.id, runId: runId ?? "" },
      reason: "test",
      requestId: session.id,
      ...(last?.eventId ? { workflowTaskFinishEventId: last.eventId } : {}),
    });
    await session.followup("b");
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.slice(0, before.length)).toEqual(before);
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index));
    await lab.witness(session);
  });

  test("is one row in the list, with the time it was created and the title it had", async ({
    lab,
  }) => {
    const config = {
      request: { provider: "scripted", model: await lab.scenario(threeTurns) },
      allowParallelInProgress: true,
      worldTools: false,
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
      ...always,
    };
    const giveUp = await takeSharedQueue();
    const place = await lab.place({ sessionQueue: queues.sessions });
    const before = Date.now();
    const session = await lab.client.createSession({ config, title: "Long one" });
    lab.adopt(session.id);
    await eventually(async () => expect((await session.view()).ready).toBe(true));
    const created = Date.now();
    await session.followup("b");
    await session.waitIdle();
    await settled(lab, session);
    expect((await lab.runs(session.id)).length).toBeGreaterThan(1);
    await eventually(async () => {
      const rows = (await lab.client.list()).filter(({ id }) => id === session.id);
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({ title: "Long one" });
      expect(rows[0]?.startedAt).toBeGreaterThanOrEqual(before);
      expect(rows[0]?.startedAt).toBeLessThanOrEqual(created);
    });
    const details = await detailsOf(lab, session.id);
    expect(details).toContain("Long one");
    expect(details).toContain("scripted/");
    await place.stop();
    await giveUp();
  });

  test("stays in its run while the store cannot be written, and leaves it when it can", async ({
    lab,
  }) => {
    const session = await lab.session(threeTurns, {
      config: { ...always, rollOver: { events: 20, minIntervalMs: 0 } },
    });
    const folder = dirname(lab.store.locator(session.id, "any"));
    await mkdir(folder, { recursive: true });
    await rename(folder, `${folder}-away`);
    await writeFile(folder, "in the way");
    await session.followup("a");
    await session.waitIdle();
    const before = await lab.runs(session.id);
    expect(before).toHaveLength(1);
    await rm(folder);
    await rename(`${folder}-away`, folder);
    expect(scheduledOf(before[0] ?? {}).map(({ type }) => type)).toContain("log.archive");
    await lab.handle(session.id).signal(signals.rollOver);
    await eventually(async () => expect(await lab.runs(session.id)).toHaveLength(2));
    await lab.play(session, "b");
    await lab.witness(session);
  });

  test("when it is asked to, once, and not while it is in a step", async ({ lab }) => {
    const session = await lab.session({
      turns: [
        { steps: [{ calls: [{ tool: "gated", args: { n: "1" } }] }, { text: "done" }] },
        { steps: [{ text: "again" }] },
      ],
    });
    await session.followup("go");
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    await lab.handle(session.id).signal(signals.rollOver);
    await command(lab, session, commands.configure, { config: { system: "be brief" } });
    expect(await lab.runs(session.id)).toHaveLength(1);
    gated.release(session.id, "1");
    const log = await untilTurn(lab, session, 1);
    await eventually(async () => expect(await lab.runs(session.id)).toHaveLength(2));
    expect(resultTexts(log)).toEqual(["did 1"]);
    await lab.play(session);
    expect(await lab.runs(session.id)).toHaveLength(2);
    expect((await session.view()).config.system).toBe("be brief");
    await lab.witness(session);
  });

  test("[harness/R13] in place of an approval: what a call waits for is still awaited when its worker was killed, also by a session that was asked to roll over, and counts once", async ({
    lab,
  }) => {
    const gate = join(await lab.workspace(), "go");
    const script = `until [ -e ${gate} ]; do sleep 0.1; done; echo out`;
    const brain = await lab.emptyPlace();
    const first = await startWorkerProcess(lab, brain, { roles: ["session"] });
    let second: WorkerProcess | undefined;
    try {
      const session = await lab.session(
        {
          turns: [
            {
              steps: [
                { calls: [bash(script, { run_in_background: true })] },
                { calls: [{ tool: "job_output", args: { job_id: "bash-1", wait: true } }] },
                { text: "done" },
              ],
            },
          ],
        },
        { at: brain, host: lab.own.hostId, config: always },
      );
      await session.followup("go");
      await eventually(async () => {
        const calls = (await lab.entries(session)).filter(({ type }) => type === "tool/call");
        expect(calls).toHaveLength(2);
      });
      await lab.handle(session.id).signal(signals.rollOver);
      const runs = (await lab.runs(session.id)).length;
      await first.kill();
      second = await startWorkerProcess(lab, brain, { roles: ["session"] });
      expect((await session.view()).turn).toMatchObject({ open: true, step: 2 });
      expect(await lab.runs(session.id)).toHaveLength(runs);
      await writeFile(gate, "");
      const log = await untilTurn(lab, session, 1);
      expect(resultTexts(log)).toEqual([
        "started background job bash-1",
        "out\n[status: completed, exit code: 0]",
      ]);
      expect(shownTo(log, "plugin")).toEqual([]);
      await lab.witness(session);
    } finally {
      await first.kill();
      await second?.kill();
    }
  });

  test("at most once a second, unless it is configured otherwise", async ({ lab }) => {
    const session = await lab.session(
      { turns: [{ repeat: 100, steps: [{ text: "noted" }] }] },
      { config: { worldTools: false, rollOver: { events: 1 } } },
    );
    for (let index = 0; (await lab.runs(session.id)).length < 3; index++)
      await session.followup(`${index}`);
    await session.waitIdle();
    const starts = (await lab.runs(session.id)).map(
      (run) =>
        Number(run.events?.[0]?.eventTime?.seconds ?? 0) * 1_000 +
        (run.events?.[0]?.eventTime?.nanos ?? 0) / 1e6,
    );
    for (const [index, at] of starts.entries())
      if (index > 0) expect(at - (starts[index - 1] ?? 0)).toBeGreaterThanOrEqual(1_000);
  });

  test("keeps its suspension, its waiting messages and what is owed to it", async ({ lab }) => {
    const session = await lab.session(
      { turns: [{ repeat: 9, steps: [{ text: "noted" }] }] },
      { config: { ...remindersOn.config, ...always } },
    );
    await command(lab, session, commands.suspend);
    await session.send("later", { id: "waits", mode: "inject" });
    await remind(lab, session, { afterSeconds: 1 }, "owed");
    await settled(lab, session);
    await lab.handle(session.id).signal(signals.rollOver);
    await settled(lab, session);
    expect(await session.view()).toMatchObject({
      state: "suspended",
      inbox: { nextStep: ["waits"] },
      turn: { number: 0 },
    });
    await command(lab, session, commands.resume);
    const log = await untilTurn(lab, session, 1);
    expect(shownTo(log).map(({ id }) => id)).toContain("waits");
    expect(shownTo(log, "plugin")).toHaveLength(1);
    await session.close();
    expect(await session.view()).toMatchObject({ state: "closed" });
  });

  test("is parked readable when its checkpoint cannot be read, and says why; a broken schedule costs the reminders alone", async ({
    lab,
  }) => {
    const session = await lab.session(
      { turns: [{ repeat: 9, steps: [{ text: "noted" }] }] },
      remindersOn,
    );
    await lab.play(session);
    await lab.handle(session.id).signal(signals.rollOver);
    await eventually(async () => expect(await lab.runs(session.id)).toHaveLength(2));
    const [, run] = await lab.runs(session.id);
    const started = run?.events?.[0]?.workflowExecutionStartedEventAttributes;
    const input = JSON.parse(Buffer.from(started?.input?.payloads?.[0]?.data ?? []).toString()) as {
      readonly checkpoint: Record<string, unknown>;
    };
    const start = async (part: string) => {
      const id = `${session.id}-${part}`;
      const { checkpoint } = input;
      await lab.temporal.workflow.start("session", {
        workflowId: id,
        taskQueue: lab.own.queue,
        args: [{ ...input, checkpoint: { ...checkpoint, session: id, [part]: { broken: true } } }],
      });
      lab.adopt(id);
      return lab.client.session(id);
    };
    const schedule = await start("schedule");
    await schedule.followup("go on");
    await untilTurn(lab, schedule, 2).catch(() => {});
    expect((await schedule.view()).state).toBe("idle");
    for (const part of ["log", "inbox", "jobs", "state", "todo"]) {
      const broken = await start(part);
      expect((await broken.view()).state).toBe("faulted");
      await expect(broken.followup("hello")).rejects.toMatchObject({ code: "SESSION_FAULTED" });
      const { lastSeq } = await broken.view();
      // A release that reads it may be there by now.
      await lab.handle(broken.id).signal(signals.rollOver);
      await eventually(async () => expect(await lab.runs(broken.id)).toHaveLength(2));
      expect(await broken.view()).toMatchObject({ state: "faulted", lastSeq });
      await broken.close();
      expect((await broken.view()).lastSeq).toBe(lastSeq);
    }
  });
});

/** Waits until the session is idle in a run that has nothing of its own to archive yet. */
async function settled(lab: Lab, session: SessionClient): Promise<void> {
  let last = "";
  await eventually(async () => {
    const { runId } = await lab.handle(session.id).describe();
    const same = runId === last;
    last = runId;
    expect(same).toBe(true);
  });
}

/** What of an entry does not depend on when it came. */
function plain({ type, seq, data, surfaceOp }: LogEntry): unknown {
  const text = JSON.stringify({ type, seq, data, surfaceOp });
  return JSON.parse(
    text
      .replaceAll(/t-[0-9a-f-]{36}/gu, "<session>")
      .replaceAll(/[^"]*\/workspaces\/[0-9a-f-]{36}/gu, "<workspace>")
      .replaceAll(/[^"]*\/[0-9a-f-]{36}\.yaml/gu, "<scenario>")
      .replaceAll(/"createdAt":\d+/gu, '"createdAt":0')
      .replaceAll(/"rollOver":\{[^}]*\},?/gu, "")
      .replaceAll(/"stream":"[^"]*"/gu, '"stream":""')
      .replaceAll(/,\}/gu, "}"),
  );
}

function asked({ messages, tools, turn, step }: ModelRequest): unknown {
  return JSON.parse(
    JSON.stringify({ messages, tools, turn, step }).replaceAll(/[^"]*\/[0-9a-f-]{36}\.yaml/gu, ""),
  );
}

function resultTexts(log: readonly LogEntry[]): readonly string[] {
  return log.flatMap((entry) =>
    entry.type === "tool/result"
      ? [
          entry.data.message.content
            .flatMap((block) => (block.type === "tool-result" ? block.content : []))
            .map(({ text }) => text)
            .join("\n"),
        ]
      : [],
  );
}
