import { WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import * as fc from "fast-check";
import { describe, expect } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { commands } from "../../src/contracts/names.js";
import { test } from "../support/temporal.js";
import { eventually, untilStreaming } from "../support/until.js";

const bare = { config: { worldTools: false } };
const texts = { turns: [{ repeat: 100, steps: [{ text: "answer ${turn}" }] }] };
const slow = {
  turns: [
    { steps: [{ text: "word ".repeat(2_000), chunk: 5, delayMs: 20 }] },
    { repeat: 20, steps: [{ text: "answer ${turn}" }] },
  ],
};

describe.concurrent("every command is also a signal of the same name", () => {
  test("send, configure and close by signal do what their updates do", async ({ lab }) => {
    const session = await lab.session(texts, bare);
    const handle = lab.handle(session.id);
    await handle.signal(commands.configure, { config: { system: "Be brief." } });
    await handle.signal(commands.send, { id: "context", mode: "inject", content: "it rains" });
    await handle.signal(commands.send, { id: "prompt", mode: "followup", content: "hello" });
    await session.waitIdle({ after: 3 });
    const [request] = await lab.requests(session.id);
    expect(request?.system).toBe("Be brief.");
    expect(request?.messages.map((message) => message.id)).toEqual(["context", "prompt"]);
    await handle.signal(commands.send, { id: "steered", mode: "steer", content: "more" });
    await eventually(async () => expect((await session.view()).turn.number).toBe(2));
    await session.waitIdle();
    await lab.witness(session);
    await handle.signal(commands.close, { reason: "enough" });
    await handle.result();
    const log = await lab.entries(session);
    expect(log.at(-1)).toMatchObject({ type: "session/close", data: { reason: "enough" } });
  });

  test("interrupt and cancel by signal abort the turn; cancel also empties the inbox", async ({
    lab,
  }) => {
    const kept = await lab.session(slow, bare);
    const emptied = await lab.session(slow, bare);
    for (const [session, command] of [
      [kept, commands.interrupt],
      [emptied, commands.cancel],
    ] as const) {
      await session.followup("go");
      await untilStreaming(session);
      await session.followup("queued", { id: "queued" });
      await lab.handle(session.id).signal(command, { reason: "user" });
      const view = await session.waitIdle();
      expect(view.lastEnd).toMatchObject({ turn: 1, kind: "aborted" });
      expect(view.inbox.nextTurn).toEqual(command === commands.interrupt ? ["queued"] : []);
      await lab.entries(session);
    }
  });

  test("signals of all names that came before a worker did are handled in the order they were sent, before updates", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace();
    const session = await lab.session(texts, { ...bare, at: place, host: null, waitReady: false });
    const handle = lab.handle(session.id);
    const send = (id: string) =>
      handle.signal(commands.send, { id, mode: "inject", content: `it is ${id}` });
    await handle.signal(commands.suspend);
    await send("emptied");
    await handle.signal(commands.cancel, {});
    await send("one");
    await handle.signal(commands.resume);
    await send("two");
    const answered = session.followup("and three?", { id: "three" });
    await place.start();
    await answered;
    await session.waitIdle();
    const log = await lab.entries(session);
    const types = log
      .map(({ type }) => type)
      .filter((type) => type === "session/live" || type === "agent/inbox/spliced");
    expect(types.slice(0, 7).join()).toBe(
      "session/live,agent/inbox/spliced,agent/inbox/spliced,agent/inbox/spliced,session/live,agent/inbox/spliced,agent/inbox/spliced",
    );
    expect(shownIds(log)).toEqual(["one", "two", "three"]);
    await lab.witness(session);
  });

  test("one signal may carry an array of commands, done in order", async ({ lab }) => {
    const session = await lab.session(texts, bare);
    await lab.handle(session.id).signal(commands.send, [
      { id: "one", mode: "inject", content: "1" },
      { id: "two", mode: "nonsense", content: "2" },
      { id: "three", mode: "followup", content: "3" },
    ]);
    await eventually(async () => expect((await session.view()).turn.number).toBe(1));
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(shownIds(log)).toEqual(["one", "three"]);
    expect(rejectionsOf(log)).toMatchObject([
      { command: commands.send, id: "two", code: "INVALID_INPUT" },
    ]);
  });
});

describe.concurrent("what is malformed never wedges a session", () => {
  const strange: readonly unknown[] = [
    null,
    0,
    -1,
    1e308,
    true,
    "",
    "text",
    "\ud800",
    [],
    [[]],
    [null, 1, "x"],
    { id: 5 },
    { id: "" },
    { id: "x".repeat(201), mode: "followup", content: "c" },
    { id: "a", mode: "followup" },
    { id: "b", mode: "followup", content: " \n" },
    { id: "c", mode: "loud", content: "c" },
    { id: "d", mode: "followup", content: { text: "c" } },
    { opId: "o", turn: "1", todos: [] },
    { opId: "p", turn: 1, todos: [{ content: "", status: "pending" }] },
    { reason: 5 },
    { config: [] },
    { config: { cwd: "/" } },
    { config: { request: {} } },
    { config: { limits: { maxParallelToolCalls: 0 } } },
    { refreshTools: "yes" },
    { ["__proto__"]: { id: "q" }, constructor: 1, toString: null },
    JSON.parse(`${'{"a":'.repeat(400)}1${"}".repeat(400)}`) as unknown,
  ];

  test("malformed updates are refused before they reach history; malformed signals are kept as rejections", async ({
    lab,
  }) => {
    const session = await lab.session(texts, bare);
    const handle = lab.handle(session.id);
    // An accepted update leaves two; a task the server gives again is no trace of the update.
    const traces = async () =>
      ((await lab.history(session.id)).events ?? []).filter(
        (event) =>
          event.workflowTaskScheduledEventAttributes == null &&
          event.workflowTaskStartedEventAttributes == null &&
          event.workflowTaskCompletedEventAttributes == null &&
          event.workflowTaskTimedOutEventAttributes == null,
      ).length;
    const before = await traces();
    let refused = 0;
    const plain = strange.filter((value) => typeof value !== "object" || Array.isArray(value));
    const cases = [
      ...strange.map((value) => [commands.send, value] as const),
      ...strange.map((value) => [commands.configure, value] as const),
      ...[...plain, { reason: 5 }].map((value) => [commands.close, value] as const),
      ...[...plain, { reason: 5 }].map((value) => [commands.interrupt, value] as const),
    ];
    for (const [name, value] of cases) {
      const error = await handle.executeUpdate(name, { args: [value] }).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      // An object without the command's keys asks configure for nothing.
      if (error === undefined && name === commands.configure) continue;
      const what = JSON.stringify(value).slice(0, 80);
      expect(error, `${what} is refused`).toBeInstanceOf(WorkflowUpdateFailedError);
      const { cause } = error as WorkflowUpdateFailedError;
      expect(cause).toBeInstanceOf(ApplicationFailure);
      expect((cause as ApplicationFailure).type).toMatch(/^INVALID_(?:INPUT|CONFIG)$/u);
      refused++;
    }
    expect(refused).toBeGreaterThan(strange.length);
    expect(await traces()).toBe(before + 2 * (cases.length - refused));
    for (const value of strange) await handle.signal(commands.send, value);
    for (const value of strange) await handle.signal(commands.todoWrite, value);
    for (const value of plain) await handle.signal(commands.close, value);
    await handle.signal("no.such.command", {});
    await handle.signal("__temporal_nothing", {});
    const log = await lab.play(session);
    expect(log.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
    const rejected = rejectionsOf(log);
    expect(rejected.filter((one) => one.command === commands.send).length).toBeGreaterThanOrEqual(
      strange.length - 2,
    );
    expect(rejected.some((one) => one.command === commands.close)).toBe(true);
    await expect(handle.executeUpdate("no.such.command")).rejects.toMatchObject({
      cause: { message: expect.stringContaining("No registered handler") as string },
    });
    expect((await session.view()).state).toBe("idle");
  });

  test("any JSON as a signal of any name but close leaves a session that runs the next turn", async ({
    lab,
  }) => {
    const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);
    console.log(`seed ${seed}`);
    const session = await lab.session(texts, bare);
    const handle = lab.handle(session.id);
    const names = [
      commands.send,
      commands.configure,
      commands.interrupt,
      commands.cancel,
      commands.todoWrite,
    ];
    const shaped = fc.record(
      {
        id: fc.anything(),
        mode: fc.anything(),
        content: fc.anything(),
        reason: fc.anything(),
        opId: fc.anything(),
        turn: fc.anything(),
        todos: fc.anything(),
      },
      { requiredKeys: [] },
    );
    const values = fc.sample(
      fc.tuple(fc.constantFrom(...names), fc.oneof(fc.jsonValue(), shaped)),
      { seed, numRuns: 60 },
    );
    for (const [name, value] of values) {
      const json = JSON.parse(
        JSON.stringify(value, (_key, one: unknown) =>
          typeof one === "bigint" ? String(one) : one,
        ) ?? "null",
      ) as unknown;
      await handle.signal(name, json);
    }
    await session.followup("still there?", { id: "the-last" });
    await session.waitIdle();
    expect(shownIds(await lab.entries(session)), `seed ${seed}`).toContain("the-last");
  });

  test("payloads no converter can read are a refusal like any other bad input", async ({ lab }) => {
    const session = await lab.session(texts, bare);
    const bytes = (text: string) => new TextEncoder().encode(text);
    const payloads = [
      { metadata: { encoding: bytes("json/plain") }, data: bytes("{not json") },
      { metadata: { encoding: bytes("json/protobuf") }, data: bytes("{}") },
      { metadata: { encoding: bytes("binary/unheard-of") }, data: bytes("x") },
      { metadata: {}, data: bytes("x") },
      { metadata: { encoding: bytes("binary/plain") }, data: new Uint8Array([0, 255]) },
    ];
    for (const payload of payloads) {
      await lab.temporal.workflowService.signalWorkflowExecution({
        namespace: "default",
        workflowExecution: { workflowId: session.id },
        signalName: commands.send,
        input: { payloads: [payload] },
      });
    }
    const log = await lab.play(session);
    expect(rejectionsOf(log)).toMatchObject(
      payloads.map(() => ({ command: commands.send, code: "INVALID_INPUT" })),
    );
  });
});

describe.concurrent("a message gets in once", () => {
  test("the same id again gets the first verdict and is shown once; other content under it is refused", async ({
    lab,
  }) => {
    const session = await lab.session(texts, bare);
    const first = await session.followup("hello", { id: "m1" });
    await session.waitIdle();
    // Another client's repeat comes under another update id, so it reaches the session.
    const again = await lab.handle(session.id).executeUpdate(commands.send, {
      args: [{ id: "m1", mode: "followup", content: "hello" }],
    });
    expect(again).toEqual(first);
    await lab
      .handle(session.id)
      .signal(commands.send, { id: "m1", mode: "followup", content: "hello" });
    await expect(
      lab
        .handle(session.id)
        .executeUpdate(commands.send, { args: [{ id: "m1", mode: "followup", content: "other" }] }),
    ).rejects.toMatchObject({ cause: { type: "DUPLICATE_ID" } });
    await lab
      .handle(session.id)
      .signal(commands.send, { id: "m1", mode: "steer", content: "hello" });
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(shownIds(log)).toEqual(["m1"]);
    expect(rejectionsOf(log)).toMatchObject([{ id: "m1", code: "DUPLICATE_ID" }]);
  });

  test("a message of 256 KB is accepted, one more byte is MESSAGE_TOO_LARGE", async ({ lab }) => {
    const session = await lab.session(texts, bare);
    const handle = lab.handle(session.id);
    const send = (id: string, content: string) =>
      handle.executeUpdate(commands.send, { args: [{ id, mode: "followup", content }] });
    await send("fits", `${"é".repeat(131_071)}ab`);
    await expect(send("over", `${"é".repeat(131_071)}abc`)).rejects.toMatchObject({
      cause: { type: "MESSAGE_TOO_LARGE" },
    });
    await handle.signal(commands.send, {
      id: "over",
      mode: "followup",
      content: "x".repeat(262_145),
    });
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(shownIds(log)).toEqual(["fits"]);
    expect(rejectionsOf(log)).toMatchObject([{ id: "over", code: "MESSAGE_TOO_LARGE" }]);
    await lab.witness(session);
  });

  test("a closed session refuses what is sent, and closing it again is no error", async ({
    lab,
  }) => {
    const session = await lab.session(texts, bare);
    await lab.play(session);
    await session.close({ reason: "done" });
    await expect(session.followup("anyone?")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await session.close();
    expect(await lab.entries(session)).toHaveLength((await session.view()).lastSeq + 1);
  });

  test("a session that is closing during a turn ends it disposed and leaves the inbox as it was", async ({
    lab,
  }) => {
    const session = await lab.session(slow, bare);
    await session.followup("go");
    await untilStreaming(session);
    await session.followup("never run", { id: "late" });
    await session.close({ reason: "shutting down" });
    const log = await lab.entries(session);
    expect(log.find((entry) => entry.type === "turn/end")?.data.reason).toEqual({
      kind: "aborted",
      reason: "disposed",
    });
    expect(log.at(-1)?.type).toBe("session/close");
    expect(shownIds(log)).not.toContain("late");
  });
});

describe.concurrent("todo lists are written from outside only within the open turn", () => {
  test("by update and by signal during a turn; repeated with the same opId they count once", async ({
    lab,
  }) => {
    const session = await lab.session(slow, bare);
    await session.followup("go");
    await untilStreaming(session);
    const todos = [{ content: "from outside", status: "in_progress" as const }];
    const verdict = await session.writeTodos({ opId: "op1", todos });
    const handle = lab.handle(session.id);
    expect(
      await handle.executeUpdate(commands.todoWrite, {
        args: [{ opId: "op1", turn: 1, todos: [] }],
      }),
    ).toEqual(verdict);
    await handle.signal(commands.todoWrite, {
      opId: "op2",
      turn: 1,
      todos: [...todos, { content: "second", status: "pending" }],
    });
    await handle.signal(commands.todoWrite, {
      opId: "op3",
      turn: 1,
      todos: [{ content: "bad", status: "maybe" }],
    });
    await eventually(async () =>
      expect((await lab.entries(session)).at(-1)?.type).toBe("todo/rejected"),
    );
    expect((await session.todos())?.map((todo) => todo.content)).toEqual([
      "from outside",
      "second",
    ]);
    await session.interrupt();
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.flatMap((entry) => (entry.type === "todo/write" ? [entry.data.opId] : []))).toEqual([
      "op1",
      "op2",
    ]);
  });

  test("after the turn, by update and by a late signal, they are refused and change nothing", async ({
    lab,
  }) => {
    const session = await lab.session(texts, bare);
    await lab.play(session);
    const late = { opId: "late", turn: 1, todos: [{ content: "x", status: "pending" }] };
    await expect(session.writeTodos({ turn: 1, todos: [] })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    await lab.handle(session.id).signal(commands.todoWrite, late);
    const log = await lab.play(session, "again");
    expect(log.filter((entry) => entry.type === "todo/write")).toEqual([]);
    expect(
      log.flatMap((entry) => (entry.type === "todo/rejected" ? [entry.data.opId] : [])),
    ).toContain("late");
    expect((await session.view()).turn).toMatchObject({ number: 2, open: false });
  });
});

describe.concurrent("a model that asks for the impossible is told", () => {
  test("[harness/T10] unknown tools, arguments that are no JSON and arguments that fail the schema are error results; the turn goes on", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [
        {
          steps: [
            {
              calls: [
                { tool: "teleport", args: {} },
                { tool: "todo_write", rawArgs: "{not json" },
                { tool: "bash", args: { command: 5, description: "number" } },
                { tool: "bash", rawArgs: "" },
              ],
            },
            { text: "understood" },
          ],
        },
      ],
    });
    const log = await lab.play(session);
    const results = log.flatMap((entry) =>
      entry.type === "tool/result" ? [entry.data.error?.code] : [],
    );
    expect(results[0]).toBe("UNKNOWN_TOOL");
    expect(results[1]).toMatch(/INVALID/u);
    expect(results.slice(2)).toEqual(["INVALID_ARGS", "INVALID_ARGS"]);
    expect(log.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
    await lab.witness(session);
  });
});

function shownIds(log: readonly LogEntry[]): string[] {
  return log.flatMap((entry) => (entry.type === "user/message" ? [entry.data.message.id] : []));
}

function rejectionsOf(log: readonly LogEntry[]) {
  return log.flatMap((entry) => (entry.type === "session/rejected" ? [entry.data] : []));
}
