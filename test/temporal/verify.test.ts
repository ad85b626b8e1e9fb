import { createHash } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { Segment } from "../../src/contracts/archive.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { openArchive } from "../../src/store/archive.js";
import { rollOverNow } from "../support/roll-over-now.js";
import { takeSharedQueue } from "../support/shared-queue.js";
import { test as base, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const test = base.extend({
  workerOptions: [{ sessionQueue: "longhaul", archiveSweepMs: 200 }, { scope: "file" as const }],
});

let release: (() => Promise<void>) | undefined;
beforeAll(async () => {
  release = await takeSharedQueue();
}, 240_000);
afterAll(() => release?.());

const todos = [{ content: "look around", status: "in_progress" }];
const scenario = {
  turns: [
    {
      steps: [
        {
          calls: [{ tool: "todo_write", args: { todos } }],
          failures: [{ code: "SERVER" as const }],
        },
        { text: "first" },
      ],
    },
    { repeat: 20, steps: [{ text: "turn ${turn}" }] },
  ],
};

describe.concurrent("verify", () => {
  test("holds a session of several runs against its archive and its histories, also while it runs and when it is closed", async ({
    lab,
  }) => {
    const session = await livedSession(lab);
    await session.inject("waits");
    const { ok, checks } = await lab.client.verify(session.id);
    expect(ok).toBe(true);
    expect(checks.map(({ name, text }) => [name, text])).toEqual([
      ["histories", expect.stringMatching(/^3 in Temporal with \d+ events, 5 model calls, 2 /u)],
      ["segments", expect.stringMatching(/^2, entries 0 to \d+, each what its name says$/u)],
      ["log", expect.stringMatching(/^entries 0 to \d+, /u)],
      ["archives", expect.stringMatching(/^2 /u)],
      ["model calls", expect.stringMatching(/^5 /u)],
      ["session", expect.stringContaining(`up to entry ${(await session.view()).lastSeq}`)],
    ]);
    await session.close();
    expect(await lab.client.verify(session.id)).toMatchObject({ ok: true });
    await expect(lab.client.verify("not-there")).rejects.toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });

  test("rebuilds what a compacted session had the model shown: shortened results, summaries, and what came after them, over runs and in a fork", async ({
    lab,
  }) => {
    const words = "word ".repeat(80);
    const print = {
      tool: "bash",
      args: { command: "yes abcdefghi | head -c 20000", description: "Print" },
    };
    const session = await lab.session({
      contextWindow: 12_000,
      summary: { text: "what was said so far" },
      turns: [
        { steps: [{ calls: [print] }, { calls: [print] }, { text: "done" }] },
        { repeat: 20, steps: [{ text: `answer \${turn} ${words}` }] },
      ],
    });
    await lab.play(session);
    for (let turn = 2; turn <= 4; turn++) await lab.play(session, `go ${turn} ${words}`);
    expect(await session.compact()).toMatchObject({ changed: true });
    await lab.play(session, "on");
    await rollOverNow(lab.handle(session.id));
    expect(await session.compact()).toMatchObject({ changed: true });
    await lab.play(session, "and on");
    const entries = await lab.entries(session);
    const count = (type: LogEntry["type"]): number =>
      entries.filter((entry) => entry.type === type).length;
    expect(count("compaction/prune")).toBeGreaterThan(0);
    expect(count("compaction/summary")).toBe(2);
    const report = await lab.client.verify(session.id);
    expect(report.checks.at(-1)?.text).toContain("it shows what its log says");
    expect(report.ok).toBe(true);
    const forked = await lab.client.fork(session.id);
    lab.adopt(forked.id);
    await lab.play(forked, "another way");
    expect(await lab.client.verify(forked.id)).toMatchObject({ ok: true });
  });

  test("finds a byte that was changed in a segment, and a segment that is gone", async ({
    lab,
  }) => {
    const session = await livedSession(lab);
    const [first = "", second = ""] = (await lab.store.list(session.id, "segment/")).map(
      ({ stream }) => stream,
    );
    const path = lab.store.locator(session.id, first);
    const whole = await readFile(path);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 20] = (whole[whole.length - 20] ?? 0) ^ 1;
    await writeFile(path, flipped);
    expect(await failed(lab, session)).toEqual([
      "segments",
      expect.stringContaining(segmentOf(first)),
    ]);
    await writeFile(path, whole);
    expect(await lab.client.verify(session.id)).toMatchObject({ ok: true });
    const gone = lab.store.locator(session.id, second);
    const kept = await readFile(gone);
    await rm(gone);
    expect(await failed(lab, session)).toEqual([
      "segments",
      expect.stringContaining(segmentOf(second)),
    ]);
    await writeFile(gone, kept);
    expect(await lab.client.verify(session.id)).toMatchObject({ ok: true });
  });

  test("finds an entry that was changed with all digests made to fit, because the histories and the session disagree", async ({
    lab,
  }) => {
    const session = await livedSession(lab);
    await session.close();
    const { segments, mark } = await archiveOf(lab, session.id);
    const forge = async (which: LogEntry["type"], from: string, to: string): Promise<string> => {
      const archive = openArchive(lab.store);
      let [segment, changes] = ["", 0];
      for (const { header, entries } of segments) {
        const forged = entries.map((entry) => {
          const text = JSON.stringify(entry);
          if (entry.type !== which || !text.includes(from)) return entry;
          changes += 1;
          return JSON.parse(text.replace(from, to)) as LogEntry;
        });
        segment = await archive.write({ ...header, previous: segment }, forged);
      }
      expect(changes).toBe(1);
      const text = await readFile(mark, "utf8");
      const json = text
        .slice(0, text.indexOf("\n") + 1)
        .replace(/"segment":"\w+"/u, `"segment":"${segment}"`);
      await writeFile(mark, `${json}${createHash("sha256").update(json).digest("hex")}\n`);
      const [check, problem] = await failed(lab, session);
      await writeFile(mark, text);
      return `${check}: ${problem}`;
    };
    // In a segment that a run had archived.
    expect(await forge("todo/write", "look around", "look away")).toMatch(
      /^archives: run .* archived entries 0 to /u,
    );
    expect(await forge("assistant/message", '"first"', '"forged"')).toMatch(/^archives: /u);
    // In the last one, of a run whose calls and whose log are there to be asked.
    expect(await forge("user/message", "and again", "nothing")).toMatch(
      /^model calls: model call of turn 3, step 1 .* was shown 7 messages .* the log has 8 /u,
    );
    expect(await forge("assistant/message", '"turn 3"', '"forged"')).toMatch(
      /^session: it shows another entry \d+ than its archive has$/u,
    );
    expect(
      await forge("turn/end", '3,"reason":{"kind":"completed"', '3,"reason":{"kind":"max-tokens"'),
    ).toMatch(/^session: the session shows lastEnd /u);
    expect(await lab.client.verify(session.id)).toMatchObject({ ok: true });
  });

  test("needs neither a worker nor a history for a session that Temporal has deleted", async ({
    lab,
  }) => {
    const session = await livedSession(lab, true);
    await session.close();
    await archiveOf(lab, session.id);
    await forgetSession(lab, session.id);
    const { ok, checks } = await lab.client.verify(session.id);
    expect(ok).toBe(true);
    expect(checks.map(({ text }) => text)).toEqual([
      "0 in Temporal with 0 events, 0 model calls, 0 archived segments",
      expect.stringMatching(/^3, entries 0 to /u),
      expect.stringMatching(/^entries 0 to /u),
      expect.stringMatching(/^0 /u),
      expect.stringMatching(/^0 /u),
      expect.stringContaining("nothing to hold its log against"),
    ]);
  });
});

/** Three runs, two segments, five model calls. */
async function livedSession(lab: Lab, unchecked = false): Promise<SessionClient> {
  const session = await lab.session(scenario, { limits: { retryBaseMs: 1 }, unchecked });
  await lab.play(session);
  await rollOverNow(lab.handle(session.id));
  await lab.play(session, "again");
  await rollOverNow(lab.handle(session.id));
  await lab.play(session, "and again");
  return session;
}

/** The first check that failed. */
async function failed(lab: Lab, { id }: SessionClient): Promise<readonly string[]> {
  const { ok, checks } = await lab.client.verify(id);
  expect(ok).toBe(false);
  const last = checks.at(-1);
  return [last?.name ?? "", last?.text ?? ""];
}

/** The segments of an ended session, oldest first, and the file that says which is the last. */
async function archiveOf(
  lab: Lab,
  id: string,
): Promise<{ readonly segments: readonly Segment[]; readonly mark: string }> {
  const archive = openArchive(lab.store);
  const ended = await eventually(async () => {
    const found = await archive.ended(id);
    if (found === undefined) throw new Error(`${id} is not archived yet`);
    return found;
  });
  const segments: Segment[] = [];
  for (let next = ended.segment; next !== "";) {
    const segment = await archive.segment(id, next);
    segments.unshift(segment);
    next = segment.header.previous;
  }
  return { segments, mark: lab.store.locator(id, `archived/${ended.run}`) };
}

/** As the retention time does, but now. */
async function forgetSession(lab: Lab, id: string): Promise<void> {
  const query = `WorkflowId = '${id}'`;
  await eventually(async () => {
    let left = 0;
    for await (const { workflowId, runId } of lab.temporal.workflow.list({ query })) {
      left += 1;
      await lab.temporal.workflowService
        .deleteWorkflowExecution({ namespace: "default", workflowExecution: { workflowId, runId } })
        .catch(() => undefined);
    }
    expect(left).toBe(0);
  });
}

function segmentOf(stream: string): string {
  return stream.slice("segment/".length);
}
