import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { DefaultLogger, Runtime, type LogLevel } from "@temporalio/worker";
import { findBinary } from "../../src/server/find-binary.js";
import { serverArguments } from "../../test/support/server-arguments.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

export const workflowBundle = join(root, "dist/workflow-bundle.js");

export interface BenchPlace {
  /** `host:port` of the dev server of this run. */
  readonly address: string;
  /** Removed afterwards. */
  readonly directory: string;
}

/** Builds the project (stdout stays the bench's own). */
export function buildProject(): void {
  execFileSync(process.execPath, ["scripts/build.mjs"], {
    cwd: root,
    stdio: ["ignore", 2, "inherit"],
  });
}

export interface BenchServer {
  /** Default WARN. */
  readonly logLevel?: LogLevel;
  /** Cancels reach an activity at once, as with the product's own server (the default), or with a heartbeat. */
  readonly workerCommands?: boolean;
}

/** Runs `body` beside a Temporal dev server and a directory of its own; both are gone afterwards, also after Ctrl-C. */
export async function withServer<T>(
  body: (place: BenchPlace) => Promise<T>,
  { logLevel = "WARN", workerCommands = true }: BenchServer = {},
): Promise<T> {
  installRuntime(logLevel);
  const { path } = await findBinary({ env: process.env, report: (line) => console.error(line) });
  const directory = await mkdtemp(join(tmpdir(), "longhaul-bench-"));
  const env = await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: "existing-path", path },
      log: { format: "pretty", level: "error" },
      extraArgs: serverArguments({ workerCommands }),
    },
  });
  const cleanUp = async (): Promise<void> => {
    await env.teardown();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  const interrupted = (): void => {
    void cleanUp().finally(() => process.exit(130));
  };
  process.once("SIGINT", interrupted);
  process.once("SIGTERM", interrupted);
  try {
    return await body({ address: env.address, directory });
  } finally {
    process.off("SIGINT", interrupted);
    process.off("SIGTERM", interrupted);
    await cleanUp();
  }
}

let installed = false;

function installRuntime(level: LogLevel): void {
  if (installed) return;
  installed = true;
  Runtime.install({ logger: new DefaultLogger(level), shutdownSignals: [] });
}
