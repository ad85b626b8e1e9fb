import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  defineUpdate,
  isCancellation,
  setHandler,
  workflowInfo,
} from "@temporalio/workflow";
import { refuse, type Refusal } from "../contracts/errors.js";
import { commands, queries } from "../contracts/names.js";
import type { LogQuery, SessionInput, SurfaceQuery } from "../contracts/session.js";
import {
  cancelAll,
  close,
  configure,
  interrupt,
  refusalOf,
  rejection,
  sendMessage,
  writeTodos,
} from "../domain/commands.js";
import type { SessionPolicy } from "../domain/policy.js";
import { Session } from "../domain/session.js";
import { sessionInputProblem } from "../domain/session-input.js";
import { runTurn } from "../domain/turn.js";
import { logPage, newestMessages, projectionsOf, surfacePage, viewOf } from "../domain/views.js";
import { createConsole, type Console } from "./console.js";
import { drive } from "./driver.js";
import { awaitHost, openTable } from "./tool-table.js";

/** What a closed session returns; everything else is in its log. */
export interface SessionResult {
  readonly turns: number;
  readonly lastSeq: number;
}

/**
 * Makes the session workflow for a policy (design D1, D10).
 *
 * Invariants:
 * 1. All handlers are set before the first await; they are synchronous and never throw.
 * 2. Handlers only record; the one loop below opens turns. It is the only lock.
 * 3. After every wait of the loop all handlers have finished before its next command (facts §0.11).
 * 4. A cancellation of the workflow closes the session; nothing is lost by it.
 */
export function createSession(
  policy: SessionPolicy,
): (input: SessionInput) => Promise<SessionResult> {
  // Not async: each promise that is pending while a session idles costs the worker 2 KB of stack (bench:memory).
  return (input) => {
    const problem = sessionInputProblem(input);
    if (problem !== undefined) throw failure(refuse("INVALID_INPUT", problem));
    const session = openLog(input);
    const console = createConsole(session, input);
    setHandlers(session, input, console.show);
    CancellationScope.current().cancelRequested.catch(() => {
      close(session, { reason: "cancelled through Temporal" });
    });
    return CancellationScope.nonCancellable(() => run(session, input, policy, console));
  };
}

async function run(
  session: Session,
  input: SessionInput,
  policy: SessionPolicy,
  console: Console,
): Promise<SessionResult> {
  await condition(allHandlersFinished);
  await openTable(session, input.host);
  const standing = new CancellationScope();
  const host = session.folds.place.live
    ? Promise.resolve()
    : standing.run(() => awaitHost(session)).catch(ignoreCancellation);
  while (session.closing === undefined) {
    await condition(allHandlersFinished);
    console.publish(session.state());
    if (session.shouldRun())
      await drive(session, runTurn(session, policy, Math.random), console.show);
    else
      await condition(
        () => session.shouldRun() || session.closing !== undefined || console.isStale(),
      );
  }
  await condition(allHandlersFinished);
  standing.cancel();
  await host;
  const { reason } = session.closing;
  session.record({ type: "session/close", data: reason === undefined ? {} : { reason } });
  console.publish("closed");
  await condition(allHandlersFinished);
  return { turns: session.folds.turn.number, lastSeq: session.log.lastSeq };
}

function openLog(input: SessionInput): Session {
  const { workflowId, startTime } = workflowInfo();
  const session = new Session(workflowId, () => Date.now());
  const { config, parentSession } = input;
  session.record({
    type: "session/open",
    data: {
      config,
      header: {
        version: 0,
        id: workflowId,
        createdAt: startTime.getTime(),
        ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
        ...(parentSession === undefined ? {} : { parentSession }),
      },
    },
  });
  return session;
}

type Command = (session: Session, input: unknown) => { readonly ok: true } | Refusal;

const handlers: readonly (readonly [name: string, command: Command])[] = [
  [commands.send, sendMessage],
  [commands.interrupt, interrupt],
  [commands.cancel, cancelAll],
  [commands.close, close],
  [commands.configure, configure],
  [commands.todoWrite, writeTodos],
];

/** Whose signals may carry an array of them (design D10). */
const batched = new Set<string>([commands.send, commands.todoWrite]);

/** Each command as an update, for callers who need the verdict, and as a signal of the same name. */
function setHandlers(session: Session, input: SessionInput, show: () => void): void {
  for (const [name, command] of handlers) {
    const handle = (argument: unknown): ReturnType<Command> => {
      const verdict = command(session, argument);
      show();
      return verdict;
    };
    setHandler(defineUpdate<ReturnType<Command>, [unknown]>(name), handle, {
      validator: (argument) => {
        const refusal = refusalOf(session, name, argument);
        if (refusal !== undefined) throw failure(refusal);
      },
    });
    setHandler(defineSignal<[unknown]>(name), (argument) => {
      const many = batched.has(name) && Array.isArray(argument);
      for (const one of many ? argument : [argument]) {
        const before = session.log.lastSeq;
        const verdict = handle(one);
        if (!verdict.ok && session.log.lastSeq === before)
          session.record(rejection(name, one, verdict));
      }
    });
  }
  setHandler(defineQuery(queries.view), () => viewOf(session, input.title));
  setHandler(defineQuery(queries.log), (query?: LogQuery) =>
    logPage(session, query ?? { after: -1, limit: 1_000 }),
  );
  setHandler(defineQuery(queries.messages), () => newestMessages(session));
  setHandler(defineQuery(queries.surface), (query?: SurfaceQuery) =>
    surfacePage(session, query ?? { from: 0, to: session.log.surface.length }),
  );
  setHandler(defineQuery(queries.projections), () => projectionsOf(session));
}

function failure(refusal: Refusal): ApplicationFailure {
  return ApplicationFailure.create({
    type: refusal.code,
    message: refusal.message,
    nonRetryable: true,
  });
}

function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
