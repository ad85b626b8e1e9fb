import { readFile, writeFile } from "node:fs/promises";
import { describe, expect } from "vitest";
import type { SessionClient } from "../../src/client/session-client.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { queries } from "../../src/contracts/names.js";
import type { LogPage, LogQuery } from "../../src/contracts/session.js";
import { openArchive } from "../../src/store/archive.js";
import { test, type Lab, type Place } from "../support/temporal.js";
import { eventually } from "../support/until.js";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.js";
import { compareRequests, readRecorded, witnessRequests } from "../support/witness.js";

const rollOver = { events: 1, minIntervalMs: 0 };
const turn = (said: string) => ({
  steps: [
    { calls: [{ tool: "bash", args: { command: `printf '${said} %s' ${"x".repeat(300)}` } }] },
    { text: `${said} done` },
  ],
});

describe.concurrent("a session whose runs end at every step edge", { timeout: 900_000 }, () => {
  test("shows the model the same messages from any process, also from one that knows nothing of it", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace();
    const workers: WorkerProcess[] = [];
    const start = async (): Promise<WorkerProcess> => {
      const worker = await startWorkerProcess(lab, place);
      workers.push(worker);
      return worker;
    };
    try {
      const first = await start();
      const session = await open(lab, place, ["one", "two", "three", "four"]);
      await say(session, "one");
      await first.kill();
      await start();
      await say(session, "two");
      await start();
      await say(session, "three");
      await say(session, "four");
      const entries = await logAfter(lab, session);
      expect(endsOf(entries)).toEqual(Array.from({ length: 4 }, () => ({ kind: "completed" })));
      expect((await lab.store.list(session.id, "segment/")).length).toBeGreaterThan(7);
      const requests = await lab.requests(session.id);
      expect(requests.length).toBeGreaterThanOrEqual(8);
      expect(requests.at(-1)?.messages.length).toBe(15);
      expect(
        compareRequests(
          witnessRequests(entries),
          readRecorded(requests.map((one) => JSON.stringify(one)).join("\n"), session.id),
        ),
      ).toEqual([]);
    } finally {
      for (const worker of workers) await worker.kill();
    }
  });

  test("[harness/H5] in place of an injected message: with a damaged segment the turn ends LOG_CORRUPT and the model is not called; with the file whole again it goes on", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace();
    const workers = [await startWorkerProcess(lab, place)];
    try {
      const session = await open(lab, place, ["one", "unused", "three"]);
      await say(session, "one");
      const called = (await lab.requests(session.id)).length;
      const known = (await logAfter(lab, session)).at(-1)?.seq;
      const file = await eventually(() => segmentWith(lab, session, "one done"));
      // The run that wrote it is over.
      await eventually(async () => {
        const all = { after: -1, limit: 1 };
        const page = await lab.handle(session.id).query<LogPage, [LogQuery]>(queries.log, all);
        expect(page.archived?.to).toBe(known);
      });
      await workers[0]?.kill();
      const whole = await readFile(file, "utf8");
      await writeFile(file, whole.replace("one done", "one DONE"));
      workers.push(await startWorkerProcess(lab, place));
      await say(session, "again");
      const ends = endsOf(await logAfter(lab, session, known));
      expect(ends.at(-1)).toMatchObject({
        kind: "error",
        code: "LOG_CORRUPT",
        message: expect.stringContaining(file),
      });
      expect(await lab.requests(session.id)).toHaveLength(called);
      await writeFile(file, whole);
      await say(session, "three");
      expect(endsOf(await logAfter(lab, session)).at(-1)).toEqual({ kind: "completed" });
      expect(await lab.requests(session.id)).toHaveLength(called + 2);
    } finally {
      for (const worker of workers) await worker.kill();
    }
  });
});

async function open(lab: Lab, at: Place, said: readonly string[]): Promise<SessionClient> {
  return lab.session({ turns: said.map(turn) }, { at, config: { rollOver } });
}

async function say(session: SessionClient, text: string): Promise<void> {
  await session.followup(text);
  await session.waitIdle();
}

/** The log after an entry: what is archived, and what the run has. */
async function logAfter(lab: Lab, { id }: SessionClient, after = -1): Promise<LogEntry[]> {
  const archive = openArchive(lab.store);
  const entries: LogEntry[] = [];
  for (let at = after; ; at = entries.at(-1)?.seq ?? after) {
    const page = await lab
      .handle(id)
      .query<LogPage, [LogQuery]>(queries.log, { after: at, limit: 1_000 });
    if (page.archived === undefined && page.entries.length === 0) return entries;
    entries.push(...page.entries);
    if (page.archived === undefined) continue;
    for await (const entry of archive.entries(id, page.archived.segment, at)) entries.push(entry);
  }
}

async function segmentWith(lab: Lab, { id }: SessionClient, said: string): Promise<string> {
  for (const { stream } of await lab.store.list(id, "segment/")) {
    const file = lab.store.locator(id, stream);
    if ((await readFile(file, "utf8")).includes(said)) return file;
  }
  throw new Error(`no segment has ${said}`);
}

function endsOf(entries: readonly LogEntry[]): unknown[] {
  return entries.flatMap((entry) => (entry.type === "turn/end" ? [entry.data.reason] : []));
}
