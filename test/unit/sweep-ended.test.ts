import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { QueryNotRegisteredError, WorkflowNotFoundError, type Client } from "@temporalio/client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createEndedSweep, endedQuery, type EndedSweep } from "../../src/activities/sweep-ended.js";
import type { Archive } from "../../src/contracts/archive.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { queries } from "../../src/contracts/names.js";
import type { LogQuery } from "../../src/contracts/session.js";
import { openArchive } from "../../src/store/archive.js";
import { openDirectoryStore } from "../../src/store/directory.js";

const queue = "longhaul";
const minute = 60_000;

/** One ended session as Temporal and its worker know it. */
class Ended {
  readonly id: string;
  run: string;
  closedAt = Date.UTC(2026, 0, 1);
  entries: LogEntry[] = [];
  archived: { readonly to: number; readonly segment: string } | undefined;
  failure: Error | undefined;
  asked = 0;
  deleted = false;

  constructor(id: string, ...texts: readonly string[]) {
    this.id = id;
    this.run = `run of ${id}`;
    for (const text of texts) this.add(text);
  }

  add(reason: string): void {
    const seq = this.entries.length;
    this.entries.push({ type: "session/close", seq, time: seq, data: { reason } });
  }

  answer(name: string, { after }: LogQuery): unknown {
    this.asked++;
    if (this.failure !== undefined) throw this.failure;
    if (name === queries.view) return { title: "T", header: { createdAt: 5 } };
    const lastSeq = this.entries.length - 1;
    const { archived } = this;
    if (archived !== undefined && after < archived.to)
      return { entries: [], archived, lastSeq, state: "closed" };
    return { entries: this.entries.slice(after + 1, after + 3), lastSeq, state: "closed" };
  }
}

/** The part of a Temporal client that a sweep uses. */
function clientOf(sessions: readonly Ended[], asked: string[]): Client {
  const gone = (id: string) => new WorkflowNotFoundError("workflow not found", id, undefined);
  const client = {
    withDeadline: <T>(_deadline: number, call: () => Promise<T>) => call(),
    withAbortSignal: <T>(_signal: AbortSignal, call: () => Promise<T>) => call(),
    workflow: {
      async *list({ query }: { readonly query: string }) {
        asked.push(query);
        for (const { id, run, closedAt, deleted } of sessions) {
          if (deleted) continue;
          yield {
            workflowId: id,
            runId: run,
            status: { name: "TERMINATED" },
            closeTime: new Date(closedAt),
          };
        }
      },
      getHandle(id: string) {
        const session = sessions.find((one) => one.id === id && !one.deleted);
        return {
          describe: async () => {
            if (session === undefined) throw gone(id);
            return { runId: session.run };
          },
          query: async (name: string, query: LogQuery) => {
            if (session === undefined) throw gone(id);
            return session.answer(name, query);
          },
        };
      },
    },
  };
  return client as unknown as Client;
}

let root: string;
let archive: Archive;
const signal = new AbortController().signal;
const warnings: string[] = [];
const asked: string[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "longhaul-sweep-"));
  archive = openArchive(await openDirectoryStore(root));
  warnings.length = 0;
  asked.length = 0;
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(root, { recursive: true, force: true });
});

function sweepOf(...sessions: readonly Ended[]): EndedSweep {
  const client = clientOf(sessions, asked);
  return createEndedSweep({
    client,
    archive,
    taskQueue: queue,
    warn: (message) => warnings.push(message),
  });
}

async function archivedEntries(session: string): Promise<LogEntry[]> {
  const mark = await archive.ended(session);
  const entries: LogEntry[] = [];
  for await (const entry of archive.entries(session, mark?.segment ?? "", -1)) entries.push(entry);
  return entries;
}

describe("a sweep", () => {
  test("archives what is left of each ended session, marks it, and does not ask it again", async () => {
    const [one, two] = [new Ended("s-1", "a", "b", "c", "d", "e"), new Ended("s-2", "z")];
    const sweep = sweepOf(one, two);
    await sweep(signal);
    expect(await archivedEntries("s-1")).toEqual(one.entries);
    expect(await archivedEntries("s-2")).toEqual(two.entries);
    expect(await archive.ended("s-1")).toMatchObject({
      run: one.run,
      lastSeq: 4,
      status: "terminated",
      title: "T",
      startedAt: 5,
      closedAt: one.closedAt,
    });
    const before = one.asked;
    await sweep(signal);
    await sweepOf(one)(signal);
    expect(one.asked).toBe(before);
    expect(warnings).toEqual([]);
  });

  test("goes on where the session has archived its log already, and not where that is not in this store", async () => {
    const session = new Ended("s-1", "a", "b", "c");
    const header = { v: 1, session: "s-1", run: "run-0", from: 0, to: 1, previous: "" } as const;
    const segment = await archive.write(header, session.entries.slice(0, 2));
    session.archived = { to: 1, segment };
    await sweepOf(session)(signal);
    const mark = await archive.ended("s-1");
    expect(await archivedEntries("s-1")).toEqual(session.entries);
    expect((await archive.segment("s-1", mark?.segment ?? "")).header).toMatchObject({
      from: 2,
      to: 2,
      previous: segment,
    });
    const elsewhere = new Ended("s-2", "a", "b");
    elsewhere.archived = { to: 0, segment: "0".repeat(64) };
    await sweepOf(elsewhere)(signal);
    expect(await archive.ended("s-2")).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/^session s-2 .*is not archived yet: /u)]);
  });

  test("cuts what is left into segments of at most 4 MB", async () => {
    const session = new Ended("s-1", ...Array.from({ length: 10 }, () => "x".repeat(1_500_000)));
    await sweepOf(session)(signal);
    const { segment = "" } = (await archive.ended("s-1")) ?? {};
    const chain = await archive.chain("s-1", segment);
    expect(chain.map(({ from, to }) => [from, to])).toEqual([
      [8, 9],
      [6, 7],
      [4, 5],
      [2, 3],
      [0, 1],
    ]);
    expect(await archivedEntries("s-1")).toEqual(session.entries);
  });

  test("asks a session that cannot answer ever more rarely, and says so once", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 2) });
    const session = new Ended("s-1", "a");
    session.failure = new Error("Workflow Task in failed state\nand its stack");
    const sweep = sweepOf(session);
    const askedIn = async (minutes: number): Promise<number> => {
      const before = session.asked;
      for (let n = 0; n < minutes; n++) {
        vi.setSystemTime(Date.now() + minute);
        await sweep(signal);
      }
      return session.asked - before;
    };
    await sweep(signal);
    expect(session.asked).toBe(1);
    vi.setSystemTime(Date.now() + 1_000);
    await sweep(signal);
    await sweep(signal);
    expect(session.asked).toBe(2);
    expect(await askedIn(60)).toBe(10);
    expect(await askedIn(240)).toBe(4);
    expect(warnings).toEqual([
      "session s-1 (terminated) is not archived yet: Workflow Task in failed state",
    ]);
    session.failure = undefined;
    await askedIn(61);
    expect(await archivedEntries("s-1")).toEqual(session.entries);
  });

  test("leaves alone what failed before it had a log, what is not the last run and what is deleted meanwhile", async () => {
    const [empty, superseded, purged] = ["s-1", "s-2", "s-3"].map((id) => new Ended(id, "a"));
    if (!empty || !superseded || !purged) throw new Error("three");
    empty.failure = new QueryNotRegisteredError("Workflow did not register a handler", 3);
    const sweep = sweepOf(empty, superseded, purged);
    const read = purged.answer.bind(purged);
    purged.answer = (name, query) => {
      const answer = read(name, query);
      purged.deleted = name === queries.log;
      return answer;
    };
    Object.defineProperty(superseded, "run", { get: alternating("run-1", "run-2") });
    await sweep(signal);
    await sweep(signal);
    for (const id of ["s-1", "s-2", "s-3"]) {
      expect(await archive.ended(id)).toBeUndefined();
    }
    expect(empty.asked).toBe(1);
    expect(superseded.asked).toBe(0);
    expect(warnings).toEqual([
      expect.stringContaining("s-1 (terminated) is not archived: it has no log"),
    ]);
  });

  test("lists all at first, and then what has closed since the last it saw, with an overlap", async () => {
    const session = new Ended("s-1", "a");
    const sweep = sweepOf(session);
    await sweep(signal);
    await sweep(signal);
    expect(asked).toEqual([
      endedQuery(queue, undefined),
      endedQuery(queue, session.closedAt - 5 * minute),
    ]);
    expect(asked[0]).not.toContain("CloseTime");
    expect(asked[1]).toContain("CloseTime >= '2025-12-31T23:55:00.000Z'");
    expect(asked[0]).not.toContain("ContinuedAsNew");
  });
});

/** The listed run is another than the one that is described. */
function alternating(...values: readonly string[]): () => string {
  let next = 0;
  return () => values[next++ % values.length] ?? "";
}
