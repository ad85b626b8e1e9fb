import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { bundleWorkflowCode, DefaultLogger, Worker, type InjectedSinks } from "@temporalio/worker";
import { noSinks } from "./no-sinks.js";
import type { SessionSinks } from "../../src/contracts/activities.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { DigestSinks } from "./digest-interceptor.js";

/** A history as JSON, of which only the events matter here. */
export interface HistoryJson {
  readonly events: readonly { readonly [key: string]: unknown }[];
}

/** What a workflow did in one activation, as JSON: its commands with all their fields, and the entries its log got. */
export interface Activation {
  readonly commands: string;
  readonly entries: string;
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
  const sinks: InjectedSinks<DigestSinks & SessionSinks> = {
    ...noSinks,
    digest: {
      activated: { fn: (_info, told) => void activations.push(told), callDuringReplay: true },
    },
  };
  await Worker.runReplayHistory({ workflowBundle: { codePath: bundle }, sinks }, history, id);
  return activations;
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
