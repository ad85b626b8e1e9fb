import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { gatedTool } from "../support/gated-tool.js";
import { remindersView } from "../support/reminder-script.js";
import { rollOverNow } from "../support/roll-over-now.js";
import { takeSharedQueue } from "../support/shared-queue.js";
import { test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const gated = gatedTool("wait");
const test = base.extend({
  workerOptions: [{ tools: [gated.tool], sessionQueue: "longhaul" }, { scope: "file" as const }],
});

let release: (() => Promise<void>) | undefined;
beforeAll(async () => {
  release = await takeSharedQueue();
}, 240_000);
afterAll(() => release?.());

const todos = [{ content: "look around", status: "in_progress" }];
const scenario = {
  turns: [
    { steps: [{ calls: [{ tool: "todo_write", args: { todos } }] }, { text: "first" }] },
    { repeat: 20, steps: [{ expect: { lastUser: "go on" }, text: "turn ${turn}" }] },
  ],
};

describe.concurrent("a fork", () => {
  test("[harness/S8] goes on from an earlier turn/end while its source is in a turn, with its transcript, list and header and nothing else of it", async ({
    lab,
  }) => {
    const source = await lab.session(
      {
        turns: [
          scenario.turns[0],
          { steps: [{ calls: [{ tool: "wait", args: { n: "1" } }] }, { text: "second" }] },
        ],
      } as never,
      { config: { schedule: true } },
    );
    await lab.play(source);
    await source.remind({ prompt: "later", in: 3_600 });
    await source.inject("waits");
    const boundary = (await log(source)).findLast(({ type }) => type === "turn/end")?.seq ?? -1;
    await source.followup("go on");
    await eventually(async () => expect(gated.running(source.id)).toEqual(["1"]));

    await expect(lab.client.fork(source.id)).rejects.toMatchObject({ code: "OPEN_TURN" });
    const forked = await fork(lab, source.id, { boundary, title: "A fork" });
    const seed = (await log(source)).slice(0, boundary + 1);
    const entries = await log(forked);
    expect(entries.slice(0, boundary + 1)).toEqual(seed);
    expect(entries.slice(boundary + 1, boundary + 3).map(({ type }) => type)).toEqual([
      "session/end-seed",
      "session/open",
    ]);
    const view = await forked.view();
    expect(view).toMatchObject({
      state: "idle",
      title: "A fork",
      header: {
        id: forked.id,
        parentSession: source.id,
        seedLength: boundary + 1,
        cwd: view.config.cwd,
      },
      turn: { number: 1, open: false },
      inbox: { nextTurn: [], nextStep: [] },
      todos,
      host: lab.own.hostId,
    });
    expect(await forked.reminders()).toMatchObject({ ok: true, reminders: [] });
    expect(await forked.messages()).toEqual(
      seed.flatMap((entry) => ("message" in entry.data ? [entry.data.message] : [])),
    );

    gated.release(source.id, "1");
    await source.waitIdle();
    expect(await source.reminders()).toMatchObject({ reminders: [{ prompt: "later" }] });
    expect((await lab.handle(forked.id).describe()).memo).toMatchObject({
      parent: source.id,
      title: "A fork",
    });
  });

  test("[schedule/T16] has no reminder of its source, whose own comes once; its first is its own", async ({
    lab,
  }) => {
    const source = await lab.session(scenario, { config: { schedule: true } });
    await lab.play(source);
    await source.remind({ prompt: "of the source", in: 4 });
    await source.remind({ prompt: "much later", in: 3_600 });
    const forked = await fork(lab, source.id);
    expect((await remindersView(lab, forked)).records).toEqual([]);
    await eventually(async () => expect((await source.view()).turn.number).toBe(2));
    await source.waitIdle();
    expect((await remindersView(lab, source)).records.map(({ id }) => id)).toEqual(["schedule-2"]);
    await forked.remind({ prompt: "of the fork", in: 3_600 });
    expect((await remindersView(lab, forked)).records).toMatchObject([
      { id: "schedule-1", prompt: "of the fork" },
    ]);
    expect((await forked.view()).turn.number).toBe(1);
  });

  test("opens its own turns, numbered on, and shows the model the transcript it inherited; its first header is the one in force", async ({
    lab,
  }) => {
    const source = await lab.session(scenario);
    await lab.play(source);
    const forked = await fork(lab, source.id);
    const entries = await lab.play(forked, "go on");
    expect(entries.at(-1)).toMatchObject({
      type: "turn/end",
      data: { turn: 2, reason: { kind: "completed" } },
    });
    const requests = await lab.requests(forked.id);
    expect(requests.map(({ turn }) => turn)).toEqual([2]);
    const inherited = await source.messages();
    const shown = requests[0]?.messages ?? [];
    expect(shown.slice(0, inherited.length)).toEqual(
      (await lab.requests(source.id)).at(-1)?.messages.concat(inherited.slice(-1)),
    );
    const own = entries.slice(entries.findIndex(({ type }) => type === "session/end-seed"));
    expect(own.filter(({ type }) => type === "request/header")).toEqual([]);
    await lab.play(source, "go on");
    expect((await source.view()).turn.number).toBe(2);
    expect(await lab.client.verify(forked.id)).toMatchObject({ ok: true });
  });

  test("of a fork, at its own and at an inherited boundary, and of a session that has rolled over and closed", async ({
    lab,
  }) => {
    const source = await lab.session(scenario);
    await lab.play(source);
    await rollOverNow(lab.handle(source.id));
    await lab.play(source, "go on");
    const first = await fork(lab, source.id);
    await lab.play(first, "go on");
    await rollOverNow(lab.handle(first.id));
    const second = await fork(lab, first.id);
    expect((await lab.play(second, "go on")).at(-1)).toMatchObject({ data: { turn: 4 } });
    expect((await second.view()).header).toMatchObject({ parentSession: first.id });
    const boundary = (await log(source)).find(({ type }) => type === "turn/end")?.seq ?? -1;
    const early = await fork(lab, second.id, { boundary });
    expect((await lab.play(early, "go on")).at(-1)).toMatchObject({ data: { turn: 2 } });
    await source.close();
    const late = await fork(lab, source.id);
    expect((await lab.play(late, "go on")).at(-1)).toMatchObject({ data: { turn: 3 } });
    for (const { id } of [first, second, early, late]) {
      expect(await lab.client.verify(id)).toMatchObject({ ok: true });
    }
  });

  test("has the pictures that the model was shown", async ({ lab }) => {
    const source = await lab.session({
      turns: [
        { steps: [{ calls: [{ tool: "read", args: { path: "a.png" } }] }, { text: "seen" }] },
        { repeat: 5, steps: [{ text: "on" }] },
      ],
    });
    const png = Buffer.from("89504e470d0a1a0a0000000d4948445200000003000000020802000000", "hex");
    await writeFile(join((await source.view()).config.cwd ?? "", "a.png"), png);
    const [picture] = (await lab.play(source)).flatMap((entry) => {
      if (entry.type !== "tool/result") return [];
      const [block] = entry.data.message.content;
      return block?.type === "tool-result" ? (block.images ?? []) : [];
    });
    const forked = await fork(lab, source.id);
    const again = await fork(lab, forked.id);
    for (const { id } of [forked, again])
      expect(
        Buffer.from(await lab.store.read(id, picture?.stream ?? "", 0, 1_000)).equals(png),
      ).toBe(true);
    await lab.play(again, "go on");
  });

  test("with texts too long for a checkpoint and a transcript of many segments has them all", async ({
    lab,
  }) => {
    const long = "word ".repeat(160_000);
    const source = await lab.session({
      turns: [{ repeat: 20, steps: [{ text: `${long}\${turn}` }] }],
    });
    for (let turn = 1; turn <= 6; turn++) {
      await lab.play(source, `go ${turn}`);
      if (turn === 3) await rollOverNow(lab.handle(source.id));
    }
    const system = "You are ".repeat(4_000);
    const forked = await fork(lab, source.id, { config: { system } });
    expect(await forked.messages()).toEqual(await source.messages());
    const segments = await lab.store.list(forked.id, "segment/");
    expect(segments.length).toBe(2);
    await lab.play(forked, "one more");
    expect((await lab.requests(forked.id)).at(-1)?.messages).toHaveLength(13);
    expect((await forked.view()).config.system).toBe(system);
  });

  test("[harness/S9] is refused inside a turn, beyond the log, of no session and under a used id; nothing is stored or started then", async ({
    lab,
  }) => {
    const source = await lab.session(scenario);
    const entries = await lab.play(source);
    const inside = entries.find(({ type }) => type === "step/start")?.seq ?? -1;
    const id = `t-${randomUUID()}`;
    const refused = async (
      code: string,
      of: string,
      options: Parameters<Lab["client"]["fork"]>[1],
    ) => expect(lab.client.fork(of, { id, ...options })).rejects.toMatchObject({ code });
    await refused("OPEN_TURN", source.id, { boundary: inside });
    await refused("INVALID_BOUNDARY", source.id, { boundary: entries.length });
    await refused("SESSION_NOT_FOUND", `t-${randomUUID()}`, {});
    await refused("INVALID_INPUT", source.id, { config: { cwd: "not absolute" } });
    expect(await lab.store.list(id, "")).toEqual([]);
    await expect(lab.client.session(id).view()).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
    const before = await lab.store.list(source.id, "");
    await refused("SESSION_EXISTS", source.id, { id: source.id });
    expect(await lab.store.list(source.id, "")).toEqual(before);
  });
});

async function fork(
  lab: Lab,
  source: string,
  options: Parameters<Lab["client"]["fork"]>[1] = {},
): Promise<SessionClient> {
  const forked = await lab.client.fork(source, options);
  lab.adopt(forked.id);
  return forked;
}

async function log(session: SessionClient): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of session.log()) entries.push(entry);
  return entries;
}
