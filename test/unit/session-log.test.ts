import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LogEntry, NewEntry } from "../../src/contracts/log.js";
import { loadLog, SessionLog } from "../../src/domain/log.js";
import { deriveMessages } from "../../src/domain/surface.js";
import { calls, openSession, row, run, saying, send } from "../support/session-script.js";

const said = (id: string, text = id): NewEntry => ({
  type: "user/message",
  surfaceOp: "append",
  data: {
    message: { id, role: "user", content: [{ type: "text", text }], source: { kind: "user" } },
  },
});

/** The log of a session that ran a turn with a tool. */
function written(): LogEntry[] {
  const session = openSession({}, [row("t")]);
  send(session, "followup", "m1");
  run(session, { model: saying(calls("t")) });
  return JSON.parse(JSON.stringify(session.log.entries)) as LogEntry[];
}

describe("appending", () => {
  test("[harness/S1] in place of chunks there are none: prompt, reply, call and result derive to user, assistant, user", () => {
    const session = openSession({}, [row("t")]);
    send(session, "followup", "m1");
    run(session, {
      model: saying(calls("t"), { kind: "reply", content: [], finish: "stop" }),
    });
    const messages = deriveMessages(session.log.surface.nodes);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(messages[2]?.content[0]?.type).toBe("tool-result");
    expect(session.log.entries.map(({ type }) => type)).not.toContain("assistant/chunk");
  });

  test.each<[string, unknown]>([
    ["undefined", { message: { ...said("m").data, extra: undefined } }],
    ["NaN", { at: Number.NaN }],
    ["-0", { at: -0 }],
    ["a date", { at: new Date(0) }],
    ["no data", undefined],
    ["null", null],
    ["a list", []],
    ["no message", {}],
    ["a message without content", { message: { id: "m" } }],
  ])("[harness/S3] in place of a throw a refusal that changes nothing: %s", (_, data) => {
    const log = new SessionLog();
    log.append(said("m0"), 1);
    const digest = log.surface.digest();
    const appended = log.append({ ...said("m1"), data } as NewEntry, 2);
    expect(appended).toMatchObject({ ok: false, code: "INVARIANT" });
    expect(log.entries).toHaveLength(1);
    expect(log.surface.digest()).toBe(digest);
  });

  test("[harness/S3] in place of a throw a refusal: a message without surfaceOp, another entry with one, an op that is none", () => {
    const log = new SessionLog();
    const { surfaceOp: _, ...bare } = said("m1");
    expect(log.check(bare)).toBe("a user/message entry needs a surfaceOp");
    expect(log.check({ type: "turn/start", surfaceOp: "append", data: { turn: 1 } })).toBe(
      "a turn/start entry cannot be on the surface",
    );
    for (const surfaceOp of [
      "prepend",
      null,
      1,
      {},
      { op: "replace", start: 0, end: Number.NaN },
    ]) {
      expect(log.append({ ...bare, surfaceOp } as NewEntry, 0)).toMatchObject({ ok: false });
    }
    expect(log.entries).toEqual([]);
  });

  test("a cited entry must exist", () => {
    const log = new SessionLog();
    log.append(said("m0"), 1);
    for (const sourceEventSeqs of [[1], [-1], [0.5], ["0"], "0", [-0]]) {
      expect(log.append({ ...said("m1"), sourceEventSeqs } as NewEntry, 0).ok).toBe(false);
    }
    expect(log.append({ ...said("m1"), sourceEventSeqs: [0] }, 2).ok).toBe(true);
  });

  test("nesting is refused at the same depth wherever it is, and what is taken can be stored and hashed", () => {
    const nested = (depth: number): unknown =>
      Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 0);
    const verdicts = new Set<boolean>();
    for (let depth = 985; depth < 1_005; depth += 1) {
      const log = new SessionLog();
      const replay = { type: "reasoning", text: "", replay: nested(depth) };
      const entry = said("m1");
      const appended = log.append(
        {
          ...entry,
          data: { message: { id: "m", role: "user", content: [replay], source: {} } },
        } as never,
        0,
      );
      verdicts.add(appended.ok);
      expect(appended.ok ? log.surface.digest() : appended.message).toMatch(
        /^[0-9a-f]{64}$|nested deeper than 1000/u,
      );
    }
  });

  test("[harness/S11] neither the appended object nor a derived message reaches the stored log", () => {
    const log = new SessionLog();
    const entry = structuredClone(said("m1", "before"));
    log.append(entry, 1);
    const before = JSON.stringify(log.entries);
    const given = entry.data as { message: { content: { text: string }[] } };
    if (given.message.content[0]) given.message.content[0].text = "after";
    given.message.content.push({ text: "more" });
    const [derived] = deriveMessages(log.surface.nodes);
    expect(() => Object.assign(derived ?? {}, { role: "assistant" })).toThrow(TypeError);
    expect(() => Object.assign(derived?.content[0] ?? {}, { text: "after" })).toThrow(TypeError);
    expect(Object.isFrozen(derived?.content)).toBe(true);
    expect(JSON.stringify(log.entries)).toBe(before);
  });

  test("never throws, whatever the entry, and a refusal changes nothing", () => {
    const entry = fc.record(
      {
        type: fc.constantFrom("user/message", "tool/result", "turn/start", "todo/write", "x"),
        data: fc.oneof(fc.anything(), fc.record({ message: fc.anything(), todos: fc.anything() })),
        surfaceOp: fc.oneof(fc.constant("append"), fc.anything()),
        sourceEventSeqs: fc.oneof(fc.array(fc.nat(3)), fc.anything()),
      },
      { requiredKeys: ["type"] },
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 4 }), (given) => {
        const log = new SessionLog();
        for (const one of given) {
          const before = JSON.stringify([log.entries, log.surface.nodes, log.surface.digest()]);
          const appended = log.append(one as NewEntry, 0);
          if (appended.ok) continue;
          expect(appended.message).not.toContain("\n");
          expect(JSON.stringify([log.entries, log.surface.nodes, log.surface.digest()])).toBe(
            before,
          );
        }
        expect(JSON.parse(JSON.stringify(log.entries))).toEqual(log.entries);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("loading a log", () => {
  test("gives the same log, entry for entry, and the same surface", () => {
    const entries = written();
    const loaded = loadLog(entries);
    if (!loaded.ok) throw new Error(loaded.message);
    expect(JSON.stringify(loaded.log.entries)).toBe(JSON.stringify(entries));
    expect(loaded.log.surface.length).toBe(4);
  });

  test("[harness/S4] a gap in seq is refused as corruption", () => {
    const entries = written();
    expect(loadLog(entries.toSpliced(3, 1))).toEqual({
      ok: false,
      code: "LOG_CORRUPT",
      message: "expected seq 3, came 4: the log has a gap",
    });
    expect(loadLog(entries.slice(1))).toMatchObject({ ok: false, code: "LOG_CORRUPT" });
    expect(loadLog([...entries, entries.at(-1)])).toMatchObject({ ok: false, code: "LOG_CORRUPT" });
  });

  test("[harness/S12] an entry of unknown type is refused, unless it is marked ignorable; that is not corruption", () => {
    const entries = written();
    const strange = { type: "team/member", seq: entries.length, time: 1, data: { id: "x" } };
    expect(loadLog([...entries, strange])).toMatchObject({
      ok: false,
      code: "LOG_UNSUPPORTED",
      message: expect.stringContaining('unknown type "team/member"'),
    });
    const loaded = loadLog([...entries, { ...strange, ignorable: true }]);
    if (!loaded.ok) throw new Error(loaded.message);
    expect(loaded.log.entries.at(-1)).toEqual({ ...strange, ignorable: true });
  });

  test("Longhaul's own entries are marked ignorable, the harness's are not", () => {
    const session = openSession();
    send(session, "followup", "m1");
    run(session);
    for (const { type, ignorable } of session.log.entries) {
      expect([type, ignorable]).toEqual([type, type.startsWith("session/") ? true : undefined]);
    }
  });

  test("damage of any kind is a refusal of one line, never a throw", () => {
    const entries = written();
    const damage = fc.record({
      at: fc.nat(entries.length - 1),
      key: fc.constantFrom("type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "all"),
      value: fc.anything(),
    });
    fc.assert(
      fc.property(damage, ({ at, key, value }) => {
        const broken = entries.map((entry, index) =>
          index === at ? (key === "all" ? value : { ...entry, [key]: value }) : entry,
        );
        const loaded = loadLog(broken);
        const { code, message } = loaded.ok ? { code: "LOG_CORRUPT", message: "" } : loaded;
        expect(code).toMatch(/^LOG_(CORRUPT|UNSUPPORTED)$/u);
        expect(message).not.toContain("\n");
      }),
    );
  });
});
