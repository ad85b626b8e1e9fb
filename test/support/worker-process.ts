import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect } from "vitest";
import type { StartWorkerOptions } from "../../src/worker/index.js";
import { compiledScript } from "./compiled-script.js";
import type { ProviderWorkerOptions } from "./provider-worker.js";
import { cacheSize, type Lab, type Place } from "./temporal.js";
import { eventually } from "./until.js";

const script = new URL("./provider-worker.ts", import.meta.url);

export interface WorkerProcess {
  readonly pid: number;
  /** What it has printed. */
  output(): string;
  /** SIGKILL, and until it is gone. */
  kill(): Promise<void>;
}

/** A worker of a place in a process of its own, to be killed; `kill` it at the latest when the test ends. */
export async function startWorkerProcess(
  lab: Pick<Lab, "address" | "bundlePath">,
  place: Place,
  more: Partial<StartWorkerOptions> = {},
): Promise<WorkerProcess> {
  const options: ProviderWorkerOptions = {
    connection: { address: lab.address },
    home: place.home,
    hostId: place.hostId,
    sessionQueue: place.queue,
    workflowBundlePath: lab.bundlePath,
    maxCachedWorkflows: cacheSize,
    shutdownGraceMs: 200,
    storeDirectory: join(place.home, "..", "store"),
    ...more,
  };
  const child = spawn(process.execPath, [compiledScript(script), JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const gone = once(child, "close");
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await eventually(() => expect(text).toContain("ready"));
  return {
    pid: child.pid ?? -1,
    output: () => text,
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}
