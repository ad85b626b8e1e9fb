import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { ImportOptions } from "../../src/client/index.js";
import { importLog } from "../../src/domain/log-text.js";
import { foreignLog } from "../support/foreign-log.js";
import { gatedTool } from "../support/gated-tool.js";
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
    { repeat: 20, steps: [{ text: "turn ${turn}" }] },
  ],
};

describe.concurrent("an exported log", () => {
  test("[harness/R7] [harness/R8] [harness/R14] goes on in a new session: entries, turn numbers, list, reminders and what waits are the same, and it is exported again line for line", async ({
    lab,
  }) => {
    const source = await lab.session(scenario, { config: { schedule: true } });
    await lab.play(source);
    await rollOverNow(lab.handle(source.id));
    await lab.play(source, "again");
    await source.remind({ prompt: "later", in: 36_000 });
    await source.inject("this waits", { id: "waits" });
    const text = await exported(lab, source.id);
    expect(importLog(text)).toMatchObject({ ok: true, dropped: 0, unused: [] });

    const { session, notes } = await importAs(lab, text, { title: "Again" });
    const count = text.trimEnd().split("\n").length - 1;
    expect(notes).toEqual({ entries: count, dropped: 0, closed: 0, unused: [] });
    const view = await session.view();
    expect(view).toMatchObject({
      state: "idle",
      title: "Again",
      turn: { number: 2, open: false },
      inbox: { nextTurn: [], nextStep: ["waits"] },
      todos: null,
    });
    expect(view.todos).toEqual((await source.view()).todos);
    expect(await session.reminders()).toMatchObject({ reminders: [{ prompt: "later" }] });
    expect(await session.messages()).toEqual(await source.messages());
    // Nothing runs by itself; the next message takes what waits along.
    await session.followup("go on", { id: "next" });
    await session.waitIdle();
    const [request] = await lab.requests(session.id);
    expect(request?.turn).toBe(3);
    expect(request?.messages.map(({ id }) => id).slice(-2)).toEqual(["waits", "next"]);

    const [header, ...lines] = (await exported(lab, session.id)).split("\n");
    const [oldHeader, ...oldLines] = text.trimEnd().split("\n");
    expect(lines.slice(0, count)).toEqual(oldLines);
    expect({ ...parsed(header), id: 0, createdAt: 0 }).toEqual({
      ...parsed(oldHeader),
      id: 0,
      createdAt: 0,
    });
    expect(await lab.client.verify(session.id)).toMatchObject({ ok: true });
  });

  test("[harness/R9] [harness/R10] of a session in a turn ends in that turn; the session is not touched, and the import closes it", async ({
    lab,
  }) => {
    const source = await lab.session({
      turns: [{ steps: [{ calls: [{ tool: "wait", args: { n: "1" } }] }, { text: "done" }] }],
    });
    await source.followup("go");
    await eventually(async () => expect(gated.running(source.id)).toEqual(["1"]));
    const text = await exported(lab, source.id);
    const { session, notes } = await importAs(lab, text);
    expect(notes.closed).toBe(3);
    expect(await session.view()).toMatchObject({
      state: "idle",
      turn: { number: 1, open: false },
      lastEnd: { turn: 1, kind: "interrupted" },
    });
    const entries = await lab.entries(session);
    expect(entries.find(({ type }) => type === "tool/result")).toMatchObject({
      data: { error: { code: "TOOL_OUTCOME_UNKNOWN" } },
    });
    expect((await source.view()).turn.open).toBe(true);
    gated.release(source.id, "1");
    await source.waitIdle();
    expect((await source.view()).lastEnd).toMatchObject({ kind: "completed" });
  });

  test("of the reference harness goes on here: its messages are the transcript, its modes are kept without effect", async ({
    lab,
  }) => {
    const text = `${foreignLog.join("\n")}\n`;
    await expect(lab.client.importSession(text)).rejects.toMatchObject({ code: "INVALID_INPUT" });
    const { config } = await (await lab.session(scenario)).view();
    const { session, notes } = await importAs(lab, text, {
      fallbackConfig: config,
      host: lab.own.hostId,
    });
    expect(notes.unused).toEqual(["agent-preset/selected", "sandbox/mode"]);
    expect((await session.messages()).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
    await session.followup("go on");
    await session.waitIdle();
    expect((await session.view()).turn.number).toBe(3);
    const again = (await exported(lab, session.id)).split("\n");
    expect(importLog(again.join("\n"))).toMatchObject({ ok: true });
    expect(again[1]).toBe(foreignLog[1]);
    expect(await lab.client.verify(session.id)).toMatchObject({ ok: true });
  });

  test("[harness/R6] is taken without its torn end, and refused for damage before it; what is refused is neither stored nor started", async ({
    lab,
  }) => {
    const source = await lab.session(scenario);
    await lab.play(source);
    const text = await exported(lab, source.id);
    const torn = await importAs(lab, `${text}{"type":"turn/start","seq":99`);
    expect(torn.notes.dropped).toBe(1);
    const id = `t-${randomUUID()}`;
    const refused = async (code: string, given: string, options: ImportOptions = {}) =>
      expect(lab.client.importSession(given, { id, ...options })).rejects.toMatchObject({ code });
    const lines = text.split("\n");
    await refused("LOG_CORRUPT", lines.toSpliced(4, 1).join("\n"));
    await refused("LOG_CORRUPT", "no log\n");
    await refused("LOG_UNSUPPORTED", text.replace('"version":0', '"version":7'));
    await refused(
      "LOG_UNSUPPORTED",
      lines.with(1, '{"type":"x/y","seq":0,"time":1,"data":{}}').join("\n"),
    );
    expect(await lab.store.list(id, "")).toEqual([]);
    await expect(lab.client.session(id).view()).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
    const before = await lab.store.list(source.id, "");
    await refused("SESSION_EXISTS", text, { id: source.id });
    expect(await lab.store.list(source.id, "")).toEqual(before);
  });
});

async function exported(lab: Lab, id: string): Promise<string> {
  const lines: string[] = [];
  for await (const line of lab.client.export(id)) lines.push(line);
  return lines.join("");
}

async function importAs(
  lab: Lab,
  text: string,
  options: ImportOptions = {},
): Promise<Awaited<ReturnType<Lab["client"]["importSession"]>>> {
  const made = await lab.client.importSession(text, { host: lab.own.hostId, ...options });
  lab.adopt(made.session.id);
  return made;
}

function parsed(line: string | undefined): object {
  return JSON.parse(line ?? "null") as object;
}
