import { dirname } from "node:path";
import { describe, expect } from "vitest";
import { commands } from "../../src/cli/commands/index.js";
import { openBackend } from "../../src/cli/open-backend.js";
import { runCli } from "../../src/cli/run.js";
import { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { RemindersResult } from "../../src/client/session-reminders.js";
import type { SearchAttributeName } from "../../src/contracts/names.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { fakeIo } from "../support/fake-cli.js";
import { test, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const told = { repeat: 20, steps: [{ text: "told" }] };
const on = { config: { worldTools: false, schedule: true } } as const;

describe.concurrent("reminders by a client", () => {
  test("are set in every form, listed in the order of their creation, come once, and are deleted", async ({
    lab,
  }) => {
    const session = await lab.session({ turns: [told] }, on);
    const soon = await session.remind({ prompt: " now ", in: 1, id: "op" });
    await expect(session.remind({ prompt: " now ", in: 1, id: "op" })).resolves.toEqual(soon);
    const local = { date: "2099-12-01", time: "09:00:00", time_zone: "europe/berlin" };
    await expect(session.remind({ prompt: "then", at: local })).resolves.toMatchObject({
      id: "schedule-2",
      scheduledAt: "2099-12-01T08:00:00.000Z",
    });
    const again = await session.remind({ prompt: "again", every: 300 });
    expect(again).toMatchObject({ ok: true, id: "schedule-3" });
    await eventually(async () => {
      expect(ids(await session.reminders())).toEqual(["schedule-2", "schedule-3"]);
      expect((await session.view()).turn).toMatchObject({ number: 1, open: false });
    });
    expect(reminded(await lab.entries(session))).toEqual(["now"]);
    await expect(session.deleteReminder("schedule-3")).resolves.toMatchObject({ deleted: true });
    await expect(session.deleteReminder("schedule-1")).resolves.toMatchObject({
      deleted: false,
      code: "schedule_not_found",
    });
    await expect(session.reminders()).resolves.toMatchObject({
      ok: true,
      enabled: true,
      live: true,
      reminders: [{ id: "schedule-2", prompt: "then", kind: "at", state: "scheduled" }],
    });
  });

  test("are refused by the session as values, and by one that has none or is closed as errors", async ({
    lab,
  }) => {
    const limits = { maxActive: 1, maxPromptBytes: 4 };
    const session = await lab.session(
      { turns: [told] },
      { config: { worldTools: false, schedule: limits } },
    );
    const code = async (options: Parameters<SessionClient["remind"]>[0]) => {
      const result = await session.remind(options);
      return result.ok ? result.id : result.code;
    };
    await expect(code({ prompt: "12345", in: 9 })).resolves.toBe("invalid_prompt");
    await expect(code({ prompt: "p", at: "2020-01-01T00:00:00Z" })).resolves.toBe("not_future");
    await expect(code({ prompt: "p", at: "soon" })).resolves.toBe("invalid_rule");
    await expect(code({ prompt: "p", in: 9_000 })).resolves.toBe("schedule-1");
    await expect(code({ prompt: "p", in: 9 })).resolves.toBe("too_many_schedules");
    await session.close();
    await expect(session.remind({ prompt: "p", in: 9 })).rejects.toMatchObject({
      code: "SESSION_CLOSED",
    });
    const without = await lab.session({ turns: [told] }, { config: { worldTools: false } });
    await expect(without.remind({ prompt: "p", in: 9 })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining("schedule: true"),
    });
    await expect(without.reminders()).resolves.toMatchObject({ enabled: false, reminders: [] });
    await without.configure({ config: { schedule: true }, refreshTools: true });
    await expect(without.remind({ prompt: "p", in: 9_000 })).resolves.toMatchObject({ ok: true });
    await without.followup("go");
    await without.waitIdle();
    const tools = (await lab.requests(without.id)).at(-1)?.tools.map(({ name }) => name);
    expect(tools).toContain("schedule_create");
  });

  test("[schedule/T17] a call that ends without a worker's verdict is persistence_uncertain; the list tells the truth, and a repeat makes one", async ({
    lab,
  }) => {
    const place = await lab.place({ roles: ["session"] });
    const session = await lab.session({ turns: [told] }, { ...on, at: place, host: null });
    await session.remind({ prompt: "kept", in: 9_000 });
    await place.stop();
    const hasty = await LonghaulClient.connect({
      connection: { address: lab.address },
      callTimeoutMs: 1_000,
    });
    const calls = hasty.session(session.id);
    const options = { prompt: "unsure", in: 9_000, id: "op" };
    await expect(calls.remind(options)).resolves.toMatchObject({
      ok: false,
      code: "persistence_uncertain",
      operation: "create",
      requestId: "op",
      message: expect.stringMatching(/^[^\n]*no worker answered[^\n]*$/u),
    });
    await expect(calls.deleteReminder("schedule-1", { id: "del" })).resolves.toMatchObject({
      code: "persistence_uncertain",
      operation: "delete",
      id: "schedule-1",
    });
    await expect(calls.reminders()).resolves.toMatchObject({
      code: "persistence_uncertain",
      operation: "list",
    });
    // A signal is kept by the server until a worker is there.
    const signal = { operation: "create", prompt: "kept too", in: 9_000, id: "sig" } as const;
    await expect(calls.signalReminder(signal)).resolves.toEqual({ ok: true, requestId: "sig" });
    await hasty.close();
    await place.start({ roles: ["session"] });
    await expect(session.remind(options)).resolves.toMatchObject({ ok: true });
    await expect(session.deleteReminder("schedule-1", { id: "del" })).resolves.toMatchObject({
      ok: true,
      deleted: true,
    });
    await expect(session.reminderOutcome("sig")).resolves.toMatchObject({ ok: true });
    const list = await session.reminders();
    expect(list.ok ? list.reminders.map(({ prompt }) => prompt).toSorted() : list).toEqual([
      "kept too",
      "unsure",
    ]);
  });

  test("[schedule/T12] are overdue by the asker's clock, long after the session's last task, until it is resumed", async ({
    lab,
  }) => {
    const session = await lab.session({ turns: [told] }, on);
    await session.suspend();
    await session.remind({ prompt: "late", in: 1 });
    await eventually(async () =>
      expect(await session.reminders()).toMatchObject({
        live: false,
        reminders: [{ state: "overdue" }],
      }),
    );
    expect((await session.view()).state).toBe("suspended");
    await eventually(async () => {
      const found = await lab.client.list({ overdue: true, limit: 1_000 });
      expect(found.find(({ id }) => id === session.id)).toMatchObject({
        state: "suspended",
        nextReminder: expect.any(Number),
      });
    });
    await session.resume();
    await eventually(async () => {
      expect((await session.view()).turn).toMatchObject({ number: 1, open: false });
    });
    expect(reminded(await lab.entries(session))).toEqual(["late"]);
    await eventually(async () => {
      const found = await lab.client.list({ overdue: true });
      expect(found.map(({ id }) => id)).not.toContain(session.id);
    });
  });

  test("are asked for one session after the other where visibility does not know them", async ({
    lab,
  }) => {
    const session = await lab.session({ turns: [told] }, { ...on, attributes: [] });
    await session.suspend();
    await session.remind({ prompt: "late", in: 1 });
    const attributes: readonly SearchAttributeName[] = ["LonghaulState"];
    const client = await LonghaulClient.connect({
      connection: { address: lab.address },
      attributes,
    });
    await eventually(async () => {
      const query = `WorkflowId = '${session.id}'`;
      const found = await client.list({ overdue: true, query });
      expect(found).toMatchObject([{ id: session.id, nextReminder: expect.any(Number) }]);
    });
    await client.close();
  });

  test("a session is moved to another host, and both are listed with who works for them", async ({
    lab,
  }) => {
    const [a, b] = [await lab.place(), await lab.emptyPlace()];
    const session = await lab.session({ turns: [told] }, { at: a, config: { schedule: true } });
    await session.rebind(b.hostId);
    expect((await session.view()).host).toBe(b.hostId);
    await eventually(async () => {
      const hosts = await lab.client.hosts([a.hostId]);
      const of = (id: string) => hosts.find((host) => host.id === id);
      expect(of(a.hostId)).toMatchObject({
        polling: true,
        lastSeen: expect.any(Number),
        sessions: 0,
      });
      expect(of(b.hostId)).toEqual({ id: b.hostId, polling: false, workers: [], sessions: 1 });
    });
    const nowhere = await lab.session({ turns: [told] }, on);
    await expect(nowhere.rebind(b.hostId)).rejects.toMatchObject({ code: "INVALID_INPUT" });
  });
});

test("the command line sets, lists and deletes reminders, suspends, resumes and lists hosts", async ({
  lab,
}) => {
  const session = await lab.session({ turns: [told] }, on);
  const line = (...words: readonly string[]) => cli(lab, words);
  const tz = ["--tz", "Asia/Tokyo"];
  const at = "2099-12-01 09:00";
  const set = await line("remind", "add", session.id, "--at", at, ...tz, "look", "there");
  expect(set).toEqual({
    exitCode: 0,
    stdout:
      "at 2099-12-01T00:00:00.000Z, that is Tue 2099-12-01 09:00:00 +09:00 Asia/Tokyo\n" +
      "schedule-1 is set for 2099-12-01T00:00:00.000Z, that is Tue 2099-12-01 09:00:00 +09:00 Asia/Tokyo\n",
    stderr: "",
  });
  await line("suspend", session.id);
  await line("remind", "add", session.id, "--in", "1s", "soon");
  await eventually(async () => {
    const { stdout } = await line("remind", "list", session.id, ...tz);
    expect(stdout).toMatch(
      /^REMINDER .* IN Asia\/Tokyo .*\nschedule-1 +scheduled .*Tue 2099-12-01 09:00:00 \+09:00 +once +look there\nschedule-2 +overdue .* soon\n$/,
    );
  });
  expect((await line("show", session.id)).stdout).toMatch(
    /State +suspended \(longhaul resume [^\n]*\n(?:.*\n)*Reminders +2, next schedule-2 is overdue since /,
  );
  await eventually(async () => {
    expect((await line("sessions", "--overdue")).stdout).toContain(session.id);
  });
  expect((await line("resume", session.id)).stdout).toBe(`resumed ${session.id}\n`);
  await eventually(async () => {
    expect((await line("sessions", "--overdue")).stdout).not.toContain(session.id);
  });
  expect((await line("remind", "delete", session.id, "schedule-1")).exitCode).toBe(0);
  expect((await line("remind", "delete", session.id, "schedule-1")).exitCode).toBe(1);
  expect((await line("remind", "list", session.id)).stdout).toBe("no reminders\n");
  expect(reminded(await lab.entries(session))).toEqual(["soon"]);
  expect((await line("hosts")).stdout).toMatch(
    /^HOST .*\n(?:.*\n)*[^\n]+ \(here\) +no +- +0 +-\n/m,
  );
  expect(await line("rebind", session.id, "b")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("INVALID_INPUT"),
  });
});

async function cli(lab: Lab, words: readonly string[]) {
  const home = dirname(dirname(dirname(lab.store.locator("session", "stream"))));
  const io = fakeIo({ env: { LONGHAUL_HOME: home, TEMPORAL_ADDRESS: lab.address } });
  const exitCode = await runCli(words, io, { commands, version: "0", openBackend });
  return { exitCode, stdout: io.out.text, stderr: io.err.text };
}

function ids(list: RemindersResult): readonly string[] {
  return list.ok ? list.reminders.map(({ id }) => id) : [list.code];
}

/** What the session was reminded of, in the order of the turns. */
function reminded(log: readonly LogEntry[]): readonly string[] {
  return log.flatMap((entry) => {
    if (entry.type !== "user/message" || entry.data.message.source.kind !== "plugin") return [];
    const [block] = entry.data.message.content;
    const prompt = /^reminder_prompt_json: (.*)$/m.exec(block?.type === "text" ? block.text : "");
    return prompt === null ? [] : [JSON.parse(prompt[1] ?? "") as string];
  });
}
