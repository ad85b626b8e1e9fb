import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LogEntry, NewEntry, SessionHeader } from "../../src/contracts/log.js";
import { SessionLog } from "../../src/domain/log.js";
import { exportLog, importLog } from "../../src/domain/log-text.js";
import { deriveMessages } from "../../src/domain/surface.js";
import { foreignLog as foreign } from "../support/foreign-log.js";
import { brokenRules } from "../support/log-rules.js";
import {
  calls,
  failure,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
} from "../support/session-script.js";

const header: SessionHeader = { version: 0, id: "s1", createdAt: 5, cwd: "/w" };

/** A session with a tool, an image, a retry, an abort, a failed turn and a message that waits. */
function busyLog(): readonly LogEntry[] {
  const session = openSession({ deny: ["no"] }, [row("t"), row("no")]);
  send(session, "followup", "m1");
  send(session, "followup", "m2");
  const image = { mediaType: "image/png", stream: "s", bytes: 1, digest: "d" } as const;
  const usage = { inputTokens: 100, outputTokens: 5, cachedInputTokens: 64 };
  run(session, {
    model: saying(
      { ...calls("t", "no"), usage } as never,
      failure("SERVER"),
      text("half", "max-tokens"),
      failure("AUTH"),
    ),
    tools: { t: () => output("seen", { images: [image], meta: { exitCode: 0 } }) },
  });
  send(session, "inject", "later");
  return JSON.parse(JSON.stringify(session.log.entries)) as LogEntry[];
}

function imported(given: string): Extract<ReturnType<typeof importLog>, { ok: true }> {
  const read = importLog(given);
  if (!read.ok) throw new Error(read.message);
  return read;
}

const said = (id: string): NewEntry => ({
  type: "user/message",
  surfaceOp: "append",
  data: {
    message: { id, role: "user", content: [{ type: "text", text: id }], source: { kind: "user" } },
  },
});

describe("a log that is exported and read again", () => {
  test("[harness/R14] is the same, entry for entry and byte for byte, balanced, with the same surface", () => {
    const entries = busyLog();
    const read = imported(exportLog(header, entries));
    expect(JSON.stringify(read.log.entries)).toBe(JSON.stringify(entries));
    expect(read).toMatchObject({ header, dropped: 0, unused: [] });
    expect(brokenRules(read.log.entries)).toEqual([]);
    expect(exportLog(read.header, read.log.entries)).toBe(exportLog(header, entries));
    const types = new Set(entries.map(({ type }) => type));
    for (const type of ["llm/retry", "tool/result", "request/header", "agent/inbox/spliced"])
      expect(types).toContain(type);
  });

  test("also where replacements of replacements stand: positions are told as the seq of the nodes", () => {
    const log = new SessionLog();
    const replace = (start: number, end: number, cited: readonly number[]): NewEntry => ({
      ...said(`r${start}`),
      surfaceOp: { op: "replace", start, end },
      sourceEventSeqs: cited,
    });
    for (const id of ["a", "b", "c", "d", "e"]) log.append(said(id), 1);
    log.append(replace(1, 4, [1, 2, 3]), 2);
    log.append(said("f"), 3);
    log.append(replace(0, 2, [0, 5]), 4);
    const exported = exportLog(header, log.entries);
    const ops = exported.split("\n").flatMap((line) => (line.includes('"replace"') ? [line] : []));
    expect(ops[0]).toContain('"surfaceOp":{"op":"replace","start":1,"end":3}');
    expect(ops[1]).toContain('"surfaceOp":{"op":"replace","start":0,"end":5}');
    const read = imported(exported);
    expect(JSON.stringify(read.log.entries)).toBe(JSON.stringify(log.entries));
    expect(read.log.surface.digest()).toBe(log.surface.digest());
  });

  test("holds for any text and number that JSON holds", () => {
    const value = fc.jsonValue({ depthSize: "small" });
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), value, fc.nat(), (words, meta, cached) => {
        const log = new SessionLog();
        const replay = JSON.parse(JSON.stringify(meta)) as unknown;
        const message = {
          id: "m/1.1",
          role: "assistant",
          source: { kind: "model", provider: "p", model: "m" },
        };
        const content = [
          { type: "text", text: words },
          { type: "reasoning", text: "", replay },
        ];
        const usage = { inputTokens: cached + 7, outputTokens: 1, cachedInputTokens: cached };
        const data = { turn: 1, step: 1, message: { ...message, content }, usage };
        const appended = log.append(
          { type: "assistant/message", surfaceOp: "append", data } as never,
          1,
        );
        if (!appended.ok) return;
        const read = imported(exportLog(header, log.entries));
        expect(JSON.stringify(read.log.entries)).toBe(JSON.stringify(log.entries));
      }),
    );
  });

  test("the header keeps what is there, and only that", () => {
    const full: SessionHeader = {
      ...header,
      parentSession: "p",
      seedLength: 3,
      origin: "subagent",
      delegationDepth: 2,
    };
    expect(imported(exportLog(full, [])).header).toEqual(full);
    const { cwd: _, ...bare } = header;
    expect(exportLog(bare, [])).toBe(
      '{"type":"session","version":0,"id":"s1","createdAt":5,"delegationDepth":0}\n',
    );
    expect(imported(exportLog(bare, [])).header).toEqual(bare);
  });
});

function lines(changes: { readonly [line: number]: string } = {}): string {
  return `${foreign.map((line, index) => changes[index] ?? line).join("\n")}\n`;
}

describe("a log that the harness wrote", () => {
  test("is read in our words, its modes and chunks kept as ignorable", () => {
    const { log, header: head, agentPreset, unused, dropped } = imported(lines());
    expect(head).toEqual({ version: 0, id: "h1", createdAt: 1, cwd: "/p" });
    expect([agentPreset, unused, dropped]).toEqual([
      "standard",
      ["agent-preset/selected", "sandbox/mode"],
      0,
    ]);
    expect(
      log.entries
        .slice(9, 14)
        .map(({ seq, time, data, ignorable }) => [seq, time, data, ignorable]),
    ).toEqual([
      [9, 4, { turn: 1, step: 1, chunk: { type: "text-delta", index: 0, text: "a" } }, true],
      [10, 5, { turn: 1, step: 1, chunk: { type: "text-delta", index: 0, text: "b" } }, true],
      [11, 3, { turn: 1, step: 1, chunk: { type: "text-delta", index: 0, text: "c" } }, true],
      [
        12,
        5,
        {
          turn: 1,
          step: 1,
          chunk: { type: "tool-call-delta", index: 1, id: "c1", name: "t", argumentsDelta: "{" },
        },
        true,
      ],
      [
        13,
        5,
        {
          turn: 1,
          step: 1,
          chunk: { type: "tool-call-delta", index: 1, id: "c1", name: "t", argumentsDelta: "}" },
        },
        true,
      ],
    ]);
    expect(deriveMessages(log.surface.nodes).map(({ content }) => content)).toEqual([
      [{ type: "text", text: "go" }],
      [
        { type: "text", text: "abc" },
        { type: "tool-call", callId: "c1", name: "t", arguments: "{}" },
      ],
      [
        {
          type: "tool-result",
          callId: "c1",
          content: [{ type: "text", text: "done" }],
          isError: false,
        },
      ],
    ]);
    expect(log.entries[14]?.data).toMatchObject({
      usage: { inputTokens: 100, cachedInputTokens: 60, cacheWriteTokens: 4 },
    });
    expect(log.entries[18]?.data).toEqual({
      turn: 1,
      reason: { kind: "aborted", reason: "hook", detail: "policy" },
    });
    expect(log.entries[20]?.data).toEqual({
      turn: 2,
      reason: { kind: "error", message: "no", code: "SERVER", status: 500 },
    });
  });

  test("is exported as it came, its packed chunks one a line", () => {
    const read = imported(lines());
    const again = exportLog(read.header, read.log.entries).split("\n");
    const kept = foreign.filter((line) => !line.includes("-chunks") && !line.includes('"session"'));
    // A result says here whether it is an error.
    const same = kept.map((line) => line.replace('"done"}]}', '"done"}],"isError":false}'));
    expect(again.filter((line) => same.includes(line))).toEqual(same);
    expect(again).toHaveLength(foreign.length + 1 + 3);
  });

  test("[harness/S12] what it may not skip is refused by name, also at its torn end: types, content, reasons, versions", () => {
    const cases: readonly (readonly [number, string, string])[] = [
      [
        4,
        '{"type":"x/new","seq":3,"time":3,"data":{}}',
        'line 5: entry 3 has the unknown type "x/new"',
      ],
      [18, '{"type":"x/new","seq":20,"time":3,"data":{}}', 'unknown type "x/new"'],
      [
        7,
        foreign[7]?.replace('"type":"text","text":"go"', '"type":"image","attachment":{}') ?? "",
        'content of the unknown type "image"',
      ],
      [16, foreign[16]?.replace('"aborted"', '"vanished"') ?? "", 'unknown reason "vanished"'],
      [
        0,
        '{"type":"session","version":1,"id":"h","createdAt":1,"delegationDepth":0}',
        "upgrade to read it",
      ],
      [
        0,
        '{"type":"session","version":-1,"id":"h","createdAt":1,"delegationDepth":0}',
        "no upgrade path",
      ],
    ];
    for (const [line, changed, message] of cases) {
      expect([line, importLog(lines({ [line]: changed }))]).toEqual([
        line,
        { ok: false, code: "LOG_UNSUPPORTED", message: expect.stringContaining(message) },
      ]);
    }
    const kept = imported(
      lines({ 4: '{"type":"x/new","seq":3,"time":3,"data":{"a":[1]},"ignorable":true}' }),
    );
    expect(kept.log.entries[3]).toEqual({
      type: "x/new",
      seq: 3,
      time: 3,
      data: { a: [1] },
      ignorable: true,
    });
    expect(kept.unused).toContain("x/new");
  });

  test("[harness/R6] damage at or before the last turn/end is refused with its line, a torn end is dropped", () => {
    const broken = [
      "",
      "{",
      "[]",
      '{"type":"turn/start"}',
      foreign[4]?.replace('"seq":3', '"seq":4') ?? "",
      foreign[4]?.replace('"time":3', '"time":null') ?? "",
      foreign[4]?.replace('"turn":1', '"turn":0') ?? "",
    ];
    for (const line of broken) {
      expect([line, importLog(lines({ 4: line }))]).toEqual([
        line,
        { ok: false, code: "LOG_CORRUPT", message: expect.stringMatching(/^line 5: /u) },
      ]);
      const tail = foreign.slice(0, 4);
      const read = imported(`${[...tail, line, foreign[5]].join("\n")}\n`);
      expect([line, read.log.entries.length, read.dropped]).toEqual([line, 3, 2]);
    }
    const packed = foreign[10]?.replace("[1,-2]", "[1]") ?? "";
    expect(importLog(lines({ 10: packed }))).toMatchObject({
      code: "LOG_CORRUPT",
      message: expect.stringContaining("line 11"),
    });
    expect(
      importLog(lines({ 18: foreign[18]?.replace('"code":"SERVER",', "") ?? "" })),
    ).toMatchObject({ code: "LOG_CORRUPT" });
    const whole = lines();
    for (let cut = whole.length - 2; cut > whole.length - 100; cut -= 1) {
      const read = imported(whole.slice(0, cut));
      expect([cut, read.log.entries.length, read.dropped]).toEqual([cut, 20, 1]);
    }
    expect(imported(whole.slice(0, -1)).log.entries).toHaveLength(21);
  });

  test("without a header of a session it is refused, never a throw, whatever it is", () => {
    const depthless = foreign[0]?.replace(',"delegationDepth":0', "") ?? "";
    for (const head of ["", "{}", "null", "[]", '{"type":"session"}', depthless])
      expect([head, importLog(lines({ 0: head }))]).toMatchObject([head, { code: "LOG_CORRUPT" }]);
    fc.assert(
      fc.property(
        fc.nat(foreign.length),
        fc.nat(400),
        fc.string({ unit: "binary" }),
        (line, at, junk) => {
          const old = foreign[line] ?? "";
          const read = importLog(
            lines({ [line]: old.slice(0, at) + junk + old.slice(at + junk.length) }),
          );
          const { code, message } = read.ok ? { code: "LOG_CORRUPT", message: "" } : read;
          expect([code, message]).toEqual([
            expect.stringMatching(/^LOG_/u),
            expect.not.stringContaining("\n"),
          ]);
        },
      ),
      { numRuns: 500 },
    );
  });
});
