import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { bundleWorkflowCode, DefaultLogger } from "@temporalio/worker";

/** Beside the compiled code; written by the build. */
export const bundlePath = fileURLToPath(new URL("../workflow-bundle.js", import.meta.url));

const workflows = fileURLToPath(new URL("../workflows", import.meta.url));

/**
 * Writes the workflow bundle. `entry` is a directory whose index exports workflow types; default Longhaul's own.
 * The pure rules, the session and the SDK's part are loaded once per worker and shared by all sessions (facts §0.7).
 */
export async function writeBundle(path: string, entry: string = workflows): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: entry,
    payloadConverterPath: fileURLToPath(
      new URL("../workflows/payload-converter.js", import.meta.url),
    ),
    workflowInterceptorModules: [
      fileURLToPath(new URL("../workflows/interceptors.js", import.meta.url)),
    ],
    preloadModules: ["../domain/preload.js", "../workflows/preload.js"].map((module) =>
      fileURLToPath(new URL(module, import.meta.url)),
    ),
    logger: new DefaultLogger("WARN"),
  });
  await writeFile(path, code);
}
