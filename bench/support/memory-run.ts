import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { MemorySample, MemoryWorkerOptions } from "./memory-worker.js";

const flags = [
  "--expose-gc",
  // Code would come and go between samples.
  "--no-flush-bytecode",
  "--no-opt",
  "--no-sparkplug",
  "--require",
  fileURLToPath(new URL("collect-in-thread.cjs", import.meta.url)),
  "--import",
  "tsx",
];

/**
 * Samples a worker's memory as the number of idle cached workflows grows. `add` makes one more and waits until it is
 * idle; eight are under way at a time.
 */
export async function growAndSample(
  options: MemoryWorkerOptions,
  counts: readonly number[],
  add: () => Promise<void>,
): Promise<readonly MemorySample[]> {
  const child = fork(
    fileURLToPath(new URL("memory-worker.ts", import.meta.url)),
    [JSON.stringify(options)],
    {
      execArgv: flags,
      // Free memory of the native side goes back to the system, and two arenas fragment less than sixteen.
      env: { ...process.env, MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" },
    },
  );
  try {
    await answer(child);
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
      // What a process sheds only after some collections is not to be taken for less per workflow.
      for (let extra = samples.length === 0 ? 4 : 0; extra > 0; extra--) await take(child);
      const sample = await take(child);
      if (sample.workflows !== count) {
        throw new Error(`expected ${count} cached workflows, the worker has ${sample.workflows}`);
      }
      samples.push(sample);
    }
    return samples;
  } finally {
    if (child.connected) child.send("end");
    if (child.exitCode === null) await once(child, "exit");
  }
}

async function take(child: ChildProcess): Promise<MemorySample> {
  child.send("sample");
  return (await answer(child)) as MemorySample;
}

async function answer(child: ChildProcess): Promise<unknown> {
  const signal = AbortSignal.timeout(60_000);
  const [message] = await Promise.race([
    once(child, "message", { signal }),
    once(child, "exit", { signal }).then(() => Promise.reject(new Error("the worker ended"))),
  ]);
  return message;
}

/** Least-squares slope of `y` over the number of workflows. */
export function perWorkflow(
  samples: readonly MemorySample[],
  y: (sample: MemorySample) => number,
): number {
  const mean = (of: (sample: MemorySample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [x, middle] = [mean((sample) => sample.workflows), mean(y)];
  let above = 0;
  let below = 0;
  for (const sample of samples) {
    above += (sample.workflows - x) * (y(sample) - middle);
    below += (sample.workflows - x) ** 2;
  }
  return above / below;
}
