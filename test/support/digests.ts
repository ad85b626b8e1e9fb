import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { bundleWorkflowCode, DefaultLogger, Worker, type InjectedSinks } from "@temporalio/worker";
import { noSinks } from "./no-sinks.js";
import type { SessionSinks } from "../../src/contracts/activities.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { canonicalJson } from "../../src/domain/canonical.js";
import type { DigestSinks, Told } from "./digest-interceptor.js";

/** A history as JSON, of which only the events matter here. */
export interface HistoryJson {
  readonly events: readonly { readonly [key: string]: unknown }[];
}

/** What a workflow did in one activation, as JSON: its commands with all their fields, and the entries its log got. */
export interface Activation {
  readonly commands: string;
  readonly entries: string;
}

/**
 * Digests of the state a history ends in: of a session its log, view and projections; of a job, which has none, its last commands
 * (the report to its session, and its result).
 */
export type StateDigests =
  | { readonly log: string; readonly view: string; readonly projections: string }
  | { readonly end: string };

/** What replay-states.ts prints. */
export interface States {
  /** Of the process. */
  readonly zone: string;
  /** By `version/name`. */
  readonly histories: { readonly [name: string]: StateOf };
}

export interface StateOf {
  /** Why it did not replay. */
  readonly error?: string;
  /** Of each activation: its commands with all their fields, and its entries. */
  readonly activations: readonly string[];
  readonly state: StateDigests;
}

/** What replay-digests.ts prints. */
export interface Digests {
  /** Of the process. */
  readonly zone: string;
  /** Of the log after the longest prefix. */
  readonly types: readonly LogEntry["type"][];
  /** Digests of the activations of each prefix, shortest first. */
  readonly prefixes: readonly (readonly string[])[];
}

/** Replays a history on a bundle of `writeDigestBundle`; rejects when the commands are not those of the history. */
export async function replayActivations(
  bundle: string,
  history: HistoryJson,
  id: string,
): Promise<Activation[]> {
  const activations: Activation[] = [];
  const sinks = sinksTo(({ commands, entries }) => void activations.push({ commands, entries }));
  await Worker.runReplayHistory({ workflowBundle: { codePath: bundle }, sinks }, history, id);
  return activations;
}

/** Replays whole histories, each with the workflow id it was recorded with, and digests what they did and where they end. */
export async function replayStates(
  bundle: string,
  histories: ReadonlyMap<string, HistoryJson>,
): Promise<States["histories"]> {
  let told: Told[] = [];
  const sinks = sinksTo((one) => void told.push(one));
  const states: { [name: string]: StateOf } = {};
  const replays = Worker.runReplayHistories(
    { workflowBundle: { codePath: bundle }, sinks },
    [...histories.values()].map((history) => ({ history, workflowId: workflowIdOf(history) })),
  );
  // In the order they were given, one at a time.
  const names = histories.keys();
  for await (const { error } of replays) {
    states[names.next().value ?? ""] = {
      ...(error === undefined ? {} : { error: error.message }),
      activations: told.map(({ commands, entries }) => sha256(`${commands}\n${entries}`)),
      state: stateOf(told),
    };
    told = [];
  }
  return states;
}

/** The id a history's workflow was started with: ids of its children are made from it. */
export function workflowIdOf({ events }: HistoryJson): string {
  const started = events[0]?.["workflowExecutionStartedEventAttributes"];
  return (started as { readonly workflowId: string }).workflowId;
}

function stateOf(told: readonly Told[]): StateDigests {
  const { commands, view, projections } = told.at(-1) ?? {
    commands: "",
    view: "",
    projections: "",
  };
  if (view === "") return { end: sha256(commands) };
  const log = logOf(told).map((entry) => canonicalJson(entry));
  return {
    log: sha256(log.join("\n")),
    view: sha256(canonicalJson(JSON.parse(view))),
    projections: sha256(canonicalJson(JSON.parse(projections))),
  };
}

function sinksTo(activated: (told: Told) => void): InjectedSinks<DigestSinks & SessionSinks> {
  return {
    ...noSinks,
    digest: { activated: { fn: (_info, told) => activated(told), callDuringReplay: true } },
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * Every beginning of a history that ends where a task was taken, so that a worker had to say what comes next; shortest first.
 * What that last task does may differ from what it did: the answer of a local activity would stand behind the end.
 */
export function prefixesOf({ events }: HistoryJson): HistoryJson[] {
  return events.flatMap(({ eventType }, index) =>
    eventType === "EVENT_TYPE_WORKFLOW_TASK_STARTED" &&
    events[index + 1]?.["eventType"] === "EVENT_TYPE_WORKFLOW_TASK_COMPLETED"
      ? [{ events: events.slice(0, index + 1) }]
      : [],
  );
}

/** The log after the activations. */
export function logOf(activations: readonly Activation[]): LogEntry[] {
  return activations.flatMap(({ entries }) => JSON.parse(entries) as LogEntry[]);
}

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The workflow bundle of the sources, with the interceptor that tells activations. */
export async function writeDigestBundle(path: string): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: source("../../src/workflows"),
    payloadConverterPath: source("../../src/workflows/payload-converter.ts"),
    workflowInterceptorModules: [
      source("../../src/workflows/interceptors.ts"),
      source("./digest-interceptor.ts"),
    ],
    preloadModules: [
      source("../../src/domain/preload.ts"),
      source("../../src/workflows/preload.ts"),
    ],
    logger: new DefaultLogger("ERROR"),
  });
  await writeFile(path, code);
}
