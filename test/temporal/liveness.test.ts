import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { commands } from "../../src/contracts/names.js";
import { gatedTool } from "../support/gated-tool.js";
import { eventsOf, scheduledOf } from "../support/history.js";
import {
  answering,
  batchIn,
  changesIn,
  command,
  createCall,
  dispatchesIn,
  livenessIn,
  remind,
  remindersIn,
  remindersOn,
  remindersOnHost,
  resultsIn,
  shownTo,
  untilState,
  untilTurn,
} from "../support/reminder-script.js";
import { cacheSize, test as base, type Lab } from "../support/temporal.js";
import { fastForward } from "../support/time-skipping.js";
import { eventually } from "../support/until.js";
import { startWorkerProcess } from "../support/worker-process.js";

const gated = gatedTool("gated", { workspace: false });
const test = base.extend({ workerOptions: [{ tools: [gated.tool] }, { scope: "file" as const }] });

const bash = (text: string, more: object = {}) => ({
  tool: "bash",
  args: { command: text, description: "Try", ...more },
});
const background = (text: string) => bash(text, { run_in_background: true });
const home = bash("echo $LONGHAUL_HOME");
const held = (n: string) => ({ steps: [{ calls: [{ tool: "gated", args: { n } }] }, { text: n }] });

// Those that wait for a time-out of a minute stand first, so that they wait together. Their waits are the server's: without a
// cache they would show nothing more.
describe.runIf(cacheSize > 0)("a session whose host is gone", { concurrent: true }, () => {
  test(
    "with a reminder and a job is moved to another host: the job is lost, the reminder comes once, and the transcript says what happened",
    { timeout: 600_000 },
    async ({ lab }) => {
      const [brain, a, b] = [
        await lab.emptyPlace(),
        await lab.emptyPlace(),
        await lab.emptyPlace(),
      ];
      await brain.start({ roles: ["session"] });
      const worker = await startWorkerProcess(lab, a, { roles: ["host"] });
      try {
        const cwd = await lab.workspace();
        await writeFile(join(cwd, "which.txt"), "on a");
        const look = bash("cat which.txt || echo no such file");
        const session = await lab.session(
          {
            turns: [
              {
                steps: [
                  { calls: [look, background("sleep 600"), createCall({ after_seconds: 40 })] },
                  { text: "set" },
                ],
              },
              // The notice of the lost job may open a turn of its own.
              { repeat: 5, steps: [{ calls: [look] }, { text: "went on" }] },
            ],
          },
          {
            at: brain,
            host: a.hostId,
            config: {
              cwd,
              schedule: true,
              jobs: { orphanGraceMs: 1_000, heartbeatMs: 1_000, heartbeatTimeoutMs: 5_000 },
            },
          },
        );
        await lab.play(session);
        await worker.kill();
        // What it last said counts for 30 s, so the reminder is due later.
        // Machine b has a workspace of its own under the same path.
        await rename(cwd, `${cwd}-of-a`);
        await mkdir(cwd);
        await b.start({ roles: ["host"] });
        await untilState(session, "cold", 300_000);
        await eventually(
          async () =>
            expect((await session.jobs()).jobs).toMatchObject([
              { status: "failed", detail: expect.stringContaining("worker lost") as string },
            ]),
          300_000,
        );
        expect((await session.view()).turn.number).toBe(1);
        await command(lab, session, commands.rebind, { host: b.hostId });
        await eventually(async () =>
          expect(remindersIn(await lab.entries(session))).toHaveLength(1),
        );
        await session.waitIdle();
        const log = await lab.entries(session);
        expect((await session.view()).state).toBe("idle");
        expect(remindersIn(log)).toHaveLength(1);
        expect(changesIn(log).map(({ operation }) => operation)).toEqual(["create", "dispatch"]);
        expect(resultsIn(log)[0]).toBe("on a");
        expect(resultsIn(log).at(-1)).toContain("no such file");
        const told = shownTo(log, "plugin").map(({ text }) => text);
        expect(told.filter((text) => text.includes("worker lost"))).toHaveLength(1);
        expect(
          told.filter((text) => text.includes(`moved from host ${a.hostId} to host ${b.hostId}`)),
        ).toHaveLength(1);
        expect(livenessIn(log).map(({ live }) => live)).toEqual([false, true]);
        await lab.witness(session);
      } finally {
        await worker.kill();
      }
    },
  );

  test(
    "asks it when a reminder is due, turns cold, and tells that once when the host is back",
    { timeout: 600_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const host = await place.start({ roles: ["host"] });
      const set = { steps: [{ calls: [createCall({ after_seconds: 33 })] }, { text: "set" }] };
      const told = { steps: [{ text: "told" }] };
      const session = await lab.session({ turns: [set, told] }, { at: place, ...remindersOnHost });
      await lab.play(session);
      await host.stop();
      await untilState(session, "cold", 300_000);
      expect((await session.view()).turn.number).toBe(1);
      await place.start({ roles: ["host"] });
      const log = await untilTurn(lab, session, 2);
      expect(remindersIn(log)).toHaveLength(1);
      expect(livenessIn(log)).toMatchObject([{ live: false }, { live: true }]);
    },
  );

  test(
    "may be suspended and resumed while it is cold; what was due meanwhile comes once when the host is there, on its grid; closed, it waits for nobody",
    { timeout: 600_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const session = await lab.session(answering(), { at: place, ...remindersOnHost });
      await untilState(session, "cold");
      const due = await remind(lab, session, { afterSeconds: 60 }, "once");
      const first = await remind(lab, session, { everySeconds: 300 }, "every");
      await command(lab, session, commands.suspend);
      await untilState(session, "suspended");
      await eventually(async () => expect(await standingOf(lab, session.id)).toEqual(["canceled"]));
      await fastForward(lab.temporal.workflow, session.id, 22 * 60_000);
      await command(lab, session, commands.resume);
      await untilState(session, "cold");
      await eventually(async () =>
        expect(await standingOf(lab, session.id)).toEqual(["canceled", "open"]),
      );
      // A message has its turn, and makes nobody answer.
      expect(remindersIn(await lab.play(session))).toEqual([]);
      await untilState(session, "cold");
      const host = await place.start({ roles: ["host"] });
      const log = await untilTurn(lab, session, 3);
      const [once, batch, ...more] = remindersIn(log);
      expect(once?.id).toBe(`schedule/schedule-1/${new Date(due).toISOString()}`);
      expect(more).toEqual([]);
      const told = batch === undefined ? [] : batchIn(batch);
      const occurrence = Date.parse(told[0]?.occurrence_at ?? "");
      const accepted = dispatchesIn(log).at(-1)?.time ?? 0;
      expect((occurrence - first) % 300_000).toBe(0);
      expect(accepted - occurrence).toBeGreaterThanOrEqual(0);
      expect(accepted - occurrence).toBeLessThan(300_000);
      expect(occurrence - first).toBeGreaterThanOrEqual(15 * 60_000);
      expect(livenessIn(log)).toMatchObject([
        { live: false },
        { live: false, suspended: true, cold: true },
        { live: false, why: "resumed" },
        { live: true },
      ]);
      await host.stop();
      // Cold again, and closed.
      await command(lab, session, commands.rebind, { host: "nobody" });
      await untilState(session, "cold");
      await session.close();
      await lab.witness(session);
    },
  );

  test(
    "[schedule/74] is closed while its host is asked, without waiting for the answer",
    { timeout: 600_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const host = await place.start({ roles: ["host"] });
      const session = await lab.session(answering(), { at: place, config: { schedule: true } });
      await host.stop();
      await remind(lab, session, { afterSeconds: 32 });
      await eventually(async () => {
        const asked = scheduledOf(await lab.history(session.id)).map(({ type }) => type);
        expect(asked).toContain("host.present");
      });
      await session.close();
      const history = await lab.history(session.id);
      expect(eventsOf(history, "activityTaskCanceledEventAttributes")).toHaveLength(1);
      expect(eventsOf(history, "activityTaskTimedOutEventAttributes")).toEqual([]);
      const log = await lab.entries(session);
      expect(changesIn(log)).toMatchObject([{ operation: "create" }]);
      expect(log.filter(({ type }) => type === "session/live")).toEqual([]);
    },
  );

  test(
    "moves on at once, also when it moves twice and comes back to the first",
    { timeout: 600_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start();
      const session = await lab.session(
        { turns: [{ repeat: 5, steps: [{ calls: [home] }, { text: "there" }] }] },
        { at: place, ...remindersOnHost },
      );
      for (const host of ["nobody-1", "nobody-2", place.hostId])
        await command(lab, session, commands.rebind, { host });
      await eventually(async () => expect((await session.view()).ready).toBe(true));
      const log = await lab.play(session);
      expect(resultsIn(log)).toEqual([place.home]);
      expect((await session.view()).epoch).toBe(4);
      const shown = shownTo(log, "plugin").map(({ id }) => id);
      expect(shown).toEqual(["bound/2", "bound/3", "bound/4"]);
      // Never cold: the two that did not answer were not waited for.
      expect(livenessIn(log)).toEqual([]);
      // Bound where it is: nothing happens.
      expect(await command(lab, session, commands.rebind, { host: place.hostId })).toEqual({
        ok: true,
      });
      expect((await session.view()).epoch).toBe(4);
      await lab.witness(session);
    },
  );

  test(
    "goes where it was moved to while it was still looking for its first host",
    { timeout: 600_000 },
    async ({ lab }) => {
      const place = await lab.place();
      const session = await lab.session(
        { turns: [{ repeat: 5, steps: [{ calls: [home] }, { text: "there" }] }] },
        { at: place, host: "nobody", waitReady: false, ...remindersOnHost },
      );
      await command(lab, session, commands.suspend);
      await command(lab, session, commands.rebind, { host: place.hostId });
      await eventually(async () => expect((await session.view()).ready).toBe(true));
      expect(await session.view()).toMatchObject({ host: place.hostId, state: "suspended" });
      const log = await lab.play(session);
      expect(resultsIn(log)).toEqual([place.home]);
    },
  );
});

describe.concurrent("a suspended session", () => {
  test("is resumed by a message that wakes, not by one that is injected", async ({ lab }) => {
    const session = await lab.session(answering(), remindersOn);
    await command(lab, session, commands.suspend);
    await session.inject("it rains");
    expect((await session.view()).state).toBe("suspended");
    expect((await session.view()).turn.number).toBe(0);
    await session.steer("hello");
    const log = await untilTurn(lab, session, 1);
    expect(shownTo(log).map(({ text }) => text)).toEqual(["it rains", "hello"]);
    expect((await session.view()).state).toBe("idle");
    expect(livenessIn(log).map(({ why }) => why)).toEqual(["suspended", "resumed by a message"]);
    await lab.witness(session);
  });

  test("was interrupted, keeps what is queued, and runs it after the next message that wakes", async ({
    lab,
  }) => {
    const session = await lab.session(
      { turns: [held("1"), { repeat: 5, steps: [{ text: "ok" }] }] },
      remindersOn,
    );
    await session.followup("go", { id: "first" });
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    await session.followup("later", { id: "queued" });
    await command(lab, session, commands.suspend);
    const log = await untilTurn(lab, session, 1);
    expect(log.at(-1)).toMatchObject({ data: { reason: { kind: "aborted" } } });
    expect(await session.view()).toMatchObject({
      state: "suspended",
      inbox: { nextTurn: ["queued"] },
    });
    await session.followup("now", { id: "now" });
    const after = await untilTurn(lab, session, 3);
    expect(shownTo(after).map(({ id }) => id)).toEqual(["first", "queued", "now"]);
  });

  test("lets its jobs run, and pays the turn that one has earned once, when it is resumed", async ({
    lab,
  }) => {
    const gate = join(await lab.workspace(), "go");
    const waiting = background(`until [ -e ${gate} ]; do sleep 0.1; done; echo out`);
    const session = await lab.session({
      turns: [
        { steps: [{ calls: [waiting] }, { text: "started" }] },
        { repeat: 5, steps: [{ text: "noted" }] },
      ],
    });
    await lab.play(session);
    await command(lab, session, commands.suspend);
    await writeFile(gate, "");
    await session.waitJob("bash-1");
    await command(lab, session, commands.suspend);
    expect((await session.view()).turn.number).toBe(1);
    await command(lab, session, commands.resume);
    await command(lab, session, commands.resume);
    const log = await untilTurn(lab, session, 2);
    expect(shownTo(log, "plugin").map(({ id }) => id)).toEqual(["job/bash-1/settled"]);
    expect(log.filter(({ type }) => type === "job/woken")).toHaveLength(1);
    await session.close();
    expect((await session.view()).turn.number).toBe(2);
  });
});

describe.concurrent("a session that is moved", () => {
  test("in a turn goes on with it on the other host, whose tools it is offered", async ({
    lab,
  }) => {
    const [a, b] = [lab.own, await lab.place({ roles: ["host"] })];
    const session = await lab.session(
      {
        turns: [
          {
            steps: [
              { calls: [home] },
              { calls: [{ tool: "gated", args: { n: "1" } }] },
              { calls: [home] },
              { text: "done" },
            ],
          },
        ],
      },
      remindersOnHost,
    );
    await session.followup("go");
    await eventually(() => expect(gated.running(session.id)).toEqual(["1"]));
    await command(lab, session, commands.rebind, { host: b.hostId });
    gated.release(session.id, "1");
    const log = await untilTurn(lab, session, 1);
    const homes = [resultsIn(log)[0], resultsIn(log)[2]];
    expect(homes).toEqual([a.home, b.home]);
    expect(shownTo(log, "plugin").map(({ id }) => id)).toEqual(["bound/2"]);
    await lab.witness(session);
  });
});

/** What became of the questions that wait for a host. */
async function standingOf(lab: Lab, id: string): Promise<readonly string[]> {
  const history = await lab.history(id);
  const events = history.events ?? [];
  return scheduledOf(history)
    .filter(({ summary }) => summary.startsWith("waiting for host"))
    .map((one) => {
      const scheduled = events.find(
        (event) => event.activityTaskScheduledEventAttributes?.activityId === one.id,
      )?.eventId;
      const same = (other: unknown): boolean => String(other) === String(scheduled);
      if (events.some((event) => same(event.activityTaskCanceledEventAttributes?.scheduledEventId)))
        return "canceled";
      return events.some((event) =>
        same(event.activityTaskCompletedEventAttributes?.scheduledEventId),
      )
        ? "completed"
        : "open";
    });
}
