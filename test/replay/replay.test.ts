import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DefaultLogger, Runtime, Worker } from "@temporalio/worker";
import { beforeAll, describe, expect, test } from "vitest";
import { noSinks } from "../support/no-sinks.js";
import { behaviours } from "./behaviours.js";

const project = fileURLToPath(new URL("../..", import.meta.url));
const codePath = join(project, "dist/workflow-bundle.js");
const folder = fileURLToPath(new URL("./histories", import.meta.url));
const versions = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));

beforeAll(() => {
  execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: project, stdio: "inherit" });
  Runtime.install({ logger: new DefaultLogger("ERROR") });
}, 120_000);

test("the newest release has a history of every behaviour", () => {
  expect(versions).not.toEqual([]);
  const recorded = namesOf(versions.at(-1) ?? "");
  const missing = Object.keys(behaviours).filter((name) => !recorded.includes(name));
  expect(missing, "record them with `npm run record-histories`").toEqual([]);
});

describe.each(versions)("sessions begun by release %s go on with this one", (version) => {
  test.each(namesOf(version))("%s", async (name) => {
    await expect(replay(readHistory(version, name))).resolves.toBeUndefined();
  });
});

test("a history that differs from what the code does is refused", async () => {
  const history = readHistory(versions.at(-1) ?? "", "text-turn");
  const call = history.events.find((event) => "activityTaskScheduledEventAttributes" in event);
  Object.assign(call?.["activityTaskScheduledEventAttributes"] ?? {}, {
    activityType: { name: "something.else" },
  });
  await expect(replay(history)).rejects.toMatchObject({ name: "DeterminismViolationError" });
});

interface HistoryJson {
  readonly events: readonly { readonly [key: string]: unknown }[];
}

async function replay(history: HistoryJson): Promise<void> {
  // Ids of children are made from it.
  const started = history.events[0]?.["workflowExecutionStartedEventAttributes"];
  const { workflowId } = started as { readonly workflowId: string };
  await Worker.runReplayHistory(
    { workflowBundle: { codePath }, sinks: noSinks },
    history,
    workflowId,
  );
}

function namesOf(version: string): string[] {
  return readdirSync(join(folder, version)).map((file) => file.replace(/\.json$/u, ""));
}

function readHistory(version: string, name: string): HistoryJson {
  return JSON.parse(readFileSync(join(folder, version, `${name}.json`), "utf8")) as HistoryJson;
}
