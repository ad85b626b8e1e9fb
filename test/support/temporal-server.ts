import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TestWorkflowEnvironment } from "@temporalio/testing";
import { DefaultLogger, Runtime } from "@temporalio/worker";
import type { TestProject } from "vitest/node";
import { findBinary } from "../../src/server/find-binary.js";
import { serverArguments } from "./server-arguments.js";

declare module "vitest" {
  export interface ProvidedContext {
    /** `host:port` of the dev server of this project's run. */
    temporalAddress: string;
    /** `dist/workflow-bundle.js`, built from the sources under test. */
    workflowBundlePath: string;
    /** The Temporal CLI in use, for tests that run a server of their own. */
    temporalBinary: string;
  }
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Builds the project, then runs one Temporal dev server for all test files of the project. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  execFileSync(process.execPath, ["scripts/build.mjs"], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const { path } = await findBinary({ env: process.env, report: (line) => console.error(line) });
  process.env["LONGHAUL_TEMPORAL_CLI"] = path;
  quietRuntime();
  const env = await TestWorkflowEnvironment.createLocal({
    server: {
      executable: { type: "existing-path", path },
      log: { format: "pretty", level: "error" },
      extraArgs: serverArguments(),
    },
  });
  project.provide("temporalAddress", env.address);
  project.provide("workflowBundlePath", join(root, "dist/workflow-bundle.js"));
  project.provide("temporalBinary", path);
  return () => env.teardown();
}

/** The runtime is one per process; with several projects in one run the first has installed it. */
function quietRuntime(): void {
  try {
    Runtime.install({ logger: new DefaultLogger("WARN") });
  } catch (error) {
    if (!(error instanceof Error && error.name === "IllegalStateError")) throw error;
  }
}
