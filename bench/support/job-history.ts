import type { Client } from "@temporalio/client";
import type { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { defineSessionConfig } from "../../src/client/session-config.js";
import type { HeldModel, HeldReply } from "./held-model.js";

export interface JobHistoryRow {
  readonly case: string;
  /** Of the session's history, without changes of search attributes. */
  readonly events: number;
  readonly attributes: number;
  readonly budget: number;
}

/** Of a prompt that comes by update to an idle session: the update's two events and a workflow task. */
const promptEvents = 5;

/** What one background job costs the session's history, beside the same turns without one (design §5). */
export async function measureJobHistory(
  client: LonghaulClient,
  temporal: Client,
  model: HeldModel,
  cwd: string,
): Promise<readonly JobHistoryRow[]> {
  const call = (name: string, args: object): HeldReply => [{ name, args }];
  const background = (command: string): HeldReply =>
    call("bash", { command, description: "go", run_in_background: true });
  const todo = call("todo_write", { todos: [] });
  const open = async (...replies: readonly HeldReply[]): Promise<SessionClient> => {
    const choices = { model: "bench/any", allowParallelInProgress: true, cwd };
    const session = await client.createSession({ config: defineSessionConfig(choices) });
    model.script(session.id, replies);
    return session;
  };
  const prompt = async (session: SessionClient): Promise<void> => {
    const { seq } = await session.followup("go");
    await session.waitIdle({ after: seq });
  };
  const plain = await open(todo, "done", todo, "done");
  await prompt(plain);
  await prompt(plain);
  const told = await open(
    background("sleep 0.5; echo x"),
    "done",
    call("job_output", { job_id: "bash-1" }),
    "done",
  );
  await prompt(told);
  await turns(told, 2);
  const killed = await open(
    background("sleep 60"),
    "done",
    call("job_kill", { job_id: "bash-1" }),
    "done",
  );
  await prompt(killed);
  await prompt(killed);
  await killed.waitJob("bash-1");
  const none = await countEvents(temporal, plain.id, 0);
  const one = await countEvents(temporal, told.id, 1);
  const ended = await countEvents(temporal, killed.id, 1);
  for (const session of [plain, told, killed]) await session.close();
  const job = one.events - (none.events - promptEvents);
  return [
    {
      case: "one job, start to collected",
      events: job,
      attributes: one.attributes - none.attributes,
      budget: 16,
    },
    {
      case: "a kill, beside that",
      events: ended.events - none.events - job,
      attributes: ended.attributes - one.attributes,
      budget: 9,
    },
  ];
}

async function turns(session: SessionClient, number: number): Promise<void> {
  for (;;) {
    const { turn } = await session.view();
    if (turn.number === number && !turn.open) return;
    await pause();
  }
}

/** Once so many job workflows have closed and nothing is under way. */
async function countEvents(
  temporal: Client,
  id: string,
  jobs: number,
): Promise<{ readonly events: number; readonly attributes: number }> {
  for (;;) {
    const { events = [] } = await temporal.workflow.getHandle(id).fetchHistory();
    const all = events ?? [];
    const closed = all.filter((event) => event.childWorkflowExecutionCompletedEventAttributes);
    const quiet = all.findLast(
      (event) => !event.upsertWorkflowSearchAttributesEventAttributes,
    )?.workflowTaskCompletedEventAttributes;
    if (closed.length >= jobs && quiet) {
      const attributes = all.filter((event) => event.upsertWorkflowSearchAttributesEventAttributes);
      return { events: all.length - attributes.length, attributes: attributes.length };
    }
    await pause();
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}
