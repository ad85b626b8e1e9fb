import { describe, expect } from "vitest";
import { textOfStream } from "../support/model-stream-text.js";
import { gatedTool } from "../support/gated-tool.js";
import { test as base } from "../support/temporal.js";
import { eventually, untilStreaming } from "../support/until.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelProvider } from "../../src/contracts/model.js";
import { createScriptedProvider } from "../../src/models/scripted.js";

const parallel = gatedTool("overlap", { parallel: true });
const alone = gatedTool("alone");
const deaf = gatedTool("deaf", { heeds: false });

/** What ends the wait in the middle of a first reply, by session. */
const held = new Map<string, () => void>();
/** The scripted model, which stops after the first piece of a session's first reply until the test says go on. */
const halting: ModelProvider = {
  provider: "halting",
  model: (name) => ({
    async *stream(request, signal) {
      let hold = request.turn === 1 && request.step === 1;
      for await (const part of createScriptedProvider().model(name).stream(request, signal)) {
        yield part;
        if (!hold || part.type !== "text") continue;
        hold = false;
        await new Promise<void>((resolve) => held.set(request.sessionId, resolve));
      }
    },
  }),
};

const test = base.extend({
  workerOptions: [
    { tools: [parallel.tool, alone.tool, deaf.tool], models: [halting] },
    { scope: "file" as const },
  ],
});

const bare = { config: { worldTools: false } };

describe.concurrent("turns and steps", () => {
  test("[harness/A1] the log of one followup stands in the order of the spec", async ({ lab }) => {
    const session = await lab.session({ turns: [{ steps: [{ text: "hello" }] }] }, bare);
    const log = await lab.play(session);
    const first = log.findIndex((entry) => entry.type === "agent/inbox/spliced");
    expect(log.slice(first).map((entry) => entry.type)).toEqual([
      "agent/inbox/spliced",
      "turn/start",
      "agent/inbox/spliced",
      "step/start",
      "user/message",
      "request/header",
      "request/context",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    await lab.witness(session);
  });

  test("[harness/A2] a burst of three followups makes three turns of one message each", async ({
    lab,
  }) => {
    const session = await lab.session(
      { turns: [{ repeat: 3, steps: [{ text: "answer ${turn}" }] }] },
      bare,
    );
    await Promise.all(["a", "b", "c"].map((id) => session.followup(id, { id })));
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.flatMap((entry) => (entry.type === "turn/start" ? [entry.data.turn] : []))).toEqual([
      1, 2, 3,
    ]);
    expect(perTurn(log).map((messages) => messages.length)).toEqual([1, 1, 1]);
  });

  test("[harness/A3] [harness/A5] what is steered and injected during a tool body joins the next step of the same turn, after the results", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [{ steps: [{ calls: [{ tool: "alone", args: { n: "1" } }] }, { text: "done" }] }],
    });
    await session.followup("go", { id: "first" });
    await eventually(() => expect(alone.running(session.id)).toEqual(["1"]));
    await session.steer("and this", { id: "steered" });
    await session.inject("by the way", { id: "injected" });
    alone.release(session.id, "1");
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(perTurn(log)).toEqual([["first", "steered", "injected"]]);
    const [, second] = await lab.requests(session.id);
    expect(second?.messages.map((message) => message.id)).toEqual([
      "first",
      "m/1.1",
      "r/1.1.call-1-1-1",
      "steered",
      "injected",
    ]);
    await lab.witness(session);
  });

  test("[harness/A4] what is injected while idle opens no turn and survives a restart of the worker", async ({
    lab,
  }) => {
    const place = await lab.place();
    const session = await lab.session(
      { turns: [{ steps: [{ text: "ok" }] }] },
      { ...bare, at: place },
    );
    await session.inject("remember this", { id: "injected" });
    expect((await session.view()).turn.number).toBe(0);
    await place.stop();
    await place.start();
    expect((await session.view()).inbox.nextStep).toEqual(["injected"]);
    await session.followup("go", { id: "prompt" });
    await session.waitIdle();
    expect((await lab.requests(session.id))[0]?.messages.map((message) => message.id)).toEqual([
      "injected",
      "prompt",
    ]);
    await lab.witness(session);
  });

  test("[harness/A9] an interrupt keeps queued prompts until the next wake, then they run in order", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [
        { steps: [{ calls: [{ tool: "alone", args: { n: "1" } }] }, { text: "never" }] },
        { repeat: 3, steps: [{ text: "answer" }] },
      ],
    });
    await session.followup("go", { id: "first" });
    await eventually(() => expect(alone.running(session.id)).toEqual(["1"]));
    await session.followup("queued", { id: "queued" });
    expect(await session.interrupt()).toMatchObject({ result: "requested", removed: 0 });
    const view = await session.waitIdle();
    expect(view.inbox.nextTurn).toEqual(["queued"]);
    expect(view.turn.number).toBe(1);
    await session.followup("wake", { id: "wake" });
    await session.waitIdle();
    expect(perTurn(await lab.entries(session))).toEqual([["first"], ["queued"], ["wake"]]);
    await lab.witness(session);
  });

  test("[harness/A10] what is sent between an abort and the turn's end runs afterwards, unless it is removed first", async ({
    lab,
  }) => {
    const scenario = {
      turns: [
        { steps: [{ calls: [{ tool: "deaf", args: { n: "1" } }] }, { text: "never" }] },
        { repeat: 3, steps: [{ text: "answer" }] },
      ],
    };
    const [kept, removed] = await Promise.all([lab.session(scenario), lab.session(scenario)]);
    for (const session of [kept, removed]) {
      await session.followup("go", { id: "first" });
      await eventually(() => expect(deaf.running(session.id)).toEqual(["1"]));
      await session.interrupt();
      await session.steer("meanwhile", { id: "late" });
      if (session === removed) expect(await session.cancel()).toMatchObject({ removed: 1 });
      deaf.release(session.id, "1");
      await session.waitIdle();
    }
    expect(perTurn(await lab.entries(kept))).toEqual([["first"], ["late"]]);
    expect(perTurn(await lab.entries(removed))).toEqual([["first"]]);
  });

  test("[harness/A11] a reply cut at its limit loses its calls and makes the turn end max-tokens, also after a good step", async ({
    lab,
  }) => {
    const scenario = {
      turns: [
        {
          steps: [
            {
              text: "cut off in the middle of a",
              chunk: 2,
              calls: [{ tool: "todo_write", args: { todos: [] } }],
              finish: "max-tokens" as const,
            },
            { text: "good" },
          ],
        },
      ],
    };
    const request = { provider: "halting", model: await lab.scenario(scenario) };
    const session = await lab.session(scenario, { config: { ...bare.config, request } });
    await session.followup("go");
    await untilStreaming(session);
    await session.inject("makes a second step", { id: "context" });
    held.get(session.id)?.();
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.filter((entry) => entry.type === "step/start")).toHaveLength(2);
    expect(log.some((entry) => entry.type === "tool/call")).toBe(false);
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { reason: { kind: "max-tokens" } },
    });
  });

  test("[harness/A15] cancel on an idle session arms nothing: the next prompt runs", async ({
    lab,
  }) => {
    const session = await lab.session({ turns: [{ steps: [{ text: "ok" }] }] }, bare);
    expect(await session.cancel()).toMatchObject({ result: "idle", removed: 0 });
    const log = await lab.play(session);
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { turn: 1, reason: { kind: "completed" } },
    });
  });
});

describe.concurrent("provider failures", () => {
  test("[harness/A12] two failures and a success are one turn and one step; the reply names the stream of the last execution", async ({
    lab,
  }) => {
    const session = await lab.session(
      {
        turns: [
          {
            steps: [
              {
                text: "the whole answer",
                failures: [
                  { code: "SERVER", message: "overloaded", retryAfterMs: 1, afterText: "half an" },
                  { code: "RATE_LIMIT", retryAfterMs: 1, afterText: "another" },
                ],
              },
            ],
          },
        ],
      },
      bare,
    );
    const log = await lab.play(session);
    const count = (type: LogEntry["type"]) => log.filter((entry) => entry.type === type).length;
    expect([
      count("turn/start"),
      count("step/start"),
      count("llm/retry"),
      count("llm/retry-started"),
    ]).toEqual([1, 1, 2, 2]);
    expect(
      log.flatMap((entry) => (entry.type === "llm/retry" ? [entry.data.failure.code] : [])),
    ).toEqual(["SERVER", "RATE_LIMIT"]);
    const reply = log.find((entry) => entry.type === "assistant/message");
    const stream = reply?.data.stream?.stream ?? "";
    expect(await textOfStream(lab.store, session.id, stream)).toBe("the whole answer");
    const streams = (await lab.store.list(session.id, "model/")).map((one) => one.stream);
    expect(streams).toHaveLength(3);
    expect(streams.toSorted().at(-1)).toBe(stream);
    await lab.witness(session);
  });

  test("failures beyond the limit, and those that are never retried, end the turn with the provider's error", async ({
    lab,
  }) => {
    const retried = await lab.session(
      {
        turns: [
          {
            steps: [
              {
                text: "never",
                failures: [
                  { code: "SERVER" },
                  { code: "SERVER" },
                  { code: "TRANSPORT", message: "gone" },
                ],
              },
            ],
          },
        ],
      },
      { ...bare, limits: { maxModelRetries: 2, retryBaseMs: 1 } },
    );
    const refused = await lab.session(
      {
        turns: [
          {
            steps: [
              { text: "never", failures: [{ code: "AUTH", message: "no key", status: 401 }] },
            ],
          },
        ],
      },
      bare,
    );
    expect((await lab.play(retried)).at(-1)).toMatchObject({
      data: { reason: { kind: "error", code: "TRANSPORT", message: "gone" } },
    });
    expect((await lab.play(refused)).at(-1)).toMatchObject({
      data: { reason: { kind: "error", code: "AUTH", status: 401 } },
    });
    expect(await lab.requests(refused.id)).toHaveLength(1);
    await lab.witness(retried);
  });

  test("[harness/A13] a cancel during the back-off ends the turn at once, without a second request", async ({
    lab,
  }) => {
    const session = await lab.session(
      {
        turns: [
          { steps: [{ text: "never", failures: [{ code: "SERVER", retryAfterMs: 3_600_000 }] }] },
        ],
      },
      { ...bare, limits: { retryCapMs: 3_600_000 } },
    );
    await session.followup("go");
    await eventually(async () =>
      expect((await lab.entries(session)).at(-1)?.type).toBe("llm/retry"),
    );
    await session.interrupt();
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { reason: { kind: "aborted", reason: "user" } },
    });
    expect(log.some((entry) => entry.type === "llm/retry-started")).toBe(false);
    expect(await lab.requests(session.id)).toHaveLength(1);
  });
});

describe.concurrent("tools side by side", () => {
  test("[harness/T7] of twelve calls that may overlap never more than ten are in flight", async ({
    lab,
  }) => {
    const names = Array.from({ length: 12 }, (_, n) => `${n}`);
    const session = await lab.session({
      turns: [
        {
          steps: [
            { calls: names.map((n) => ({ tool: "overlap", args: { n } })) },
            { text: "done" },
          ],
        },
      ],
    });
    await session.followup("go");
    await eventually(() => expect(parallel.running(session.id)).toHaveLength(10));
    // Both that wait begin only as others end.
    for (const n of names) {
      await eventually(() => expect(parallel.running(session.id)).toContain(n));
      parallel.release(session.id, n);
    }
    await session.waitIdle();
    expect(parallel.peak(session.id)).toBe(10);
    expect(parallel.begun(session.id)).toBe(12);
    expect(resultsOf(await lab.entries(session)).map((result) => result.text)).toEqual(
      names.map((n) => `did ${n}`),
    );
  });

  test("[harness/T6] [harness/T8] an exclusive call is a barrier, and results stand in the order of the calls however they end", async ({
    lab,
  }) => {
    const session = await lab.session({
      turns: [
        {
          steps: [
            {
              calls: [
                { tool: "overlap", args: { n: "a" } },
                { tool: "overlap", args: { n: "b" } },
                { tool: "alone", args: { n: "x" } },
                { tool: "overlap", args: { n: "c" } },
              ],
            },
            { text: "done" },
          ],
        },
      ],
    });
    await session.followup("go");
    const { id } = session;
    await eventually(() => expect(parallel.running(id)).toHaveLength(2));
    parallel.release(id, "b");
    await eventually(() => expect(parallel.running(id)).toEqual(["a"]));
    expect(alone.begun(id)).toBe(0);
    parallel.release(id, "a");
    await eventually(() => expect(alone.running(id)).toEqual(["x"]));
    expect(parallel.begun(id)).toBe(2);
    alone.release(id, "x");
    await eventually(() => expect(parallel.running(id)).toEqual(["c"]));
    parallel.release(id, "c");
    await session.waitIdle();
    expect(resultsOf(await lab.entries(session)).map((result) => result.text)).toEqual([
      "did a",
      "did b",
      "did x",
      "did c",
    ]);
  });

  test("[harness/T9] a cancel with two of four calls running: two real results, then two that never ran", async ({
    lab,
  }) => {
    const session = await lab.session(
      {
        turns: [
          {
            steps: [
              {
                calls: [
                  { tool: "overlap", args: { n: "a" } },
                  { tool: "overlap", args: { n: "b", fail: true } },
                  { tool: "overlap", args: { n: "c" } },
                  { tool: "overlap", args: { n: "d" } },
                ],
              },
              { text: "never" },
            ],
          },
        ],
      },
      { limits: { maxParallelToolCalls: 2 } },
    );
    await session.followup("go");
    await eventually(() => expect(parallel.running(session.id)).toHaveLength(2));
    await session.cancel();
    await session.waitIdle();
    const log = await lab.entries(session);
    expect(resultsOf(log).map((result) => result.code)).toEqual([
      "ABORTED",
      "TOOL_FAILED",
      "ABORTED_BEFORE_DISPATCH",
      "ABORTED_BEFORE_DISPATCH",
    ]);
    expect(parallel.begun(session.id)).toBe(2);
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { reason: { kind: "aborted", reason: "user" } },
    });
    await lab.witness(session);
  });
});

/** Ids of the messages shown in each turn. */
function perTurn(log: readonly LogEntry[]): string[][] {
  const turns: string[][] = [];
  for (const entry of log) {
    if (entry.type === "turn/start") turns.push([]);
    if (entry.type === "user/message") turns.at(-1)?.push(entry.data.message.id);
  }
  return turns;
}

function resultsOf(
  log: readonly LogEntry[],
): { readonly text: string; readonly code: string | undefined }[] {
  return log.flatMap((entry) => {
    if (entry.type !== "tool/result") return [];
    const [block] = entry.data.message.content;
    const text =
      block?.type === "tool-result" ? block.content.map((one) => one.text).join("\n") : "";
    return [{ text, code: entry.data.error?.code }];
  });
}
