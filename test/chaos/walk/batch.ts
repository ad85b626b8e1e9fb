import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "@temporalio/worker";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import type { SessionClient } from "../../../src/client/session-client.js";
import { faultsOf, type History } from "../../support/history.js";
import { jobProcesses } from "../../support/job-processes.js";
import { brokenRules } from "../../support/log-rules.js";
import { noSinks } from "../../support/no-sinks.js";
import type { Lab } from "../../support/temporal.js";
import {
  compareRequests,
  compareSummaries,
  witnessRequests,
  witnessSummaries,
  type RecordedRequest,
} from "../../support/witness.js";
import {
  compareWithHistory,
  readHistory,
  type HistoryJson,
} from "../../support/witness-history.js";
import { startWorkerProcess } from "../../support/worker-process.js";
import type { LogEntry } from "../../../src/contracts/log.js";
import { createRandom } from "../random.js";
import { bookProblems, lastTodos, lineOf } from "./books.js";
import { modelProblems, showSession, type Shown } from "./model.js";
import { planWalk, type Walk } from "./plan.js";
import { bringToRest, waiting, walkSession, type Done } from "./play.js";

/** One walk as it went. */
export interface Walked {
  readonly seed: number;
  readonly problems: readonly string[];
  readonly lines: readonly string[];
  readonly runs: number;
  readonly entries: number;
}

/**
 * Walks the seeds at once on one worker process, which is killed at seeded moments and started again at once; then each session
 * is brought to rest, held against the model, and closed.
 */
export async function walkBatch(
  lab: Lab,
  seeds: readonly number[],
  say: (line: string) => void = () => {},
): Promise<readonly Walked[]> {
  const walks = seeds.map(planWalk);
  const place = await lab.emptyPlace();
  let worker = await startWorkerProcess(lab, place);
  const printed: string[] = [];
  const began = Date.now();
  const mark = (what: string): void =>
    say(`${Math.round((Date.now() - began) / 100) / 10} s: ${what}`);
  try {
    const random = createRandom(seeds[0] ?? 0).fork("kills");
    const total = walks.reduce((sum, { ops }) => sum + ops.length, 0);
    const kills = [random.between(20, 45), random.between(55, 90)].map((percent) =>
      Math.floor((total * percent) / 100),
    );
    let count = 0;
    let killing: Promise<void> = Promise.resolve();
    const step = (): void => {
      count += 1;
      if (!kills.includes(count)) return;
      killing = killing.then(async () => {
        await worker.kill();
        printed.push(worker.output());
        mark(`killed after ${count} operations`);
        worker = await startWorkerProcess(lab, place);
        mark("started again");
      });
    };
    const walkers = await Promise.all(walks.map((walk) => openWalk(lab, walk, place)));
    mark(`${walkers.length} sessions open`);
    await Promise.all(walkers.map((one) => one.walk(step)));
    await killing;
    mark("walked");
    await Promise.all(walkers.map((one) => one.rest()));
    mark("at rest");
    await Promise.all(walkers.map((one) => one.judge()));
    await waiting(
      "processes of jobs to be gone",
      async () => (await jobProcesses(place.home)).length === 0,
    );
    mark("judged");
    const runs = walkers.flatMap((one) => one.histories);
    for await (const { id, problem } of replayAll(lab.bundlePath, runs))
      walkers.find((one) => one.session.id === id)?.problems.push(problem);
    mark(`${runs.length} runs replayed`);
    for (const one of walkers) {
      if (one.problems.length === 0) continue;
      one.lines.push(...saidOf(one, [...printed, worker.output()].join("\n")));
      one.lines.push(`what it left is in ${await keep(lab, one)}`);
    }
    return walkers.map(({ seed, problems, lines, histories, entries }) => ({
      seed,
      problems,
      lines,
      runs: histories.length,
      entries,
    }));
  } finally {
    await worker.kill();
  }
}

/** What the workers said of a session or its runs, at most the last of it. */
function saidOf({ session, histories }: Walker, printed: string): string[] {
  const names = histories.flatMap(([id, { events }]) => {
    const run = events?.[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId;
    return [id, ...(run == null ? [] : [run])];
  });
  return printed
    .split("\n")
    .filter((line) => [session.id, ...names].some((name) => line.includes(name)))
    .slice(-20)
    .map((line) => `worker: ${line.slice(0, 500)}`);
}

interface Walker {
  readonly seed: number;
  readonly session: SessionClient;
  readonly problems: string[];
  readonly lines: string[];
  readonly histories: (readonly [id: string, history: History])[];
  entries: number;
  /** Logs by what they are of. */
  readonly evidence: { [name: string]: readonly LogEntry[] };
  walk(step: () => void): Promise<void>;
  rest(): Promise<void>;
  judge(): Promise<void>;
}

async function openWalk(
  lab: Lab,
  walk: Walk,
  place: Awaited<ReturnType<Lab["emptyPlace"]>>,
): Promise<Walker> {
  const workspace = await lab.workspace();
  const session = await lab.session(walk.scenario, {
    at: place,
    unchecked: true,
    ...(walk.hosted ? {} : { host: null }),
    config: { ...walk.config, ...(walk.hosted ? { cwd: workspace } : {}) },
    limits: { retryBaseMs: 10, retryCapMs: 50 },
  });
  const quiet = await lab.scenario({
    turns: [{ repeat: 1_000, steps: [{ text: "done", repeat: 200 }] }],
  });
  const done: Done[] = [];
  /** The first part that breaks ends the walk. */
  const attempt = async (what: string, body: () => Promise<void>): Promise<void> => {
    if (walker.problems.length > 0) return;
    try {
      await body();
    } catch (error) {
      walker.problems.push(`${what}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  };
  const walker: Walker = {
    seed: walk.seed,
    session,
    problems: [],
    lines: [],
    histories: [],
    entries: 0,
    evidence: {},
    walk: (step) =>
      attempt("walking", () =>
        walkSession(lab, session, walk, (one) => {
          done.push(one);
          walker.lines.push(lineOf(one));
          step();
        }),
      ),
    rest: () => attempt("coming to rest", () => bringToRest(session, quiet)),
    judge: () =>
      attempt("judging", async () => {
        const shown = await stillShown(session);
        walker.entries = shown.log.length;
        walker.evidence["atRest"] = shown.log;
        walker.problems.push(
          ...brokenRules(shown.log),
          ...bookProblems(done, shown.log),
          ...modelProblems(session.id, shown),
          ...markProblems(await marksIn(workspace), shown.log),
        );
        const todos = JSON.stringify((shown.parts["view"] as { todos: unknown }).todos);
        if (todos !== JSON.stringify(lastTodos(shown.log)))
          walker.problems.push(`the list is ${todos}`);
        await session.close();
        // Every query of a closed session replays it: few are enough.
        const closed = await closedLog(session);
        walker.evidence["closed"] = closed;
        walker.problems.push(...closingProblems(shown.log, closed));
        const parts = { view: await session.view({ timeoutMs: 60_000 }) };
        walker.problems.push(...modelProblems(session.id, { log: closed, parts }));
        const histories = await lab.runs(session.id);
        walker.histories.push(...histories.map((history) => [session.id, history] as const));
        walker.problems.push(...witnessProblems(closed, await lab.requests(session.id), histories));
      }),
  };
  return walker;
}

async function stillShown(session: SessionClient): Promise<Shown> {
  let shown: Shown | undefined;
  await waiting("the session to stand still", async () => {
    shown = await showSession(session);
    return shown !== undefined;
  });
  if (shown === undefined) throw new Error("never");
  return shown;
}

/** Log and histories, for whoever looks for the cause. */
async function keep(lab: Lab, { session, evidence }: Walker): Promise<string> {
  const directory = fileURLToPath(
    new URL("../../../node_modules/.longhaul/walks/", import.meta.url),
  );
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${session.id}.json`);
  const runs = (await lab.runs(session.id)).map(
    (history) => JSON.parse(historyToJSON(history)) as unknown,
  );
  writeFileSync(path, JSON.stringify({ ...evidence, runs }, undefined, 1));
  return path;
}

async function closedLog(session: SessionClient): Promise<readonly LogEntry[]> {
  let log: LogEntry[] = [];
  await waiting("its closed log", async () => {
    log = [];
    for await (const entry of session.log()) log.push(entry);
    return true;
  });
  return log;
}

/** Closing adds to a log, and changes nothing of it. */
function closingProblems(before: readonly LogEntry[], after: readonly LogEntry[]): string[] {
  const changed = before.findIndex(
    (entry, index) => JSON.stringify(entry) !== JSON.stringify(after[index]),
  );
  const last = after.at(-1);
  return [
    ...(changed === -1
      ? []
      : [
          `entry ${changed} was ${JSON.stringify(before[changed])}, closed it is ${JSON.stringify(after[changed])}`,
        ]),
    ...(last?.type === "session/close" ? [] : [`its last entry is ${last?.type}`]),
  ];
}

function witnessProblems(
  log: readonly LogEntry[],
  requests: Awaited<ReturnType<Lab["requests"]>>,
  histories: readonly History[],
): string[] {
  const plain = JSON.parse(JSON.stringify(log)) as unknown[];
  const recorded = JSON.parse(JSON.stringify(requests)) as RecordedRequest[];
  const runs = histories.map((history) => JSON.parse(historyToJSON(history)) as HistoryJson);
  return [
    ...compareRequests(witnessRequests(plain), recorded),
    ...compareSummaries(witnessSummaries(plain), recorded),
    ...compareWithHistory(plain, readHistory(runs)),
  ];
}

/** What commands wrote when they began, one line each. */
async function marksIn(workspace: string): Promise<readonly string[]> {
  const text = await readFile(join(workspace, "ran"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** No command ever ran twice, and one that is said to have completed did run. */
function markProblems(marks: readonly string[], log: readonly LogEntry[]): string[] {
  const problems = [...new Set(marks)].flatMap((mark) => {
    const times = marks.filter((one) => one === mark).length;
    return times === 1 ? [] : [`${mark}: ran ${times} times`];
  });
  for (const { type, data } of log) {
    if (type !== "job/start" || data.opId === undefined) continue;
    const completed = log.some(
      (entry) =>
        entry.type === "job/settled" &&
        entry.data.id === data.id &&
        entry.data.status === "completed",
    );
    if (completed && !marks.includes(data.opId))
      problems.push(`${data.id}: completed, but ${data.opId} never ran`);
  }
  return problems;
}

async function* replayAll(
  bundlePath: string,
  runs: readonly (readonly [id: string, history: History])[],
): AsyncGenerator<{ readonly id: string; readonly problem: string }> {
  for (const [id, history] of runs)
    for (const fault of faultsOf(history))
      yield { id, problem: `a workflow task failed: ${fault}` };
  const replays = Worker.runReplayHistories(
    { workflowBundle: { codePath: bundlePath }, sinks: noSinks },
    runs.map(([workflowId, history]) => ({ workflowId, history })),
  );
  for await (const { workflowId, runId, error } of replays)
    if (error !== undefined)
      yield { id: workflowId, problem: `run ${runId} does not replay: ${error.message}` };
}
