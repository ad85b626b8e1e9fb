import type { WorkflowHandle } from "@temporalio/client";
import type { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import type { SessionConfig, SessionLimits } from "../../src/contracts/config.js";
import type { LogEntry } from "../../src/contracts/log.js";
import { commands, signals } from "../../src/contracts/names.js";
import type { ScenarioInput } from "../support/scenario-input.js";
import type { Gated } from "../support/gated-tool.js";
import { runsOf } from "../support/history.js";
import { fastForward } from "../support/time-skipping.js";

/** What a behaviour is recorded with: a queue, a host and a workspace of its own. */
export interface Site {
  readonly client: LonghaulClient;
  /** The history of another session is recorded too, under this name. */
  keep(what: string, id: string): void;
  /** Bodies wait until they are released; `overlap` may run side by side. */
  readonly alone: Gated;
  readonly overlap: Gated;
  /** Starts a worker; both roles, unless told otherwise. */
  start(roles?: readonly ("session" | "host")[]): Promise<void>;
  stop(): Promise<void>;
  /** A host worker in a process of its own, to be killed. */
  startKillableHost(): Promise<{ kill(): Promise<void> }>;
  open(scenario: ScenarioInput, options?: OpenOptions): Promise<Opened>;
  until(check: () => boolean | Promise<boolean>): Promise<void>;
  /** Is there a file of this name in the workspace? */
  wrote(name: string): Promise<boolean>;
}

export interface OpenOptions {
  readonly config?: Partial<SessionConfig>;
  readonly limits?: Partial<SessionLimits>;
}

export interface Opened {
  readonly session: SessionClient;
  readonly handle: WorkflowHandle;
  /** Sends a prompt and waits until the session is idle. */
  readonly play: (text: string) => Promise<void>;
  readonly last: () => Promise<LogEntry["type"] | undefined>;
}

const bare = { config: { worldTools: false } };
const bash = (command: string) => ({ tool: "bash", args: { command, description: "Try" } });
const todo = (content: string) => ({
  tool: "todo_write",
  args: { todos: [{ content, status: "in_progress" }] },
});
const long = { text: "word ".repeat(1_000), chunk: 5, delayMs: 20 };
const large = bash("yes abcdefghi | head -c 20000");
const tooLarge = { code: "CONTEXT_WINDOW_EXCEEDED" as const };
const summary = { text: "what was said so far" };
const reminders = { config: { worldTools: false, schedule: true } };
const schedule = (name: string, args: object) => ({ tool: `schedule_${name}`, args: { ...args } });
const answers = { turns: [{ repeat: 20, steps: [{ text: "answer ${turn}" }] }] };

/** What is recorded of each release, by the name of its history. */
export const behaviours: { readonly [name: string]: (site: Site) => Promise<void> } = {
  async "text-turn"(site) {
    await site.start();
    const { play, session } = await site.open(answers);
    await play("hello");
    await play("and again");
    await session.close();
  },
  async todo(site) {
    await site.start();
    const { play, session } = await site.open(
      {
        turns: [
          {
            steps: [
              { calls: [todo("a")] },
              { calls: [todo("b"), { tool: "todo_write", args: {} }] },
              { text: "done" },
            ],
          },
        ],
      },
      bare,
    );
    await play("plan");
    await session.close();
  },
  async "tasks-without-commands"(site) {
    await site.start();
    const { handle, play, session } = await site.open(answers, bare);
    await play("hello");
    const note = (id: string) => ({ id, mode: "inject", content: id });
    const waiting = async (): Promise<number> => {
      const { nextTurn, nextStep } = (await session.view()).inbox;
      return nextTurn.length + nextStep.length;
    };
    for (const [index, id] of ["a", "b"].entries()) {
      await handle.signal(commands.send, note(id));
      await site.until(async () => (await waiting()) === index + 1);
    }
    await site.stop();
    await site.start();
    await handle.executeUpdate(commands.send, { args: [note("c")] });
    await play("and again");
    await session.close();
  },
  async bash(site) {
    await site.start();
    const { play, session } = await site.open({
      turns: [
        {
          steps: [
            { text: "Let me see.", calls: [bash("echo hi > file; cat file"), bash("exit 3")] },
            { text: "done" },
          ],
        },
      ],
    });
    await play("run it");
    await session.close();
  },
  async "parallel-tools"(site) {
    await site.start();
    const { play, session } = await site.open(
      {
        turns: [
          {
            steps: [
              {
                calls: [
                  ...["a", "b", "c"].map((n) => ({ tool: "overlap", args: { n } })),
                  { tool: "alone", args: { n: "x" } },
                  { tool: "unheard_of" },
                ],
              },
              { text: "done" },
            ],
          },
        ],
      },
      { limits: { maxParallelToolCalls: 2 } },
    );
    const playing = play("all at once");
    // The later of the two ends first.
    await site.until(() => site.overlap.running(session.id).length === 2);
    for (const n of ["b", "c", "a"]) {
      await site.until(() => site.overlap.running(session.id).includes(n));
      site.overlap.release(session.id, n);
    }
    await site.until(() => site.alone.running(session.id).length === 1);
    site.alone.release(session.id, "x");
    await playing;
    await session.close();
  },
  async retry(site) {
    await site.start();
    const { play, session } = await site.open(
      {
        turns: [
          {
            steps: [
              {
                text: "at last",
                failures: [
                  { code: "SERVER", retryAfterMs: 5 },
                  { code: "RATE_LIMIT", retryAfterMs: 5 },
                ],
              },
            ],
          },
          { steps: [{ text: "never", failures: [{ code: "AUTH" }] }] },
        ],
      },
      bare,
    );
    await play("try");
    await play("fail");
    await session.close();
  },
  async "cancel-mid-stream"(site) {
    await site.start();
    const { session, play } = await site.open(
      { turns: [{ steps: [long] }, { steps: [{ text: "ok" }] }] },
      bare,
    );
    await session.followup("talk");
    await streaming(session);
    await session.cancel();
    await session.waitIdle();
    await play("again");
    await session.close();
  },
  async "cancel-during-tools"(site) {
    await site.start();
    const { session } = await site.open(
      {
        turns: [
          {
            steps: [
              { calls: ["a", "b", "c", "d"].map((n) => ({ tool: "overlap", args: { n } })) },
              { text: "never" },
            ],
          },
        ],
      },
      { limits: { maxParallelToolCalls: 2 } },
    );
    await session.followup("go");
    await site.until(() => site.overlap.running(session.id).length === 2);
    await session.followup("queued", { id: "queued" });
    await session.interrupt();
    await session.waitIdle();
    await session.close();
  },
  async "cancel-during-back-off"(site) {
    await site.start();
    const { session, last } = await site.open(
      {
        turns: [
          { steps: [{ text: "never", failures: [{ code: "SERVER", retryAfterMs: 600_000 }] }] },
        ],
      },
      { ...bare, limits: { retryCapMs: 600_000 } },
    );
    await session.followup("go");
    await site.until(async () => (await last()) === "llm/retry");
    await session.cancel();
    await session.waitIdle();
    await session.close();
  },
  async steer(site) {
    await site.start();
    const { session } = await site.open({
      turns: [{ steps: [{ calls: [{ tool: "alone", args: { n: "1" } }] }, { text: "done" }] }],
    });
    await session.followup("go");
    await site.until(() => site.alone.running(session.id).length === 1);
    await session.steer("this too");
    await session.followup("later");
    site.alone.release(session.id, "1");
    await session.waitIdle();
    await session.close();
  },
  async inject(site) {
    await site.start();
    const { session, play } = await site.open(answers, bare);
    await session.inject("it rains");
    await play("hello");
    await session.inject("it snows");
    await play("hello again");
    await session.close();
  },
  async closing(site) {
    await site.start();
    const { session } = await site.open({
      turns: [{ steps: [{ calls: [{ tool: "alone", args: { n: "1" } }] }] }],
    });
    await session.followup("go");
    await site.until(() => site.alone.running(session.id).length === 1);
    await session.close({ reason: "in the middle of a tool" });
  },
  async "cancelled-through-temporal"(site) {
    await site.start();
    const { session, handle } = await site.open({ turns: [{ steps: [long] }] }, bare);
    await session.followup("talk");
    await streaming(session);
    await handle.cancel();
    await handle.result();
  },
  async configure(site) {
    await site.start();
    const { session, play } = await site.open(answers);
    await play("hello");
    await session.configure({
      config: { system: "Be brief.", deny: ["bash"] },
      refreshTools: true,
    });
    await play("hello again");
    await session.close();
  },
  async "refused-signals"(site) {
    await site.start();
    const { session, handle, play } = await site.open(answers, bare);
    await handle.signal(commands.send, { id: "m", mode: "loud", content: "x" });
    await handle.signal(commands.send, [
      { id: "one", mode: "inject", content: "1" },
      { id: "one", mode: "inject", content: "2" },
    ]);
    await handle.signal(commands.todoWrite, { opId: "late", turn: 1, todos: [] });
    await handle.executeUpdate(commands.close, { args: [{ reason: 5 }] }).catch(() => {});
    await handle.client.workflowService.signalWorkflowExecution({
      namespace: "default",
      workflowExecution: { workflowId: session.id },
      signalName: commands.close,
      input: {
        payloads: [
          { metadata: { encoding: Buffer.from("json/plain") }, data: Buffer.from("{no json") },
        ],
      },
    });
    await play("still there?");
    await session.close();
  },
  async "cold-host"(site) {
    await site.start(["session"]);
    const { session, play } = await site.open({
      turns: [
        { steps: [{ text: "no tools" }] },
        { steps: [{ calls: [bash("echo hi")] }, { text: "tools" }] },
      ],
    });
    await play("hello");
    await site.start(["host"]);
    await site.until(async () => (await session.view()).state === "idle");
    await play("hello again");
    await session.close();
  },
  async "tool-not-started"(site) {
    await site.start(["session"]);
    const host = await site.startKillableHost();
    const { session, play } = await site.open({
      turns: [{ steps: [{ calls: [bash("echo hi")] }, { text: "went on" }] }],
    });
    await host.kill();
    await play("run it");
    await session.close();
  },
  async "arguments-by-reference"(site) {
    await site.start();
    const { session, play } = await site.open({
      turns: [
        {
          steps: [
            {
              calls: [
                { tool: "write", args: { path: "big.txt", content: "é{{bytes:8000}}" } },
                bash("wc -c big.txt"),
              ],
            },
            { text: "done" },
          ],
        },
      ],
    });
    await play("write it");
    await session.close();
  },
  async "tool-outcome-unknown"(site) {
    await site.start(["session"]);
    const host = await site.startKillableHost();
    const { session } = await site.open({
      turns: [{ steps: [{ calls: [bash("touch begun; sleep 600")] }, { text: "went on" }] }],
    });
    await session.followup("run it");
    await site.until(() => site.wrote("begun"));
    await host.kill();
    await session.waitIdle();
    await session.close();
  },
  async "job-wakes"(site) {
    await site.start();
    const { play, session } = await site.open({
      turns: [
        { steps: [{ calls: [inBackground("sleep 0.5; echo out")] }, { text: "started" }] },
        { steps: [{ calls: [jobTool("output", "bash-1")] }, { text: "read" }] },
      ],
    });
    await play("go");
    await turns(site, session, 2);
    await session.close();
  },
  async "zones-and-clock"(site) {
    await site.start();
    const at = { date: "2031-05-04", time: "09:30", time_zone: "Europe/Berlin" };
    const { play, session } = await site.open(
      {
        turns: [
          { steps: [{ calls: [schedule("create", { prompt: "look", at })] }, { text: "set" }] },
          { steps: [{ text: "noted" }] },
        ],
      },
      { config: { worldTools: false, schedule: true, timeContext: true } },
    );
    await play("go");
    await play("and again");
    await session.close();
  },
  async seeds(site) {
    await site.start();
    const { play, session } = await site.open(answers);
    await play("hello");
    const lines: string[] = [];
    for await (const line of site.client.export(session.id)) lines.push(line);
    const fork = await site.client.fork(session.id, { id: "recorded-seeds-fork" });
    const { session: imported } = await site.client.importSession(lines.slice(0, -3).join(""), {
      id: "recorded-seeds-import",
    });
    for (const [what, one] of [
      ["fork", fork],
      ["import", imported],
    ] as const) {
      await one.followup("go on");
      await one.waitIdle();
      await one.close();
      site.keep(what, one.id);
    }
    await session.close();
  },
  async "roll-over-in-a-turn"(site) {
    await site.start();
    const { play, session, handle } = await site.open(
      {
        turns: [
          {
            steps: [
              { calls: [todo("a"), schedule("create", { prompt: "look", after_seconds: 3_600 })] },
              { calls: [inBackground("sleep 60"), bash("echo one")] },
              { calls: [jobTool("kill", "bash-1")] },
              { calls: [jobTool("output", "bash-1", { wait: true })] },
              { text: "done" },
            ],
          },
          { repeat: 9, steps: [{ text: "noted" }] },
        ],
      },
      { config: { schedule: true, rollOver: { events: 1, minIntervalMs: 0 } } },
    );
    await play("go");
    await play("and again");
    await closeAtLast(site, session, handle);
  },
  async "roll-over-when-asked"(site) {
    await site.start();
    const { session, handle } = await site.open(answers, { config: { schedule: true } });
    await session.suspend();
    await session.inject("word ".repeat(4_000), { id: "long" });
    await handle.signal(signals.rollOver);
    await site.until(async () => (await runs(handle)) === 2);
    await session.followup("now", { id: "now" });
    await session.waitIdle();
    await session.followup("word ".repeat(4_000), { id: "long" }).catch(() => {});
    await closeAtLast(site, session, handle);
  },
  async "roll-over-of-many"(site) {
    await site.start();
    const { session, handle } = await site.open(answers, { config: { schedule: true } });
    for (const part of [1, 2, 3, 4, 5, 6]) {
      const { seq } = await session.followup(`part ${part}`, { id: `message-${part}` });
      await session.remind({ prompt: `look after ${part}`, in: 3_600 * part });
      await session.waitIdle({ after: seq });
    }
    for (const ahead of [2, 3]) {
      await handle.signal(signals.rollOver);
      await site.until(async () => (await runs(handle)) === ahead);
      await session.followup("part 1", { id: "message-1" });
      const { seq } = await session.followup("and again", { id: `again-${ahead}` });
      await session.waitIdle({ after: seq });
    }
    await closeAtLast(site, session, handle);
  },
  async "jobs-in-a-turn"(site) {
    await site.start();
    const { play, session } = await site.open({
      turns: [
        {
          steps: [
            { calls: [inBackground("echo a"), inBackground("trap '' TERM; sleep 60")] },
            {
              calls: [jobTool("output", "bash-1", { wait: true }), { tool: "job_list", args: {} }],
            },
            { calls: [jobTool("output", "bash-2", { wait: true, timeout_ms: 300 })] },
            {
              calls: [jobTool("output", "bash-2"), jobTool("kill", "bash-2", { reason: "enough" })],
            },
            { calls: [jobTool("output", "bash-2", { wait: true })] },
            { text: "done" },
          ],
        },
      ],
    });
    await play("go");
    await session.close();
  },
  async "jobs-by-command"(site) {
    await site.start();
    const { session } = await site.open({
      turns: [{ repeat: 9, steps: [{ text: "noted" }] }],
    });
    const { id } = await session.startJob({ kind: "bash", input: { command: "sleep 60" } });
    await session.killJob(id, { reason: "by hand" });
    await session.waitJob(id);
    await session.startJob({ kind: "bash", input: { command: "sleep 60", workdir: "/nowhere" } });
    await session.startJob({ kind: "bash", input: { command: "sleep 61" } });
    await site.until(async () => (await session.jobs()).jobs.at(-2)?.status === "failed");
    await session.close();
  },
  async "reminder-one-shot"(site) {
    await site.start();
    const at = { date: "2099-08-06", time: "09:00:00", time_zone: "Asia/Shanghai" };
    const { session } = await site.open(
      {
        turns: [
          {
            steps: [
              {
                calls: [
                  schedule("create", { prompt: "soon", after_seconds: 2 }),
                  schedule("create", { prompt: "here", at }),
                  schedule("create", { prompt: "there", at: "2099-08-06T09:00:00-05:30" }),
                  schedule("create", { prompt: "never", every_seconds: 1 }),
                ],
              },
              { calls: [schedule("list", {}), schedule("delete", { id: "schedule-2" })] },
              { text: "set" },
            ],
          },
          { steps: [{ text: "told" }] },
        ],
      },
      { config: { ...reminders.config, timeContext: true } },
    );
    await session.followup("remind me");
    await turns(site, session, 2);
    await session.close();
  },
  async "reminder-batch"(site) {
    await site.start();
    const { session, handle } = await site.open(answers, reminders);
    const rule = { operation: "create", prompt: "look" };
    await handle.signal(commands.scheduleChange, [
      { requestId: "a", everySeconds: 300, ...rule },
      { requestId: "b", everySeconds: 600, ...rule },
      { requestId: "a", everySeconds: 300, ...rule },
      { requestId: "c", everySeconds: 299, ...rule },
    ]);
    await fastForward(handle.client, session.id, 11 * 60_000);
    await turns(site, session, 2);
    await handle.signal(commands.scheduleChange, {
      requestId: "d",
      operation: "delete",
      id: "schedule-1",
    });
    await session.close();
  },
  async "suspend-resume"(site) {
    await site.start();
    const { session, handle, play } = await site.open(
      {
        turns: [
          { steps: [{ calls: [inBackground("sleep 1; echo out")] }, { text: "started" }] },
          { steps: [{ calls: [{ tool: "alone", args: { n: "1" } }] }, { text: "never" }] },
          { repeat: 9, steps: [{ text: "answer ${turn}" }] },
        ],
      },
      { config: { schedule: true } },
    );
    const tell = async (name: string, input: object = {}): Promise<void> => {
      await handle.executeUpdate(name, { args: [input] });
    };
    await play("go");
    // A wake is owed, and paid.
    await tell(commands.suspend);
    await session.waitJob("bash-1");
    await tell(commands.resume);
    await site.until(() => site.alone.running(session.id).length === 1);
    await session.followup("queued", { id: "queued" });
    await tell(commands.suspend);
    await session.inject("it rains");
    await tell(commands.scheduleChange, {
      requestId: "a",
      operation: "create",
      prompt: "soon",
      afterSeconds: 1,
    });
    await turns(site, session, 2);
    const due = Date.now() + 1_500;
    await site.until(() => Date.now() > due);
    await session.followup("resumes it");
    await turns(site, session, 5);
    await session.close();
  },
  async rebind(site) {
    await site.start();
    const { session, handle, play } = await site.open(
      { turns: [{ repeat: 9, steps: [{ calls: [bash("echo hi")] }, { text: "ran" }] }] },
      { config: { schedule: true } },
    );
    const { host = "" } = await session.view();
    const move = async (to: string): Promise<void> => {
      await handle.executeUpdate(commands.rebind, { args: [{ host: to }] });
    };
    await play("here");
    await move("nobody");
    await site.until(async () => (await session.view()).state === "cold");
    await move("nowhere");
    await move(host);
    await site.until(async () => (await session.view()).state === "idle");
    await play("and back");
    await session.close();
  },
  async "cold-and-back"(site) {
    await site.start(["session"]);
    const host = await site.startKillableHost();
    const { session, play } = await site.open(
      {
        turns: [
          {
            steps: [
              { calls: [schedule("create", { prompt: "soon", after_seconds: 40 })] },
              { text: "set" },
            ],
          },
          { steps: [{ text: "told" }] },
        ],
      },
      { config: { schedule: true } },
    );
    await play("remind me");
    await host.kill();
    await site.until(async () => (await session.view()).state === "cold");
    await site.start(["host"]);
    await turns(site, session, 2);
    await session.close();
  },
  async "updates-while-no-worker"(site) {
    await site.start();
    const { session, handle } = await site.open(answers, bare);
    for (const batch of [
      ["a", "b"],
      ["c", "d"],
    ]) {
      await site.stop();
      const sent = batch.map((id) =>
        handle.executeUpdate(commands.send, {
          updateId: id,
          args: [{ id, mode: "followup", content: id }],
        }),
      );
      for (const id of batch) {
        await site.until(() =>
          handle.client.workflowService
            .pollWorkflowExecutionUpdate({
              namespace: "default",
              updateRef: { workflowExecution: { workflowId: session.id }, updateId: id },
              identity: "recorder",
            })
            .then(
              () => true,
              () => false,
            ),
        );
      }
      await site.start();
      await Promise.all(sent);
      await session.waitIdle();
    }
    await session.close();
  },
  async "compaction-under-pressure"(site) {
    await site.start();
    const { play, session } = await site.open({
      contextWindow: 4_000,
      summary,
      turns: [
        { steps: [{ calls: [large] }, { calls: [large] }, { text: "done" }] },
        { repeat: 9, steps: [{ text: `answer \${turn} ${"word ".repeat(300)}` }] },
      ],
    });
    for (let n = 1; n <= 10; n += 1) await play(`question ${n}`);
    await session.close();
  },
  async "compaction-fails"(site) {
    await site.start();
    const { play, session } = await site.open(
      {
        contextWindow: 500,
        summary: { failures: [{ code: "AUTH" }] },
        turns: [{ repeat: 3, steps: [{ text: "word ".repeat(200) }] }],
      },
      bare,
    );
    for (const text of ["one", "two", "three"]) await play(text);
    await session.close();
  },
  async "request-too-large"(site) {
    await site.start();
    const { play, session } = await site.open({
      summary,
      turns: [
        { steps: [{ text: "never", failures: [tooLarge] }] },
        { steps: [{ calls: [large] }, { text: "fits", failures: [tooLarge] }] },
        { steps: [{ text: "never", failures: [tooLarge, tooLarge] }] },
      ],
    });
    for (const text of ["one", "two", "three"]) await play(text);
    await session.close();
  },
  async "compaction-on-demand"(site) {
    await site.start();
    const { play, session, handle, last } = await site.open(
      { ...answers, summary: { ...summary, firstDelayMs: 1_500 } },
      bare,
    );
    for (const text of ["one", "two", "three"]) await play(text);
    await handle.signal(commands.compact, { opId: "first" });
    await site.until(async () => (await last()) === "compaction/start");
    await session.inject("context", { id: "context" });
    await session.followup("prompt", { id: "prompt" });
    await session.compact({ id: "first" });
    await session.waitIdle();
    const second = session.compact({ id: "second" });
    await site.until(async () => (await last()) === "compaction/start");
    await session.interrupt();
    await second;
    await session.compact({ id: "third" });
    await session.compact({ id: "fourth" });
    await session.close();
  },
};

const inBackground = (command: string) => ({
  tool: "bash",
  args: { command, description: "Try", run_in_background: true },
});

const jobTool = (name: "output" | "kill", job: string, more: object = {}) => ({
  tool: `job_${name}`,
  args: { job_id: job, ...more },
});

async function turns(site: Site, session: SessionClient, number: number): Promise<void> {
  await site.until(async () => {
    const { turn } = await session.view();
    return turn.number === number && !turn.open;
  });
}

async function streaming(session: SessionClient): Promise<void> {
  for await (const event of session.watch()) if (event.type === "delta") return;
}

/** Runs so far, as the id of the first one is that of a chain. */
async function runs({ client, workflowId }: WorkflowHandle): Promise<number> {
  return (await runsOf(client, workflowId)).length;
}

/** Closes a session that may just be going on in a new run. */
async function closeAtLast(
  site: Site,
  session: SessionClient,
  handle: WorkflowHandle,
): Promise<void> {
  await session.close();
  await site.until(async () => (await handle.describe()).status.name === "COMPLETED");
}
