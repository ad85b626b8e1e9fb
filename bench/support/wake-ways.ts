import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "@temporalio/client";
import * as z from "zod";
import type { LonghaulClient } from "../../src/client/index.js";
import type { SessionClient } from "../../src/client/session-client.js";
import { defineSessionConfig } from "../../src/client/session-config.js";
import { signals } from "../../src/contracts/names.js";
import { defineTool, type ToolDefinition } from "../../src/tools/define.js";
import { defineJobKind, type JobKindDefinition } from "../../src/tools/define-job-kind.js";
import { Gate } from "./gate.js";
import type { HeldModel } from "./held-model.js";
import type { PeerJob, PeerJobActivities, peerOwner } from "./peer/job-workflows.js";
import { peerQueue } from "./peer/worker.js";

/** What ends a job, and how the session is found. */
export const wakeCases = {
  signal: "wake: report sent to an idle session",
  busy: "inject: report sent to a busy session",
  body: "wake: a job's body returned in the worker",
  process: "wake: a job's process ended",
} as const;
export type WakeCase = keyof typeof wakeCases;

/** A way to have a completion told. Samples are one at a time. */
export interface WakeWay {
  /** Makes the next samples those of a fresh session. */
  renew(): Promise<void>;
  /** From the completion to the model call it leads to, ms. */
  sample(what: WakeCase): Promise<number>;
  close(): Promise<void>;
}

/** A command that ends when the writer of the pipe leaves. */
class HeldCommand {
  readonly #path: string;
  readonly text: string;

  constructor(directory: string) {
    this.#path = join(directory, `pipe-${randomUUID()}`);
    execFileSync("mkfifo", [this.#path]);
    this.text = `read -r x <'${this.#path}'; exit 0`;
  }

  /** Resolves when the command reads; then `release` ends it and says when. */
  async begun(): Promise<{ release(): Promise<number> }> {
    const writer = await open(this.#path, "w");
    return {
      async release() {
        const at = performance.now();
        await writer.close();
        return at;
      },
    };
  }
}

/** Longhaul. Give tool, kind and model to its worker. */
export function sessionWay(
  client: LonghaulClient,
  temporal: Client,
  model: HeldModel,
  cwd: string,
): WakeWay & { readonly tool: ToolDefinition; readonly kind: JobKindDefinition } {
  const toolGate = new Gate();
  const bodyGate = new Gate();
  let session: SessionClient;
  /** A job that lives until `end`; `report` is what its workflow would send. */
  const startHeld = async (): Promise<{ report: object; end(): Promise<void> }> => {
    const { id } = await session.startJob({ kind: "held", input: {} });
    await bodyGate.begun;
    for await (const entry of session.log()) {
      if (entry.type !== "job/start" || entry.data.id !== id) continue;
      const { nonce, owner } = entry.data;
      const outcome = { status: "completed" };
      return {
        report: { id, nonce, owner: owner?.token, report: "settled", outcome },
        async end() {
          bodyGate.release();
          await temporal.workflow.getHandle(`${session.id}/job/${id}/${nonce}`).result();
        },
      };
    }
    throw new Error(`${id} is not in the log`);
  };
  const tell = (report: object): Promise<void> =>
    temporal.workflow.getHandle(session.id).signal(signals.jobReport, report);
  const idle = async (): Promise<void> => {
    await session.waitIdle();
    const { lastEnd } = await session.view();
    if (lastEnd?.kind !== "completed") throw new Error(`a turn ended ${JSON.stringify(lastEnd)}`);
  };
  const samples: { readonly [K in WakeCase]: () => Promise<number> } = {
    async signal() {
      const job = await startHeld();
      const call = model.nextCall();
      const sent = performance.now();
      await tell(job.report);
      const { at } = await call;
      await idle();
      await job.end();
      return at - sent;
    },
    async busy() {
      const job = await startHeld();
      model.script(session.id, [[{ name: "hold", args: {} }], "done"]);
      const sentPrompt = session.followup("go");
      await toolGate.begun;
      await sentPrompt;
      const call = model.nextCall();
      const sent = performance.now();
      await tell(job.report);
      toolGate.release();
      const { at, request } = await call;
      const told = request.messages.some(({ id }) => id.endsWith("/settled"));
      if (!told || request.step !== 2) throw new Error("the next step was not told");
      await idle();
      await job.end();
      return at - sent;
    },
    async body() {
      await startHeld();
      const call = model.nextCall();
      const sent = performance.now();
      bodyGate.release();
      const { at } = await call;
      await idle();
      return at - sent;
    },
    async process() {
      const command = new HeldCommand(cwd);
      await session.startJob({ kind: "bash", input: { command: command.text } });
      const running = await command.begun();
      const call = model.nextCall();
      const sent = await running.release();
      const { at } = await call;
      await idle();
      return at - sent;
    },
  };
  return {
    tool: defineTool({
      name: "hold",
      description: "Waits for the bench.",
      parameters: z.object({}),
      execute: async () => {
        await toolGate.pass();
        return "held";
      },
    }),
    kind: defineJobKind({
      kind: "held",
      output: "final",
      input: z.object({}),
      run: async () => {
        await bodyGate.pass();
        return {};
      },
    }),
    async renew() {
      await session?.close();
      const jobs = { maxConsecutiveWakes: 1_000_000 };
      const choices = { model: "bench/any", allowParallelInProgress: true, cwd, jobs };
      session = await client.createSession({ config: defineSessionConfig(choices) });
      const { seq } = await session.followup("hello");
      await session.waitIdle({ after: seq });
    },
    sample: (what) => samples[what](),
    async close() {
      await session?.close();
    },
  };
}

/** The same chain in workflows on the bare SDK. Give the activities to a worker. */
export function bareWay(
  temporal: Client,
  cwd: string,
): WakeWay & { readonly activities: PeerJobActivities } {
  const toolGate = new Gate();
  const bodyGate = new Gate();
  let waiting: ((at: number) => void)[] = [];
  const nextCall = (): Promise<number> => new Promise((resolve) => waiting.push(resolve));
  const start = () =>
    temporal.workflow.start<typeof peerOwner>("peerOwner", {
      taskQueue: peerQueue,
      workflowId: `peer-${randomUUID()}`,
    });
  let handle: Awaited<ReturnType<typeof start>>;
  const begin = (job: PeerJob): Promise<void> => handle.signal("peer.start", job);
  const samples: { readonly [K in WakeCase]: () => Promise<number> } = {
    async signal() {
      const call = nextCall();
      const sent = performance.now();
      await handle.signal("peer.report", "completed");
      return (await call) - sent;
    },
    async busy() {
      await handle.signal("peer.work");
      await toolGate.begun;
      const call = nextCall();
      const sent = performance.now();
      await handle.signal("peer.report", "completed");
      toolGate.release();
      return (await call) - sent;
    },
    async body() {
      await begin({ body: true });
      await bodyGate.begun;
      const call = nextCall();
      const sent = performance.now();
      bodyGate.release();
      return (await call) - sent;
    },
    async process() {
      const command = new HeldCommand(cwd);
      await begin({ command: command.text });
      const running = await command.begun();
      const call = nextCall();
      const sent = await running.release();
      return (await call) - sent;
    },
  };
  return {
    activities: {
      async callModel() {
        const at = performance.now();
        for (const tell of waiting) tell(at);
        waiting = [];
        return "ok";
      },
      async useTool() {
        await toolGate.pass();
        return "held";
      },
      async attend(job) {
        if ("body" in job) await bodyGate.pass();
        else await once(spawn("bash", ["-c", job.command], { cwd, stdio: "ignore" }), "exit");
        return "completed";
      },
    },
    async renew() {
      await handle?.terminate();
      handle = await start();
      await samples.signal();
    },
    sample: (what) => samples[what](),
    close: async () => void (await handle?.terminate()),
  };
}
