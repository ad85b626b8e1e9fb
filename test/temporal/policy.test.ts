import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { LogEntry } from "../../src/contracts/log.js";
import { writeBundle } from "../../src/worker/bundle.js";
import { test } from "../support/temporal.js";

let folder: string;
let bundle: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "longhaul-policy-"));
  bundle = join(folder, "bundle.js");
  await writeBundle(bundle, fileURLToPath(new URL("../support/workflows", import.meta.url)));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const bash = (command: string) => ({ tool: "bash", args: { command, description: "Try" } });

describe("a deployment's own policy", () => {
  test("[harness/A14] [harness/T2] [harness/T3] [harness/T13] steers a turn that would stop, denies calls before they run and blocks results", async ({
    lab,
  }) => {
    const place = await lab.place({ workflowBundlePath: bundle });
    const session = await lab.session(
      {
        turns: [
          {
            steps: [
              { text: "short" },
              {
                calls: [
                  bash("touch forbidden"),
                  bash("touch guarded"),
                  bash("echo a secret"),
                  bash("echo fine"),
                ],
              },
              { text: "done" },
            ],
          },
        ],
      },
      { at: place },
    );
    const log = await lab.play(session);
    const shown = log.flatMap((entry) => (entry.type === "user/message" ? [textOf(entry)] : []));
    expect(shown).toEqual(["go", "today is day 1", "say more"]);
    expect(log.filter((entry) => entry.type === "turn/end")).toHaveLength(1);
    expect(
      log.flatMap((entry) => (entry.type === "tool/result" ? [entry.data.error?.code] : [])),
    ).toEqual(["TOOL_DENIED", "TOOL_DENIED", "TOOL_DENIED", undefined]);
    const { cwd = "" } = (await session.view()).config;
    expect(await readdir(cwd)).toEqual([]);
    await lab.replayOn(bundle, session);
  });

  test("[harness/A6] [harness/A7] rejects or empties what was claimed: the turn ends without a step, and what waits is kept", async ({
    lab,
  }) => {
    const place = await lab.place({ workflowBundlePath: bundle });
    const session = await lab.session(
      { turns: [{ repeat: 9, steps: [{ text: "ok" }, { text: "more" }] }] },
      { at: place, config: { worldTools: false } },
    );
    for (const [text, end] of [
      ["reject this", { kind: "blocked", message: "not here" }],
      ["drop this", { kind: "completed" }],
      ["choke on this", { kind: "error", code: "INVARIANT" }],
    ] as const) {
      await session.inject(`before ${text}`, { id: `context ${text}`.replaceAll(" ", "-") });
      const log = await lab.play(session, text);
      const last = log.at(-1);
      expect(last).toMatchObject({ type: "turn/end", data: { reason: end } });
      expect(log.some((entry) => entry.type === "step/start")).toBe(false);
    }
    expect(await lab.requests(session.id)).toEqual([]);
    const log = await lab.play(session, "fine");
    expect(log.at(-1)).toMatchObject({
      type: "turn/end",
      data: { turn: 4, reason: { kind: "completed" } },
    });
    await lab.replayOn(bundle, session);
  });
});

function textOf(entry: Extract<LogEntry, { type: "user/message" }>): string {
  return entry.data.message.content
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("");
}
