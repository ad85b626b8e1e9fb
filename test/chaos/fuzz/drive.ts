import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import * as z from "zod";
import type { SessionClient } from "../../../src/client/session-client.js";
import { defaultLimits, type SessionLimits } from "../../../src/contracts/config.js";
import type { LogEntry } from "../../../src/contracts/log.js";
import { providersFromEnv } from "../../../src/models/providers.js";
import { defineTool } from "../../../src/tools/define.js";
import type { StartWorkerOptions } from "../../../src/worker/index.js";
import { faultsOf, type History } from "../../support/history.js";
import { brokenRules } from "../../support/log-rules.js";
import { deepseekWire, envOf, openaiWire, type Wire } from "../../support/protocol-wires.js";
import { receivedAsWitnessed } from "../../support/wire-witness.js";
import {
  compareWithHistory,
  readHistory,
  type HistoryJson,
} from "../../support/witness-history.js";
import { endIn, statedEnd, turnProblems } from "./check.js";
import { maxModelRetries, type PlannedSession, type PlannedTurn } from "./plan.js";
import { startFuzzedProvider, type FuzzedProvider } from "./provider.js";
import { echoTool } from "./shot.js";
import { watchText } from "./watcher.js";

/** Where sessions are made and their workers run. */
export interface FuzzPlace {
  /** Starts a worker with these models and tools; it is the place's to stop. */
  startWorker(options: Required<Pick<StartWorkerOptions, "models" | "tools">>): Promise<void>;
  /** A session with a workspace and world tools, served by that worker. */
  createSession(wire: Wire, limits: SessionLimits): Promise<SessionClient>;
  history(id: string): Promise<History>;
}

export interface PlayedTurn {
  readonly fault: string;
  /** Undefined: it has not ended. */
  readonly end: string | undefined;
  readonly stated: string;
  readonly requests: number;
  readonly problems: readonly string[];
}

export interface FuzzResult {
  readonly turns: readonly PlayedTurn[];
  /** Of whole sessions: not idle, a log that breaks its rules, requests that differ from the witness. */
  readonly problems: readonly string[];
}

/** How long a provider may take, ms; above what a busy machine does to a good reply. */
export interface Patience {
  readonly silenceMs: number;
  readonly callMs: number;
}

function limitsOf({ callMs }: Patience): SessionLimits {
  return {
    ...defaultLimits,
    maxModelRetries,
    retryBaseMs: 10,
    retryCapMs: 1_000,
    modelTimeoutMs: callMs,
  };
}

/** A turn that takes this long is stuck, ms. */
const stuckMs = 120_000;

const echo = defineTool({
  name: echoTool,
  description: "Says the text again.",
  parameters: z.object({ text: z.string() }),
  parallel: true,
  execute: ({ text }) => `echo: ${text}`,
});

/** Plays all sessions at once, each turn by turn, and holds what came of them against the plan. */
export async function playSessions(
  place: FuzzPlace,
  sessions: readonly PlannedSession[],
  patience: Patience,
): Promise<FuzzResult> {
  const { silenceMs } = patience;
  const limits = limitsOf(patience);
  const provider = await startFuzzedProvider(sessions);
  try {
    const env = { ...envOf(openaiWire, provider.url), ...envOf(deepseekWire, provider.url) };
    const silence = { firstTokenMs: silenceMs, idleMs: silenceMs };
    const providers = { [openaiWire.provider]: silence, [deepseekWire.provider]: silence };
    await place.startWorker({ models: providersFromEnv(env, { providers }), tools: [echo] });
    const results = await Promise.all(
      sessions.map((session) => playSession(place, provider, session, limits)),
    );
    return {
      turns: results.flatMap(({ turns }) => turns),
      problems: [...results.flatMap(({ problems }) => problems), ...provider.strays],
    };
  } finally {
    await provider.close();
  }
}

async function playSession(
  place: FuzzPlace,
  provider: FuzzedProvider,
  { wire, turns }: PlannedSession,
  limits: SessionLimits,
): Promise<FuzzResult> {
  const session = await place.createSession(wire, limits);
  const watcher = watchText(session);
  const problems: string[] = [];
  for (const turn of turns) {
    const problem = await playTurn(session, provider, turn);
    if (problem === undefined) continue;
    problems.push(`${turn.tag} ${turn.fault}: ${problem}`);
    break;
  }
  const log: LogEntry[] = [];
  for await (const entry of session.log()) log.push(entry);
  const history = await place.history(session.id);
  const exported = JSON.parse(JSON.stringify(log)) as unknown[];
  const historyJson = JSON.parse(historyToJSON(history)) as HistoryJson;
  const received = turns.flatMap((turn) => provider.received(turn));
  problems.push(
    ...(await watcher.leave(log.length - 1, AbortSignal.timeout(stuckMs))),
    ...(await restProblems(session)),
    ...brokenRules(log),
    ...receivedAsWitnessed(exported, received),
    ...summaryProblems(log, provider.summaries(turns)),
    ...compareWithHistory(exported, readHistory([historyJson])),
    ...faultsOf(history),
  );
  return {
    turns: turns.map((turn, index) => played(turn, entriesOf(log, index + 1), provider, limits)),
    problems: problems.map((problem) => `${session.id}: ${problem}`),
  };
}

/** Sends, and waits for the end; what kept it from coming. */
async function playTurn(
  session: SessionClient,
  provider: FuzzedProvider,
  turn: PlannedTurn,
): Promise<string | undefined> {
  const signal = AbortSignal.timeout(stuckMs);
  try {
    const { seq } = await session.followup(`${turn.tag} Go on.`);
    if (turn.end.kind === "aborted") {
      await untilHeld(provider, turn, signal);
      await session.interrupt();
    }
    await session.waitIdle({ after: seq, signal });
    return undefined;
  } catch (error) {
    const { state, turn: open } = await session.view();
    return `stuck (${state}, turn ${open.number}, step ${open.step}): ${String(error)}`;
  }
}

async function untilHeld(
  provider: FuzzedProvider,
  turn: PlannedTurn,
  signal: AbortSignal,
): Promise<void> {
  while (provider.received(turn).length < turn.shots.length) {
    signal.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function restProblems(session: SessionClient): Promise<string[]> {
  const { state, turn, inbox } = await session.view();
  const waiting = inbox.nextTurn.length + inbox.nextStep.length;
  return [
    ...(state === "idle" && !turn.open ? [] : [`is ${state} at the end`]),
    ...(waiting === 0 ? [] : [`${waiting} messages still wait`]),
  ];
}

/** Every request that is too large leads to one for a summary, where there is something to be summarised. */
function summaryProblems(log: readonly LogEntry[], asked: number): string[] {
  const brackets = log.filter((entry) => entry.type === "compaction/start").length;
  return asked === brackets
    ? []
    : [`${asked} requests for a summary, the log tells of ${brackets}`];
}

function played(
  turn: PlannedTurn,
  log: readonly LogEntry[],
  provider: FuzzedProvider,
  limits: SessionLimits,
): PlayedTurn {
  const requests = provider.received(turn);
  const problems = turnProblems(turn, log, limits);
  if (requests.length !== turn.shots.length)
    problems.push(`${requests.length} requests, stated are ${turn.shots.length}`);
  if (!requests.every((request) => request.closed())) problems.push("a request is still open");
  return {
    fault: turn.fault,
    end: endIn(log),
    stated: statedEnd(turn),
    requests: requests.length,
    problems: problems.map((problem) => `${turn.tag} ${turn.fault}: ${problem}`),
  };
}

/** Entries from a turn's start to its end. */
function entriesOf(log: readonly LogEntry[], turn: number): readonly LogEntry[] {
  const at = (type: "turn/start" | "turn/end"): number =>
    log.findIndex((entry) => entry.type === type && entry.data.turn === turn);
  const [start, end] = [at("turn/start"), at("turn/end")];
  return start < 0 ? [] : log.slice(start, end < 0 ? undefined : end + 1);
}
