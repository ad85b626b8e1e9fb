import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as delay } from "node:timers/promises";
import type { SessionClient } from "../../src/client/session-client.js";
import type { WatchEvent } from "../../src/client/types.js";
import { collectEvidence, type Evidence } from "./evidence.js";
import { findProblems } from "./checks.js";
import { History } from "./history.js";
import { areHeld, look, type Moment } from "./moment.js";
import type { Random } from "./random.js";
import { createScript, type Script, type Size } from "./script.js";
import { until, type Site } from "./site.js";

/** One blow to a process, as it was dealt. */
export interface Blow {
  readonly kind: "worker killed" | "server killed" | "worker frozen";
  readonly moment: Moment;
  /** Epoch ms of the blow and of the return. */
  readonly from: number;
  to: number;
}

export interface Sent {
  readonly id: string;
  readonly text: string;
}

/** One session through its scripted turns, while something does its worst. */
export interface Trial {
  readonly site: Site;
  readonly script: Script;
  readonly random: Random;
  readonly session: SessionClient;
  readonly id: string;
  readonly workspace: string;
  readonly history: History;
  readonly blows: Blow[];
  readonly sends: Sent[];
  readonly watched: WatchEvent[];
  readonly say: (line: string) => void;
  send(text: string, mode?: "followup" | "steer"): Promise<void>;
  /** Opens the next scripted turn when the session has run out of work. */
  keepRunning(): Promise<void>;
  /** A looping command goes on as long as its call is held. */
  hold(claims: readonly string[]): void;
  release(claims: readonly string[]): void;
}

export interface TrialResult {
  readonly blows: readonly Blow[];
  readonly problems: readonly string[];
  readonly summary: string;
}

/** How long a turn may take after the last blow, ms. */
const patienceMs = 150_000;
/** How long the blows may take in all, ms. */
const attackMs = 400_000;

export async function runTrial(
  site: Site,
  random: Random,
  say: (line: string) => void,
  size: Size,
  attack: (trial: Trial) => Promise<void>,
): Promise<TrialResult> {
  const script = createScript(size);
  const { session, workspace } = await site.session(script);
  const history = new History(site.connection, session.id);
  const stop = new AbortController();
  let asked = 0;
  let nextLook = 0;
  const deadline = Date.now() + attackMs;
  const trial: Trial = {
    site,
    script,
    random,
    session,
    id: session.id,
    workspace,
    history,
    blows: [],
    sends: [],
    watched: [],
    say,
    async send(text, mode = "followup") {
      const id = `chaos-message-${trial.sends.length + 1}`;
      trial.sends.push({ id, text });
      // A user whose call failed sends again under the same id; a verdict is final.
      await until(`message ${id} to be taken`, patienceMs, async () => {
        try {
          await session.send(text, { id, mode });
          return true;
        } catch (error) {
          const code = error instanceof Error && "code" in error ? String(error.code) : "";
          if (!["NO_WORKER", "TEMPORAL_UNREACHABLE", "TIMEOUT"].includes(code)) throw error;
          say(`  message ${id}: ${code}, sent again`);
          return false;
        }
      });
    },
    async keepRunning() {
      if (Date.now() < nextLook) return;
      if (Date.now() > deadline)
        throw new Error("the blows took too long: a window was not found open");
      nextLook = Date.now() + 1_000;
      const view = await session.view().catch(() => undefined);
      if (view === undefined || view.state !== "idle" || view.inbox.nextTurn.length > 0) return;
      if (asked >= size.turns)
        throw new Error(`the ${size.turns} scripted turns were over before every blow was dealt`);
      asked++;
      await trial.send(`Turn ${asked}, please.`);
    },
    hold: (claims) => {
      for (const claim of claims) writeFileSync(join(workspace, `hold-${claim}`), "");
    },
    release: (claims) => {
      for (const claim of claims) rmSync(join(workspace, `hold-${claim}`), { force: true });
    },
  };
  const watching = watch(trial, stop.signal);
  try {
    await trial.keepRunning();
    await attack(trial);
    await session.waitIdle({ signal: AbortSignal.timeout(patienceMs) });
    await untilWatched(trial);
    const evidence = await collectEvidence(trial);
    const problems = await findProblems(trial, evidence);
    if (problems.length > 0) say(`what it left is in ${keep(trial, evidence)}`);
    return { blows: trial.blows, problems, summary: evidence.summary };
  } finally {
    stop.abort();
    await watching;
    await history.close();
  }
}

/** Log, history and all, for whoever looks for the cause. */
function keep(trial: Trial, evidence: Evidence): string {
  const directory = fileURLToPath(new URL("../../node_modules/.longhaul/chaos/", import.meta.url));
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${trial.id}.json`);
  const { blows, sends, watched } = trial;
  const beats = Object.fromEntries(evidence.beats);
  writeFileSync(path, JSON.stringify({ ...evidence, beats, blows, sends, watched }, undefined, 1));
  return path;
}

async function watch(trial: Trial, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of trial.session.watch({ signal })) trial.watched.push(event);
  } catch (error) {
    if (!signal.aborted) trial.say(`  the watcher ended: ${String(error)}`);
  }
}

async function untilWatched(trial: Trial): Promise<void> {
  const { lastSeq } = await trial.session.view();
  await until("the watcher to see the whole log", 30_000, () =>
    Promise.resolve(
      trial.watched.some((event) => event.type === "entry" && event.entry.seq >= lastSeq),
    ),
  );
}

/**
 * Holds the commands of a moment while the worker stands still: one that nobody ended would go on past the entry that says
 * its outcome is unknown. One that was past its last look at what holds it ends by itself, and then the moment is another.
 */
export async function hold(trial: Trial, moment: Moment): Promise<Moment> {
  trial.hold(moment.claims);
  if (moment.window !== "tool running" || (await areHeld(trial.workspace, moment.claims)))
    return moment;
  return { ...moment, window: "other", detail: `${moment.detail}, at its end` };
}

/** Freezes the worker, looks, and kills it when the look is what was wanted; else lets it go on. */
export async function killWhen(
  trial: Trial,
  wanted: (moment: Moment) => boolean,
): Promise<boolean> {
  const { site, blows } = trial;
  await site.worker.freeze();
  // What it had sent before is on its way to the server.
  await delay(30);
  let moment = await look(site, trial);
  if (wanted(moment)) moment = await hold(trial, moment);
  if (!wanted(moment)) {
    site.worker.thaw();
    trial.release(moment.claims);
    return false;
  }
  const blow: Blow = { kind: "worker killed", moment, from: Date.now(), to: Infinity };
  blows.push(blow);
  await site.worker.kill();
  await delay(trial.random.between(0, 1_500));
  await site.startWorker();
  blow.to = Date.now();
  trial.say(`  killed: ${moment.window} (${moment.detail}); back after ${blow.to - blow.from} ms`);
  return true;
}
