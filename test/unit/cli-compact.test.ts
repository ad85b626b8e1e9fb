import { describe, expect, it } from "vitest";
import type { CompactionOutcome } from "../../src/client/session-compaction.js";
import { Cards } from "../../src/cli/chat/cards.js";
import { catchUp } from "../../src/cli/chat/seen.js";
import { commands } from "../../src/cli/commands/index.js";
import { terminalOf } from "../../src/cli/render/terminal.js";
import { Transcript } from "../../src/cli/render/transcript.js";
import { runCli } from "../../src/cli/run.js";
import { LonghaulError } from "../../src/contracts/errors.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { compact } from "../../src/domain/commands.js";
import { fakeBackend, fakeIo, fakeSession } from "../support/fake-cli.js";
import {
  calls,
  openSession,
  output,
  row,
  run,
  saying,
  send,
  text,
} from "../support/session-script.js";

async function line(outcome: CompactionOutcome | LonghaulError, ...more: readonly string[]) {
  const io = fakeIo();
  const session = fakeSession({
    compact: () =>
      outcome instanceof LonghaulError ? Promise.reject(outcome) : Promise.resolve(outcome),
  });
  const exitCode = await runCli(["compact", "s-1", ...more], io, {
    commands,
    version: "0",
    openBackend: () => Promise.resolve(fakeBackend(session)),
  });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

describe("longhaul compact", () => {
  const done = { changed: true, messages: 12, tokensBefore: 34_000, tokensAfter: 800 } as const;

  it("says what a summary stands for now, and that there was nothing to do", async () => {
    expect(await line(done)).toEqual({
      exitCode: 0,
      stdout: "compacted: 12 messages of about 34000 tokens are now a summary of about 800\n",
      stderr: "",
    });
    expect(await line({ changed: false })).toMatchObject({
      exitCode: 0,
      stdout: "there is nothing to compact\n",
    });
    expect(JSON.parse((await line(done, "--json")).stdout)).toEqual({ session: "s-1", ...done });
  });

  it("says on stderr why it came to nothing, with exit code 1", async () => {
    const failed = { changed: false, problem: "summary", message: "AUTH: no\nkey" } as const;
    expect(await line(failed)).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "not compacted (summary): AUTH: no key\n",
    });
    expect(await line(failed, "--json")).toMatchObject({ exitCode: 1, stderr: "" });
    const busy = await line(new LonghaulError("BUSY", "session s-1 is running a turn"));
    expect(busy).toMatchObject({ exitCode: 1, stdout: "" });
    expect(busy.stderr).toContain("BUSY");
  });
});

describe("a transcript on a terminal", () => {
  const session = openSession({ compaction: false }, [row("t")]);
  send(session, "followup", "m1");
  run(session, {
    model: saying(calls("t"), text("first answer")),
    tools: { t: () => output("x".repeat(9_000)) },
  });
  send(session, "followup", "m2");
  run(session);
  compact(session, { opId: "a" });
  run(session, { summary: () => text("secret summary") });
  const shortened: LogEntry = {
    ...(session.log.entries.find(({ type }) => type === "tool/result") as LogEntry),
    seq: session.log.lastSeq + 1,
    surfaceOp: { op: "replace", start: 0, end: 1 },
  };
  const entries = [...session.log.entries, shortened];

  it("tells a compaction in a line, and shows nothing that only the model is shown", () => {
    const written: string[] = [];
    const transcript = new Transcript(
      (part) => written.push(part),
      terminalOf(fakeIo().stdout, { NO_COLOR: "1" }),
    );
    for (const entry of entries) transcript.event({ type: "entry", entry });
    transcript.end();
    const shown = written.join("");
    expect(shown).toContain("the transcript is being compacted");
    expect(shown).toMatch(/a summary stands for 5 messages of about \d+ tokens/u);
    expect(shown).not.toContain("secret summary");
    expect(shown.match(/first answer/gu)).toHaveLength(1);
  });

  it("numbers a call once, and does not count a shortened result as news", () => {
    const cards = new Cards();
    for (const entry of entries) cards.entry(entry);
    expect(cards.last).toBe(1);
    expect(cards.open(1)?.join("\n")).toContain("x".repeat(9_000));
    expect(catchUp(entries, session.log.lastSeq).fresh).toBeUndefined();
  });
});
