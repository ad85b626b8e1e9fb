import { setTimeout as delay } from "node:timers/promises";
import type { SessionClient } from "../../../src/client/session-client.js";
import { LonghaulError } from "../../../src/contracts/errors.js";
import type { JobStatus } from "../../../src/contracts/jobs.js";
import { commands, signals } from "../../../src/contracts/names.js";
import type { Lab } from "../../support/temporal.js";
import type { Message, Walk, WalkOp } from "./plan.js";

/** What came of one operation; `signalled`: the log alone knows. */
export type Verdict =
  | { readonly kind: "ok"; readonly answer: unknown }
  | { readonly kind: "refused"; readonly code: string }
  | { readonly kind: "signalled" };

export interface Done {
  readonly op: WalkOp;
  readonly verdict: Verdict;
}

/** How long anything of a walk may take, ms: a lost worker, its time-outs, and a loaded machine. */
const patienceMs = 240_000;

/** Walks one operation after the other; `done` gets each as it is over. */
export async function walkSession(
  lab: Pick<Lab, "handle">,
  session: SessionClient,
  { ops }: Walk,
  done: (one: Done) => void,
): Promise<void> {
  for (const { afterMs, op } of ops) {
    if (afterMs > 0) await delay(afterMs);
    done({ op, verdict: await carryOut(lab, session, op) });
  }
}

/**
 * Lets all work come to its end, with a model that only answers from now on (`quiet`, a scenario): nothing is suspended, no job lives, every reminder that comes once has come, the
 * inbox is empty.
 */
export async function bringToRest(session: SessionClient, quiet: string): Promise<void> {
  const request = { provider: "scripted", model: quiet };
  await insist(() => session.configure({ config: { request } }));
  await insist(() => session.resume());
  await session.waitIdle({ signal: AbortSignal.timeout(patienceMs) });
  await waiting("its jobs to end", async () => {
    for (const { id, status } of (await session.jobs()).jobs)
      if (isLive(status)) await session.killJob(id);
    return (await session.jobs()).jobs.every(({ status }) => !isLive(status));
  });
  await waiting("its reminders to come", async () => {
    const listed = await session.reminders();
    return listed.ok && listed.reminders.every(({ kind }) => kind === "every");
  });
  // Takes what an interrupt, a failed turn or the budget of wakes left.
  for (let count = 1; ; count++) {
    await insist(() => session.followup("and the rest?", { id: `rest-${count}` }));
    const { inbox } = await session.waitIdle({ signal: AbortSignal.timeout(patienceMs) });
    if (inbox.nextTurn.length + inbox.nextStep.length === 0) return;
    if (count === 10) throw new Error(`its inbox is never empty: ${JSON.stringify(inbox)}`);
  }
}

/** Until it is so; an error of the client counts as not yet. */
export async function waiting(what: string, holds: () => Promise<boolean>): Promise<void> {
  let last = "";
  for (const end = Date.now() + patienceMs; ; await delay(150)) {
    try {
      if (await holds()) return;
    } catch (error) {
      last = `: ${String(error)}`;
    }
    if (Date.now() > end) throw new Error(`waited ${patienceMs / 1_000} s for ${what}${last}`);
  }
}

/** The last one is said of a session whose task has failed or timed out, too, as it may on a busy machine; one that is faulted stays so. */
const awayCodes = new Set([
  "NO_WORKER",
  "TEMPORAL_UNREACHABLE",
  "TIMEOUT",
  "STORE_UNAVAILABLE",
  "SESSION_FAULTED",
]);

/** Asks again under the same id as long as nobody answers, as a user does. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + patienceMs; ; await delay(200)) {
    try {
      return await call();
    } catch (error) {
      const away = error instanceof LonghaulError && awayCodes.has(error.code);
      if (!away || Date.now() > end) throw error;
    }
  }
}

async function carryOut(
  lab: Pick<Lab, "handle">,
  session: SessionClient,
  op: WalkOp,
): Promise<Verdict> {
  const tell = async (name: string, payload: unknown): Promise<Verdict> => {
    await lab.handle(session.id).signal<[unknown]>(name, payload);
    return { kind: "signalled" };
  };
  switch (op.kind) {
    case "send": {
      const { id, content, ...options } = op.message;
      return op.by === "signal"
        ? tell(commands.send, op.message)
        : ask(() => session.send(content, { id, ...options }));
    }
    case "batch":
      return tell(commands.send, op.messages satisfies readonly Message[]);
    case "todos": {
      const { opId, todos } = op;
      if (op.by === "update") return ask(() => session.writeTodos({ opId, todos }));
      const { turn } = await insist(() => session.view());
      return tell(commands.todoWrite, { opId, todos, turn: turn.number });
    }
    case "start-job": {
      const { opId: id, command } = op;
      return ask(() => session.startJob({ kind: "bash", input: { command }, id }));
    }
    case "kill-job":
      return ask(() => session.killJob(op.job, { id: op.opId }));
    case "remind": {
      const change = { ...op.rule, prompt: `of ${op.requestId}`, id: op.requestId };
      return op.by === "signal"
        ? sent(await insist(() => session.signalReminder({ operation: "create", ...change })))
        : askReminder(() => session.remind(change));
    }
    case "unremind": {
      const { reminder, requestId: id } = op;
      return op.by === "signal"
        ? sent(await insist(() => session.signalReminder({ operation: "delete", reminder, id })))
        : askReminder(() => session.deleteReminder(reminder, { id }));
    }
    case "configure":
      return ask(() => session.configure({ config: op.config }));
    case "compact":
      // Its end may wait for a worker; whoever asks goes on meanwhile.
      return ask(() => session.compact({ id: op.opId, signal: AbortSignal.timeout(3_000) }));
    case "suspend":
      return ask(() => session.suspend());
    case "resume":
      return ask(() => session.resume());
    case "interrupt":
      return ask(() => session.interrupt());
    case "cancel":
      return ask(() => session.cancel());
    case "roll-over":
      await lab.handle(session.id).signal(signals.rollOver);
      return { kind: "signalled" };
    case "rest":
      await session.waitIdle({ signal: AbortSignal.timeout(patienceMs) });
      return { kind: "ok", answer: undefined };
  }
}

async function ask(call: () => Promise<unknown>): Promise<Verdict> {
  try {
    return { kind: "ok", answer: await insist(call) };
  } catch (error) {
    if (error instanceof LonghaulError) return { kind: "refused", code: error.code };
    throw error;
  }
}

interface ReminderVerdict {
  readonly ok: boolean;
  readonly code?: string;
}

async function askReminder(call: () => Promise<ReminderVerdict>): Promise<Verdict> {
  for (const end = Date.now() + patienceMs; ; await delay(200)) {
    const answer = await insist(call);
    if (answer.ok) return { kind: "ok", answer };
    const { code = "" } = answer;
    if (code !== "persistence_uncertain" || Date.now() > end) return { kind: "refused", code };
  }
}

function sent({ ok, code = "" }: ReminderVerdict): Verdict {
  return ok ? { kind: "signalled" } : { kind: "refused", code };
}

function isLive(status: JobStatus): boolean {
  return status === "running" || status === "stopping";
}
