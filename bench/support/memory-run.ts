import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { median } from "./report.js";
import type { MemorySample, MemoryWorkerOptions } from "./memory-worker.js";

/** Flags of a process that lets its memory be sampled; more may come before them. */
const flags = [
  "--expose-gc",
  "--require",
  fileURLToPath(new URL("collect-in-thread.cjs", import.meta.url)),
  "--import",
  "tsx",
];
/** Code would come and go between samples: without it slopes are exact, and a worker is slow. */
const steadyFlags = ["--no-flush-bytecode", "--no-opt", "--no-sparkplug"];

export interface MeasuredWorker {
  /** Once memory has stopped shrinking. */
  sample(): Promise<MemorySample>;
  /** What it has used, ms. */
  cpu(): Promise<number>;
  end(): Promise<void>;
}

/** A worker in a process of its own. */
export async function forkMemoryWorker(
  options: MemoryWorkerOptions,
  moreFlags: readonly string[] = [],
): Promise<MeasuredWorker> {
  const child = fork(
    fileURLToPath(new URL("memory-worker.ts", import.meta.url)),
    [JSON.stringify(options)],
    {
      execArgv: [...moreFlags, ...flags],
      // Free memory of the native side goes back to the system, and two arenas fragment less than sixteen.
      env: { ...process.env, MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" },
    },
  );
  await answer(child);
  return {
    sample: () => takeLeast(child),
    async cpu() {
      child.send("cpu");
      return (await answer(child)) as number;
    },
    async end() {
      if (child.connected) child.send("end");
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

/**
 * Samples a worker's memory as the number of idle workflows grows. `add` makes one more and waits until it is idle; eight are
 * under way at a time.
 */
export async function growAndSample(
  options: MemoryWorkerOptions,
  counts: readonly number[],
  add: () => Promise<void>,
  moreFlags = steadyFlags,
): Promise<readonly MemorySample[]> {
  const worker = await forkMemoryWorker(options, moreFlags);
  try {
    const samples: MemorySample[] = [];
    let made = 0;
    for (const count of counts) {
      let left = count - made;
      made = count;
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          while (left-- > 0) await add();
        }),
      );
      const sample = await worker.sample();
      const expected = Math.min(count, options.maxCachedWorkflows ?? count);
      if (sample.workflows !== expected) {
        throw new Error(
          `expected ${expected} cached workflows, the worker has ${sample.workflows}`,
        );
      }
      samples.push(sample);
      console.error(`${count} workflows: ${Math.round(sample.rssBytes / 1_024)} KB RSS`);
    }
    return samples;
  } finally {
    await worker.end();
  }
}

/** Samples until memory stops shrinking: V8 gives pages back over several collections. */
async function takeLeast(child: ChildProcess): Promise<MemorySample> {
  let least = await take(child);
  for (let [rounds, idle] = [1, 0]; rounds < 12 && idle < 2; rounds++) {
    const next = await take(child);
    idle = next.rssBytes < least.rssBytes * 0.995 ? 0 : idle + 1;
    if (next.rssBytes < least.rssBytes) least = next;
  }
  return least;
}

async function take(child: ChildProcess): Promise<MemorySample> {
  child.send("sample");
  return (await answer(child)) as MemorySample;
}

async function answer(child: ChildProcess): Promise<unknown> {
  const settled = new AbortController();
  const signal = AbortSignal.any([settled.signal, AbortSignal.timeout(60_000)]);
  try {
    const [message] = await Promise.race([
      once(child, "message", { signal }),
      once(child, "exit", { signal }).then(() => Promise.reject(new Error("the worker ended"))),
    ]);
    return message;
  } finally {
    settled.abort();
  }
}

/** Median slope of `y` over the number of workflows between all pairs of samples: one that is off does not count. */
export function perWorkflow(
  samples: readonly MemorySample[],
  y: (sample: MemorySample) => number,
): number {
  const slopes = samples.flatMap((one, index) =>
    samples
      .slice(index + 1)
      .map((other) => (y(other) - y(one)) / (other.workflows - one.workflows)),
  );
  return median(slopes);
}
