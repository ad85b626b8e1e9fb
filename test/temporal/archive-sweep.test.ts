import { randomUUID } from "node:crypto";
import { msToTs } from "@temporalio/common/lib/time.js";
import { describe, expect } from "vitest";
import { defaultLimits, LonghaulClient, type LogEntry } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { Archive, ArchivedSession } from "../../src/contracts/archive.js";
import type { SessionConfig } from "../../src/contracts/config.js";
import { commands } from "../../src/contracts/names.js";
import type { Store } from "../../src/contracts/store.js";
import { openArchive } from "../../src/store/archive.js";
import { test, type Lab, type Place } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const talk = { turns: [{ repeat: 100, steps: [{ text: "answer ${turn}" }] }] };
const plain = { allowParallelInProgress: true, worldTools: false } as const;
/** Goes on in a new run at every edge of a step, and whenever it is idle. */
const rolling = { ...plain, rollOver: { events: 1, minIntervalMs: 0 } } as const;

const linesOf = (entries: readonly LogEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");

async function logText(session: SessionClient): Promise<string> {
  const entries: LogEntry[] = [];
  for await (const entry of session.log()) entries.push(entry);
  return linesOf(entries);
}

/** What a watcher is given until the session has ended. */
async function watchText(session: SessionClient): Promise<string> {
  const entries: LogEntry[] = [];
  for await (const event of session.watch({ intervalMs: 5 }))
    if (event.type === "entry") entries.push(event.entry);
  return linesOf(entries);
}

async function markOf(archive: Archive, session: string): Promise<ArchivedSession> {
  return eventually(async () => {
    const mark = await archive.ended(session);
    if (mark === undefined) throw new Error(`${session} is not archived yet`);
    return mark;
  });
}

async function streamsOf(store: Store, session: string, prefix: string): Promise<string[]> {
  return (await store.list(session, prefix)).map(({ stream }) => stream);
}

/** Takes a workflow task and never answers. */
async function takeTask(lab: Lab, { queue }: Place): Promise<void> {
  const { temporal } = lab;
  const { taskToken } = await temporal.withDeadline(Date.now() + 20_000, () =>
    temporal.workflowService.pollWorkflowTaskQueue({
      namespace: "default",
      taskQueue: { name: queue },
      identity: "test",
    }),
  );
  expect(taskToken?.length).toBeGreaterThan(0);
}

/** As the retention time does, but now; until Temporal knows nothing of it any more. */
async function forget(lab: Lab, session: string): Promise<void> {
  const query = `WorkflowId = '${session}'`;
  await eventually(async () => {
    let left = 0;
    for await (const { workflowId, runId } of lab.temporal.workflow.list({ query })) {
      left += 1;
      await lab.temporal.workflowService
        .deleteWorkflowExecution({
          namespace: "default",
          workflowExecution: { workflowId, runId },
        })
        .catch(() => undefined);
    }
    expect(left).toBe(0);
    await expect(lab.handle(session).describe()).rejects.toThrow(/not found/iu);
  });
}

/** Two workers that sweep all the time. */
async function twoSweepers(lab: Lab): Promise<Place> {
  const place = await lab.emptyPlace({ roles: ["session"], archiveSweepMs: 50 });
  await Promise.all([place.start(), place.start()]);
  return place;
}

function open(lab: Lab, at: Place, config: Partial<SessionConfig> = plain): Promise<SessionClient> {
  const { limits: _, ...chosen } = config;
  return lab.session(talk, { at, host: null, config: chosen, title: "A talk", unchecked: true });
}

describe.concurrent("an ended session", () => {
  test.for([
    ["closed", "completed", { state: "closed", status: "closed" }],
    ["terminated", "terminated", { state: "terminated", status: "terminated" }],
  ] as const)(
    "that was %s is archived once by two sweepers, and reads the same when Temporal has deleted it",
    async ([how, status, record], { lab }) => {
      const session = await open(lab, await twoSweepers(lab));
      for (const question of ["one", "two"]) await lab.play(session, question);
      if (how === "closed") await session.close({ reason: "done" });
      else await lab.handle(session.id).terminate("by hand");
      const live = await logText(session);
      const [messages, outcome, view, jobs, { closedAt }] = await Promise.all([
        session.messages(),
        session.outcome(),
        session.view(),
        session.jobs(),
        session.record(),
      ]);
      expect(await markOf(openArchive(lab.store), session.id)).toMatchObject({
        status,
        title: "A talk",
        lastSeq: view.lastSeq,
        startedAt: view.header.createdAt,
        closedAt,
      });
      expect(await streamsOf(lab.store, session.id, "segment/")).toHaveLength(1);
      expect(await streamsOf(lab.store, session.id, "archived/")).toHaveLength(1);
      await forget(lab, session.id);
      expect(await logText(session)).toBe(live);
      expect(await watchText(session)).toBe(live);
      expect(await session.messages()).toEqual(messages);
      expect(await session.outcome()).toEqual(outcome);
      expect(await session.view()).toEqual({ ...view, state: "closed" });
      expect(await session.jobs()).toEqual({ ...jobs, state: "closed" });
      expect(await session.record()).toMatchObject({ ...record, archived: true, closedAt });
      const listed: string[] = [];
      for await (const one of lab.client.archived()) listed.push(one.session);
      expect(listed).toContain(session.id);
      await expect(session.send("more")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
      await session.close();
    },
  );

  test("that rolled over is one log: live, archived and when Temporal has deleted all its runs, also for who watches meanwhile", async ({
    lab,
  }) => {
    const session = await open(lab, await twoSweepers(lab), rolling);
    const watched = watchText(session);
    for (let turn = 1; turn <= 8; turn++) await lab.play(session, `question ${turn}`);
    const segments = await streamsOf(lab.store, session.id, "segment/");
    expect(segments.length).toBeGreaterThan(8);
    const messages = await session.messages();
    expect(messages.filter(({ role }) => role === "assistant")).toHaveLength(8);
    await session.close();
    const live = await logText(session);
    expect(await watched).toBe(live);
    expect(await watchText(session)).toBe(live);
    const mark = await markOf(openArchive(lab.store), session.id);
    expect(mark.lastSeq).toBe((await session.view()).lastSeq);
    await forget(lab, session.id);
    expect(await logText(session)).toBe(live);
    expect(await watchText(session)).toBe(live);
    expect(await session.messages()).toEqual(messages);
  });

  test("whose archiving was cut short in a segment and in its mark is completed by the next worker", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace({ roles: ["session"], archiveSweepMs: 50 });
    const first = cutShort(lab.store, "segment/");
    await place.start({ store: first.store });
    const session = await open(lab, place);
    const log = await lab.play(session);
    await session.close();
    await first.cut;
    const archive = openArchive(lab.store);
    expect(await archive.ended(session.id)).toBeUndefined();
    const second = cutShort(lab.store, "archived/");
    await place.start({ store: second.store });
    await second.cut;
    expect(await archive.ended(session.id)).toBeUndefined();
    await place.start();
    const mark = await markOf(archive, session.id);
    expect(await streamsOf(lab.store, session.id, "segment/")).toEqual([`segment/${mark.segment}`]);
    const { entries } = await archive.segment(session.id, mark.segment);
    expect(entries.slice(0, log.length)).toEqual(log);
    expect(entries.at(-1)?.type).toBe("session/close");
  });

  test.for([
    ["was scheduled for it", false],
    ["had begun with it", true],
  ] as const)(
    "that was terminated when a message had come and a task %s is read and archived",
    async ([, isBegun], { lab }) => {
      const place = await lab.place({ archiveSweepMs: 50 });
      const session = await lab.session(talk, { at: place, config: plain, unchecked: true });
      await lab.play(session, "one");
      const log = await logText(session);
      await place.stop();
      const handle = lab.handle(session.id);
      await handle.signal(commands.send, { id: "late", mode: "followup", content: "late" });
      if (isBegun) await takeTask(lab, place);
      await handle.terminate("by hand");
      await place.start();
      const whole = await logText(session);
      // What the task began is part of it, whether it ended or not.
      expect(isBegun ? whole.slice(0, log.length) : whole).toBe(log);
      const archive = openArchive(lab.store);
      const mark = await markOf(archive, session.id);
      expect(mark.status).toBe("terminated");
      const { entries } = await archive.segment(session.id, mark.segment);
      expect(linesOf(entries)).toBe(whole);
    },
  );

  test("that no worker gave a host is archived with what its log says of it", async ({ lab }) => {
    const namespace = `n-${randomUUID().slice(0, 8)}`;
    await lab.temporal.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs("1 day"),
    });
    const place = await lab.emptyPlace({
      namespace,
      sessionQueue: "longhaul",
      roles: ["session"],
      archiveSweepMs: 50,
    });
    await eventually(() => place.start());
    await using client = await LonghaulClient.connect({
      connection: { address: lab.address },
      namespace,
      store: lab.store,
    });
    const id = `t-${randomUUID()}`;
    const config = {
      ...plain,
      worldTools: true,
      request: { provider: "scripted", model: await lab.scenario(talk) },
      cwd: await lab.workspace(),
      outsideWorkspace: false,
      deny: [],
      ask: [],
      limits: defaultLimits,
    };
    await expect(client.createSession({ id, config })).rejects.toMatchObject({ code: "NO_HOST" });
    const archive = openArchive(lab.store);
    const mark = await markOf(archive, id);
    expect(mark).toMatchObject({ status: "failed" });
    const { entries } = await archive.segment(id, mark.segment);
    expect(entries[0]?.type).toBe("session/open");
  });
});

/** A store whose writer is killed in the middle of its first write to a stream that begins so. */
function cutShort(
  store: Store,
  prefix: string,
): { readonly store: Store; readonly cut: Promise<void> } {
  const { promise, resolve } = withResolvers();
  let killed = false;
  return {
    cut: promise,
    store: {
      append: async (session, stream, offset, bytes) => {
        if (killed) throw new Error("killed before");
        if (!stream.startsWith(prefix)) return store.append(session, stream, offset, bytes);
        killed = true;
        await store.append(session, stream, offset, bytes.subarray(0, bytes.length / 2));
        resolve();
        throw new Error("killed");
      },
      read: (...args) => store.read(...args),
      size: (...args) => store.size(...args),
      sync: (...args) => store.sync(...args),
      list: (...args) => store.list(...args),
      sessions: () => store.sessions(),
      remove: (...args) => store.remove(...args),
      locator: (...args) => store.locator(...args),
      check: () => store.check(),
    },
  };
}

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}
