import type { Client, Connection } from "@temporalio/client";
import { expect, test } from "vitest";
import { purgeSession } from "../../src/client/purge.js";

const running = { name: "RUNNING" };
const job = { workflowId: "s/job/bash-1/n", runId: "r2", status: running };
const run = { workflowId: "s", runId: "r1", status: running };

test("a purge names an open session before its open jobs, also when visibility does not know its run yet", async () => {
  for (const listed of [[job], [job, run], [run, job]])
    await expect(purge(listed, run)).rejects.toMatchObject({
      code: "SESSION_OPEN",
      message: expect.stringContaining("session s has not ended") as string,
    });
});

test("a purge goes by how the session's last run is, not by what visibility still says", async () => {
  await expect(purge([run, job], { ...run, status: { name: "TERMINATED" } })).rejects.toMatchObject(
    {
      code: "SESSION_OPEN",
      message: expect.stringContaining("job bash-1 of session s has not ended") as string,
    },
  );
});

/** Of what visibility lists and how the server describes the session; nothing may be removed. */
function purge(listed: readonly object[], described: object): Promise<unknown> {
  const workflow = {
    async *list() {
      yield* listed;
    },
    getHandle: () => ({ describe: () => Promise.resolve(described) }),
  };
  return purgeSession(
    {
      client: { workflow } as unknown as Client,
      connection: {} as Connection,
      bounds: {
        withDeadline: (_, call) => call(),
        withAbortSignal: (_, call) => call(),
        closed: new AbortController().signal,
      },
      namespace: "default",
      store: {
        list: () => Promise.reject(new Error("the store was read")),
        remove: () => Promise.reject(new Error("the store was changed")),
      },
      timeoutMs: 1_000,
    },
    "s",
  );
}
