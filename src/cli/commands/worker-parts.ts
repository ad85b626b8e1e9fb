import { resolve } from "node:path";
import type { ModelRoute, Settings } from "../../config.js";
import { LonghaulError } from "../../contracts/errors.js";
import type { WorkerRequest } from "../backend.js";
import type { Context } from "../command.js";
import type { LoadedTools } from "../../tools/load.js";
import { progress } from "../progress.js";

export const toolsOption = {
  tools: {
    type: "string",
    value: "file",
    help: "a TypeScript or JavaScript file with tools and job kinds of your own, for the worker this starts",
  },
} as const;

/** What a worker of this process is started with; its tools file is read now. Throws INVALID_CONFIG. */
export async function workerParts(
  context: Context,
  settings: Settings,
  toolsFile: string | undefined,
): Promise<WorkerRequest> {
  const { io } = context;
  return {
    roles: ["session", "host"],
    hostId: settings.hostId,
    ...(await context.orStop(
      loadTools(settings, toolsFile === undefined ? undefined : resolve(io.cwd, toolsFile)),
    )),
    async models(store) {
      const { providersFromEnv } = await import("../../models/providers.js");
      return namingFile(settings, () => providersFromEnv(io.env, settings.file, store));
    },
  };
}

/** `web_fetch` where the deployment allows it, and the tools and job kinds of a file. */
async function loadTools(
  { file: { webFetch: allowed = false } }: Settings,
  path: string | undefined,
): Promise<LoadedTools> {
  const [{ webFetch }, { builtinTools }, { loadToolsFile }] = await Promise.all([
    import("../../tools/web-fetch.js"),
    import("../../tools/builtin.js"),
    import("../../tools/load.js"),
  ]);
  const web = webFetch({
    allow: allowed !== false,
    ...(typeof allowed === "boolean" ? {} : { allowHosts: allowed }),
  });
  if (path === undefined) return { tools: web, jobKinds: [] };
  const { tools, jobKinds } = await loadToolsFile(path, { taken: [...builtinTools, ...web] });
  return { tools: [...web, ...tools], jobKinds };
}

/**
 * Refuses a model that a worker of this process could not call: MODEL_NOT_FOUND for an unknown provider, AUTH and
 * INVALID_CONFIG for its key and base URL. A worker elsewhere may have what this process lacks.
 */
export async function checkModelOf(
  { io }: Context,
  settings: Settings,
  route: ModelRoute,
): Promise<void> {
  if (route.provider === "scripted") return;
  const { checkModel } = await import("../../models/providers.js");
  const problem = namingFile(settings, () => checkModel(route, io.env, settings.file));
  if (problem?.certain === true) throw new LonghaulError(problem.code, problem.message);
  if (problem !== undefined) progress(io)(problem.message);
}

function namingFile<T>({ configFile }: Settings, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LonghaulError) || error.code !== "INVALID_CONFIG") throw error;
    throw new LonghaulError("INVALID_CONFIG", `${configFile}: ${error.message}`, { cause: error });
  }
}
