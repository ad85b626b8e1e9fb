import { beforeAll, describe, expect, test as base } from "vitest";
import type { LogEntry, SessionHeader } from "../../src/contracts/log.js";
import { SessionLog } from "../../src/domain/log.js";
import { exportLog, importLog } from "../../src/domain/log-text.js";
import { closeLog, plantSeed } from "../../src/domain/plant-seed.js";
import { forkHeader } from "../../src/domain/seed.js";
import type { Session } from "../../src/domain/session.js";
import { foreignLog } from "../support/foreign-log.js";
import { JobsInSession, openJobSession } from "../support/jobs-in-session.js";
import { installReference, type ReferenceHarness } from "../support/reference-harness.js";
import {
  calls,
  config,
  failure,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
} from "../support/session-script.js";

/** The published build of the reference harness reads what is exported here, and the other way round. */
let found: ReferenceHarness | string = "not installed";
beforeAll(async () => {
  found = await installReference();
}, 300_000);

const test = base.extend<{ reference: ReferenceHarness }>({
  reference: async ({ skip }, use) => {
    if (typeof found === "string") skip(found);
    else await use(found);
  },
});

const header: SessionHeader = { version: 0, id: "s1", createdAt: 5, cwd: "/w" };

/** A tool with an image, a retry, a length limit, a failed turn, a job, a list, and a message that waits. */
function busy(): Session {
  const session = openJobSession([row("t"), row("no")], {});
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
  new JobsInSession(session).start();
  send(session, "inject", "later");
  return session;
}

/** One whose older part a summary stands for. */
function replaced(): readonly LogEntry[] {
  const { entries } = busy().log;
  const log = new SessionLog();
  for (const entry of entries) log.append(entry, entry.time);
  const shadowed = log.surface.nodes.slice(0, 3).map(({ seq }) => seq);
  const summary = {
    id: "sum",
    role: "user",
    content: [{ type: "text", text: "so far" }],
    source: { kind: "plugin", name: "compaction" },
  } as const;
  const appended = log.append(
    {
      type: "user/message",
      data: { message: summary },
      surfaceOp: { op: "replace", start: 0, end: 3 },
      sourceEventSeqs: shadowed,
    },
    99,
  );
  if (!appended.ok) throw new Error(appended.message);
  return log.entries;
}

function forked(): { readonly header: SessionHeader; readonly entries: readonly LogEntry[] } {
  const source = busy();
  const log = new SessionLog();
  for (const entry of source.log.entries) log.append(entry, entry.time);
  const own = forkHeader(header, { id: "c1", createdAt: 9, seedLength: log.entries.length });
  const session = plantSeed({ kind: "fork", header: own, config, log });
  session.record({ type: "session/open", data: { header: own, config } });
  return { header: own, entries: session.log.entries };
}

const closedCases = [
  ["of a busy session", { header, entries: busy().log.entries }],
  ["of one without a turn", { header, entries: openSession().log.entries }],
  ["with a summary in place of its older part", { header, entries: replaced() }],
  ["of a fork", forked()],
] as const;

describe("the reference harness", () => {
  test.for(closedCases)(
    "[harness/R14] reads a log %s as it was written, and shows the model the same messages",
    async ([, log], { reference }) => {
      const exported = exportLog(log.header, log.entries);
      const [first, ...lines] = parsedLines(exported);
      const read = await reference.read(exported);
      expect(read.refused).toBeUndefined();
      expect({ type: "session", ...read.header }).toEqual(first);
      expect(read.events).toEqual(lines);
      expect(read.messages).toEqual(shownIn(lines, log.entries));
    },
  );

  test("[harness/R1] [harness/R2] [harness/R3] [harness/R4] closes a log that ends in a turn as an import does, wherever it ends", async ({
    reference,
  }) => {
    const { entries } = busy().log;
    const cuts = entries.flatMap((entry, index) =>
      ["turn/start", "step/start", "assistant/message", "tool/call", "tool/result"].includes(
        entry.type,
      )
        ? [index + 1]
        : [],
    );
    expect(cuts.length).toBeGreaterThan(8);
    for (const cut of cuts) {
      const exported = exportLog(header, entries.slice(0, cut));
      const here = importLog(exported);
      if (!here.ok) throw new Error(here.message);
      closeLog(here.log);
      const ours = parsedLines(exportLog(header, here.log.entries)).slice(1);
      const theirs = (await reference.read(exported)).events ?? [];
      expect(theirs.map(withoutWords), `cut after entry ${cut - 1}`).toEqual(
        ours.map(withoutWords),
      );
    }
  });

  test("writes logs that an import reads, its packed chunks too", async ({ reference }) => {
    const chunks = Array.from({ length: 6 }, (_, index) => ({
      type: "assistant/chunk",
      seq: 9 + index,
      time: 4,
      data: { turn: 1, step: 1, chunk: { type: "text-delta", index: 0, text: `${index}` } },
    }));
    const lines = [
      ...foreignLog.slice(0, 10),
      ...chunks.map((chunk) => JSON.stringify(chunk)),
      '{"type":"step/end","seq":15,"time":5,"data":{"turn":1,"step":1}}',
      '{"type":"turn/end","seq":16,"time":5,"data":{"turn":1,"reason":{"kind":"completed"}}}',
    ];
    const written = await reference.write(`${lines.join("\n")}\n`);
    expect(written).toContain("text-chunks");
    const read = importLog(written);
    if (!read.ok) throw new Error(read.message);
    expect(parsedLines(exportLog(read.header, read.log.entries)).slice(1)).toEqual(
      parsedLines(lines.join("\n")).slice(1),
    );
  });

  test("refuses what an import refuses: a gap, and a version of another time", async ({
    reference,
  }) => {
    const exported = exportLog(header, busy().log.entries);
    const lines = exported.split("\n");
    for (const broken of [
      lines.toSpliced(5, 1).join("\n"),
      exported.replace('"version":0', '"version":9'),
    ]) {
      expect(importLog(broken).ok).toBe(false);
      expect((await reference.read(broken)).refused).toBeDefined();
    }
  });
});

function parsedLines(exported: string): readonly { readonly [key: string]: unknown }[] {
  return exported
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly [key: string]: unknown });
}

/** The messages of our surface, in the words of the exported lines. */
function shownIn(
  lines: readonly { readonly [key: string]: unknown }[],
  entries: readonly LogEntry[],
): readonly unknown[] {
  const log = new SessionLog();
  for (const entry of entries) log.append(entry, entry.time);
  return log.surface.nodes
    .filter(({ message }) => message.role !== "assistant" || message.content.length > 0)
    .map(({ seq }) => {
      const { type, data } = lines[seq] as { type: string; data: { message?: unknown } };
      return type === "user/message" ? data : data.message;
    });
}

/** A closing result has an id, a text and a name of the error of our own. */
function withoutWords(event: object): unknown {
  const { type, data } = event as {
    readonly type: string;
    readonly data: { readonly error?: { readonly code?: string }; readonly message?: object };
  };
  const code = data.error?.code;
  if (type !== "tool/result" || (code !== "TOOL_NOT_STARTED" && code !== "TOOL_OUTCOME_UNKNOWN"))
    return event;
  const { content } = data.message as {
    content: readonly { readonly isError?: boolean; readonly toolCallId?: string }[];
  };
  const answers = content.map(({ isError, toolCallId }) => ({ isError, toolCallId }));
  return { ...event, data: { ...data, error: { code }, message: answers } };
}
