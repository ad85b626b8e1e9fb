import { describe, expect } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { commands, queries } from "../../src/contracts/names.js";
import type { RemindersView } from "../../src/contracts/session.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { eventsOf } from "../support/history.js";
import { test, type Lab } from "../support/temporal.js";
import { fastForward } from "../support/time-skipping.js";
import { eventually } from "../support/until.js";

type Args = Record<string, string | number | Record<string, string>>;

const create = (args: Args) => ({ tool: "schedule_create", args });
const after = (seconds: number, prompt = "check logs") =>
  create({ prompt, after_seconds: seconds });
const list = { tool: "schedule_list", args: {} };
const reminded = { steps: [{ text: "told" }] };
const on = { config: { worldTools: false, schedule: true } } as const;

describe.concurrent("a reminder of a session", () => {
  test("comes back as a turn of its own when it is due, and costs at most 8 events", async ({
    lab,
  }) => {
    const turns = [{ steps: [{ calls: [after(3_600)] }, { text: "set" }] }, reminded];
    const session = await lab.session({ turns }, { ...on, attributes: [] });
    await untilTurns(lab, session, 1);
    await fastForward(lab.temporal.workflow, session.id, 3_600_000);
    const log = await untilTurns(lab, session, 2, false);
    expect(remindersOf(log)).toEqual(["schedule/schedule-1/" + scheduledOf(log)]);
    expect(orderOf(log)).toEqual([
      "inbox",
      "dispatch",
      "turn/start",
      "inbox",
      "step/start",
      "user/message",
    ]);
    const history = await lab.history(session.id);
    expect(eventsOf(history, "timerStartedEventAttributes")).toHaveLength(1);
    expect(eventsOf(history, "timerCanceledEventAttributes")).toHaveLength(0);
    await lab.witness(session);
  });

  test("[schedule/T10] [schedule/T11] is created by signals, once each, and malformed ones change nothing", async ({
    lab,
  }) => {
    const session = await lab.session({ turns: [reminded] }, on);
    const handle = lab.handle(session.id);
    const wanted = { requestId: "r1", operation: "create", prompt: "a", afterSeconds: 3_600 };
    await handle.signal(commands.scheduleChange, [
      wanted,
      wanted,
      { requestId: "r2", operation: "nonsense" },
    ]);
    await handle.signal(commands.scheduleChange, wanted);
    await handle.signal(commands.scheduleChange, 42);
    await handle.signal(commands.scheduleChange, { ...wanted, requestId: "r3" });
    const view = async (requestId: string): Promise<RemindersView> =>
      handle.query<RemindersView, [object]>(queries.reminders, { requestId });
    await eventually(async () => expect((await view("r3")).records).toHaveLength(2));
    expect((await view("r1")).outcome).toMatchObject({ ok: true, answer: { id: "schedule-1" } });
    expect((await view("r2")).outcome).toMatchObject({ ok: false, code: "INVALID_INPUT" });
    expect((await view("r3")).outcome).toMatchObject({ ok: true, answer: { id: "schedule-2" } });
    const log = await lab.entries(session);
    expect(log.filter(({ type }) => type === "schedule/change")).toHaveLength(2);
  });

  test("[schedule/T3] does not come while the session is suspended, and once when it is resumed", async ({
    lab,
  }) => {
    const session = await lab.session({ turns: [reminded] }, on);
    const handle = lab.handle(session.id);
    await handle.executeUpdate(commands.suspend, { args: [{}] });
    const wanted = { requestId: "r", operation: "create", prompt: "a", afterSeconds: 1 };
    await handle.executeUpdate(commands.scheduleChange, { args: [wanted] });
    expect((await session.view()).state).toBe("suspended");
    const due = Date.parse(scheduledOf(await lab.entries(session)));
    await eventually(() => expect(Date.now()).toBeGreaterThan(due + 1_000));
    expect((await session.view()).turn.number).toBe(0);
    await handle.executeUpdate(commands.resume, { args: [{}] });
    const log = await untilTurns(lab, session, 1, false);
    expect(remindersOf(log)).toHaveLength(1);
    await session.close();
  });

  test("[schedule/T4] comes after the turn of the message that resumed its session", async ({
    lab,
  }) => {
    const turns = [{ steps: [{ text: "hi" }] }, reminded];
    const session = await lab.session({ turns }, on);
    const handle = lab.handle(session.id);
    await handle.executeUpdate(commands.suspend, { args: [{}] });
    const wanted = { requestId: "r", operation: "create", prompt: "a", afterSeconds: 1 };
    await handle.executeUpdate(commands.scheduleChange, { args: [wanted] });
    const due = Date.parse(scheduledOf(await lab.entries(session)));
    await eventually(() => expect(Date.now()).toBeGreaterThan(due));
    const log = await untilTurns(lab, session, 2);
    const shown = log.flatMap((entry) =>
      entry.type === "user/message" ? [entry.data.message.source.kind] : [],
    );
    expect(shown).toEqual(["user", "plugin"]);
  });

  test("[schedule/70] in place of a blocked preflight: at a local time is looked up outside the workflow, and the list after it waits and shows it", async ({
    lab,
  }) => {
    const at = { date: "2099-08-06", time: "09:00:00", time_zone: "Asia/Shanghai" };
    const session = await lab.session(
      { turns: [{ steps: [{ calls: [create({ prompt: "p", at }), list] }, { text: "set" }] }] },
      { config: { worldTools: false, schedule: true, timeContext: true } },
    );
    const log = await lab.play(session);
    const results = log.flatMap((entry) => {
      if (entry.type !== "tool/result") return [];
      const [block] = entry.data.message.content;
      return block?.type === "tool-result" ? [block.content[0]?.text ?? ""] : [];
    });
    expect(results.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { id: "schedule-1", scheduledAt: "2099-08-06T01:00:00.000Z", state: "scheduled" },
      [{ id: "schedule-1" }],
    ]);
    const readings = log.filter(
      (entry) =>
        entry.type === "user/message" && entry.data.message.source["name"] === "time-context",
    );
    expect(readings).toHaveLength(2);
    // Each by a task of its own: what a local activity says has no place among the others (facts §0.33).
    const asked = eventsOf(
      await lab.history(session.id),
      "activityTaskScheduledEventAttributes",
    ).map(({ activityType }) => activityType?.name);
    expect(asked.filter((name) => name === "time.reading")).toHaveLength(2);
    expect(asked.filter((name) => name === "zone.resolve")).toHaveLength(1);
    await lab.witness(session);
  });
});

async function untilTurns(
  lab: Lab,
  session: SessionClient,
  turns: number,
  send = true,
): Promise<LogEntry[]> {
  if (send) await session.followup("go");
  await eventually(async () => {
    expect((await session.view()).turn).toMatchObject({ number: turns, open: false });
  });
  return lab.entries(session);
}

function scheduledOf(log: readonly LogEntry[]): string {
  for (const entry of log) {
    if (entry.type === "schedule/change" && entry.data.operation === "create")
      return entry.data.schedule.scheduledAt;
  }
  throw new Error("nothing was scheduled");
}

/** Ids of the messages of reminders that the model was shown. */
function remindersOf(log: readonly LogEntry[]): readonly string[] {
  return log.flatMap((entry) =>
    entry.type === "user/message" && entry.data.message.id.startsWith("schedule/")
      ? [entry.data.message.id]
      : [],
  );
}

/** What is logged from the insertion of a reminder to its message. */
function orderOf(log: readonly LogEntry[]): readonly string[] {
  const from = log.findIndex(
    (entry) =>
      entry.type === "agent/inbox/spliced" &&
      entry.data.inserted.some(({ id }) => id.startsWith("schedule/")),
  );
  return log.slice(from, from + 6).map((entry) => {
    if (entry.type === "agent/inbox/spliced") return "inbox";
    return entry.type === "schedule/change" ? entry.data.operation : entry.type;
  });
}
