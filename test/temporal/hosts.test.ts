import { randomUUID } from "node:crypto";
import { msToTs } from "@temporalio/common/lib/time.js";
import { describe, expect } from "vitest";
import * as z from "zod";
import { LonghaulClient } from "../../src/client/index.js";
import { defaultLimits } from "../../src/contracts/config.js";
import type { LogEntry } from "../../src/contracts/log.js";
import type { ModelRequest } from "../../src/contracts/model.js";
import { defineTool } from "../../src/tools/define.js";
import { eventsOf } from "../support/history.js";
import { test as base, replay, type Lab } from "../support/temporal.js";
import { eventually } from "../support/until.js";

const extra = defineTool({
  name: "extra",
  description: "Only in some builds.",
  parameters: z.object({}),
  execute: () => "extra ran",
});
const anywhere = defineTool({
  name: "anywhere",
  description: "Needs no workspace.",
  parameters: z.object({}),
  workspace: false,
  execute: (_args, context) => `ran with cwd ${context.cwd ?? "none"}`,
});

const test = base.extend({ workerOptions: [{ tools: [anywhere] }, { scope: "file" as const }] });

const bash = { tool: "bash", args: { command: "echo hi", description: "Greet" } };

// Those that wait for 30 s stand first, so that they wait together.
describe.concurrent("a host that is not there", () => {
  test(
    "nobody answers and none is given: NO_HOST; the same id works once a host is there, also where no search attribute is registered",
    { timeout: 300_000 },
    async ({ lab }) => {
      const namespace = `n-${randomUUID().slice(0, 8)}`;
      await lab.temporal.workflowService.registerNamespace({
        namespace,
        workflowExecutionRetentionPeriod: msToTs("1 day"),
      });
      const place = await lab.emptyPlace({ namespace, sessionQueue: "longhaul" });
      await eventually(() => place.start({ roles: ["session"] }));
      const client = await LonghaulClient.connect({
        connection: { address: lab.address },
        namespace,
        store: lab.store,
      });
      try {
        const id = `t-${randomUUID()}`;
        const config = {
          request: {
            provider: "scripted",
            model: await lab.scenario({
              turns: [{ steps: [{ calls: [bash] }, { text: "done" }] }],
            }),
          },
          allowParallelInProgress: true,
          worldTools: true,
          cwd: await lab.workspace(),
          outsideWorkspace: false,
          deny: [],
          ask: [],
          limits: defaultLimits,
        };
        await expect(client.createSession({ id, config })).rejects.toMatchObject({
          code: "NO_HOST",
        });
        await place.start({ roles: ["host"] });
        const session = await client.createSession({ id, config });
        expect((await session.view()).host).toBe(place.hostId);
        const log = await lab.play(session);
        expect(resultTexts(log)).toEqual(["hi"]);
        await session.close();
        const history = await lab.historyIn(namespace, id);
        const upserted = eventsOf(history, "upsertWorkflowSearchAttributesEventAttributes").flatMap(
          ({ searchAttributes }) => Object.keys(searchAttributes?.indexedFields ?? {}),
        );
        // The SDK's own attribute of patches, which every server has.
        expect(upserted.filter((key) => key !== "TemporalChangeVersion")).toEqual([]);
        await replay(lab.bundlePath, history, id);
      } finally {
        await client.close();
      }
    },
  );

  test(
    "a given host that does not answer opens the session cold, with state tools only, and tells the model; it becomes live with the host",
    { timeout: 300_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const session = await lab.session(
        {
          turns: [
            { steps: [{ calls: [bash] }, { text: "no bash" }] },
            { steps: [{ calls: [bash] }, { text: "bash" }] },
          ],
        },
        { at: place },
      );
      expect((await session.view()).state).toBe("cold");
      await eventually(async () => expect(await stateOf(lab, session.id)).toBe("cold"));
      const cold = await lab.play(session);
      expect(codesOf(cold)).toEqual(["UNKNOWN_TOOL"]);
      const [first] = await lab.requests(session.id);
      expect(worldTools(first)).toEqual([]);
      expect(first?.tools.map((tool) => tool.name)).toContain("todo_write");
      expect(first?.system).toContain(`host ${place.hostId} does not answer`);
      expect((await session.view()).state).toBe("cold");
      await place.start({ roles: ["host"] });
      await eventually(async () => expect((await session.view()).state).toBe("idle"));
      await eventually(async () => expect(await stateOf(lab, session.id)).toBe("idle"));
      const live = await lab.play(session, "again");
      expect(resultTexts(live).at(-1)).toBe("hi");
      const last = (await lab.requests(session.id)).at(-1);
      expect(worldTools(last)).toEqual(["bash", "read", "write"]);
      expect(last?.system).not.toContain("does not answer");
      expect(
        live.flatMap((entry) => (entry.type === "session/live" ? [entry.data.live] : [])),
      ).toEqual([false, true]);
      await lab.witness(session);
    },
  );

  test(
    "a world tool call to a host that went away is TOOL_NOT_STARTED after 30 s, and the turn goes on",
    { timeout: 300_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const host = await place.start({ roles: ["host"] });
      const session = await lab.session(
        { turns: [{ steps: [{ calls: [bash] }, { text: "went on" }] }] },
        { at: place },
      );
      await host.stop();
      const log = await lab.play(session);
      expect(codesOf(log)).toEqual(["TOOL_NOT_STARTED"]);
      expect(resultTexts(log)[0]).toContain("safe to call again");
      expect(log.at(-1)).toMatchObject({
        type: "turn/end",
        data: { reason: { kind: "completed" } },
      });
      await lab.witness(session);
    },
  );

  test(
    "closing a cold session does not wait for its host",
    { timeout: 300_000 },
    async ({ lab }) => {
      const place = await lab.emptyPlace();
      await place.start({ roles: ["session"] });
      const session = await lab.session({ turns: [{ steps: [{ text: "ok" }] }] }, { at: place });
      expect((await session.view()).state).toBe("cold");
      await session.close();
      expect((await lab.entries(session)).at(-1)?.type).toBe("session/close");
    },
  );
});

describe.concurrent("binding and the tool table", () => {
  test("a session without world tools is bound to no host and still has state tools and those that need no workspace", async ({
    lab,
  }) => {
    const session = await lab.session(
      { turns: [{ steps: [{ calls: [{ tool: "anywhere" }, bash] }, { text: "done" }] }] },
      { config: { worldTools: false } },
    );
    const view = await session.view();
    expect(view).toMatchObject({ epoch: 0, state: "idle" });
    expect(view.host).toBeUndefined();
    const log = await lab.play(session);
    expect(log.some((entry) => entry.type === "session/bound")).toBe(false);
    expect(codesOf(log)).toEqual([undefined, "UNKNOWN_TOOL"]);
    const [request] = await lab.requests(session.id);
    expect(worldTools(request)).toEqual([]);
    expect(request?.tools.map((tool) => tool.name)).toEqual(
      expect.arrayContaining(["todo_write", "anywhere"]),
    );
  });

  test("without a given host the session is bound to whichever answers", async ({ lab }) => {
    const session = await lab.session({ turns: [{ steps: [{ text: "ok" }] }] }, { host: null });
    const log = await lab.entries(session);
    const bound = log.find((entry) => entry.type === "session/bound");
    expect(bound?.data).toMatchObject({ epoch: 1 });
    expect((await session.view()).host).toBe(bound?.data.host);
    expect(bound?.data.host).not.toBe("");
  });

  test("a tool that the host's new build lacks is TOOL_UNAVAILABLE, until the table is refreshed and it is no longer offered", async ({
    lab,
  }) => {
    const place = await lab.emptyPlace();
    await place.start({ roles: ["session"] });
    const old = await place.start({ roles: ["host"], tools: [extra] });
    const session = await lab.session(
      { turns: [{ repeat: 3, steps: [{ calls: [{ tool: "extra" }] }, { text: "done" }] }] },
      { at: place },
    );
    expect(resultTexts(await lab.play(session))).toEqual(["extra ran"]);
    await old.stop();
    await place.start({ roles: ["host"] });
    expect(codesOf(await lab.play(session, "again"))).toEqual([undefined, "TOOL_UNAVAILABLE"]);
    await session.configure({ refreshTools: true });
    expect(codesOf(await lab.play(session, "once more"))).toEqual([
      undefined,
      "TOOL_UNAVAILABLE",
      "UNKNOWN_TOOL",
    ]);
    const requests = await lab.requests(session.id);
    expect(requests[0]?.tools.map((tool) => tool.name)).toContain("extra");
    expect(requests.at(-1)?.tools.map((tool) => tool.name)).not.toContain("extra");
    const headers = (await lab.entries(session)).filter((entry) => entry.type === "request/header");
    expect(headers.map((entry) => entry.data.reason)).toEqual(["initial", "change"]);
    await lab.witness(session);
  });

  test("[harness/H1] [harness/H2] [harness/H3] a new model or system text is one header change, used by the next request; nothing changed logs nothing", async ({
    lab,
  }) => {
    const session = await lab.session(
      {
        turns: [
          {
            repeat: 9,
            steps: [{ calls: [{ tool: "todo_write", args: { todos: [] } }] }, { text: "done" }],
          },
        ],
      },
      { config: { worldTools: false } },
    );
    await lab.play(session);
    const other = await lab.scenario({
      contextWindow: 1_000,
      turns: [{ repeat: 9, steps: [{ text: "other model" }] }],
    });
    await session.configure({
      config: { request: { provider: "scripted", model: other }, system: "Be brief." },
    });
    const log = await lab.play(session, "again");
    const headers = log.filter((entry) => entry.type === "request/header");
    expect(headers.map((entry) => entry.data.reason)).toEqual(["initial", "change"]);
    expect(log.filter((entry) => entry.type === "request/context").at(-1)?.data).toMatchObject({
      model: other,
      contextWindow: 1_000,
    });
    const requests = await lab.requests(session.id);
    expect(requests.map((request) => [request.config.model === other, request.system])).toEqual([
      [false, undefined],
      [false, undefined],
      [true, "Be brief."],
    ]);
    expect(requests[1]?.messages.slice(0, requests[0]?.messages.length)).toEqual(
      requests[0]?.messages,
    );
    await lab.witness(session);
  });
});

/** The tools offered that need a host, of those every build has. */
function worldTools(request: ModelRequest | undefined): string[] {
  return ["bash", "read", "write"].filter((name) =>
    request?.tools.some((tool) => tool.name === name),
  );
}

async function stateOf(lab: Lab, id: string): Promise<unknown> {
  const { typedSearchAttributes } = await lab.handle(id).describe();
  return typedSearchAttributes.getAll().find((pair) => pair.key.name === "LonghaulState")?.value;
}

function codesOf(log: readonly LogEntry[]): (string | undefined)[] {
  return log.flatMap((entry) => (entry.type === "tool/result" ? [entry.data.error?.code] : []));
}

function resultTexts(log: readonly LogEntry[]): string[] {
  return log.flatMap((entry) => {
    if (entry.type !== "tool/result") return [];
    const [block] = entry.data.message.content;
    return block?.type === "tool-result" ? [block.content.map((one) => one.text).join("\n")] : [];
  });
}
