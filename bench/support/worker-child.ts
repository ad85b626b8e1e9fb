import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { JobsWorkerOptions, JobsWorkerSample } from "./jobs-worker.js";

export interface WorkerChild {
  /** What it was since the last one. */
  sample(): Promise<JobsWorkerSample>;
  end(): Promise<void>;
}

/** Without options: a process that does nothing. */
export async function forkJobsWorker(options?: JobsWorkerOptions): Promise<WorkerChild> {
  const script = fileURLToPath(new URL("jobs-worker.ts", import.meta.url));
  const child = fork(script, options === undefined ? [] : [JSON.stringify(options)], {
    execArgv: ["--import", "tsx"],
  });
  await answer(child);
  return {
    async sample() {
      child.send("sample");
      return (await answer(child)) as JobsWorkerSample;
    },
    async end() {
      if (child.connected) child.send("end");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
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
