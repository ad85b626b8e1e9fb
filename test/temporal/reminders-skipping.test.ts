import { describe, expect } from "vitest";
import { commands } from "../../src/contracts/names.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { optionalTsToMs } from "@temporalio/common/lib/time.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { timerSegmentMs } from "../../src/domain/schedule-drive.js";
import { eventsOf, type History } from "../support/history.js";
import {
  answering,
  batchIn,
  command,
  createCall,
  deleteReminder,
  dispatchesIn,
  remind,
  remindersIn,
  remindersOn,
  remindersView,
  resultsIn,
  untilTurn,
} from "../support/reminder-script.js";
import { cacheSize, test, type Lab } from "../support/temporal.js";
import { fastForward, virtualTime } from "../support/time-skipping.js";

const [minute, day] = [60_000, 86_400_000];
const iso = (ms: number): string => new Date(ms).toISOString();

// Hundreds of turns: once is enough.
describe.runIf(cacheSize > 0)(
  "a reminder, while the clock of its session runs ahead",
  { concurrent: true, timeout: 900_000 },
  () => {
    test("comes a year long on its grid: every two weeks and every 30 days, a batch when they meet; each costs at most 8 events beside its turn", async ({
      lab,
    }) => {
      const session = await lab.session(answering(), { ...remindersOn, attributes: [] });
      const [fortnightly, monthly] = await createTogether(lab, session, [
        { everySeconds: 14 * 86_400 },
        { everySeconds: 30 * 86_400 },
      ]);
      await fastForward(lab.temporal.workflow, session.id, 366 * day);
      const log = await settled(lab, session);
      const told = remindersIn(log).map(batchIn);
      const at = (id: string): readonly string[] =>
        told.flat().flatMap((one) => (one.schedule_id === id ? [one.occurrence_at] : []));
      const grid = (first: number, every: number, count: number): readonly string[] =>
        Array.from({ length: count }, (_, index) => iso(first + index * every));
      expect(at("schedule-1")).toEqual(grid(fortnightly, 14 * day, 26));
      expect(at("schedule-2")).toEqual(grid(monthly, 30 * day, 12));
      // They meet on the 210th day.
      expect(told.filter((batch) => batch.length === 2)).toHaveLength(1);
      expect(told).toHaveLength(26 + 12 - 1);
      for (const [index, batch] of told.entries()) expect(batch, `batch ${index}`).not.toEqual([]);
      const { records } = await remindersView(lab, session);
      expect(records.map(({ scheduledAt }) => scheduledAt)).toEqual([
        iso(fortnightly + 26 * 14 * day),
        iso(monthly + 12 * 30 * day),
      ]);
      const history = await lab.history(session.id);
      expect(longestTimer(history)).toBeLessThanOrEqual(timerSegmentMs);
      const cost = eventsPerDelivery(history, told.length);
      console.log(`${told.length} deliveries: ${JSON.stringify(cost)} events each`);
      expect(cost.besideTheTurn).toBeLessThanOrEqual(8);
    });

    test.for([
      ["America/New_York", "2027-03-14", "2027-11-07", [-5, -4]],
      ["Europe/Berlin", "2027-03-28", "2027-10-31", [1, 2]],
    ] as const)(
      "at 9 in %s comes at 9 there on both sides of both changes of the clock, and a daily rule keeps to 24 hours",
      async ([zone, spring, autumn, [winter, summer]], { lab }) => {
        const at = (date: string) =>
          createCall({ at: { date, time: "09:00:00", time_zone: zone }, prompt: date });
        const days = [spring, autumn].flatMap((date) => [shift(date, -1), date]);
        const session = await lab.session(
          { turns: [{ steps: [{ calls: days.map(at) }, { text: "set" }] }, ...answering().turns] },
          remindersOn,
        );
        await lab.play(session);
        expect(resultsIn(await lab.entries(session)).join()).not.toContain("code");
        const expected = days.map((date, index) => {
          const offset = index === 0 || index === 3 ? winter : summer;
          return iso(Date.parse(`${date}T09:00:00Z`) - offset * 3_600_000);
        });
        for (const [index, date] of [spring, autumn].entries()) {
          const from = Date.parse(`${date}T00:00:00Z`) - day - 12 * 3_600_000;
          await fastForward(
            lab.temporal.workflow,
            session.id,
            from - (await virtualTime(lab.temporal.workflow, session.id)),
          );
          const first = await remind(lab, session, { everySeconds: 86_400 }, `daily-${index}`);
          await fastForward(lab.temporal.workflow, session.id, 4 * day + 60 * minute);
          const log = await settled(lab, session);
          const daily = remindersIn(log)
            .flatMap(batchIn)
            .filter(({ schedule_id }) => schedule_id === `schedule-${5 + index}`);
          expect(daily.map(({ occurrence_at }) => occurrence_at)).toEqual(
            [0, 1, 2, 3].map((n) => iso(first + n * day)),
          );
          await deleteReminder(lab, session, `schedule-${5 + index}`);
        }
        const log = await settled(lab, session);
        const told = remindersIn(log).flatMap(
          ({ text }) => /^occurrence_at: (.*)$/mu.exec(text)?.[1] ?? [],
        );
        expect(told).toEqual(expected);
        // Not a second early, and none of them late: the clock stood still while it ran.
        for (const [index, { time }] of dispatchesIn(log)
          .filter(({ data }) => !("acceptedAt" in data))
          .entries())
          expect(time).toBeGreaterThanOrEqual(Date.parse(expected[index] ?? ""));
      },
    );

    test("is told in its order: those that come once in turns of their own, then all rules in one batch", async ({
      lab,
    }) => {
      const session = await lab.session(answering(), remindersOn);
      await command(lab, session, commands.suspend);
      const [quick, slow, later, soon] = await createTogether(lab, session, [
        { everySeconds: 300 },
        { everySeconds: 600 },
        { afterSeconds: 900 },
        { afterSeconds: 600 },
      ]);
      // [schedule/T2] but for the cause: 17 minutes after the first target.
      await fastForward(lab.temporal.workflow, session.id, 22 * minute);
      expect(remindersIn(await lab.entries(session))).toEqual([]);
      await command(lab, session, commands.resume);
      const log = await untilTurn(lab, session, 3);
      expect(remindersIn(log).map(({ id }) => id)).toMatchObject([
        `schedule/schedule-4/${iso(soon)}`,
        `schedule/schedule-3/${iso(later)}`,
        expect.stringMatching(/^schedule\/batch\//u),
      ]);
      const [, , batch] = remindersIn(log);
      const now = await virtualTime(lab.temporal.workflow, session.id);
      const latest = (first: number, every: number): number =>
        first + Math.floor((now - first) / every) * every;
      // In the order of what they were due first.
      expect(batch === undefined ? [] : batchIn(batch)).toMatchObject([
        { schedule_id: "schedule-1", occurrence_at: iso(latest(quick, 5 * minute)) },
        { schedule_id: "schedule-2", occurrence_at: iso(latest(slow, 10 * minute)) },
      ]);
      const { records } = await remindersView(lab, session);
      expect(records.map(({ scheduledAt }) => scheduledAt)).toEqual([
        iso(latest(quick, 5 * minute) + 5 * minute),
        iso(latest(slow, 10 * minute) + 10 * minute),
      ]);
    });

    test("[schedule/T13] in 150 years waits in timers of 30 days, and is still there after 100 days", async ({
      lab,
    }) => {
      const session = await lab.session(answering(), remindersOn);
      const far = await remind(lab, session, { at: "2176-08-05T12:00:00Z" });
      const began = await virtualTime(lab.temporal.workflow, session.id);
      await fastForward(lab.temporal.workflow, session.id, 100 * day);
      const history = await lab.history(session.id);
      expect(longestTimer(history)).toBe(timerSegmentMs);
      expect(eventsOf(history, "timerFiredEventAttributes")).toHaveLength(3);
      expect(await virtualTime(lab.temporal.workflow, session.id)).toBeGreaterThanOrEqual(
        began + 100 * day,
      );
      const { records } = await remindersView(lab, session);
      expect(records).toMatchObject([{ id: "schedule-1", scheduledAt: iso(far) }]);
      expect((await session.view()).turn.number).toBe(0);
    });
  },
);

type Rule = { readonly everySeconds: number } | { readonly afterSeconds: number };

/** Reminders of the same instant, one signal; their first targets, epoch ms. */
async function createTogether(
  lab: Lab,
  session: SessionClient,
  rules: readonly Rule[],
): Promise<readonly [number, number, number, number]> {
  const changes = rules.map((rule, index) => ({
    requestId: `together ${index}`,
    operation: "create",
    prompt: `rule ${index}`,
    ...rule,
  }));
  await lab.handle(session.id).signal(commands.scheduleChange, changes);
  const { records } = await remindersView(lab, session);
  expect(records).toHaveLength(rules.length);
  return records.map(({ scheduledAt }) => Date.parse(scheduledAt)) as unknown as readonly [
    number,
    number,
    number,
    number,
  ];
}

async function settled(lab: Lab, session: SessionClient): Promise<LogEntry[]> {
  await session.waitIdle();
  return lab.entries(session);
}

function shift(date: string, days: number): string {
  return iso(Date.parse(`${date}T00:00:00Z`) + days * day).slice(0, 10);
}

function longestTimer(history: History): number {
  return Math.max(
    ...eventsOf(history, "timerStartedEventAttributes").map(
      ({ startToFireTimeout }) => optionalTsToMs(startToFireTimeout) ?? Infinity,
    ),
  );
}

/** What each delivery cost; a turn is its model call and the task that takes its answer. Skips of the clock do not count. */
function eventsPerDelivery(history: History, deliveries: number) {
  const skips =
    eventsOf(history, "workflowExecutionTimeSkippingTransitionedEventAttributes").length +
    eventsOf(history, "workflowExecutionOptionsUpdatedEventAttributes").length;
  const all = (history.events ?? []).length - skips;
  const models = eventsOf(history, "activityTaskScheduledEventAttributes").filter(
    ({ activityType }) => activityType?.name === "callModel",
  ).length;
  const each = (count: number): number => Math.round((count / deliveries) * 100) / 100;
  return { all: each(all), besideTheTurn: each(all - models * 6) };
}
