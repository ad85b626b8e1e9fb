import { expect, it } from "vitest";
import { emptyInbox } from "../../src/domain/inbox.js";
import { checkJobEvent, isJobEvent, jobEventTypes } from "../../src/domain/job-events.js";
import { foldWakes, freshWakes } from "../../src/domain/job-notices.js";
import { emptyJobs, foldJobs } from "../../src/domain/jobs.js";
import { JobRig } from "../support/jobs-rig.js";

const start = {
  id: "bash-1",
  kind: "bash",
  label: "x",
  startedAt: 1,
  output: "stream",
  nonce: "n",
};
const settled = { id: "bash-1", status: "killed", finishedAt: 2 };

it("what the registry logs passes, and folds again to the same state", () => {
  const rig = new JobRig();
  const owner = rig.owner("alice");
  const id = rig.begin("bash", "x", { owner, limit: 64 });
  rig.push(id, "out");
  rig.read(id, "alice");
  rig.kill(id, "alice", "why");
  rig.report(id, { report: "cancel-failed", message: "EPERM" });
  const tails = [{ stream: "stdout", from: 0, to: 3, text: "out" }];
  rig.settle(id, { status: "killed", detail: "signal: SIGTERM", tails });
  rig.disposeOwner(owner, () => undefined);
  rig.begin("subagent", "x", { output: "final" });
  const types = new Set(rig.log.map((entry) => entry.type));
  expect([...types, "job/woken"].toSorted()).toEqual([...jobEventTypes].toSorted());
  let again = emptyJobs;
  for (const entry of rig.log) {
    if (!isJobEvent(entry.type)) throw new Error(`${entry.type} is none of the jobs'`);
    expect(checkJobEvent(entry.type, entry.data)).toBeUndefined();
    again = foldJobs(again, entry);
  }
  expect(again).toEqual(rig.state);
  expect(again.jobs).toHaveLength(1);
  expect(isJobEvent("todo/write")).toBe(false);
});

it.each([
  ["job/start", null, "must be an object"],
  ["job/start", { ...start, id: "" }, "non-empty text"],
  ["job/start", { ...start, id: "pwsh-1" }, "must begin with bash-"],
  ["job/start", { ...start, label: 7 }, "label must be non-empty"],
  ["job/start", { ...start, startedAt: 0.5 }, "startedAt"],
  ["job/start", { ...start, limit: 0 }, "positive integer"],
  ["job/start", { ...start, output: "both" }, "stream or final"],
  ["job/start", { ...start, nonce: undefined }, "nonce"],
  ["job/start", { ...start, owner: { session: "s" } }, "session and a token"],
  ["job/stopping", { id: "bash-1", detail: 1 }, "detail must be text"],
  ["job/settled", { ...settled, status: "running" }, "must be an end"],
  ["job/settled", { ...settled, finishedAt: "now" }, "integer"],
  ["job/settled", { ...settled, output: 1 }, "output must be text"],
  ["job/settled", { ...settled, detail: null }, "detail must be text"],
  ["job/settled", { ...settled, tails: [{}] }, "pieces of streams"],
  ["job/settled", { ...settled, tails: [7] }, "pieces of streams"],
  ["job/cursor", { id: "bash-1", offsets: { stdout: -1 } }, "numbers of bytes"],
  ["job/cursor", { id: "bash-1" }, "numbers of bytes"],
  ["job/removed", { ids: "bash-1" }, "list of texts"],
  ["job/woken", { ids: [1] }, "list of texts"],
] as const)("%s with %j is refused: it %s", (type, data, problem) => {
  expect(checkJobEvent(type, data)).toContain(problem);
});

it("what concerns no job folds to the same state", () => {
  const entry = { type: "turn/start", seq: 1, time: 1, data: { turn: 1 } } as const;
  expect(foldJobs(emptyJobs, entry)).toBe(emptyJobs);
  expect(foldWakes(freshWakes, entry, emptyInbox)).toBe(freshWakes);
});
