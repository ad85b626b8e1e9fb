import {
  allHandlersFinished,
  CancellationScope,
  condition,
  isCancellation,
  sleep,
} from "@temporalio/workflow";
import type { Effect, Loop, Op, Settled } from "../domain/effects.js";
import type { Session } from "../domain/session.js";
import { zoneCalls } from "./activity-calls.js";
import { describeJobWork, performJobWork } from "./job-work.js";
import { runModelCall } from "./model-call.js";
import type { EffectPump } from "./pump.js";
import { offerSurface } from "./surface-offer.js";
import { refreshTable, routeOf } from "./tool-table.js";
import { runWorldTool } from "./tool-call.js";

/**
 * Carries out what the loop asks for: begins work in cancellation scopes of its own, and resumes the loop with what
 * settled, one thing at a time. After every wait it settles the handlers, so that no command is issued between two
 * updates of one task (facts §0.11).
 */
export async function drive(
  session: Session,
  loop: Loop<unknown>,
  pump: EffectPump,
  show: (doing: string) => void,
): Promise<void> {
  const settled: Settled[] = [];
  const scopes = new Map<string, CancellationScope>();

  function begin(op: Op): void {
    const scope = new CancellationScope();
    scopes.set(op.key, scope);
    show(describeOp(op));
    void scope
      .run(() => perform(session, pump, op))
      .then((result) => {
        scopes.delete(op.key);
        settled.push(result);
      });
  }

  async function carryOut(effect: Effect): Promise<Settled | undefined> {
    switch (effect.kind) {
      case "start":
        begin(effect.op);
        return undefined;
      case "cancel":
        scopes.get(effect.key)?.cancel();
        return undefined;
      case "settle":
        await condition(allHandlersFinished);
        pump.run();
        return undefined;
      case "wait": {
        const ready = (): boolean => settled.length > 0 || (effect.abortable && session.aborting);
        do {
          await condition(() => ready() || pump.due);
          await condition(allHandlersFinished);
          pump.run();
        } while (!ready());
        return settled.shift() ?? { kind: "abort" };
      }
    }
  }

  // A scope is kept by its parent until that one is cancelled. One for the turn, cancelled when all its work has settled,
  // lets go of the scopes of its ops; being non-cancellable it passes nothing on.
  const turn = new CancellationScope({ cancellable: false });
  await turn.run(async () => {
    let next = loop.next();
    while (next.done !== true) next = loop.next(await carryOut(next.value));
  });
  turn.cancel();
}

/** Never rejects: an op always settles as a value. */
async function perform(session: Session, pump: EffectPump, op: Op): Promise<Settled> {
  const { key } = op;
  switch (op.kind) {
    case "model":
      offerSurface(session, op.length);
      return { kind: "model", key, outcome: await runModelCall(session.segment, op) };
    case "summary":
      offerSurface(session, session.log.surface.length);
      return { kind: "summary", key, outcome: await runModelCall(session.segment, op) };
    case "tool":
      return { kind: "tool", key, result: await runWorldTool(session, op) };
    case "route":
      return { kind: "route", key, route: await routeOf(op.request) };
    case "tools":
      await refreshTable(session);
      return { kind: "tools", key };
    case "sleep":
      try {
        await sleep(op.ms, { summary: op.summary });
      } catch (error) {
        if (!isCancellation(error)) throw error;
      }
      return { kind: "sleep", key };
    case "zone":
      return {
        kind: "zone",
        key,
        zone: await answerOr(() =>
          zoneCalls({ summary: describeOp(op) })["zone.resolve"](op.local),
        ),
      };
    case "time":
      return {
        kind: "time",
        key,
        text: await answerOr(() =>
          zoneCalls({ summary: describeOp(op) })["time.reading"](op.input),
        ),
      };
    case "job":
      return { kind: "job", key, answer: await performJobWork(session, pump.jobs, op) };
  }
}

/** What an activity says, or undefined when it fails or is cancelled. */
async function answerOr<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}

function describeOp(op: Op): string {
  switch (op.kind) {
    case "model":
      return `calling ${op.route}`;
    case "summary":
      return `compacting with ${op.route}`;
    case "tool":
      return `running ${op.row.name}`;
    case "sleep":
      return op.summary;
    case "job":
      return describeJobWork(op.work);
    case "zone":
      return "looking up a time zone";
    case "time":
      return "reading the clock";
    case "route":
    case "tools":
      return "asking for the tool table";
  }
}
