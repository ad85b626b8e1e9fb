// What a turn costs in history, beside the same loop on the bare SDK. `npm run bench:history -- --help`
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { LonghaulClient } from "../src/client/index.js";
import type { LogEntry } from "../src/contracts/log.js";
import { openDirectoryStore } from "../src/store/directory.js";
import { startWorker } from "../src/worker/index.js";
import { historyCases } from "./support/history-cases.js";
import {
  historyBreakdown,
  historySize,
  turnShare,
  type HistorySize,
} from "./support/history-size.js";
import { createPeerActivities } from "./support/peer/activities.js";
import { peerQueue, startPeer, writePeerBundle } from "./support/peer/worker.js";
import type { peerAgent } from "./support/peer/workflows.js";
import { printResult, printTable, round } from "./support/report.js";
import { buildProject, withServer, workflowBundle, type BenchPlace } from "./support/server.js";
import { scriptedConfig } from "./support/session-config.js";
import { produce, produceAtOnce } from "./support/tools.js";
import {
  modelCalls,
  newContent,
  scenarioOf,
  worldCalls,
  type Workload,
} from "./support/workload.js";

const { values: options } = parseArgs({
  options: {
    breakdown: { type: "boolean", default: false },
    only: { type: "string" },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

interface Row {
  readonly case: string;
  /** Steps with tool calls; one more ends the turn. */
  readonly steps: number;
  readonly newBytes: number;
  readonly historyBytes: number;
  readonly events: number;
  /** Of these, what is the turn's and no step's: its update, search attributes and first workflow task. */
  readonly turnBytes: number;
  readonly turnEvents: number;
  readonly bareHistoryBytes: number;
  readonly bareEvents: number;
}

/** Budgets of design §5. */
const stepBytes = 2_000;
const worldCallBytes = 1_000;
const modelCallEvents = 6;
const worldCallEvents = { shared: 3, alone: 6 };

if (options.help) {
  console.log(`bench:history measures the history of one turn: bytes and events, by the server's own count.
  --only <text>   only cases whose name contains the text
  --breakdown     which event types carry how many bytes
  --no-build      use dist as it is`);
} else {
  if (!options["no-build"]) buildProject();
  const loads = historyCases.filter((load) => load.name.includes(options.only ?? ""));
  const rows = await withServer((place) => measureAll(place, loads));
  report(loads, rows);
  printResult("history", rows);
}

async function measureAll(place: BenchPlace, loads: readonly Workload[]): Promise<readonly Row[]> {
  const { address, directory } = place;
  const cwd = join(directory, "workspace");
  await mkdir(cwd);
  const store = await openDirectoryStore(join(directory, "store"));
  const worker = await startWorker({
    connection: { address },
    home: join(directory, "home"),
    store,
    hostId: "bench",
    tools: [produce, produceAtOnce],
    workflowBundlePath: workflowBundle,
  });
  const native = await NativeConnection.connect({ address });
  const peerBundle = join(directory, "peer-bundle.js");
  await writePeerBundle(peerBundle);
  const stopPeer = await startPeer(native, peerBundle, createPeerActivities(loads));
  const connection = await Connection.connect({ address });
  const longhaul = await LonghaulClient.connect({ connection: { address }, store });
  try {
    const client = new Client({ connection });
    const rows: Row[] = [];
    for (const load of loads) {
      const own = await measureSession(longhaul, client, load, place, cwd);
      const bare = await measurePeer(client, load);
      rows.push({ ...own, bareHistoryBytes: bare.bytes, bareEvents: bare.events });
    }
    return rows;
  } finally {
    await longhaul.close();
    await connection.close();
    await worker.stop();
    await stopPeer();
    await native.close();
  }
}

async function measureSession(
  longhaul: LonghaulClient,
  client: Client,
  load: Workload,
  place: BenchPlace,
  cwd: string,
): Promise<Omit<Row, "bareHistoryBytes" | "bareEvents">> {
  const config = await scriptedConfig(place.directory, load.name, scenarioOf(load), cwd);
  const session = await longhaul.createSession({ config });
  for (const bytes of load.transcript) {
    const { seq } = await session.followup("t".repeat(bytes));
    await session.waitIdle({ after: seq });
  }
  const before = await historySize(client, session.id);
  const { seq } = await session.followup("go");
  await session.waitIdle({ after: seq });
  const after = await historySize(client, session.id);
  const entries: LogEntry[] = [];
  for await (const entry of session.log({ after: seq })) entries.push(entry);
  const end = entries.findLast((entry) => entry.type === "turn/end");
  if (end?.data.reason.kind !== "completed") {
    throw new Error(`the turn of "${load.name}" did not complete: ${JSON.stringify(end?.data)}`);
  }
  const results = entries.filter(
    (entry) => entry.type === "tool/result" && !("error" in entry.data),
  );
  if (results.length !== (load.tool === "none" ? 0 : load.steps * load.callsPerStep)) {
    throw new Error(`"${load.name}" has ${results.length} good tool results`);
  }
  if (options.breakdown) await printBreakdown(client, session.id, load.name, before, after);
  const turn = await turnShare(client, session.id, before.events);
  await session.close();
  return {
    case: load.name,
    steps: load.steps,
    newBytes: newContent(entries),
    historyBytes: after.bytes - before.bytes,
    events: after.events - before.events,
    turnBytes: turn.bytes,
    turnEvents: turn.events,
  };
}

async function measurePeer(client: Client, load: Workload): Promise<HistorySize> {
  const handle = await client.workflow.start<typeof peerAgent>("peerAgent", {
    taskQueue: peerQueue,
    workflowId: `peer-${load.name.replaceAll(" ", "-")}-${load.steps}`,
  });
  let turns = 0;
  const turn = async (content: string, name: string): Promise<void> => {
    await handle.executeUpdate("peer.send", { args: [content, name] });
    turns++;
    while ((await handle.query<number>("peer.done")) < turns) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  for (const bytes of load.transcript) await turn("t".repeat(bytes), "");
  const before = await historySize(client, handle.workflowId);
  await turn("go", load.name);
  const after = await historySize(client, handle.workflowId);
  await handle.terminate();
  return { bytes: after.bytes - before.bytes, events: after.events - before.events };
}

async function printBreakdown(
  client: Client,
  id: string,
  name: string,
  before: HistorySize,
  after: HistorySize,
): Promise<void> {
  const shares = await historyBreakdown(client, id, before.events);
  const encoded = shares.reduce((sum, share) => sum + share.bytes, 0);
  console.log(
    `\n${name}: ${encoded} bytes encoded, the server counts ${after.bytes - before.bytes}`,
  );
  printTable(
    ["event", "count", "bytes", "each"],
    shares.map(({ event, count, bytes }) => [event, count, bytes, round(bytes / count)]),
  );
}

function report(loads: readonly Workload[], rows: readonly Row[]): void {
  console.log(
    `\nOne turn; a step is a model call and its tool calls. Bytes and events as the server counts them. "Over content" is
the history less what model and tools produced and less the turn's own ${rows[0]?.turnBytes} bytes and ${rows[0]?.turnEvents} events (update, search
attributes, first workflow task). Budget: 2 KB a model call and 1 KB a world tool call; events 6 a model call, 3 to 6 a
world tool call, none a state tool. "Bare SDK": the same loop in a minimal workflow; ratio: history to it.\n`,
  );
  printTable(
    [
      "case",
      "new bytes",
      "history",
      "over content a step",
      "budget",
      "",
      "events",
      "budget",
      "",
      "bare SDK",
      "ratio",
    ],
    rows.map((row, index) => {
      const verdict = judge(loads[index], row);
      return [
        row.case,
        row.newBytes,
        row.historyBytes,
        verdict?.overhead,
        verdict?.allowedBytes,
        verdict?.bytesHold === true ? "holds" : "BROKEN",
        row.events - row.turnEvents,
        verdict?.allowedEvents,
        verdict?.eventsHold === true ? "holds" : "BROKEN",
        row.bareHistoryBytes,
        round(row.historyBytes / row.bareHistoryBytes, 2),
      ];
    }),
  );
  const compared = pairs(rows);
  if (compared.size === 0) return;
  console.log("\nLinearity: bytes of a step in the longest turn to those in the shortest.");
  for (const [kind, { short, long }] of compared) {
    const ratio = long.historyBytes / long.steps / (short.historyBytes / short.steps);
    const marginal = (long.events - short.events) / (long.steps - short.steps);
    console.log(
      `  ${kind}: ${ratio.toFixed(3)} (${long.steps} : ${short.steps} steps); ${marginal} events a step`,
    );
  }
}

interface Verdict {
  /** A step. */
  readonly overhead: number;
  readonly allowedBytes: number;
  readonly bytesHold: boolean;
  /** The turn's steps. */
  readonly allowedEvents: string;
  readonly eventsHold: boolean;
}

function judge(load: Workload | undefined, row: Row): Verdict | undefined {
  if (load === undefined) return undefined;
  const steps = modelCalls(load);
  const calls = worldCalls(load);
  const overhead = round((row.historyBytes - row.turnBytes - row.newBytes) / steps);
  const allowedBytes = round(stepBytes + (worldCallBytes * calls) / steps);
  const most = modelCallEvents * steps + worldCallEvents.alone * calls;
  const least = modelCallEvents * steps + worldCallEvents.shared * calls;
  return {
    overhead,
    allowedBytes,
    bytesHold: overhead <= allowedBytes,
    allowedEvents: least === most ? `${most}` : `${least}-${most}`,
    eventsHold: row.events - row.turnEvents <= most,
  };
}

/** The shortest and the longest turn of each kind of step. */
function pairs(
  rows: readonly Row[],
): ReadonlyMap<string, { readonly short: Row; readonly long: Row }> {
  const kinds = new Map<string, { short: Row; long: Row }>();
  for (const row of rows) {
    const kind = row.case.replace(/^\d+ × /, "");
    const pair = kinds.get(kind) ?? { short: row, long: row };
    if (row.steps < pair.short.steps) pair.short = row;
    if (row.steps > pair.long.steps) pair.long = row;
    kinds.set(kind, pair);
  }
  return new Map([...kinds].filter(([, pair]) => pair.short !== pair.long));
}
