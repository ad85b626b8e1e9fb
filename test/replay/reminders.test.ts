import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { DefaultLogger, Runtime } from "@temporalio/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  logOf,
  prefixesOf,
  replayActivations,
  writeDigestBundle,
  type Activation,
  type Digests,
  type HistoryJson,
} from "../support/digests.js";
import { pathOf, readHistory, versions } from "./histories.js";
import { batchIn, changesIn, remindersIn, resultsIn } from "../support/reminder-script.js";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../support/replay-digests.ts", import.meta.url));
const newest = versions.at(-1) ?? "";
const directory = mkdtempSync(join(tmpdir(), "longhaul-digests-"));
const bundle = join(directory, "bundle.js");
const minute = 60_000;

beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger("ERROR") });
  await writeDigestBundle(bundle);
}, 120_000);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("a recorded history of reminders", () => {
  test.for(["reminder-one-shot", "reminder-batch"])(
    "[schedule/T8] %s: every prefix gives the same commands and the same log, whatever the zone of the process",
    { timeout: 300_000 },
    async (name) => {
      const [here, there] = await Promise.all(
        ["UTC", "Asia/Shanghai"].map((zone) => digestsIn(zone, name)),
      );
      expect([here?.zone, there?.zone]).toEqual(["UTC", "Asia/Shanghai"]);
      const prefixes = here?.prefixes ?? [];
      expect(prefixes.length).toBeGreaterThan(5);
      expect(there?.prefixes).toEqual(prefixes);
      // A longer one only goes on: what it did before is what the shorter one did.
      const whole = prefixes.at(-1) ?? [];
      for (const prefix of prefixes.map((one) => one.slice(0, -1)))
        expect(whole.slice(0, prefix.length)).toEqual(prefix);
      expect(here?.types).toContain("schedule/change");
    },
  );

  test("[schedule/T9] keeps the instant that was resolved then, also where this host's zone data says another", async () => {
    const history = historyOf("reminder-one-shot");
    const before = logOf(await replay(history, "reminder-one-shot"));
    expect(targetsIn(before)).toContain("2099-08-06T01:00:00.000Z");
    const other = "2099-08-06T02:00:00.000Z";
    let changed = 0;
    const events = history.events.map((event) =>
      "markerRecordedEventAttributes" in event
        ? editPayloads(event, (text) => {
            const edited = text.replace("2099-08-06T01:00:00.000Z", other);
            const ms = String(Date.parse("2099-08-06T01:00:00.000Z"));
            const both = edited.replace(ms, String(Date.parse(other)));
            changed += both === text ? 0 : 1;
            return both;
          })
        : event,
    );
    expect(changed).toBe(1);
    const after = logOf(await replay({ events }, "reminder-one-shot"));
    expect(targetsIn(after)).toContain(other);
    expect(targetsIn(after)).not.toContain("2099-08-06T01:00:00.000Z");
    expect(resultsIn(after)[1]).toContain(other);
  });

  test("[schedule/T2] whose worker had been away for 17 minutes since just before the first target: one batch, the latest points of both grids", async () => {
    const history = historyOf("reminder-batch");
    const timersOf = ({ events }: HistoryJson): number[] =>
      events.flatMap(({ eventType }, index) =>
        eventType === "EVENT_TYPE_TIMER_FIRED" ? [index] : [],
      );
    const second = prefixesOf(history).find((prefix) => timersOf(prefix).length === 2);
    if (second === undefined) throw new Error("two timers are to fire");
    const [fired = 0] = timersOf(second);
    // The timer fires in time; the task that takes it begins so much later.
    const events = second.events.map((event, index) =>
      index < fired + 2 ? event : { ...event, eventTime: later(event["eventTime"], 17 * minute) },
    );
    const log = logOf(await replay({ events }, "reminder-batch"));
    const [a, b] = log.flatMap((entry) =>
      entry.type === "schedule/change" && entry.data.operation === "create"
        ? [Date.parse(entry.data.schedule.scheduledAt)]
        : [],
    );
    if (a === undefined || b === undefined) throw new Error("nothing was created");
    const iso = (ms: number): string => new Date(ms).toISOString();
    // The second is dispatched in the last activation, and its message shown in the turn that opens there.
    const [first, next] = remindersIn(log).map(batchIn);
    expect(first).toMatchObject([
      { schedule_id: "schedule-1", occurrence_at: iso(a + 15 * minute) },
      { schedule_id: "schedule-2", occurrence_at: iso(b + 10 * minute) },
    ]);
    const accepted = changesIn(log).flatMap((change) =>
      "acceptedAt" in change && change.acceptedAt !== undefined
        ? [Date.parse(change.acceptedAt)]
        : [],
    );
    expect(accepted[0]).toBe(accepted[1]);
    expect(accepted[0]).toBeGreaterThanOrEqual(a + 17 * minute);
    // Strictly later, and on the grid.
    expect(next?.[0]).toMatchObject({
      schedule_id: "schedule-1",
      occurrence_at: iso(a + 20 * minute),
    });
  });
});

/** In a process of its own, whose zone is this one. */
async function digestsIn(zone: string, name: string): Promise<Digests> {
  const { stdout } = await run(
    process.execPath,
    ["--import", "tsx", script, bundle, pathOf(newest, name), idOf(name)],
    { env: { ...process.env, TZ: zone } },
  );
  return JSON.parse(stdout) as Digests;
}

function replay(history: HistoryJson, name: string): Promise<Activation[]> {
  return replayActivations(bundle, history, idOf(name));
}

function historyOf(name: string): HistoryJson {
  return readHistory(newest, name);
}

function idOf(name: string): string {
  return `recorded-${name}`;
}

function targetsIn(log: Parameters<typeof changesIn>[0]): readonly string[] {
  return changesIn(log).flatMap((change) =>
    change.operation === "create" ? [change.schedule.scheduledAt] : [],
  );
}

function later(time: unknown, ms: number): string {
  return new Date(Date.parse(String(time)) + ms).toISOString();
}

/** Edits the text of every payload in an event. */
function editPayloads<T>(value: T, edit: (text: string) => string): T {
  if (Array.isArray(value)) return value.map((item) => editPayloads(item, edit)) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "data" && typeof inner === "string"
        ? Buffer.from(edit(Buffer.from(inner, "base64").toString("utf8"))).toString("base64")
        : editPayloads(inner, edit),
    ]),
  ) as T;
}
