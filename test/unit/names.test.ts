import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import * as names from "../../src/contracts/names.js";

/** Running sessions, other releases and stored histories depend on these: add freely, change never. */
test("the wire names are what they were", () => {
  const { hostQueue, hostControlQueue, hostJobsQueue, jobWorkflowId, ...lists } = names;
  expect(lists).toEqual({
    workflowTypes: { session: "session", job: "job" },
    askAgain: "the session was about to move on; ask again",
    queues: { sessions: "longhaul", hosts: "longhaul.hosts" },
    commands: {
      send: "session.send",
      interrupt: "session.interrupt",
      cancel: "session.cancel",
      close: "session.close",
      configure: "session.configure",
      todoWrite: "todo.write",
      suspend: "session.suspend",
      resume: "session.resume",
      rebind: "session.rebind",
      scheduleChange: "schedule.change",
      jobStart: "job.start",
      jobKill: "job.kill",
      compact: "session.compact",
    },
    signals: {
      jobReport: "job.report",
      jobProgress: "job.progress",
      rollOver: "session.rollOver",
    },
    queries: {
      view: "session.view",
      log: "session.log",
      messages: "session.messages",
      surface: "session.surface",
      projections: "projections",
      jobs: "session.jobs",
      reminders: "session.reminders",
      bodies: "session.bodies",
    },
    activityTypes: {
      callModel: "callModel",
      sharedTools: "tools.shared",
      hostTools: "host.tools",
      presentHost: "host.present",
      resolveZone: "zone.resolve",
      readTime: "time.reading",
      runTool: "tool.run",
      sealTool: "tool.seal",
      startJob: "job.begin",
      followJob: "job.follow",
      endJob: "job.end",
      readJob: "job.read",
      lookJobs: "job.look",
      archiveLog: "log.archive",
      fetchBodies: "log.bodies",
    },
    searchAttributes: {
      LonghaulState: "Keyword",
      LonghaulParent: "Keyword",
      LonghaulHost: "Keyword",
      LonghaulOpenJobs: "Int",
      LonghaulNextReminder: "Datetime",
    },
    sessionStates: [
      "idle",
      "running",
      "awaiting-approval",
      "suspended",
      "cold",
      "faulted",
      "closed",
    ],
  });
  expect(hostQueue("h-1")).toBe("longhaul.host.h-1");
  expect(hostJobsQueue("h-1")).toBe("longhaul.host.h-1.jobs");
  expect(jobWorkflowId("s", "bash-1", "n")).toBe("s/job/bash-1/n");
  expect(hostControlQueue("h-1")).toBe("longhaul.host.h-1.control");
});

test("a cluster made with Docker Compose has every search attribute", async () => {
  const script = await readFile(
    new URL("../../deploy/compose/namespace.sh", import.meta.url),
    "utf8",
  );
  const made = [...script.matchAll(/(Longhaul\w+)=(\w+)/gu)].map(([, name, type]) => [name, type]);
  expect(Object.fromEntries(made)).toEqual(names.searchAttributes);
});
