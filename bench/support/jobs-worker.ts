// One worker in a process of its own, whose event loop and memory the parent asks for. Arguments: JSON of JobsWorkerOptions;
// without them it does nothing, which shows what the machine does to a process.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { openDirectoryStore } from "../../src/store/directory.js";
import { startWorker, type RunningWorker } from "../../src/worker/index.js";
import { workflowBundle } from "./server.js";

export interface JobsWorkerOptions {
  readonly address: string;
  readonly home: string;
  readonly store: string;
}

export interface JobsWorkerSample {
  /** Of the event loop since the last sample, ms. */
  readonly delayP50: number;
  readonly delayP99: number;
  readonly delayMax: number;
  /** Of the event loop's time. */
  readonly busy: number;
  readonly rssBytes: number;
}

const given = process.argv[2];
const worker =
  given === undefined ? undefined : await startOne(JSON.parse(given) as JobsWorkerOptions);
/** The timer's own period, which every value holds. */
const resolution = 10;
const delays = monitorEventLoopDelay({ resolution });
delays.enable();
let utilization = performance.eventLoopUtilization();
process.on("message", (message) => {
  if (message === "sample") process.send?.(sample());
  if (message === "end") void Promise.resolve(worker?.stop()).then(() => process.exit());
});
// Also when the parent is gone.
process.on("disconnect", () => process.exit());
process.send?.("ready");

async function startOne({ address, home, store }: JobsWorkerOptions): Promise<RunningWorker> {
  return startWorker({
    connection: { address },
    home,
    store: await openDirectoryStore(store),
    hostId: "bench",
    workflowBundlePath: workflowBundle,
    shutdownGraceMs: 1_000,
  });
}

function sample(): JobsWorkerSample {
  const ms = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolution);
  const now = performance.eventLoopUtilization();
  const taken = {
    delayP50: ms(delays.percentile(50)),
    delayP99: ms(delays.percentile(99)),
    delayMax: ms(delays.max),
    busy: performance.eventLoopUtilization(now, utilization).utilization,
    rssBytes: process.memoryUsage().rss,
  };
  utilization = now;
  delays.reset();
  return taken;
}
