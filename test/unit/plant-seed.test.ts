import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ArchivedViews } from "../../src/client/archived-view.js";
import { queries } from "../../src/contracts/names.js";
import { openArchive } from "../../src/store/archive.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { bodiesToStore, makeCheckpoint } from "../../src/domain/checkpoint.js";
import { restoreSession } from "../../src/domain/checkpoint-restore.js";
import { loadLog } from "../../src/domain/log.js";
import { exportLog, importLog } from "../../src/domain/log-text.js";
import {
  closeLog,
  factsOf,
  plantSeed,
  seedConfig,
  stretchesOf,
  type Seed,
} from "../../src/domain/plant-seed.js";
import { foldWhole, forkHeader, importHeader } from "../../src/domain/seed.js";
import { initialFolds, type Session } from "../../src/domain/session.js";
import { projectionsOf, viewOf } from "../../src/domain/views.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import { config, run, saying, send, text } from "../support/session-script.js";

/** A session with a job, a message that waits, and one turn. */
function source(): Session {
  const session = openJobSession([], {});
  send(session, "followup", "m1");
  run(session, { model: saying(text("hello")) });
  new JobsInSession(session).start();
  send(session, "inject", "waiting");
  return session;
}

const opened = { version: 0, id: "s1", createdAt: 0 } as const;

function seedOf(kind: Seed["kind"], entries: readonly LogEntry[], seedLength?: number): Seed {
  const loaded = loadLog(entries);
  if (!loaded.ok) throw new Error(loaded.message);
  const header =
    kind === "fork"
      ? forkHeader(opened, { id: "c1", createdAt: 9, seedLength: entries.length })
      : {
          ...importHeader(opened, { id: "c1", createdAt: 9 }),
          ...(seedLength === undefined ? {} : { seedLength }),
        };
  return { kind, header, config, log: loaded.log };
}

/** Opened from its checkpoint, as its workflow does. */
function openFrom(planted: Session): Session {
  const stored = new Set(bodiesToStore(planted).keys());
  const made = makeCheckpoint(planted, {
    to: planted.log.lastSeq,
    stored,
    segment: "0".repeat(64),
  });
  if (!made.ok) throw new Error(made.message);
  const wire: unknown = JSON.parse(JSON.stringify(made.checkpoint));
  const { session } = restoreSession(wire, { id: planted.id, now: () => 10, config });
  session.record(
    { type: "session/open", data: { config, header: session.folds.sessionHeader ?? opened } },
    { type: "session/tools", data: { epoch: 0, tools: [], jobKinds: [] } },
  );
  return session;
}

describe("a planted seed", () => {
  test.each(["fork", "import"] as const)(
    "of a %s opens from its checkpoint without a fault, and folding its whole log says the same",
    (kind) => {
      const planted = plantSeed(seedOf(kind, source().log.entries));
      const before = planted.log.entries;
      expect(before.at(-1)).toMatchObject({ type: "session/end-seed", time: 9 });
      const session = openFrom(planted);
      expect(session.fault).toBeUndefined();
      expect(session.log.firstSeq).toBe(before.length);
      send(session, "followup", "m2");
      const whole = [...before, ...session.log.entries];
      const folds = whole.reduce(
        (done, entry, index) => foldWhole(done, entry, whole.slice(0, index)),
        initialFolds,
      );
      const waiting = (inbox: readonly { readonly id: string }[]) => inbox.map(({ id }) => id);
      expect(waiting(folds.inbox.nextStep)).toEqual(kind === "fork" ? [] : ["waiting"]);
      expect(waiting(folds.inbox.nextTurn)).toEqual(["m2"]);
      expect(JSON.parse(JSON.stringify(folds))).toEqual(JSON.parse(JSON.stringify(session.folds)));
      const again = loadLog(whole);
      if (!again.ok) throw new Error(again.message);
      expect(again.log.surface.digest()).toBe(session.log.surface.digest());
      expect(viewOf(session, undefined).lastSeq).toBe(whole.length - 1);
      expect(projectionsOf(session).asOfSeq).toBe(whole.length - 1);
    },
  );

  test.each(["fork", "import"] as const)(
    "of a %s is no part of what its archived session shows, but what it began with",
    async (kind) => {
      const folder = await mkdtemp(join(tmpdir(), "longhaul-seed-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      const archive = openArchive(await openDirectoryStore(folder));
      const planted = plantSeed(seedOf(kind, source().log.entries));
      const session = openFrom(planted);
      let segment = "";
      for (const [name, entries] of [
        ["seed", planted.log.entries],
        ["r1", session.log.entries],
      ] as const) {
        const [from, to] = [entries[0]?.seq ?? 0, entries.at(-1)?.seq ?? 0];
        const header = { v: 1, session: "c1", run: name, from, to, previous: segment } as const;
        segment = await archive.write(header, entries);
      }
      const { lastSeq } = session.log;
      const rest = { v: 1, session: "c1", status: "completed", startedAt: 0, closedAt: 1 } as const;
      const views = new ArchivedViews(archive);
      const shown = async (name: string): Promise<unknown> =>
        views.answer({ ...rest, run: "r1", segment, lastSeq }, name, {});
      expect(await shown(queries.projections)).toEqual(projectionsOf(session));
      expect(await shown(queries.view)).toEqual({ ...viewOf(session, undefined), state: "closed" });
    },
  );

  test("tells the last header, configuration and host of a log; the host is one's own", () => {
    const open = (id: string): LogEntry => ({
      type: "session/open",
      seq: 0,
      time: 0,
      data: { header: { ...opened, id }, config },
    });
    const bound: LogEntry = {
      type: "session/bound",
      seq: 1,
      time: 0,
      data: { host: "h", epoch: 1 },
    };
    const changed = { ...config, system: "s" };
    const configured: LogEntry = {
      type: "session/config",
      seq: 2,
      time: 0,
      data: { config: changed },
    };
    expect(factsOf([open("a"), bound, configured])).toEqual({
      header: { ...opened, id: "a" },
      host: "h",
      config: changed,
    });
    expect(factsOf([open("a"), bound, configured, open("b")])).toEqual({
      header: { ...opened, id: "b" },
      config,
    });
    expect(factsOf([])).toEqual({});
  });

  test("has the configuration that is asked for over that of its log, and INVALID_INPUT without any", () => {
    expect(seedConfig({ config }, { system: "s" })).toEqual({
      ok: true,
      config: { ...config, system: "s" },
    });
    expect(seedConfig({}, {}, config)).toEqual({ ok: true, config });
    expect(seedConfig({ config }, {}, { ...config, system: "no" })).toEqual({ ok: true, config });
    expect(seedConfig({}, { system: "s" })).toMatchObject({ ok: false, code: "INVALID_INPUT" });
  });

  test("is cut into stretches of bounded size, in order and without a gap; a larger entry is one of its own", () => {
    const entries = source().log.entries;
    const sizes = entries.map((entry) => Buffer.byteLength(JSON.stringify(entry)) + 1);
    for (const limit of [1, Math.max(...sizes), 3_000, 1_000_000]) {
      const parts = [...stretchesOf(entries, limit)];
      expect(parts.flat()).toEqual(entries);
      for (const part of parts) {
        const bytes = part.reduce((sum, { seq }) => sum + (sizes[seq] ?? 0), 0);
        expect(part.length === 1 || bytes <= limit).toBe(true);
      }
    }
    expect([...stretchesOf([])]).toEqual([]);
  });

  test("[harness/R1] of a log that ends in a turn is closed before", () => {
    const entries = [
      ...source().log.entries,
      { type: "turn/start", seq: source().log.entries.length, time: 7, data: { turn: 2 } },
    ] as readonly LogEntry[];
    const read = importLog(exportLog(opened, entries));
    if (!read.ok) throw new Error(read.message);
    expect(closeLog(read.log)).toBe(1);
    expect(read.log.entries.at(-1)).toMatchObject({
      type: "turn/end",
      time: 7,
      data: { turn: 2, reason: { kind: "interrupted" } },
    });
    expect(closeLog(read.log)).toBe(0);
  });
});
