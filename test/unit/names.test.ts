import { expect, test } from "vitest";
import * as names from "../../src/contracts/names.js";

/** Running sessions, other releases and stored histories depend on these: add freely, change never. */
test("the wire names are what they were", () => {
  const { hostQueue, hostControlQueue, ...lists } = names;
  expect(lists).toEqual({
    workflowTypes: { session: "session" },
    askAgain: "the session was about to move on; ask again",
    queues: { sessions: "longhaul", hosts: "longhaul.hosts" },
    commands: {
      send: "session.send",
      interrupt: "session.interrupt",
      cancel: "session.cancel",
      close: "session.close",
      configure: "session.configure",
      todoWrite: "todo.write",
    },
    queries: {
      view: "session.view",
      log: "session.log",
      messages: "session.messages",
      surface: "session.surface",
      projections: "projections",
    },
    activityTypes: {
      callModel: "callModel",
      sharedTools: "tools.shared",
      hostTools: "host.tools",
      runTool: "tool.run",
      sealTool: "tool.seal",
    },
    searchAttributes: {
      LonghaulState: "Keyword",
      LonghaulParent: "Keyword",
      LonghaulHost: "Keyword",
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
  expect(hostControlQueue("h-1")).toBe("longhaul.host.h-1.control");
});
