import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaultLimits, type SessionConfig } from "../../src/contracts/config.js";

/** A session that is played a scenario; world tools and a workspace when `cwd` is given. */
export async function scriptedConfig(
  directory: string,
  name: string,
  scenario: object,
  cwd?: string,
): Promise<SessionConfig> {
  const model = join(directory, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.yaml`);
  // JSON is YAML.
  await writeFile(model, JSON.stringify(scenario));
  return {
    request: { provider: "scripted", model },
    allowParallelInProgress: true,
    worldTools: cwd !== undefined,
    ...(cwd === undefined ? {} : { cwd }),
    outsideWorkspace: false,
    deny: [],
    ask: [],
    limits: defaultLimits,
  };
}
