// Many sessions with a reminder in the same second on one worker: is each told once, and how late. `npm run bench:reminders -- --help`
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { defineSearchAttributeKey, SearchAttributeType } from "@temporalio/common";
import { LonghaulClient } from "../src/client/index.js";
import type { SessionClient } from "../src/client/session-client.js";
import type { LogEntry } from "../src/contracts/log.js";
import { commands } from "../src/contracts/names.js";
import type { ScheduleChangeResult } from "../src/contracts/schedule.js";
import { openDirectoryStore } from "../src/store/directory.js";
import { stormProblems } from "../test/support/reminder-storm.js";
import { percentile, printResult, printTable, round } from "./support/report.js";
import { buildProject, withServer, type BenchPlace } from "./support/server.js";
import { scriptedConfig } from "./support/session-config.js";
import { forkJobsWorker } from "./support/worker-child.js";

const { values: options } = parseArgs({
  options: {
    sessions: { type: "string", default: "2000" },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** What became of one session's reminder, ms after it was due. */
interface Delivered {
  readonly dispatched: number;
  readonly turnOver: number;
  /** Events of its history from before the reminder was made until the turn was over, and those of them that change an attribute. */
  readonly events: number;
  readonly attributes: number;
}

/** Milliseconds, nearest rank. */
interface Row {
  readonly case: string;
  readonly sessions: number;
  readonly delivered: number;
  readonly lost: number;
  readonly doubled: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly turnP50: number;
  readonly turnP99: number;
  readonly turnMax: number;
  /** All that a reminder adds to a history that is made by an update and told in a turn of one model call. */
  readonly events: number;
  readonly attributeChanges: number;
  /** Without those, the turn's and the update's. */
  readonly eventsBesideTurn: number;
}

/** A model call and the task that takes its answer; an update and its task (design §5, facts §0.2). A tool call makes one for none. */
const turnEvents = 6;
const updateEvents = 5;
const budget = 8;
const atOnce = 24;
const state = defineSearchAttributeKey("LonghaulState", SearchAttributeType.KEYWORD);

if (options.help) {
  console.log(`bench:reminders gives many sessions a reminder of the same second on one worker, and measures how late each is told.
  --sessions <n>  default 2000
  --no-build      use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  const before = loadavg();
  const row = await withServer(measure, { logLevel: "ERROR" });
  report(row);
  const shown = (load: readonly number[]): string => round(load[0] ?? 0, 1).toString();
  console.log(`\nLoad of the machine: ${shown(before)} before, ${shown(loadavg())} after.`);
  printResult("reminders", [row]);
  if (row.lost > 0 || row.doubled > 0) process.exitCode = 1;
}

async function measure({ address, directory }: BenchPlace): Promise<Row> {
  const count = Number(options.sessions);
  const store = join(directory, "store");
  const worker = await forkJobsWorker({ address, home: join(directory, "home"), store });
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection });
  const client = await LonghaulClient.connect({
    connection: { address },
    store: await openDirectoryStore(store),
    callTimeoutMs: 120_000,
  });
  try {
    const scenario = { name: "told", turns: [{ repeat: 10, steps: [{ text: "told" }] }] };
    const config = {
      ...(await scriptedConfig(directory, "told", scenario)),
      schedule: true,
    };
    const sessions: SessionClient[] = [];
    await inParallel(count, async () => {
      sessions.push(await client.createSession({ config }));
      if (sessions.length % 500 === 0) console.error(`${sessions.length} sessions`);
    });
    const lengths = new Map<string, number>();
    await inParallel(count, async (index) => {
      const id = sessions[index]?.id ?? "";
      lengths.set(id, (await temporal.workflow.getHandle(id).describe()).historyLength);
    });
    // Time enough to make them all; one that comes too late is refused, and the bench with it.
    const due = Date.now() + 20_000 + count * 40;
    const at = new Date(Math.ceil(due / 1_000) * 1_000);
    await inParallel(count, async (index) => {
      const change = {
        requestId: "bench",
        operation: "create",
        prompt: "look",
        at: at.toISOString(),
      };
      const result = await temporal.workflow
        .getHandle(sessions[index]?.id ?? "")
        .executeUpdate<ScheduleChangeResult, [object]>(commands.scheduleChange, { args: [change] });
      if (!result.ok) throw new Error(`not created in time: ${result.message}`);
    });
    console.error(
      `all are made ${round((at.getTime() - Date.now()) / 1_000)} s before they are due`,
    );
    const found: Delivered[] = [];
    let lost = 0;
    let doubled = 0;
    const end = at.getTime() + 300_000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, at.getTime() - Date.now())));
    // The server alone is asked: queries would be the worker's work.
    await inParallel(count, async (index) => {
      const id = sessions[index]?.id ?? "";
      for (let over = false; !over && Date.now() < end;) {
        const { historyLength, typedSearchAttributes } = await temporal.workflow
          .getHandle(id)
          .describe();
        over =
          historyLength > (lengths.get(id) ?? 0) + updateEvents + turnEvents &&
          typedSearchAttributes.get(state) === "idle";
        if (!over) await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    });
    await inParallel(count, async (index) => {
      const session = sessions[index];
      if (session === undefined) return;
      const log: LogEntry[] = [];
      for await (const entry of session.log()) log.push(entry);
      const problems = stormProblems(log, 1);
      if (problems.some((line) => line.includes("0 times"))) lost++;
      else if (problems.length > 0) doubled++;
      const timeOf = (type: LogEntry["type"]): number =>
        (log.findLast((entry) => entry.type === type)?.time ?? Number.NaN) - at.getTime();
      const history = await temporal.workflow.getHandle(session.id).fetchHistory();
      const events = (history.events ?? []).slice(lengths.get(session.id));
      found.push({
        dispatched: timeOf("schedule/change"),
        turnOver: timeOf("turn/end"),
        events: events.length,
        attributes: events.filter(({ upsertWorkflowSearchAttributesEventAttributes: one }) => one)
          .length,
      });
    });
    const of = (value: (one: Delivered) => number): number[] => found.map(value);
    const [late, over] = [of(({ dispatched }) => dispatched), of(({ turnOver }) => turnOver)];
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, one) => sum + one, 0) / count;
    const events = mean(of((one) => one.events));
    const attributes = mean(of((one) => one.attributes));
    return {
      case: "one second, one worker",
      sessions: count,
      delivered: count - lost - doubled,
      lost,
      doubled,
      p50: round(percentile(late, 50)),
      p99: round(percentile(late, 99)),
      max: round(Math.max(...late)),
      turnP50: round(percentile(over, 50)),
      turnP99: round(percentile(over, 99)),
      turnMax: round(Math.max(...over)),
      events: round(events, 2),
      attributeChanges: round(attributes, 2),
      eventsBesideTurn: round(events - attributes - turnEvents - updateEvents, 2),
    };
  } finally {
    await client.close();
    await connection.close();
    await worker.end();
  }
}

async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let index = next++; index < count; index = next++) await work(index);
    }),
  );
}

function report(row: Row): void {
  console.log(`
${row.sessions} sessions, each with one reminder of the same second, on one worker in a process of its own. Late: from the promised
time until the reminder is in the log and its turn opens; turn over: until the model has answered.
`);
  printTable(
    ["", "delivered", "lost", "doubled", "p50 ms", "p99 ms", "max ms"],
    [
      ["late", row.delivered, row.lost, row.doubled, row.p50, row.p99, row.max],
      ["turn over", undefined, undefined, undefined, row.turnP50, row.turnP99, row.turnMax],
    ],
  );
  const holds = row.eventsBesideTurn <= budget ? "within" : "ABOVE";
  console.log(`
Events per reminder: ${row.eventsBesideTurn} beside its turn, ${holds} the budget of ${budget}; with ${turnEvents} of the turn, ${updateEvents} of the update that made it and
${row.attributeChanges} changes of search attributes ${row.events}.`);
}
