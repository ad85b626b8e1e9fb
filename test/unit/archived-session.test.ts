import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { archiveLog, fetchBodies } from "../../src/activities/archive-log.js";
import { SurfaceReader } from "../../src/activities/surface-reader.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { Store } from "../../src/contracts/store.js";
import { openArchive } from "../../src/store/archive.js";
import { openDirectoryStore } from "../../src/store/directory.js";
import { ArchivedLife, type LifeRequest } from "../support/archived-life.js";
import { calls, openSession, output, row, saying, send, text } from "../support/session-script.js";
import { unwritable } from "../support/unwritable-store.js";

const signal = new AbortController().signal;

let root: string;
let store: Store;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "longhaul-archived-"));
  store = await openDirectoryStore(root);
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe("a session whose log is archived", () => {
  test(
    "[harness/K12] shows the model the same messages and header from a process that knows it and from one that does not",
    { timeout: 60_000 },
    async () => {
      const step = fc.record({
        text: fc.string({ maxLength: 20 }),
        tool: fc.boolean(),
        roll: fc.boolean(),
        carry: fc.nat(6),
        system: fc.boolean(),
        replace: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { minLength: 1, maxLength: 10 }),
          fc.uuid(),
          async (steps, session) => {
            const life = openLife(session);
            const hot = readerOf(life);
            for (const [index, plan] of steps.entries()) {
              if (plan.roll && life.session.log.entries.length > 0) await life.rollOver(plan.carry);
              if (plan.replace) replaceOldest(life);
              if (plan.system) reconfigure(life, `system ${index}`);
              send(life.session, "followup", `m${index}`, `${plan.text}.`);
              const requests = life.play({
                model: saying(...(plan.tool ? [calls("p")] : []), text(`said ${index}`)),
                tools: { p: () => output(`result ${index} ${"x".repeat(300)}`) },
              });
              expect(requests).toHaveLength(plan.tool ? 2 : 1);
              hot.offer({ sessionId: life.session.id }, ...life.offer());
              for (const request of requests) {
                await expectShown(hot, request);
                await expectShown(readerOf(life, openArchive(store)), request);
              }
            }
          },
        ),
        { numRuns: 25 },
      );
    },
  );

  test("is asked for nothing after a roll-over by the process that was told all along", async () => {
    const life = openLife();
    const reader = readerOf(life);
    for (let turn = 0; turn < 5; turn++) {
      send(life.session, "followup", `m${turn}`);
      const requests = life.play();
      reader.offer({ sessionId: "s1" }, ...life.offer());
      for (const request of requests) await expectShown(reader, request);
      await life.rollOver();
    }
    expect(life.asked).toBe(0);
  });

  test(
    "reads its oldest nodes, which the session knows by their numbers only",
    { timeout: 60_000 },
    async () => {
      const life = openLife();
      for (let seq = 0; seq < 600; seq++) {
        record(life, `m${seq}`);
        if (seq % 100 === 99) await life.rollOver();
      }
      expect(life.session.log.surface.length - life.session.log.surface.slots.length).toBe(100);
      send(life.session, "followup", "last");
      for (const request of life.play()) {
        expect(request.ref.length).toBe(601);
        await expectShown(readerOf(life, openArchive(store)), request);
      }
    },
  );

  test("whose segment lost a byte or is gone is refused, and shown once it is whole again", async () => {
    const life = openLife();
    for (const id of ["m1", "m2"]) {
      send(life.session, "followup", id);
      life.play();
      await life.rollOver();
    }
    send(life.session, "followup", "m3");
    const [request] = life.play();
    if (request === undefined) throw new Error("no request");
    for (const segment of life.segments) {
      const reader = readerOf(life, openArchive(store));
      const file = store.locator("s1", `segment/${segment}`);
      const whole = await readFile(file);
      const bytes = Buffer.from(whole);
      bytes[bytes.length - 30] = (bytes[bytes.length - 30] ?? 0) ^ 1;
      await writeFile(file, bytes);
      await expect(reader.messages(request.ref, signal)).rejects.toMatchObject({
        code: "LOG_CORRUPT",
        message: expect.stringContaining(segment),
      });
      await rm(file);
      await expect(
        readerOf(life, openArchive(store)).messages(request.ref, signal),
      ).rejects.toMatchObject({
        code: "ARCHIVE_UNAVAILABLE",
        message: expect.stringContaining(segment),
      });
      await writeFile(file, whole);
      await expectShown(reader, request);
    }
  });

  test("is SURFACE_MISMATCH with an archived node that is no message, or of another base", async () => {
    const life = openLife();
    send(life.session, "followup", "m1");
    life.play();
    await life.rollOver();
    const [first = ""] = life.segments;
    send(life.session, "followup", "m2");
    life.play();
    await life.rollOver();
    send(life.session, "followup", "m3");
    const [request] = life.play();
    if (request === undefined) throw new Error("no request");
    for (const length of [5, 4]) {
      await expect(
        readerOf(life).messages({ ...request.ref, base: first, length }, signal),
      ).rejects.toMatchObject({
        code: "SURFACE_MISMATCH",
        message: expect.stringContaining(first),
      });
    }
    const wrong = new SurfaceReader(
      {
        ...life.source,
        nodes: async (ref, query, abort) => {
          const page = await life.source.nodes(ref, query, abort);
          return { ...page, nodes: page.nodes.map((node) => ({ ...node, seq: node.seq - 1 })) };
        },
      },
      openArchive(store),
    );
    await expect(wrong.messages(request.ref, signal)).rejects.toMatchObject({
      code: "SURFACE_MISMATCH",
    });
    await expect(
      readerOf(life).header({ ...request.ref, base: "" }, request.ref.headerSeq, signal),
    ).rejects.toMatchObject({ code: "SURFACE_MISMATCH" });
    await expect(readerOf(life).header(request.ref, 0, signal)).rejects.toMatchObject({
      code: "SURFACE_MISMATCH",
    });
  });
});

describe("archiving a log", () => {
  test(
    "is the same done twice, and asks the session for nothing the second time",
    { timeout: 60_000 },
    async () => {
      const life = openLife();
      send(life.session, "followup", "m1", "long ".repeat(4_000));
      life.play();
      send(life.session, "inject", "m2", "waits ".repeat(4_000));
      const input = life.leave();
      expect(input.bodies).not.toEqual([]);
      await archiveLog(life, input, signal);
      const before = await store.list("s1", "");
      const silent = {
        log: () => Promise.reject(new Error("asked for the log")),
        bodies: () => Promise.reject(new Error("asked for texts")),
      };
      await archiveLog({ source: silent, archive: openArchive(store) }, input, signal);
      expect(await store.list("s1", "")).toEqual(before);
      // Though this process has it in memory.
      await life.archive.segment("s1", input.digest);
      await rm(store.locator("s1", `segment/${input.digest}`));
      await archiveLog({ source: silent, archive: life.archive }, input, signal);
      expect(await store.list("s1", "")).toEqual(before);
      await life.rollOver();
      expect(life.session.log.lastSeq).toBe(input.to);
    },
  );

  test("completes what an attempt that was killed left", async () => {
    const life = openLife();
    send(life.session, "followup", "m1");
    life.play();
    send(life.session, "inject", "m2", "waits ".repeat(4_000));
    const input = life.leave();
    await archiveLog(life, input, signal);
    const streams = await store.list("s1", "");
    for (const { stream, bytes } of streams)
      await truncate(store.locator("s1", stream), Math.floor(bytes / 2));
    await archiveLog({ source: life.source, archive: openArchive(store) }, input, signal);
    expect(await store.list("s1", "")).toEqual(streams);
    expect((await openArchive(store).segment("s1", input.digest)).entries).toHaveLength(
      input.to - input.from + 1,
    );
  });

  test("refuses what the session shows otherwise than the digest says, and writes nothing", async () => {
    const life = openLife();
    send(life.session, "followup", "m1");
    life.play();
    send(life.session, "inject", "m2", "waits ".repeat(4_000));
    const input = life.leave();
    const { source, archive } = life;
    for (const wrong of [
      { ...input, digest: "0".repeat(64) },
      { ...input, to: input.to - 1 },
      { ...input, to: input.to + 1 },
      { ...input, from: 1, previous: "0".repeat(64) },
    ]) {
      await expect(archiveLog(life, wrong, signal)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
    const tampered = {
      ...source,
      log: async (...args: Parameters<typeof source.log>) => {
        const page = await source.log(...args);
        return { ...page, entries: page.entries.map((entry) => ({ ...entry, time: 1 })) };
      },
    };
    await expect(archiveLog({ source: tampered, archive }, input, signal)).rejects.toMatchObject({
      code: "LOG_CORRUPT",
    });
    expect(await store.list("s1", "")).toEqual([]);
    const lost = { ...input, bodies: [...input.bodies, "0".repeat(64)] };
    await expect(archiveLog(life, lost, signal)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    // Of a name that was not asked for, and of one that was.
    const [name = ""] = input.bodies;
    const other = { ...source, bodies: async () => ({ bodies: { [name]: '"other"' }, left: [] }) };
    await rm(store.locator("s1", `body/${name}`));
    for (const bodies of [["0".repeat(64)], [name]]) {
      await expect(
        archiveLog({ source: other, archive }, { ...input, bodies }, signal),
      ).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    }
    expect(await store.list("s1", "body/")).toHaveLength(input.bodies.length - 1);
  });

  test("says so when the store is away", async () => {
    const life = openLife();
    send(life.session, "followup", "m1");
    life.play();
    const input = life.leave();
    const archive = openArchive(unwritable(store).store);
    await expect(archiveLog({ source: life.source, archive }, input, signal)).rejects.toMatchObject(
      {
        code: "STORE_UNAVAILABLE",
      },
    );
  });

  test(
    "keeps texts of any number and size, fetched in answers that fit a payload",
    { timeout: 60_000 },
    async () => {
      const life = openLife();
      for (let index = 0; index < 12; index++)
        send(life.session, "inject", `m${index}`, `${index} ${"é".repeat(100_000)}`);
      const input = life.leave();
      await archiveLog(life, input, signal);
      const answers: number[] = [];
      for (let left = input.bodies; left.length > 0;) {
        const { bodies } = await fetchBodies(life.archive, { ...input, names: left });
        answers.push(Buffer.byteLength(JSON.stringify(bodies)));
        expect(Object.keys(bodies)).not.toEqual([]);
        left = left.filter((name) => bodies[name] === undefined);
      }
      expect(answers.length).toBeGreaterThan(1);
      expect(Math.max(...answers)).toBeLessThan(1_600_000);
      expect(await fetchBodies(life.archive, { ...input, names: ["0".repeat(64)] })).toEqual({
        bodies: {},
      });
      await life.rollOver();
      expect(life.session.folds.inbox.nextStep).toHaveLength(12);
    },
  );
});

function openLife(id = "s1"): ArchivedLife {
  const session = openSession({}, [row("p")], id);
  session.routes = [{ provider: "scripted", model: "m", contextWindow: 1_000_000 }];
  return new ArchivedLife(openArchive(store), session);
}

function readerOf(life: ArchivedLife, archive = life.archive): SurfaceReader {
  return new SurfaceReader(life.source, archive);
}

async function expectShown(reader: SurfaceReader, { ref, shown }: LifeRequest): Promise<void> {
  expect(await reader.messages(ref, signal)).toEqual(shown.messages);
  const header = await reader.header(ref, ref.headerSeq, signal);
  expect({ config: header.config, system: header.system, tools: header.tools }).toEqual({
    config: shown.config,
    system: shown.system,
    tools: shown.tools,
  });
}

/** As a compaction does: a user's message stands for the oldest nodes. */
function replaceOldest(life: ArchivedLife): void {
  const { surface } = life.session.log;
  const end = surface.length - surface.slots.length + Math.floor(surface.slots.length / 2);
  if (end === 0) return;
  record(life, `summary of ${end}`, {
    surfaceOp: { op: "replace", start: 0, end },
    sourceEventSeqs: [...surface.seqsTo(end)],
  });
}

function record(
  { session }: ArchivedLife,
  said: string,
  place: Pick<LogEntry, "surfaceOp" | "sourceEventSeqs"> = { surfaceOp: "append" },
): void {
  const message = {
    id: `own-${session.log.lastSeq}`,
    role: "user" as const,
    content: [{ type: "text" as const, text: said }],
    source: { kind: "user" as const },
  };
  session.record({ type: "user/message", data: { message }, ...place });
}

function reconfigure({ session }: ArchivedLife, system: string): void {
  session.record({ type: "session/config", data: { config: { ...session.config, system } } });
}
