import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleWorkflowCode, DefaultLogger, Worker } from "@temporalio/worker";
import { expect } from "vitest";
import { noSinks } from "../support/no-sinks.js";
import { commands } from "../../src/contracts/names.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { eventsOf, faultsOf } from "../support/history.js";
import { seededRandom, type Random } from "../support/seeded.js";
import { cacheSize, test, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

/** A cold worker replays a session on every task. */
const few = cacheSize === 0;
const oneText = { turns: [{ repeat: 100, steps: [{ text: "answer ${turn}" }] }] };

test.concurrent("updates sent while no worker is up survive two restarts of the worker", async ({
  lab,
}) => {
  const place = await lab.place();
  const session = await lab.session(oneText, { at: place, config: { worldTools: false } });
  await place.stop();
  const first = await sendUnanswered(lab, session, ["a", "b", "c"]);
  await place.start();
  await Promise.all(first);
  await session.waitIdle();
  await place.stop();
  const second = await sendUnanswered(lab, session, ["d", "e", "f"]);
  await place.start();
  await Promise.all(second);
  await session.waitIdle();
  const log = await lab.entries(session);
  expect(
    log.filter((entry) => entry.type === "turn/end").map((entry) => entry.data.reason.kind),
  ).toEqual(Array.from({ length: 6 }, () => "completed"));
  const shown = log.flatMap((entry) =>
    entry.type === "user/message" ? [entry.data.message.id] : [],
  );
  expect(new Set(shown)).toEqual(new Set(["a", "b", "c", "d", "e", "f"]));
  expect(
    eventsOf(await lab.history(session.id), "workflowExecutionUpdateAcceptedEventAttributes"),
  ).toHaveLength(6);
});

test.concurrent("the same updates break a loop that does not let its handlers finish first, where tasks are not marked, so what is tested above can fail", async ({
  lab,
}) => {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-hazard-"));
  try {
    const bundle = join(folder, "bundle.js");
    const fileAt = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
    // Without the product's interceptors: where every task leaves an event, these updates do no harm.
    const { code } = await bundleWorkflowCode({
      workflowsPath: fileAt("../support/workflows"),
      payloadConverterPath: fileAt("../../src/workflows/payload-converter.ts"),
      logger: new DefaultLogger("WARN"),
    });
    await writeFile(bundle, code);
    const place = await lab.place({ workflowBundlePath: bundle, roles: ["session"] });
    const workflowId = `unsettled-${randomUUID()}`;
    const handle = await lab.temporal.workflow.start("unsettled", {
      workflowId,
      taskQueue: place.queue,
    });
    await eventually(async () =>
      expect(
        eventsOf(await lab.history(workflowId), "workflowTaskCompletedEventAttributes"),
      ).toHaveLength(1),
    );
    await place.stop();
    const sent = await unanswered(lab, workflowId, ["a", "b", "c"], (updateId) =>
      handle.executeUpdate("add", { updateId }),
    );
    await place.start();
    await Promise.all(sent);
    await place.stop();
    const history = await lab.history(workflowId);
    await handle.terminate();
    await expect(
      Worker.runReplayHistory(
        { workflowBundle: { codePath: bundle }, sinks: noSinks },
        history,
        workflowId,
      ),
    ).rejects.toMatchObject({ name: "DeterminismViolationError" });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test.concurrent("an entry keeps its time when a worker that has to read the history takes a task after two without a command", async ({
  lab,
}) => {
  const place = await lab.place();
  const session = await lab.session(oneText, { at: place, config: { worldTools: false } });
  await session.followup("hello");
  await session.waitIdle();
  const handle = lab.handle(session.id);
  const note = (id: string) => ({ id, mode: "inject", content: id });
  const logs = [await lab.entries(session)];
  const signal = async (id: string, count: number): Promise<void> => {
    await handle.signal(commands.send, note(id));
    await eventually(async () => {
      const { nextTurn, nextStep } = (await session.view()).inbox;
      expect(nextTurn.length + nextStep.length).toBe(count);
    });
    logs.push(await lab.entries(session));
  };
  for (const n of [0, 1]) {
    await signal(`signal ${n} a`, 3 * n + 1);
    await signal(`signal ${n} b`, 3 * n + 2);
    await place.stop();
    await place.start();
    await handle.executeUpdate(commands.send, { args: [note(`update ${n}`)] });
    logs.push(await lab.entries(session));
  }
  await place.stop();
  await place.start();
  const whole = await lab.entries(session);
  for (const log of logs) expect(whole.slice(0, log.length)).toEqual(log);
});

test.concurrent("an update that is rejected does not move a session on, whatever has come due since", async ({
  lab,
}) => {
  const minIntervalMs = 3_000;
  const session = await lab.session(oneText, {
    config: { worldTools: false, rollOver: { events: 1, minIntervalMs } },
  });
  const handle = lab.handle(session.id);
  await session.followup("hello");
  await session.waitIdle();
  // On a slow machine it may have come due, and have rolled over, before its turn was over.
  await eventually(async () => {
    const last = (await lab.runs(session.id)).at(-1);
    const began = Number(last?.events?.[0]?.eventTime?.seconds ?? 0) * 1_000;
    expect(Date.now()).toBeGreaterThan(began + minIntervalMs + 1_000);
    const { pendingActivities, pendingWorkflowTask, workflowExecutionInfo } = (
      await handle.describe()
    ).raw;
    const { originalExecutionRunId } =
      last?.events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
    expect(workflowExecutionInfo?.execution?.runId).toBe(originalExecutionRunId);
    expect([pendingActivities ?? [], pendingWorkflowTask ?? null]).toEqual([[], null]);
  });
  const before = (await lab.runs(session.id)).map(({ events }) => events?.length);
  await expect(
    handle.executeUpdate(commands.send, { args: [{ id: "bad", mode: "followup", content: " " }] }),
  ).rejects.toMatchObject({ cause: { type: "INVALID_INPUT" } });
  expect(await session.view()).toMatchObject({ state: "idle" });
  expect((await lab.runs(session.id)).map(({ events }) => events?.length)).toEqual(before);
  // What is accepted does.
  await session.followup("again");
  await session.waitIdle();
  await eventually(async () =>
    expect((await lab.runs(session.id)).length).toBeGreaterThan(before.length),
  );
});

test.concurrent("bursts of updates during turns of several calls never diverge on replay and lose nothing", async ({
  lab,
}) => {
  const random = seededRandom();
  await Promise.all(
    Array.from({ length: few ? 3 : 6 }, async (_, index) => {
      const session = await lab.session(
        {
          turns: [
            {
              repeat: 100,
              steps: [
                { text: "looking", calls: [call("s-1"), call("s-2")] },
                { calls: [call("s-3")] },
                // A steer that comes late forces one more step.
                { text: "done", repeat: 50 },
              ],
            },
          ],
        },
        { config: { worldTools: false } },
      );
      const sent: string[] = [];
      for (let burst = 0; burst < 3; burst++) {
        await Promise.all(
          Array.from({ length: 4 }, async (_one, n) => {
            await delay(random.int(40));
            const id = `${index}-${burst}-${n}`;
            const mode = random.pick(["followup", "steer", "inject"] as const);
            await lab
              .handle(session.id)
              .executeUpdate(commands.send, { updateId: id, args: [{ id, mode, content: id }] });
            sent.push(id);
          }),
        );
      }
      await session.followup("the last");
      await session.waitIdle();
      const log = await lab.entries(session);
      const shown = log.flatMap((entry) =>
        entry.type === "user/message" && entry.data.message.id.startsWith(`${index}-`)
          ? [entry.data.message.id]
          : [],
      );
      expect(shown.toSorted(), `seed ${random.seed}`).toEqual(sent.toSorted());
      await lab.witness(session);
    }),
  );
});

test.concurrent("any mix of commands, good and bad, by signal and update, leaves a session that answers, closes and replays", async ({
  lab,
}) => {
  const random = seededRandom();
  await Promise.all(
    Array.from({ length: few ? 5 : 10 }, async (_, index) => {
      const session = await lab.session(
        {
          turns: [
            {
              repeat: 200,
              steps: [
                {
                  text: "some text to stream in pieces",
                  chunk: 4,
                  delayMs: 10,
                  calls: [call("f-1")],
                },
                {
                  text: "done",
                  failures: index % 3 === 0 ? [{ code: "SERVER", retryAfterMs: 20 }] : [],
                },
                { text: "done", repeat: 50 },
              ],
            },
          ],
        },
        { config: { worldTools: false } },
      );
      const handle = lab.handle(session.id);
      const pending: Promise<unknown>[] = [];
      for (let n = 0; n < 14; n++) {
        const [name, argument] = randomCommand(random, n);
        pending.push(
          random.next() < 0.5
            ? handle.signal(name, argument)
            : handle.executeUpdate(name, { args: [argument] }).catch(() => "refused"),
        );
        if (random.next() < 0.5) await delay(random.int(50));
      }
      await Promise.all(pending);
      await session.followup("the last", { id: "last" });
      await session.waitIdle();
      const log = await lab.entries(session);
      const last = log.findLast((entry) => entry.type === "user/message");
      expect(last?.data.message.id, `seed ${random.seed}`).toBe("last");
      await lab.witness(session);
      await session.close();
      expect(faultsOf(await lab.history(session.id)), `seed ${random.seed}`).toEqual([]);
    }),
  );
});

function call(content: string) {
  return { tool: "todo_write", args: { todos: [{ content, status: "in_progress" }] } };
}

function randomCommand(random: Random, n: number): readonly [string, unknown] {
  const send = (mode: string): readonly [string, unknown] => [
    commands.send,
    { id: `m${n}`, mode, content: `m${n}` },
  ];
  return random.pick<() => readonly [string, unknown]>([
    () => send("followup"),
    () => send("steer"),
    () => send("inject"),
    () => send("nonsense"),
    () => [commands.send, { id: "m1", mode: "followup", content: `other ${n}` }],
    () => [commands.send, null],
    () => [commands.interrupt, {}],
    () => [commands.cancel, { reason: "user" }],
    () => [commands.interrupt, { reason: 7 }],
    () => [commands.configure, { config: { system: `system ${n}` } }],
    () => [commands.configure, { refreshTools: true }],
    () => [commands.configure, { config: { limits: { retryBaseMs: -1 } } }],
    () => [
      commands.todoWrite,
      { opId: `op${n}`, turn: 1 + random.int(5), todos: [{ content: "x", status: "pending" }] },
    ],
    () => [commands.todoWrite, { opId: "op", turn: 1, todos: "none" }],
    () => [commands.close, { reason: 5 }],
  ])();
}

/** Sends updates nobody can answer yet; returns once the server holds them all. */
function sendUnanswered(
  lab: Lab,
  session: SessionClient,
  ids: readonly string[],
): Promise<Promise<unknown>[]> {
  const handle = lab.handle(session.id);
  return unanswered(lab, session.id, ids, (id) =>
    handle.executeUpdate(commands.send, {
      updateId: id,
      args: [{ id, mode: "followup", content: id }],
    }),
  );
}

async function unanswered(
  lab: Lab,
  workflowId: string,
  updateIds: readonly string[],
  send: (updateId: string) => Promise<unknown>,
): Promise<Promise<unknown>[]> {
  const answers = updateIds.map(send);
  for (const answer of answers) answer.catch(() => {});
  for (const updateId of updateIds) {
    await eventually(() =>
      lab.temporal.workflowService.pollWorkflowExecutionUpdate({
        namespace: "default",
        updateRef: { workflowExecution: { workflowId }, updateId },
        identity: "test",
      }),
    );
  }
  return answers;
}
