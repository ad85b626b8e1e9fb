import { expect, test } from "vitest";
import { workerParts } from "../../src/cli/commands/worker-parts.js";
import type { Context } from "../../src/cli/command.js";
import type { Settings } from "../../src/config.js";
import { defaultLimits } from "../../src/contracts/config.js";

async function toolNames(webFetch?: boolean | readonly string[]): Promise<readonly string[]> {
  const settings: Settings = {
    home: "/h",
    configFile: "/h/config.yaml",
    hostId: "h",
    limits: defaultLimits,
    file: {
      allowParallelInProgress: true,
      request: {},
      limits: {},
      ...(webFetch === undefined ? {} : { webFetch }),
    },
  };
  const context = {
    io: { cwd: "/", env: {} },
    orStop: (work: Promise<unknown>) => work,
  } as unknown as Context;
  const { tools = [] } = await workerParts(context, settings, undefined);
  return tools.map((tool) => tool.row.name);
}

test("web_fetch is offered only where the deployment allows it", async () => {
  expect(await toolNames()).toEqual([]);
  expect(await toolNames(false)).toEqual([]);
  expect(await toolNames(true)).toEqual(["web_fetch"]);
  expect(await toolNames(["docs.example.com"])).toEqual(["web_fetch"]);
});
