import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DefaultLogger, Runtime, Worker } from "@temporalio/worker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  replayActivations,
  workflowIdOf,
  writeDigestBundle,
  type HistoryJson,
  type States,
} from "../support/digests.js";
import { noSinks } from "../support/no-sinks.js";
import { behaviours } from "./behaviours.js";
import { namesOf, readDigests, readHistory, statesIn, versions } from "./histories.js";

const project = fileURLToPath(new URL("../..", import.meta.url));
const codePath = join(project, "dist/workflow-bundle.js");
const directory = mkdtempSync(join(tmpdir(), "longhaul-states-"));
const zones = ["UTC", "Asia/Shanghai"] as const;
let states: readonly States[] = [];
/** Why a history did not replay on the bundle of the build, by `version/name`. */
const failures = new Map<string, string | undefined>();

beforeAll(async () => {
  execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: project, stdio: "inherit" });
  Runtime.install({ logger: new DefaultLogger("ERROR") });
  const bundle = join(directory, "bundle.js");
  await writeDigestBundle(bundle);
  const replaying = replayAll();
  states = await Promise.all(zones.map((zone) => statesIn(zone, bundle, versions)));
  await replaying;
}, 180_000);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("the newest release has a history of every behaviour", () => {
  expect(versions).not.toEqual([]);
  const recorded = namesOf(versions.at(-1) ?? "");
  const missing = Object.keys(behaviours).filter((name) => !recorded.includes(name));
  expect(missing, "record them with `npm run record-histories`").toEqual([]);
});

test("the histories are replayed under two time zones", () => {
  expect(states.map(({ zone }) => zone)).toEqual(zones);
});

describe.each(versions)("sessions begun by release %s go on with this one", (version) => {
  const recorded = readDigests(version);

  test.each(namesOf(version))("%s", (name) => {
    expect(failures.has(`${version}/${name}`)).toBe(true);
    expect(failures.get(`${version}/${name}`)).toBeUndefined();
    const [here, there] = states.map(({ histories }) => histories[`${version}/${name}`]);
    expect(here?.error).toBeUndefined();
    expect(here?.activations.length).toBeGreaterThan(0);
    expect(there, "whatever the zone of the process").toEqual(here);
    expect(
      here?.state,
      "the state it ends in has changed; if that is meant, say so in CHANGELOG.md and run `npm run record-histories -- --digests`",
    ).toEqual(recorded[name]);
  });

  test("there is no digest without its history", () => {
    expect(Object.keys(recorded).toSorted()).toEqual(namesOf(version).toSorted());
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

test("a run hands its checkpoint on in the version that it was handed on in, also where that was the first", async () => {
  const handed: { readonly name: string; readonly before: unknown; readonly now: unknown }[] = [];
  for (const version of versions)
    for (const name of namesOf(version)) {
      const history = readHistory(version, name);
      const before = handedOn(
        history.events.at(-1)?.["workflowExecutionContinuedAsNewEventAttributes"],
      );
      if (before === undefined) continue;
      const activations = await replayActivations(
        join(directory, "bundle.js"),
        history,
        workflowIdOf(history),
      );
      const commands = JSON.parse(activations.at(-1)?.commands ?? "[]") as readonly Fields[];
      const now = handedOn(commands.at(-1)?.["continueAsNewWorkflowExecution"]);
      handed.push({ name: `${version}/${name}`, before, now });
    }
  expect(handed.filter(({ before, now }) => now !== before)).toEqual([]);
  expect(new Set(handed.map(({ before }) => before))).toEqual(new Set([1, 2]));
});

interface Fields {
  readonly [key: string]: unknown;
}

/** Version of the checkpoint in the input of a continue-as-new, as an event or as a command. */
function handedOn(attributes: unknown): unknown {
  if (attributes === undefined) return undefined;
  const { input, arguments: given } = attributes as {
    readonly input?: { readonly payloads: readonly { readonly data: string }[] };
    readonly arguments?: readonly { readonly data: { readonly [at: string]: number } }[];
  };
  const [event] = input?.payloads ?? [];
  const [command] = given ?? [];
  const bytes =
    event === undefined
      ? Buffer.from(Object.values(command?.data ?? {}))
      : Buffer.from(event.data, "base64");
  const { checkpoint } = JSON.parse(bytes.toString("utf8")) as { readonly checkpoint: Fields };
  return checkpoint["v"];
}

async function replayAll(): Promise<void> {
  const all = versions.flatMap((version) =>
    namesOf(version).map((name) => [version, name] as const),
  );
  const replays = Worker.runReplayHistories(
    { workflowBundle: { codePath }, sinks: noSinks },
    all.map(([version, name]) => {
      const history = readHistory(version, name);
      return { history, workflowId: workflowIdOf(history) };
    }),
  );
  const keys = all.map(([version, name]) => `${version}/${name}`).values();
  for await (const { error } of replays) failures.set(keys.next().value ?? "", error?.message);
}

async function replay(history: HistoryJson): Promise<void> {
  await Worker.runReplayHistory(
    { workflowBundle: { codePath }, sinks: noSinks },
    history,
    workflowIdOf(history),
  );
}
