import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelProvider } from "../../src/contracts/model.js";
import { commands } from "../../src/contracts/names.js";
import { createScriptedProvider } from "../../src/models/scripted.js";
import { scheduledOf } from "../support/history.js";
import { detailsOf, test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";
import { startWorkerProcess } from "../support/worker-process.js";

/** Summaries that wait for the test, by session. */
const gates = new Map<string, () => void>();

/** The scripted model, but for its summaries, which are given when the test says so. */
const held: ModelProvider = {
  provider: "held",
  model: (name) => ({
    async *stream(request, signal) {
      if (request.summary === true) {
        const released = new Promise<void>((resolve) => gates.set(request.sessionId, resolve));
        await Promise.race([released, ...(signal.aborted ? [] : [once(signal, "abort")])]);
        gates.delete(request.sessionId);
      }
      yield* createScriptedProvider().model(name).stream(request, signal);
    },
  }),
  contextWindow: (name) => createScriptedProvider().contextWindow?.(name),
};

const test = base.extend({ workerOptions: [{ models: [held] }, { scope: "file" as const }] });

const bare = { config: { worldTools: false } };
const words = (count: number): string => "word ".repeat(count);
/** A new run at every edge. */
const always = { events: 1, minIntervalMs: 0 };
const answers = {
  summary: { text: "what was said so far" },
  turns: [{ repeat: 40, steps: [{ text: `answer \${turn} ${words(80)}` }] }],
};

describe.concurrent("under pressure", () => {
  test("[harness/K2] large results are shortened before the next request, and the model is asked for no summary", async ({
    lab,
  }) => {
    const bash = {
      tool: "bash",
      args: { command: "yes abcdefghi | head -c 20000", description: "Print" },
    };
    const session = await lab.session({
      contextWindow: 12_000,
      turns: [{ steps: [{ calls: [bash] }, { calls: [bash] }, { text: "done" }] }],
    });
    const log = await lab.play(session);
    expect(compactions(log)).toEqual(["compaction/prune", "compaction/prune"]);
    const shown = JSON.stringify((await lab.requests(session.id)).at(-1)?.messages);
    expect(shown.match(/characters of this result were removed/gu)).toHaveLength(2);
    expect(scheduledOf(await lab.history(session.id)).some(({ id }) => isCompaction(id))).toBe(
      false,
    );
    await lab.witness(session);
  });

  test("[harness/K3] [harness/K11] a long session has a summary where its head was, which the next summary takes up", async ({
    lab,
  }) => {
    const session = await lab.session({ ...answers, contextWindow: 1_500 }, bare);
    for (let n = 1; n <= 16; n += 1) await session.followup(`question ${n} ${words(20)}`);
    await session.waitIdle();
    const log = await lab.entries(session);
    const summaries = log.filter((entry) => entry.type === "compaction/summary");
    expect(summaries.length).toBeGreaterThan(1);
    expect(log.filter(({ type }) => type === "turn/end")).toHaveLength(16);
    const [first, second] = (await lab.requests(session.id)).filter((one) => one.summary === true);
    expect(first?.messages.at(-1)?.source).toEqual({ kind: "plugin", name: "compaction" });
    expect(first?.config.maxTokens).toBe(8_192);
    expect(JSON.stringify(second?.messages[0])).toContain("what was said so far");
    expect(JSON.stringify((await session.messages())[0])).toContain("what was said so far");
    // The originals are all still there to be read, and nobody is shown a summary as if it were a reply.
    for (let n = 1; n <= 16; n += 1) expect(JSON.stringify(log)).toContain(`question ${n} `);
    const streams = await lab.store.list(session.id, "");
    expect(new Set(streams.map(({ stream }) => stream.split(".")[0]))).toEqual(
      new Set(log.flatMap((one) => (one.type === "turn/start" ? [`model/${one.data.turn}`] : []))),
    );
    await lab.witness(session);
  });

  test("[harness/K5] a summary that fails leaves everything as it was, and the turn goes on", async ({
    lab,
  }) => {
    const session = await lab.session(
      { ...answers, summary: { failures: [{ code: "AUTH" }] }, contextWindow: 500 },
      bare,
    );
    for (const text of ["one", "two", "three"]) await lab.play(session, `${text} ${words(40)}`);
    const log = await lab.entries(session);
    const ends = log.flatMap((one) => (one.type === "compaction/end" ? [one.data] : []));
    expect(ends.length).toBeGreaterThan(0);
    for (const end of ends)
      expect(end).toMatchObject({ error: "summary", message: "AUTH: scripted AUTH" });
    expect(await session.messages()).toHaveLength(6);
    await lab.witness(session);
  });
});

describe.concurrent("a request that was too large", () => {
  const large = { code: "CONTEXT_WINDOW_EXCEEDED" as const };

  test("is made once more from a summary and its own message, in the same step and as no retry", async ({
    lab,
  }) => {
    const session = await lab.session(
      {
        ...answers,
        turns: [
          { steps: [{ text: words(200) }] },
          { steps: [{ text: "fits", failures: [large] }] },
        ],
      },
      bare,
    );
    await lab.play(session, "first");
    const log = await lab.play(session, "second");
    expect(log.at(-1)).toMatchObject({ data: { reason: { kind: "completed" } } });
    expect(log.some(({ type }) => type === "llm/retry")).toBe(false);
    const [, , summary, again] = await lab.requests(session.id);
    expect(summary?.summary).toBe(true);
    expect(again?.messages).toMatchObject([
      { source: { name: "compaction" } },
      { content: [{ text: "second" }] },
    ]);
    await lab.witness(session);
  });

  test("[harness/K6] is made once more from shortened results when the summary fails, and ends the turn when it is refused again", async ({
    lab,
  }) => {
    const bash = {
      tool: "bash",
      args: { command: "yes abcdefghi | head -c 20000", description: "Print" },
    };
    const session = await lab.session({
      summary: { failures: [large] },
      turns: [
        { steps: [{ calls: [bash] }, { text: "fits", failures: [large] }] },
        { steps: [{ calls: [bash] }, { text: "never", failures: [large, large] }] },
      ],
    });
    const log = await lab.play(session);
    expect(log.at(-1)).toMatchObject({ data: { reason: { kind: "completed" } } });
    const again = await lab.play(session);
    expect(again.at(-1)).toMatchObject({
      data: { reason: { kind: "error", code: "CONTEXT_WINDOW_EXCEEDED" } },
    });
    await lab.witness(session);
  });

  test("[harness/K7] ends the turn with its error when there is nothing to replace", async ({
    lab,
  }) => {
    const session = await lab.session(
      { turns: [{ steps: [{ text: "never", failures: [large] }] }] },
      bare,
    );
    const log = await lab.play(session);
    expect(compactions(log)).toEqual([]);
    expect(log.at(-1)).toMatchObject({
      data: { reason: { kind: "error", code: "CONTEXT_WINDOW_EXCEEDED" } },
    });
  });
});

describe.concurrent("on demand", () => {
  test("[harness/K9] [harness/K10] what is sent meanwhile waits, and its turn sees the summary, what was kept, and the context", async ({
    lab,
  }) => {
    const session = await heldSession(lab);
    for (const text of ["one", "two", "three"]) await lab.play(session, text);
    const compacting = session.compact();
    await untilHeld(session);
    expect(await detailsOf(lab, session.id)).toContain("compacting with held/");
    await Promise.all([
      ...Array.from({ length: 5 }, (_, n) => session.inject(`context ${n}`)),
      ...Array.from({ length: 3 }, (_, n) => session.followup(`prompt ${n}`)),
    ]);
    const view = await session.view();
    expect(view).toMatchObject({ state: "running", turn: { number: 3, open: false } });
    await expect(session.compact()).rejects.toMatchObject({ code: "BUSY" });
    release(session);
    const outcome = await compacting;
    expect(outcome).toMatchObject({ changed: true, messages: 5 });
    await session.waitIdle();
    const log = await lab.entries(session);
    const end = log.findIndex(({ type }) => type === "compaction/end");
    expect(log.slice(0, end).filter(({ type }) => type === "turn/start")).toHaveLength(3);
    expect(log.filter(({ type }) => type === "turn/end")).toHaveLength(6);
    const request = (await lab.requests(session.id)).find(
      ({ turn, step }) => turn === 4 && step === 1,
    );
    const texts = request?.messages.map(({ content }) => JSON.stringify(content)) ?? [];
    expect(texts[0]).toContain("what was said so far");
    expect(texts[1]).toContain("answer 3");
    expect(
      texts
        .slice(2, 7)
        .map((one) => /context \d/u.exec(one)?.[0] ?? "")
        .toSorted((a, b) => a.localeCompare(b)),
    ).toEqual(Array.from({ length: 5 }, (_, n) => `context ${n}`));
    expect(texts[7]).toMatch(/prompt \d/u);
    expect(texts).toHaveLength(8);
    await lab.witness(session);
  });

  test("says what became of it, also under the same id again; with nothing to cut nothing is logged", async ({
    lab,
  }) => {
    const session = await lab.session(answers, bare);
    expect(await session.compact()).toEqual({ changed: false });
    await lab.play(session, "one");
    await lab.play(session, "two");
    const first = await session.compact({ id: "mine" });
    expect(first).toMatchObject({ changed: true, messages: 3 });
    if (first.changed) expect(first.tokensAfter).toBeLessThan(first.tokensBefore);
    const { lastSeq } = await session.view();
    expect(await session.compact({ id: "mine" })).toEqual(first);
    expect(await session.compact()).toEqual({ changed: false });
    expect((await session.view()).lastSeq).toBe(lastSeq);
    // Two activities were asked for replies, one for the summary, and it says so in Temporal UI.
    const summaries = scheduledOf(await lab.history(session.id)).filter(({ id }) =>
      isCompaction(id),
    );
    expect(summaries).toHaveLength(1);
    expect(summaries[0]?.summary).toMatch(/^scripted\/.* · summary of 3 messages$/u);
    await lab.witness(session);
  });

  test("as a signal is the same, and one that is refused is kept in the log", async ({ lab }) => {
    const session = await heldSession(lab);
    await lab.play(session, "one");
    await lab.play(session, "two");
    const handle = lab.handle(session.id);
    await handle.signal(commands.compact, { opId: "a" });
    await untilHeld(session);
    await handle.signal(commands.compact, { opId: "a" });
    await handle.signal(commands.compact, { opId: "b" });
    await handle.signal(commands.compact, {});
    const refused = await eventually(async () => {
      const log = await lab.entries(session);
      const rejected = log.flatMap((one) => (one.type === "session/rejected" ? [one.data] : []));
      expect(rejected).toHaveLength(2);
      return rejected;
    });
    expect(refused.map(({ code }) => code)).toEqual(["BUSY", "INVALID_INPUT"]);
    release(session);
    expect(await session.compact({ id: "a" })).toMatchObject({ changed: true });
    await lab.witness(session);
  });

  test("an interrupt, and a close, end it and leave the transcript", async ({ lab }) => {
    const session = await heldSession(lab);
    await lab.play(session, "one");
    await lab.play(session, "two");
    const messages = await session.messages();
    const first = session.compact();
    await untilHeld(session);
    expect(await session.interrupt()).toMatchObject({ result: "requested" });
    expect(await first).toMatchObject({ changed: false, problem: "cancelled" });
    expect(await session.messages()).toEqual(messages);
    const second = session.compact();
    await untilHeld(session);
    await session.close();
    expect(await second).toMatchObject({ changed: false, problem: "cancelled" });
    const log = await lab.entries(session);
    expect(log.at(-1)?.type).toBe("session/close");
    expect(await session.messages()).toEqual(messages);
  });

  test("a session that has rolled over is summarised from its archive, and goes on over further roll-overs", async ({
    lab,
  }) => {
    const session = await lab.session(answers, { config: { ...bare.config, rollOver: always } });
    for (const text of ["one", "two", "three", "four"]) await lab.play(session, text);
    expect((await lab.runs(session.id)).length).toBeGreaterThan(1);
    expect(await session.compact()).toMatchObject({ changed: true, messages: 7 });
    await lab.play(session, "five");
    await lab.play(session, "six");
    expect(await session.compact()).toMatchObject({ changed: true, messages: 5 });
    await lab.play(session, "seven");
    const [summary, kept] = await session.messages();
    expect(JSON.stringify(summary)).toContain("what was said so far");
    expect(JSON.stringify(kept)).toContain("answer 6");
    await lab.witness(session);
  });

  test("a reminder that comes due meanwhile waits for its end", async ({ lab }) => {
    const session = await heldSession(lab, { schedule: true });
    await lab.play(session, "one");
    await lab.play(session, "two");
    const compacting = session.compact();
    await untilHeld(session);
    await session.remind({ prompt: "stretch", in: 1 });
    await eventually(async () => {
      expect(await session.reminders()).toMatchObject({ reminders: [{ state: "overdue" }] });
    });
    expect((await session.view()).turn.number).toBe(2);
    release(session);
    expect(await compacting).toMatchObject({ changed: true });
    await eventually(async () => expect((await session.view()).turn.number).toBe(3));
    await session.waitIdle();
    const log = await lab.entries(session);
    const end = log.findIndex(({ type }) => type === "compaction/end");
    expect(log.slice(end).some(({ type }) => type === "turn/start")).toBe(true);
    await lab.witness(session);
  });
});

test("[harness/K8] a worker that is killed between the start and the end of a compaction: another one goes on in place of a stale lock", async ({
  lab,
}) => {
  const place = await lab.emptyPlace();
  const model = await lab.scenario({
    ...answers,
    summary: { ...answers.summary, firstDelayMs: 600_000 },
  });
  const first = await startWorkerProcess(lab, place);
  let session: SessionClient;
  try {
    const request = { provider: "scripted", model };
    session = await lab.session(answers, {
      config: { ...bare.config, request },
      at: place,
      host: null,
    });
    await lab.play(session, "one");
    await lab.play(session, "two");
    await lab.handle(session.id).signal(commands.compact, { opId: "a" });
    await eventually(async () => {
      const asked = await lab.requests(session.id);
      expect(asked.some(({ summary }) => summary === true)).toBe(true);
    });
  } finally {
    await first.kill();
  }
  await copyFile(await lab.scenario(answers), model);
  await place.start();
  expect(await session.compact({ id: "a" })).toMatchObject({ changed: true, messages: 3 });
  const log = await lab.entries(session);
  expect(compactions(log)).toEqual(["compaction/start", "compaction/summary", "compaction/end"]);
  await lab.play(session, "three");
  await lab.witness(session);
});

async function heldSession(lab: Lab, config: { schedule?: true } = {}): Promise<SessionClient> {
  const model = await lab.scenario(answers);
  return lab.session(answers, {
    config: { worldTools: false, request: { provider: "held", model }, ...config },
  });
}

async function untilHeld({ id }: SessionClient): Promise<void> {
  await eventually(() => expect(gates.has(id)).toBe(true));
}

function release({ id }: SessionClient): void {
  gates.get(id)?.();
}

function compactions(log: readonly LogEntry[]): readonly string[] {
  return log.map(({ type }) => type).filter((type) => type.startsWith("compaction/"));
}

function isCompaction(activityId: string): boolean {
  return activityId.startsWith("compaction/");
}
