import { expect } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { commands, queries } from "../../src/contracts/names.js";
import type { ScheduleChange, ScheduleChangeResult } from "../../src/contracts/schedule.js";
import type { RemindersView } from "../../src/contracts/session.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { Lab } from "./temporal.js";
import { eventually } from "./until.js";

/** Sessions with reminders, as the tests on a real server play and read them. */

/** Reminders on, and no host. */
export const remindersOn = { config: { worldTools: false, schedule: true } } as const;
/** Reminders on, and a host. */
export const remindersOnHost = { config: { schedule: true } } as const;

type Args = Record<string, string | number | Record<string, string>>;

export function createCall(args: Args) {
  return { tool: "schedule_create", args: { prompt: "check logs", ...args } };
}

/** A scenario that only answers. */
export function answering(turns = 500) {
  return { turns: [{ repeat: turns, steps: [{ text: "answer ${turn}" }] }] };
}

/** Creates a reminder from outside; its target, epoch ms. */
export async function remind(
  lab: Lab,
  { id }: SessionClient,
  rule:
    | { readonly afterSeconds: number }
    | { readonly everySeconds: number }
    | { readonly at: string },
  requestId = "r",
): Promise<number> {
  const change = { requestId, operation: "create", prompt: `prompt of ${requestId}`, ...rule };
  const result = await lab
    .handle(id)
    .executeUpdate<ScheduleChangeResult, [object]>(commands.scheduleChange, { args: [change] });
  if (!result.ok || result.answer.operation !== "create")
    throw new Error(`not created: ${JSON.stringify(result)}`);
  return Date.parse(result.answer.scheduledAt);
}

export async function deleteReminder(
  lab: Lab,
  session: SessionClient,
  reminder: string,
): Promise<ScheduleChangeResult> {
  const change = { requestId: `delete ${reminder}`, operation: "delete", id: reminder };
  return lab
    .handle(session.id)
    .executeUpdate<ScheduleChangeResult, [object]>(commands.scheduleChange, { args: [change] });
}

export async function remindersView(
  lab: Lab,
  session: SessionClient,
  query: object = {},
): Promise<RemindersView> {
  return lab.handle(session.id).query<RemindersView, [object]>(queries.reminders, query);
}

/** Sends one of the commands of a place: suspend, resume, rebind. */
export async function command(
  lab: Lab,
  session: SessionClient,
  name: string,
  input: object = {},
): Promise<unknown> {
  return lab.handle(session.id).executeUpdate<unknown, [object]>(name, { args: [input] });
}

/** Waits until a turn of this number or a later one is over and none is open; returns the log. */
export async function untilTurn(
  lab: Lab,
  session: SessionClient,
  number: number,
  timeoutMs = 150_000,
): Promise<LogEntry[]> {
  await eventually(async () => {
    const { turn } = await session.view();
    expect(turn.open).toBe(false);
    expect(turn.number).toBeGreaterThanOrEqual(number);
  }, timeoutMs);
  return lab.entries(session);
}

export async function untilState(
  session: SessionClient,
  state: string,
  timeoutMs = 150_000,
): Promise<void> {
  await eventually(async () => expect((await session.view()).state).toBe(state), timeoutMs);
}

/** Waits until the clock of the machine, which is the server's, is there. */
export async function untilClock(ms: number): Promise<void> {
  await eventually(() => expect(Date.now()).toBeGreaterThanOrEqual(ms), 120_000);
}

export interface Shown {
  readonly id: string;
  readonly text: string;
  readonly seq: number;
}

/** Messages that the model was shown, in order; all but those of a user when `kind` is plugin. */
export function shownTo(log: readonly LogEntry[], kind?: "user" | "plugin"): readonly Shown[] {
  return log.flatMap((entry) => {
    if (entry.type !== "user/message") return [];
    const { id, source, content } = entry.data.message;
    const [block] = content;
    if (kind !== undefined && source.kind !== kind) return [];
    return [{ id, text: block?.type === "text" ? block.text : "", seq: entry.seq }];
  });
}

/** Reminders that the model was shown, in order. */
export function remindersIn(log: readonly LogEntry[]): readonly Shown[] {
  return shownTo(log).filter(({ id }) => id.startsWith("schedule/"));
}

/** What happened to reminders, in order. */
export function changesIn(log: readonly LogEntry[]): readonly ScheduleChange[] {
  return log.flatMap((entry) => (entry.type === "schedule/change" ? [entry.data] : []));
}

export function dispatchesIn(log: readonly LogEntry[]) {
  return log.filter(
    (entry) => entry.type === "schedule/change" && entry.data.operation === "dispatch",
  );
}

/** The reminders of a batch, as the model reads them. */
export function batchIn({ text }: Shown): readonly {
  readonly schedule_id: string;
  readonly occurrence_at: string;
}[] {
  const json = /^reminders_json: (.*)$/mu.exec(text)?.[1] ?? "[]";
  return JSON.parse(json) as ReturnType<typeof batchIn>;
}

/** The one text of each tool result, in order. */
export function resultsIn(log: readonly LogEntry[]): readonly string[] {
  return log.flatMap((entry) => {
    if (entry.type !== "tool/result") return [];
    const [block] = entry.data.message.content;
    return block?.type === "tool-result" ? [block.content[0]?.text ?? ""] : [];
  });
}

export function livenessIn(log: readonly LogEntry[]) {
  return log.flatMap((entry) => (entry.type === "session/live" ? [entry.data] : []));
}
