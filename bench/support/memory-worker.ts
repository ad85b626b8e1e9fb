// One worker in a process of its own, whose memory the parent samples. Arguments: JSON of MemoryWorkerOptions.
import { BroadcastChannel } from "node:worker_threads";
import { DefaultLogger, NativeConnection, Runtime } from "@temporalio/worker";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker } from "../../src/worker/index.js";
import { memoryLoads } from "./memory-cases.js";
import { createPeerActivities } from "./peer/activities.js";
import { startPeer } from "./peer/worker.js";
import { workflowBundle } from "./server.js";

export interface MemoryWorkerOptions {
  readonly kind: "session" | "bare";
  readonly address: string;
  readonly home: string;
  readonly peerBundle?: string;
  /** Default: more than there ever are. */
  readonly maxCachedWorkflows?: number;
}

export interface MemorySample {
  /** Of the whole process, after a collection in both threads. */
  readonly rssBytes: number;
  /** Of the thread that holds the workflows. */
  readonly heapBytes: number;
  /** Of the thread that runs the activities. */
  readonly mainHeapBytes: number;
  /** Cached ones. */
  readonly workflows: number;
  /** Modules that the last workflow evaluated for itself. */
  readonly modules: readonly string[];
}

declare global {
  /** Of collect-in-thread.cjs. */
  var collectAll: (() => void) | undefined;
}

const options = JSON.parse(process.argv[2] ?? "{}") as MemoryWorkerOptions;
const { maxCachedWorkflows = 100_000 } = options;
const stop = options.kind === "session" ? await startSessions() : await startBare();
process.on("message", (message) => {
  if (message === "sample") void sample().then((taken) => process.send?.(taken));
  if (message === "cpu") process.send?.(cpuMs());
  if (message === "end") void end();
});
// Also when the parent is gone.
process.on("disconnect", () => process.exit());
process.send?.("ready");

async function startSessions(): Promise<() => Promise<void>> {
  const worker = await startWorker({
    connection: { address: options.address },
    home: options.home,
    store: await openDirectoryStore(`${options.home}-store`),
    hostId: "bench",
    workflowBundlePath: workflowBundle,
    maxCachedWorkflows,
    shutdownGraceMs: 1_000,
  });
  return () => worker.stop();
}

async function startBare(): Promise<() => Promise<void>> {
  Runtime.install({ logger: new DefaultLogger("WARN"), shutdownSignals: [] });
  const connection = await NativeConnection.connect({ address: options.address });
  const activities = createPeerActivities(memoryLoads);
  const stopPeer = await startPeer(connection, options.peerBundle ?? "", activities, {
    maxCachedWorkflows,
  });
  return async () => {
    await stopPeer();
    await connection.close();
  };
}

async function sample(): Promise<MemorySample> {
  globalThis.collectAll?.();
  const thread = await collectInThread();
  globalThis.collectAll?.();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const { rss, heapUsed } = process.memoryUsage();
  return { rssBytes: rss, mainHeapBytes: heapUsed, ...thread };
}

/** Of all threads since the process began. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

type ThreadSample = Pick<MemorySample, "heapBytes" | "workflows" | "modules">;

function collectInThread(): Promise<ThreadSample> {
  return new Promise((resolve) => {
    const channel = new BroadcastChannel("longhaul-bench-collect");
    channel.addEventListener("message", (event: Event & { data?: unknown }) => {
      channel.close();
      resolve(event.data as ThreadSample);
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
    channel.postMessage("collect");
  });
}

async function end(): Promise<void> {
  await stop();
  process.disconnect();
}
